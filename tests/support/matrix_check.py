"""The program that `tests.support.matrix` runs in each environment. It prints one line of JSON for each interface of Spark."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, Row, SparkSession

import sparkwire
from sparkwire import FUNCTIONS
from tests.support import databus_cases, databus_json_cases, datahub_cases, kafka_cases
from tests.support.cases import Case

EPOCH = datetime.datetime(1970, 1, 1)
CASES = (databus_cases, databus_json_cases, kafka_cases, datahub_cases)
HAS_SOURCES = find_spec("pyspark.sql.datasource") is not None


def session() -> SparkSession:
    """A local session in UTC."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def examples(spark: SparkSession, functions: list[Any]) -> Iterator[tuple[str, str | None]]:
    """The result of each function's example, all in one query. If that fails, it is split in halves."""
    columns = [f"CAST({function.example_expression} AS STRING) AS {function.name}" for function in functions]
    try:
        row = spark.table("sparkwire_samples").selectExpr(*columns).collect()[0]
        yield from row.asDict().items()
    except Exception as failed:  # noqa: BLE001  # Spark 3.5 raises Java's exception for named arguments
        if len(functions) == 1:
            yield functions[0].name, type(failed).__name__
            return
        half = len(functions) // 2
        yield from examples(spark, functions[:half])
        yield from examples(spark, functions[half:])


def golden(spark: SparkSession, cases: list[Case]) -> Iterator[tuple[str, Any, Any]]:
    """The expected and actual results of each function for each golden case."""
    names = sorted({name for case in cases for name in case.answers})
    rows = [(i, case.data) for i, case in enumerate(cases)]
    frame = spark.createDataFrame(rows, "id INT, data BINARY").repartition(2)
    answers = frame.selectExpr("id", *(f"{name}(data) AS {name}" for name in names)).orderBy("id").collect()
    for case, got in zip(cases, answers, strict=True):
        for name, expected in case.answers.items():
            yield f"{name} of {case.name}", from_case(expected), from_spark(got[name])


def sources(spark: SparkSession) -> Iterator[tuple[str, Any, Any]]:
    """The rows of both data sources, and the results of functions over the same files."""
    kafka, databus = sparkwire.samples() / "kafka" / "orders-0", sparkwire.samples() / "databus" / "relay_v1.bin"
    log = spark.read.format("kafka_log").option("controlRecords", "true").load(str(kafka))
    yield (
        "kafka_log",
        records(spark, f"{kafka}/*.log", "kafka_records", "offset", "value"),
        rows(log, "offset", "value"),
    )
    events = spark.read.format("databus").load(str(databus))
    yield "databus", records(spark, str(databus), "dbus_events", "position", "event"), rows(events, "position", "event")


def records(spark: SparkSession, path: str, function: str, *columns: str) -> list[Any]:
    files = spark.read.format("binaryFile").load(path)
    return rows(files.selectExpr(f"inline({function}(content))"), *columns)


def rows(table: DataFrame, *columns: str) -> list[Any]:
    return sorted([from_spark(value) for value in row] for row in table.select(*columns).collect())


def missing(spark: SparkSession, interface: str, nulls: int) -> Iterator[str]:
    """The features that an interface of this Spark lacks."""
    if interface == "pandas":
        yield f"a NULL STRUCT is a STRUCT of NULLs ({nulls} checks)"
    if not HAS_SOURCES:
        yield "no data sources"
    try:
        spark.sql("SELECT kafka_crc(message => message) FROM sparkwire_samples").collect()
    except Exception:  # noqa: BLE001  # Spark 3.5 raises Java's exception
        yield "no named arguments"


def from_spark(value: Any) -> Any:
    """As a case has it: STRUCTs as dicts, MAPs as pairs, bytes, microseconds."""
    if isinstance(value, Row):
        return {name: from_spark(field) for name, field in value.asDict().items()}
    if isinstance(value, dict):
        return sorted([key, from_spark(item)] for key, item in value.items())  # a large MAP comes in any order
    if isinstance(value, list):
        return [from_spark(item) for item in value]
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(microseconds=1)
    return bytes(value) if isinstance(value, bytearray) else value


def from_case(value: Any) -> Any:
    """A MAP's pairs as lists, sorted."""
    if isinstance(value, dict):
        return {name: from_case(field) for name, field in value.items()}
    if isinstance(value, list):
        items = [from_case(item) for item in value]
        return sorted(items) if value and isinstance(value[0], tuple) else items
    return [from_case(item) for item in value] if isinstance(value, tuple) else value


def is_struct_of_nulls(expected: Any, got: Any) -> bool:
    """All that a pandas UDF can say for a NULL STRUCT."""
    return expected is None and isinstance(got, dict) and all(field is None for field in got.values())


def main() -> None:
    """Print the counts."""
    spark = session()
    libraries = ", ".join(importlib.metadata.version(name) for name in ("numpy", "pandas", "pyarrow", "numba"))
    interfaces: Any = ("arrow", "pandas") if hasattr(F, "arrow_udf") else ("pandas",)
    for interface in interfaces:
        sparkwire.register(spark, interface=interface)
        reported = dict(examples(spark, list(FUNCTIONS.values())))
        wrong = [
            f"{f.example_expression} is {reported[f.name]}, not {f.example_result}"
            for f in FUNCTIONS.values()
            if (reported[f.name] if reported[f.name] is not None else "NULL") != f.example_result
        ]
        checks = [check for module in CASES for check in golden(spark, module.cases())]
        checks += sources(spark) if HAS_SOURCES else []
        differ = [name for name, expected, got in checks if expected != got and not is_struct_of_nulls(expected, got)]
        nulls = sum(expected != got and is_struct_of_nulls(expected, got) for _, expected, got in checks)
        by_name = {
            "spark": spark.version,
            "python": platform.python_version(),
            "interface": interface,
            "libraries": libraries,
            "examples": [len(FUNCTIONS) - len(wrong), len(FUNCTIONS)],
            "golden": [len(checks) - len(differ), len(checks)],
            "differs": "; ".join(missing(spark, interface, nulls)),
            "wrong": wrong + differ,
        }
        print(json.dumps(by_name), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
