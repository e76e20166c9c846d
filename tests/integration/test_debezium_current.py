"""Compare `current` over Debezium's messages with the database: every variant, each with some tables and points."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire import FUNCTIONS
from tests.debezium.test_golden import BEYOND_SPARK, PLACEHOLDERS, TWINS, columns, differences
from tests.support import debezium_golden as golden
from tests.support.debezium_golden import DATABASES, Point, TableTruth

RECORD = "topic STRING, offset BIGINT, key BINARY, value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>"
VARIANTS = [(database, variant) for database in DATABASES for variant in golden.variants(database)]
EVERY = 20
"""each variant checks every twentieth table at two points; the next variant checks the next tables"""
LAST = 9


def schema_variant(variant: str) -> str:
    """The variant whose messages have the schemas for this one."""
    if variant.endswith("-schemas"):
        return variant
    return TWINS.get(variant, "flat-rewrite-schemas" if variant.startswith("flat") else "json-schemas")


def tells(variant: str, truth: TableTruth, database: str) -> bool:
    """Whether the messages of a variant determine the table.

    No message identifies a changed row without a key. Flattened messages have no TRUNCATE, and with ``drop`` no DELETE. If a
    column changed its type, only the schema of that time determines its values.
    """
    if not truth.key:
        return False
    if variant.startswith("flat") and truth.name in tables_with("t", database):
        return False
    if variant == "flat-drop-headers" and truth.name in tables_with("d", database):
        return False
    return not truth.name.endswith(".evolving") or variant.endswith(("schemas", "avro"))


@cache
def tables_with(operation: str, database: str) -> set[str]:
    """Tables with messages of this operation."""
    messages = golden.messages(database, "json-schemas")
    operations = FUNCTIONS["debezium_op"].decode(golden.columns_of(messages)[0]).to_pylist()
    result = (message for message, op in zip(messages, operations, strict=True) if op == operation)
    return {message.topic.partition(".")[2] for message in result}


def cases(number: int, database: str) -> list[tuple[Point, TableTruth]]:
    points = golden.points(database)
    chosen = [points[LAST], points[3 + number % (LAST - 3)]]
    result = itertools.chain.from_iterable(((point, truth) for truth in point.tables) for point in chosen)
    return [case for place, case in enumerate(result) if place % EVERY == number % EVERY]


@pytest.mark.parametrize(("number", "database", "variant"), [(k, *one) for k, one in enumerate(VARIANTS)])
def test_the_table_equals_that_of_the_database(spark: SparkSession, number: int, database: str, variant: str) -> None:
    twin, losses = schema_variant(variant), golden.known_losses(database)
    rows = [(m.topic, m.offset, m.key, m.value, list(m.headers.items())) for m in golden.messages(database, variant)]
    records = spark.createDataFrame(rows, RECORD).repartition(2).cache()
    for point, truth in cases(number, database):
        if not tells(variant, truth, database):
            continue
        _, outer, name = truth.topic.split(".")
        types = columns(database, twin, truth.topic)
        changes = sparkwire.changes(
            records.where(f"topic = '{truth.topic}'"),
            format="debezium",
            table=f"`{outer}`.`{name}`",
            key="key",
            headers="headers",
            keys=truth.key,
            columns=types,
            schemas=golden.schemas(database) if variant.endswith("avro") else None,
            placeholder=PLACEHOLDERS.get(variant, "__debezium_unavailable_value"),
        )
        ends = point.next_offsets.get(variant)
        if ends is None and point.number != LAST:
            continue  # the redelivered messages are complete
        now = sparkwire.current(changes, until=None if ends is None else ends.get(truth.topic, 0) - 1)
        left = now.toArrow().to_pylist()
        assert len(left) == len(truth.rows), (truth.name, point.number)
        for expected in truth.rows:
            different = [
                unnamed(untold(differences(row, expected, truth, types, losses, twin)), row, variant) for row in left
            ]
            match = next((k for k, each in enumerate(different) if not each), None)
            assert match is not None, (truth.name, point.number, min(different, key=len))
            del left[match]
    records.unpersist()


def unnamed(result: Iterable[Any], row: dict[str, Any], variant: str) -> list[Any]:
    """The values that differ, except those of flattened messages that the row names as unknown.

    Flattened messages do not identify a change of the key, so a value that they lack does not move with it.
    """
    unknown = (row["_unavailable_"] or ()) if variant.startswith("flat") else ()
    return [one for one in result if not (one[0] in unknown and one[3] is None)]


def untold(result: Iterable[Any]) -> list[Any]:
    """The table without times that Spark cannot hold: they are NULL, and ``current`` does not report them."""
    return [one for one in result if not (BEYOND_SPARK.fullmatch(one[2] or "") and one[3] is None)]
