"""Settings of sessions: with all settings, the functions return the same results as without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire.catalogue import SAMPLES
from tests.support.arrow import plain

# One function of each kind: timestamps, strings, maps, structs, many rows, and encoders over decoders.
CALLS = {
    "dbus_timestamp": "event",
    "dbus_key": "event",
    "dbus_event": "event",
    "dbus_events": "stream",
    "kafka_message": "message",
    "kafka_records": "segment",
    "kafka_batches": "segment",
    "datahub_change": "blob",
    "datahub_after_map": "blob",
}
WRITERS = {"to_dbus_event": "dbus_event", "to_datahub_blob": "datahub_change"}
COPIES = 8

BATCHES = "spark.sql.execution.arrow.maxRecordsPerBatch"
ZONE = "spark.sql.session.timeZone"
SETTINGS: list[dict[str, str]] = [
    {"spark.sql.ansi.enabled": "false"},
    {BATCHES: "1"},
    {BATCHES: "1000000"},
    {"spark.sql.execution.arrow.useLargeVarTypes": "true"},
    {"spark.sql.adaptive.enabled": "false", BATCHES: "3"},
    {ZONE: "America/New_York"},
    {ZONE: "Pacific/Apia"},
    {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    {"spark.sql.execution.pythonUDF.arrow.concurrency.level": "2"},
]


def expected() -> dict[str, Any]:
    results = {name: FUNCTIONS[name].decode(pa.array([SAMPLES[sample]], pa.binary())) for name, sample in CALLS.items()}
    written = {name: FUNCTIONS[name].decode(results[reader]) for name, reader in WRITERS.items()}
    return {name: plain(result)[0] for name, result in (results | written).items()}


@pytest.fixture(scope="module")
def pandas(spark: SparkSession) -> Iterator[None]:
    sparkwire.register(spark, interface="pandas")
    yield
    sparkwire.register(spark)


@pytest.fixture
def settings(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    before = {name: spark.conf.get(name, None) for name in request.param}
    for name, value in request.param.items():
        spark.conf.set(name, value)
    yield request.param
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


OF_PANDAS = ("spark.sql.ansi.enabled", ZONE, "spark.sql.timestampType")
PANDAS = [settings for settings in SETTINGS if set(settings) <= set(OF_PANDAS)]


def title(settings: dict[str, str]) -> str:
    return ",".join(f"{name.rpartition('.')[2]}={value}" for name, value in settings.items())


@pytest.mark.parametrize("settings", SETTINGS, indirect=True, ids=title)
def test_results(spark: SparkSession, settings: dict[str, str]) -> None:
    assert distinct(spark) == expected(), settings


def distinct(spark: SparkSession) -> dict[str, Any]:
    """The result, which must be the same for all copies of the samples."""
    columns = [f"{name}({sample}) AS {name}" for name, sample in CALLS.items()]
    columns += [f"{name}({reader}({CALLS[reader]})) AS {name}" for name, reader in WRITERS.items()]
    samples = spark.sql(f"SELECT * FROM sparkwire_samples CROSS JOIN range(0, {COPIES}, 1, 2)")
    table = samples.selectExpr(*columns).toArrow()
    assert table.num_rows == COPIES
    for name in table.column_names:
        results = plain(table[name].combine_chunks())
        assert results == results[:1] * COPIES
    return {name: plain(table[name].combine_chunks())[0] for name in table.column_names}


@pytest.mark.parametrize("settings", [{"spark.sql.timestampType": "TIMESTAMP_NTZ"}], indirect=True)
def test_an_ntz_literal_gives_a_clear_error(spark: SparkSession, settings: dict[str, str]) -> None:
    """With this setting, a plain TIMESTAMP literal is TIMESTAMP_NTZ."""
    del settings
    with pytest.raises(
        PythonException, match=r"to_dbus_event\(\) expected event\.timestamp TIMESTAMP, got TIMESTAMP_NTZ"
    ):
        spark.sql("SELECT to_dbus_event(named_struct('timestamp', TIMESTAMP '2024-07-01 12:34:56'))").collect()
    cast = "CAST(TIMESTAMP '2024-07-01 12:34:56' AS TIMESTAMP_LTZ)"
    [row] = spark.sql(f"SELECT dbus_timestamp_nanos(to_dbus_event(named_struct('timestamp', {cast}))) AS n").collect()
    assert row.n == 1719837296 * 10**9


@pytest.mark.parametrize("settings", PANDAS, indirect=True, ids=title)
def test_results_with_pandas(spark: SparkSession, pandas: None, settings: dict[str, str]) -> None:
    assert distinct(spark) == expected(), settings
