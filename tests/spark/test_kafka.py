"""The example queries over Kafka segments: their input is golden data, and their results equal Kafka's."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support.kafka_cases import archive

SQL = ROOT / "sql"
INPUT = sparkwire.samples() / "kafka"

COPIES = {
    "clicks.log": ("segments_other", "mixed_v0_v1_v2/00000000000000001000.log"),
    "orders.log": ("segments_v2", "v2_txn/00000000000000000280.log"),
    "users.log": ("segments_v2", "v2_compacted/00000000000000000050.log"),
    "damaged_crc.log": ("corrupt", "corrupt/v2_zstd__crc_flip.log"),
    "damaged_size.log": ("corrupt", "corrupt/v1_none__size_1GB.log"),
}


def test_input_is_golden() -> None:
    """The files are copies, as their README says."""
    assert {file.name for file in INPUT.glob("*.log")} == set(COPIES)
    for name, (where, path) in COPIES.items():
        assert (INPUT / name).read_bytes() == archive(where)[path]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> dict[str, list[tuple[object, ...]]]:
    """The result of each query, by the first two words of its title."""
    demo = demo_module()
    [example] = [example for example in demo.EXAMPLE_FILES if example.name == "kafka"]
    example.frame(spark).createOrReplaceTempView(example.view)
    by_name = {}
    for statement in example.statements:
        frame = spark.sql(statement.sql)
        name = " ".join(statement.title.split(":")[0].split()[:2])
        if name in ("Corrupt bytes", "Corrupt files", "Records of"):
            by_name[name] = [tuple(row) for row in frame.collect()]
    return by_name


def demo_module() -> ModuleType:
    """The script `sql/demo.py` as a module."""
    spec = importlib.util.spec_from_file_location("kafka_demo", SQL / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_damage(results: dict[str, list[tuple[object, ...]]]) -> None:
    assert results["Corrupt bytes"] == [
        ("damaged_crc.log", 1159, 481, 2, 15, False, "CRC_MISMATCH"),
        ("damaged_size.log", 2035, None, 1, 15, None, "TRUNCATED"),
    ]


def test_recovery(results: dict[str, list[tuple[object, ...]]]) -> None:
    """Kafka's recovery keeps 1159 and 2035 bytes. After these, only the corrupt records are lost."""
    assert results["Corrupt files"] == [
        ("damaged_crc.log", 2443, 1159, 15, 15, 10),
        ("damaged_size.log", 4893, 2035, 15, 15, 14),
    ]


def test_aborted_transactions(results: dict[str, list[tuple[object, ...]]]) -> None:
    """Producer, marker and first offset equal those in Kafka's index of aborted transactions (`.txnindex`)."""
    assert [(row[0], row[1], row[3]) for row in results["Records of"]] == [
        (11, 290, 280),
        (22, 315, 307),
        (11, 329, 316),
        (11, 367, 357),
    ]
