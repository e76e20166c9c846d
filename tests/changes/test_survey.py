"""What a batch of messages tells about itself does not depend on the order of the messages, or on batches."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import sparkwire
from sparkwire.avro.payloads import of_confluent
from sparkwire.avro.schemas import schemas_of
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.formats import in_json
from sparkwire.changes.records import OTHER, OWN, UNKNOWN, MessageRecords
from sparkwire.changes.survey import Survey, survey_debezium, survey_messages, text_of
from sparkwire.core.names import table_of
from sparkwire.debezium.avro_messages import avro_side

OP = {"type": "string", "field": "op"}


def debezium(type: str, value: Any, *, table: str | None = "t", topic: str = "s.t", key: Any = None) -> dict[str, Any]:
    fields = [{"type": "int32", "field": "id"}, {"type": type, "field": "v"}]
    row = {"id": 1, "v": value}
    if table is None:
        return {"topic": topic, "key": key, "value": row}
    payload = {"before": None, "after": row, "source": {"db": "d", "table": table, "ts_ms": 1000}, "op": "c"}
    schema = {"type": "struct", "name": "E", "fields": [{"type": "struct", "field": "after", "fields": fields}, OP]}
    return {"topic": topic, "key": key, "value": {"schema": schema, "payload": payload}}


def records(messages: list[dict[str, Any]]) -> MessageRecords:
    values, keys = (
        pa.array([None if m[name] is None else json.dumps(m[name]) for m in messages]) for name in ("value", "key")
    )
    return MessageRecords(values, keys, topics=pa.array([m["topic"] for m in messages]))


def surveyed(messages: list[dict[str, Any]], table: str = "t", batches: int = 1) -> Survey:
    facts: set[str] = set()
    for k in range(batches):
        some = records(messages[k::batches])
        assert some.keys is not None
        keys = in_json(some.keys, None)
        facts.update(survey_debezium(in_json(some.values, None), keys, some, table_of(table)))
    return Survey.of(facts, "debezium", table_of(table))


@pytest.mark.parametrize("seed", range(5))
def test_a_column_has_the_type_that_holds_every_version(seed: int) -> None:
    """MariaDB's times have whole seconds, so no clock tells which version is the newest."""
    versions = [("int32", 1), ("string", "a"), ("int64", 2**40)]
    messages = [debezium(type, value, key={"id": 1}) for type, value in versions]
    Random(seed).shuffle(messages)
    for batches in (1, 2, 3):
        survey = surveyed(messages, batches=batches)
        assert survey.columns == {"id": "int32", "v": "string"}
        assert survey.keys == ("id",)


def test_columns_of_other_tables_do_not_count() -> None:
    messages = [debezium("int32", 1), debezium("string", "a", table="other", topic="s.other", key={"v": "a"})]
    assert surveyed(messages).columns == {"id": "int32", "v": "int32"}
    assert surveyed(messages).tables == ["d.other", "d.t"]


@pytest.mark.parametrize(
    ("messages", "table", "topics"),
    [
        ([("t", "a"), ("other", "b"), ("t", "c"), ("other", "c")], "t", {"a": OWN, "b": OTHER, "c": UNKNOWN}),
        ([("t", "renamed")], "t", {"renamed": OWN}),
        ([(None, "renamed")], "t", {"renamed": OWN}),
        (
            [(None, "s.app.order_items"), (None, "s.app.other")],
            "app.order items",
            {"s.app.order_items": OWN, "s.app.other": UNKNOWN},
        ),
        ([(None, "a"), (None, "b")], "t", {"a": UNKNOWN, "b": UNKNOWN}),
        ([(None, "a"), ("t", "b")], "t", {"a": UNKNOWN, "b": OWN}),
    ],
)
def test_topics(messages: list[tuple[str | None, str]], table: str, topics: dict[str, str]) -> None:
    """A row names its table, or it is the only one, or its topic has the table's name; anything else is unknown."""
    survey = surveyed([debezium("int32", 1, table=name, topic=topic) for name, topic in messages], table)
    assert survey.topics == topics
    assert survey.only_table == (set(topics.values()) == {OWN})


def test_a_column_of_avro_is_no_mark_of_another_system() -> None:
    fields = [{"name": "id", "type": "int"}, {"name": "operation", "type": "string"}]
    schema = {"type": "record", "name": "Value", "namespace": "s.d.audits", "fields": fields}
    values = pa.array([b"\0\0\0\0\1\x02\x0cINSERT"])
    audits = MessageRecords(values, topics=pa.array(["s.d.audits"]))
    side = avro_side(of_confluent(values), schemas_of({1: schema}))
    for table in (None, table_of("d.audits")):
        survey = Survey.of(survey_debezium(side, None, audits, table), "debezium", table)
        assert (survey.tables, survey.advice) == (["d.audits"], [])


def test_another_system_is_named() -> None:
    canal = {"data": [{"id": "1"}], "database": "d", "es": 1, "isDdl": False, "table": "t", "type": "INSERT"}
    survey = surveyed([{"topic": "a", "key": None, "value": canal}])
    assert survey.advice == ["Canal: pass format='canal'"]
    assert survey.columns == {}
    facts = survey_messages("maxwell", records([{"topic": "a", "key": None, "value": canal}]), table_of("t"))
    assert Survey.of(facts, "maxwell", table_of("t")).advice == ["Canal: pass format='canal'"]


@pytest.mark.parametrize(
    ("format", "tables"),
    [
        (
            "datahub",
            ["example_db.example_table_pk", "shop.orders"],
        ),  # and a statement about example_db.example_table_nopk
        ("canal", ["shopdb.evolving", "shopdb.order_lines", "shopdb.staging"]),
    ],
)
def test_a_table_with_only_statements_has_no_changes(format: str, tables: list[str]) -> None:
    """The tables of the bundled messages are those with rows, and each declares its columns."""
    lines = (sparkwire.samples() / format / "messages.jsonl").read_bytes().splitlines()
    messages = MessageRecords(values=pa.array(lines, pa.binary()))
    assert Survey.of(survey_messages(format, messages, None), format, None).tables == tables
    for table in map(table_of, tables):
        assert Survey.of(survey_messages(format, messages, table), format, table).columns


def test_canal_declares_its_columns_and_keys() -> None:
    def insert(**types: str) -> dict[str, Any]:
        row = dict.fromkeys(types, "1")
        own = {"data": [row], "database": "d", "table": "t", "type": "INSERT", "mysqlType": types, "pkNames": ["id"]}
        return {"topic": "a", "key": None, "value": own}

    messages = [insert(id="int", v="int"), insert(id="int unsigned", v="varchar(10)", w="decimal(5,2)")]
    for some in (messages, messages[::-1]):
        facts = survey_messages("canal", records(some), table_of("d.t"))
        survey = Survey.of(facts, "canal", table_of("d.t"))
        assert survey.columns == {"id": "BIGINT", "v": "STRING", "w": "DECIMAL(5,2)"}
        assert survey.keys == ("id",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "datahub",
            '[{"name":"a","type":"LONG"},{"name":"b","type":"DATE"},{"name":"c","type":"BYTES"},{"name":"d","type":"X"}]',
        ),
        (
            "canal",
            '{"a":"int unsigned","b":"timestamp(6)","c":"varbinary(3)","d":"decimal(10,3)","e":"set(\'x\')","f":"json"}',
        ),
    ],
)
def test_declared_types_are_texts_that_the_user_may_write(name: str, text: str) -> None:
    """A column's text in a survey is a type of its system, with the same column in Spark."""
    system = SYSTEMS[name]
    assert system.declared_types is not None
    for type in system.declared_types(text).values():
        assert system.type_of(text_of(type)).arrow == type.arrow
