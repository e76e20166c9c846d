"""The table that Debezium's messages come to, against the database's answer: every variant, with some tables and points each."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.debezium.test_golden import PLACEHOLDERS, TWINS, columns, differences
from tests.support import debezium_golden as golden
from tests.support.debezium_golden import DATABASES, Point, TableTruth

RECORD = "topic STRING, offset BIGINT, key BINARY, value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>"
VARIANTS = [(database, variant) for database in DATABASES for variant in golden.variants(database)]
EVERY = 6
"""a variant has each sixth of the tables, and the next one the tables beside them"""
LAST = 9
UNTOLD = "infinit"
"""times that a column of Spark cannot hold; current has no place to say so"""


def schema_variant(variant: str) -> str:
    """The variant whose messages have the schemas of this one's."""
    if variant.endswith("-schemas"):
        return variant
    return TWINS.get(variant, "flat-rewrite-schemas" if variant.startswith("flat") else "json-schemas")


def tells(variant: str, truth: TableTruth, database: str) -> bool:
    """Whether the messages of a variant tell the table: no rows without a key; flattened ones know no TRUNCATE, and only a
    schema of their time tells what became of a column that changed its type."""
    if not truth.key:
        return False
    if variant.startswith("flat") and truth.name in truncated(database):
        return False
    return not truth.name.endswith(".evolving") or variant.endswith(("schemas", "avro"))


def truncated(database: str) -> set[str]:
    """Tables of which the messages have a TRUNCATE."""
    found = (m for m in golden.messages(database, "json-schemas") if m.value and b'"op":"t"' in m.value)
    return {message.topic.partition(".")[2] for message in found}


def cases(number: int, database: str) -> list[tuple[Point, TableTruth]]:
    points = golden.points(database)
    chosen = [points[LAST], points[3 + number % (LAST - 3)]]
    found = itertools.chain.from_iterable(((point, truth) for truth in point.tables) for point in chosen)
    return [case for place, case in enumerate(found) if place % EVERY == number % EVERY]


@pytest.mark.parametrize(("number", "database", "variant"), [(k, *one) for k, one in enumerate(VARIANTS)])
def test_the_table_is_what_the_database_holds(spark: SparkSession, number: int, database: str, variant: str) -> None:
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
        now = sparkwire.current(changes, as_of=point.next_offsets[variant].get(truth.topic, 0) - 1)
        left = now.toArrow().to_pylist()
        assert len(left) == len(truth.rows), (truth.name, point.number)
        for expected in truth.rows:
            different = [untold(differences(row, expected, truth, types, losses, twin)) for row in left]
            match = next((k for k, found in enumerate(different) if not found), None)
            assert match is not None, (truth.name, point.number, min(different, key=len))
            del left[match]
    records.unpersist()


def untold(found: list[tuple[str, str, str, object]]) -> list[tuple[str, str, str, object]]:
    return [one for one in found if not (UNTOLD in (one[2] or "") and one[3] is None)]
