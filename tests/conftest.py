"""One Spark session for the whole run: it takes seconds to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import sparkwire

# Workers have to be the Python that has the package.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


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
