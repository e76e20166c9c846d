"""Compare typed values with the databases: every value of every table, at every point of the scenario, in every variant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkwire.avro.payloads import of_confluent
from sparkwire.avro.schemas import schemas_of
from sparkwire.changes.records import MessageRecords
from sparkwire.core.names import Table, table_of
from sparkwire.debezium.avro_messages import avro_columns, avro_side
from sparkwire.debezium.table_columns import MessageSide, has_name
from tests.support import debezium_golden as golden
from tests.support.debezium_golden import DATABASES, Loss, Message
from tests.support.debezium_rows import Rows, debezium_rows, survey
from tests.support.oracles.debezium_truth import same

UNEXPECTED = "what did not fit"
BEYOND_SPARK = re.compile(r"-?infinity|.* BC|\d{5,}-.*")
WITH_SCHEMAS = ("json-schemas", "alt-json-schemas", "ext-json-schemas", "flat-rewrite-schemas")
TWINS = {
    "json": "json-schemas",
    "alt-json": "alt-json-schemas",
    "ext-json": "ext-json-schemas",
    "flat-rewrite": "flat-rewrite-schemas",
    "avro": "json-schemas",
    "flat-rewrite-avro": "flat-rewrite-schemas",
}
PLACEHOLDERS = {"ext-json": "<unchanged>", "ext-json-schemas": "<unchanged>"}


def table_named(topic: str) -> Table:
    _, outer, name = topic.split(".")
    return table_of(f"`{outer}`.`{name}`")


@cache
def arrays(database: str, variant: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The values, keys and topics of a variant's messages."""
    return golden.columns_of(golden.messages(database, variant))


@cache
def avro_sides(database: str, variant: str) -> list[MessageSide]:
    """The decoded values and keys of a variant with Avro."""
    values, keys, _ = arrays(database, variant)
    schemas = schemas_of(golden.schemas(database))
    return [avro_side(of_confluent(column), schemas) for column in (values, keys)]


@cache
def columns(database: str, variant: str, topic: str) -> dict[str, str]:
    values, _, _ = arrays(database, variant)
    return survey(MessageRecords(values), table_named(topic)).columns


def changes(database: str, variant: str, topic: str, types: dict[str, str]) -> tuple[Rows, list[Message]]:
    result = golden.messages(database, variant)
    values, keys, topics = arrays(database, variant)
    given: dict[str, Any] = {"keys": keys, "topics": topics}
    given["placeholder"] = PLACEHOLDERS.get(variant, "__debezium_unavailable_value")
    if variant.endswith("avro"):
        value, key = avro_sides(database, variant)
        given |= {"read_values": lambda messages, headers: value, "read_keys": lambda keys, headers: key}
    return debezium_rows(values, types, table_named(topic), **given), result


@cache
def full_changes(database: str, variant: str, topic: str) -> tuple[Rows, list[Message]]:
    """The changes of messages that declare their types."""
    return changes(database, variant, topic, columns(database, variant, topic))


class Replay:
    """A table to which changes are applied one after the other."""

    def __init__(self) -> None:
        self.rows, self.bag = dict[Any, dict[str, Any]](), list[dict[str, Any]]()
        self.moved: dict[str, Any] = {}

    def apply(self, change: dict[str, Any], message: Message) -> None:
        op, before, after = change["op"], change["before"], change["after"]
        if op == "TRUNCATE":
            self.rows.clear()
            self.bag.clear()
        elif change["keys"] is None:
            if before is not None and message.value is not None:
                self.bag.remove(before)
            if after is not None:
                self.bag.append(after)
        elif op == "DELETE":
            old = self.rows.pop(tuple(before[name] for name in change["keys"]), None)
            if old is not None and "__debezium.newkey" in message.headers:
                self.moved = old
        else:
            key = tuple(after[name] for name in change["keys"])
            old = self.rows.get(key, self.moved if "__debezium.oldkey" in message.headers else {})
            kept = {name: old.get(name) for name in change["unavailable"] or ()}
            self.rows[key] = after | kept | {UNEXPECTED: dict(change["unexpected"] or ())}

    @property
    def all(self) -> list[dict[str, Any]]:
        return [*self.rows.values(), *self.bag]


def topics(database: str) -> list[str]:
    return sorted({table.topic for point in golden.points(database) for table in point.tables})


def replays(database: str, variant: str, topic: str) -> Iterator[tuple[int, Any, list[dict[str, Any]]]]:
    """For each point: its number, the true table, and the result of the changes up to the point."""
    result, messages = full_changes(database, variant, topic)
    rows = result.batch.to_pylist()
    truths = [(point, {table.topic: table for table in point.tables}.get(topic)) for point in golden.points(database)]
    replay, place = Replay(), 0
    for point, truth in truths:
        end = point.next_offsets[variant].get(topic, 0)
        while place < len(rows) and messages[result.rows[place]].offset < end:
            message = messages[result.rows[place]]
            assert rows[place]["error"] is None
            replay.apply(rows[place], message)
            place += 1
        if truth is not None:
            yield point.number, truth, replay.all


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("variant", WITH_SCHEMAS)
def test_typed_values_equal_those_of_the_database(database: str, variant: str) -> None:
    known = {loss for loss in golden.known_losses(database) if loss.variant == variant}
    seen, compared = set[Loss](), 0
    flat = variant.startswith("flat")
    for topic in topics(database):
        types = columns(database, variant, topic)
        truncated = False
        for _, truth, rows in replays(database, variant, topic):
            truncated |= flat and len(rows) > len(truth.rows) and bool(truth.key)
            if truncated or (flat and not truth.key):
                continue  # flattened messages contain no truncates, and do not identify changed rows without a key
            assert len(rows) == len(truth.rows), (topic, truth)
            left = list(rows)
            for expected in truth.rows:
                lost = (lost_values(row, expected, truth, types, variant) for row in left)
                place, losses = next(((k, each) for k, each in enumerate(lost) if known.issuperset(each)), (None, {}))
                assert place is not None, why(left, expected, truth, types, known, variant)
                del left[place]
                seen |= losses.keys()
                compared += len(truth.columns)
    assert compared > 5000
    assert all(is_restored(loss) for loss in known - seen)


def lost_values(
    row: dict[str, Any], expected: Any, truth: Any, types: dict[str, str], variant: str
) -> dict[Loss, tuple[Any, ...]]:
    """The values that differ from the database's."""
    key = json.dumps([expected[name] for name in truth.key])
    result = dict[Loss, tuple[Any, ...]]()
    for name, text in expected.items():
        kind = next(column.get("base") or column["type"] for column in truth.columns if column["name"] == name)
        if BEYOND_SPARK.fullmatch(text or ""):
            said = row.get(UNEXPECTED, {}).get(name)
            if row.get(name) is None and (said == text if "infinity" in text else said is not None):
                continue
        if not same(row.get(name), types.get(name, "").partition("(")[0], kind, text):
            result[Loss(variant, truth.name, name, key, str(text))] = (name, kind, text, row.get(name))
    return result


def is_restored(loss: Loss) -> bool:
    """Whether sparkwire gives the database's value although the message has another, or none: a generated column stays."""
    return (
        BEYOND_SPARK.fullmatch(loss.text) is not None
        or loss.column == "gen"
        or (loss.column, loss.text) == ("en", "c,d")
    )


def differences(
    row: dict[str, Any], expected: Any, truth: Any, types: dict[str, str], known: Set[Loss], variant: str
) -> list[Any]:
    """The values that differ from the database's and are no known losses."""
    lost = lost_values(row, expected, truth, types, variant)
    return [value for loss, value in lost.items() if loss not in known]


def why(left: Any, expected: Any, truth: Any, types: dict[str, str], known: Set[Loss], variant: str) -> str:
    """The row with the fewest differences, and these differences."""
    every = (differences(row, expected, truth, types, known, variant) for row in left)
    nearest = min(every, key=len, default=None)
    return f"{truth.name} {[expected[name] for name in truth.key]}: {nearest}"


@pytest.mark.parametrize("database", DATABASES)
def test_a_registry_gives_the_same_columns_as_embedded_schemas(database: str) -> None:
    texts = [text for _, text in sorted(golden.schemas(database).items())]
    for topic in topics(database):
        types = columns(database, "json-schemas", topic)
        assert avro_columns(texts, table_named(topic)) == types, topic


def test_a_registry_with_the_names_that_avro_allows() -> None:
    """With ``schema.name.adjustment.mode=avro``, the database ``shop-db`` is ``shop_db`` in the names of schemas."""
    texts = list(golden.schemas("mariadb").values())
    adjusted = [text.replace("shopdb", "shop_db") for text in texts]
    columns_of_customers = avro_columns(texts, table_of("shopdb.customers"))
    assert columns_of_customers
    assert avro_columns(adjusted, table_of("shop-db.customers")) == columns_of_customers
    key = pa.array(["shop.shop_db.customers.Key", "shop.shop.customers.Key"])
    assert has_name(key, table_of("shop-db.customers")).tolist() == [True, False]


def test_a_registry_of_a_connector_whose_prefix_has_a_dot() -> None:
    """The last part of the prefix is where the names of other connectors have a database."""
    texts = [text.replace("shop.shopdb", "my.company.public") for text in golden.schemas("mariadb").values()]
    table, other = table_of("shop.public.customers"), table_of("shop.private.customers")
    assert avro_columns(texts, table) == {}
    assert avro_columns(texts, table, exists=True) == avro_columns(texts, table_of("public.customers")) != {}
    assert avro_columns(texts, other, exists=True) == {}


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("variant", TWINS)
def test_given_types_read_the_same_values_as_embedded_schemas(database: str, variant: str) -> None:
    for topic in topics(database):
        if topic.endswith(".evolving") and not variant.endswith("avro"):
            continue  # its messages need the schemas of their time
        types = columns(database, TWINS[variant], topic)
        bare, _ = changes(database, variant, topic, types)
        full, _ = full_changes(database, TWINS[variant], topic)
        assert np.array_equal(bare.rows, full.rows)
        for name in bare.batch.schema.names:
            # Compare texts, because NaN does not equal NaN.
            assert str(bare.batch.column(name).to_pylist()) == str(full.batch.column(name).to_pylist()), (topic, name)
