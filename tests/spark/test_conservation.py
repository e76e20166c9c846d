"""No message vanishes: two thousand of many kinds, each with its own offset, in the change table of each format."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.changes.declarations import SYSTEMS
from tests.support import mixed_messages
from tests.support.mixed_messages import KINDS, OUT
from tests.support.system_messages import COLUMNS, TABLE

COUNT = 2000
RECORDS = "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>"


@pytest.fixture(scope="module")
def records(spark: SparkSession) -> DataFrame:
    _, messages = mixed_messages.mixed(COUNT, 26)
    return spark.createDataFrame([tuple(message) for message in messages], RECORDS).cache()


def results(df: DataFrame, format: str, **options: Any) -> dict[int, list[tuple[str | None, int | None, str | None]]]:
    """The operation, id and error of each row, by the offset of its message."""
    changes = sparkwire.changes(
        df,
        format=format,
        table=TABLE,
        key="key",
        headers="headers",
        keys=["id"],
        columns=COLUMNS | ({"id": "LONG"} if format == "datahub" else {}),
        **options,
    )
    found: dict[int, list[tuple[str | None, int | None, str | None]]] = {}
    for offset, *row in changes.select("offset", "_op_", "id", "_error_").collect():
        found.setdefault(offset, []).append(tuple(row))
    return found


def result(rows: list[tuple[str | None, int | None, str | None]]) -> str:
    if not rows:
        return OUT
    assert all(op is not None or error is not None for op, _, error in rows)
    return "row" if any(error is None for _, _, error in rows) else "error"


@pytest.mark.parametrize("format", ["debezium", *SYSTEMS])
def test_every_message_is_a_row_or_is_left_out_by_name(records: DataFrame, format: str) -> None:
    kinds, _ = mixed_messages.mixed(COUNT, 26)
    found = results(records, format)
    wrong = {
        (kind.name, str(kind.expected(format)), result(found.get(offset, [])))
        for offset, kind in enumerate(kinds)
        if result(found.get(offset, [])) not in kind.expected(format)
    }
    assert sorted(wrong) == []
    ids = {
        (kinds[offset].name, id, offset) for offset, rows in found.items() for op, id, error in rows if error is None
    }
    assert {name for name, id, offset in ids if id != offset} <= {"truncate", "Canal truncate"}


@pytest.mark.parametrize("format", ["debezium", "maxwell"])
def test_the_order_of_the_source_loses_none_either(records: DataFrame, format: str) -> None:
    """A message without a position in its source has an error."""
    kinds, _ = mixed_messages.mixed(COUNT, 26)
    found = results(records, format, order="source")
    vanished = {kind.name for offset, kind in enumerate(kinds) if offset not in found}
    assert vanished <= {kind.name for kind in KINDS if OUT in kind.expected(format)}
