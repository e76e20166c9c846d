"""The report of ``doctor`` and its advice."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire.catalogue.diagnosis import ROUND_TRIPS, ProcessFacts, advice, report


def process_facts(**facts: object) -> ProcessFacts:
    healthy = ProcessFacts(
        host="a",
        python="3.11.7",
        versions={"sparkwire": "1", "pyspark": "4.3.0", "numba": "0.62"},
        checksums="x86-64, 512-bit carry-less multiplication",
        ready="none in this package: it is the wheel for every platform, or a source tree",
        cache="/cache",
        no_cache="",
        kernels=90,
        trips={"Databus event": 0.2},
        wrong=[],
    )
    return healthy._replace(**facts)  # type: ignore[arg-type]


def test_of_a_session(spark: SparkSession) -> None:
    report = sparkwire.doctor(spark)
    said = str(report)
    assert repr(report) == said
    assert report.driver.versions["pyspark"] == spark.version
    assert len(report.executors) == 1
    assert said.startswith(f"Spark {spark.version}, classic, interface arrow\n")
    assert said.count("checksums") == 2
    for name in ROUND_TRIPS:
        assert said.count(f"{name} ") == 2
    assert "WRONG" not in said
    assert "TO DO: " in said.splitlines()[-1]


def test_round_trips_fail_if_bytes_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparkwire.catalogue import diagnosis

    monkeypatch.setattr(diagnosis, "ROUND_TRIPS", {"one": lambda: False, "other": lambda: 1 // 0})
    assert diagnosis.examine().wrong == [
        "one: other bytes than those given",
        "other: ZeroDivisionError: integer division or modulo by zero",
    ]


def test_nothing_to_do() -> None:
    assert list(advice(process_facts(), [process_facts(host="b")])) == []
    result = report(["Spark 4.3.0"], process_facts(), [])
    assert result.to_do == ()
    assert str(result).endswith("TO DO: nothing.")


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"versions": {"sparkwire": "0", "pyspark": "4.3.0", "numba": "0.62"}}, "b has sparkwire 0 and the driver 1"),
        ({"python": "3.12.1"}, "b runs Python 3.12.1 and the driver 3.11.7: set PYSPARK_PYTHON"),
        ({"cache": "", "no_cache": "it is off"}, "b keeps no compiled kernels (it is off): set NUMBA_CACHE_DIR"),
        (
            {"trips": {"Databus event": 17.0}},
            "b compiled kernels, up to 17 s a call: run python -m sparkwire warm",
        ),
        ({"checksums": "tables"}, "b has no carry-less multiplication"),
        ({"wrong": ["Kafka records, zstd: other bytes than those given"]}, "b is broken: Kafka records, zstd"),
    ],
)
def test_what_to_do(facts: dict[str, object], sentence: str) -> None:
    [said] = advice(process_facts(), [process_facts(host="b", **facts)])
    assert said.startswith(sentence)
    assert said.endswith(".")
