"""Fixtures for tests of several modules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.registry_server import RegistryServer, serving


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """An empty schema registry."""
    with serving() as registry:
        yield registry


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Spark interprets expressions: for a few rows, compiling the many statements of a merge takes longer than running them."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)
