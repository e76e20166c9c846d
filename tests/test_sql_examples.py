"""The example queries of `sql/examples` run and answer, and their input is what its README says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.databus_cases import golden_bytes, golden_events
from tests.oracles import databus as oracle

SQL = Path(__file__).parent.parent / "sql"
INPUT = sparkwire.samples() / "databus"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    """`sql/demo.py`, which is a script and no package's module."""
    spec = importlib.util.spec_from_file_location("demo", SQL / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_query_answers(spark: SparkSession, demo: ModuleType) -> None:
    """Titled, and at least a row, for every query of every example."""
    for example in demo.EXAMPLE_FILES:
        example.frame(spark).createOrReplaceTempView(example.view)
        for statement in example.statements:
            assert statement.title
            answer = spark.sql(statement.sql)
            assert not answer.columns or answer.take(1), statement.title


def test_every_example_is_shown(demo: ModuleType) -> None:
    assert {example.name for example in demo.EXAMPLE_FILES} == {file.stem for file in (SQL / "examples").glob("*.sql")}


def test_databus_damage_in_sql(spark: SparkSession, demo: ModuleType) -> None:
    """The demo's list of damage, against the oracle's."""
    answer = statement(spark, demo, "Damage").collect()
    expected = [
        ("damaged_v1.bin", row["position"], len(row["event"]), row["status"], row["error"])
        for row in oracle.split((INPUT / "damaged_v1.bin").read_bytes())
        if row["status"] != "OK"
    ]
    assert [tuple(row) for row in answer] == expected
    assert len(expected) == 6


def test_databus_windows_in_sql(spark: SparkSession, demo: ModuleType) -> None:
    """The windows as Java's own record of the stream has them: each ends with a control event."""
    deliveries: list[list[dict[str, Any]]] = [[]]
    for java, _ in golden_events("window_stream"):
        deliveries[-1].append(java)
        if java["sourceId"] < 0:
            deliveries.append([])
    expected = [
        (max(java["sequence"] for java in events), sum(java["sourceId"] > 0 for java in events))
        for events in deliveries[:-1]
    ]
    answer = statement(spark, demo, "The relay's windows").collect()
    assert [(row["window"], row["events"]) for row in answer] == expected


def statement(spark: SparkSession, demo: ModuleType, title: str) -> Any:
    """The answer to the one Databus query whose title begins so."""
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == "databus"]
    example.frame(spark).createOrReplaceTempView(example.view)
    view, *queries = example.statements
    spark.sql(view.sql)
    [query] = [query for query in queries if query.title.startswith(title)]
    return spark.sql(query.sql)


def test_databus_input_is_golden() -> None:
    """The sound files are copies, as the README says."""
    v2 = [event for java, event in golden_events("events_v2_le") if in_espresso(java["i"])]
    assert (INPUT / "relay_v1.bin").read_bytes() == golden_bytes("window_stream")
    assert (INPUT / "espresso_v2.bin").read_bytes() == b"".join(v2)


def in_espresso(i: int) -> bool:
    return i <= 35 or 219 <= i <= 252 or i >= 352


def test_databus_damage_is_as_told() -> None:
    """The damaged file is the relay's stream after the steps that its README names."""
    at = {java["i"]: java["position"] for java, _ in golden_events("window_stream")}
    stream = bytearray(golden_bytes("window_stream"))
    stream[at[2] + 70] ^= 1 << 3
    stream[at[8] + 14] ^= 1
    stream[at[20] + 7] ^= 1 << 7
    stream[at[30] : at[30] + 256] = bytes(256)
    torn = stream[: at[52] + 33]
    del torn[at[44] + 20 : at[44] + 45]
    assert (INPUT / "damaged_v1.bin").read_bytes() == bytes(torn)
