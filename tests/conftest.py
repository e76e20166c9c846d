"""Fixtures of all tests: one Spark session for the whole run, because it takes seconds to start."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.kernels.cache import announcement
from tests.support import ROOT
from tests.targets import COLLECTED, LONGEST, TARGETS, target

# Whether compilation is announced depends on the machine, so it is disabled in the tests' logs.
announcement.made = True
# Workers must run the Python that has the package.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
# Settings of every session, also in child processes.
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "tests" / "support" / "spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic local session with every function registered."""
    session = (
        SparkSession.builder.master("local[2]")
        .appName("sparkwire tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    sparkwire.register(session)
    yield session
    session.stop()


def pytest_collection_finish() -> None:
    """Exclude modules and golden data, which stay, from garbage collection: each full collection would visit them again."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in TARGETS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its make target, before pytest selects by marks. The longest files begin."""
    places = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.relative_to(ROOT).as_posix(), len(places)))
    for item in items:
        needs_spark = "spark" in getattr(item, "fixturenames", ())
        starts_processes = item.get_closest_marker("process") is not None
        test = f"{item.path.relative_to(ROOT).as_posix()}::{item.nodeid.partition('::')[2]}"
        item.add_marker(target(test, needs_spark=needs_spark, starts_processes=starts_processes))
    config.stash[COLLECTED] = {item.nodeid: {mark.name for mark in item.iter_markers()} for item in items}
