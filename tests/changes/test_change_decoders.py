"""The decoders of change tables without Spark: histories in each system's form, applied in order to a dictionary."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from sparkwire.avro.schemas import schemas_of
from sparkwire.avro.typed_rows import by_name
from sparkwire.changes.columns import LIVE
from sparkwire.changes.databus import DatabusSource, databus_changes, databus_schema, keys_in_schema
from sparkwire.changes.formats import decoder
from sparkwire.changes.orders import NUMBER, numbers
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.survey import Survey, survey_messages
from sparkwire.core.names import table_of
from sparkwire.databus.client.buffer import split
from tests.support.client_streams import end, event
from tests.support.databus_members import MEMBER, MEMBER_ID, Members, member
from tests.support.datahub_history import KEYS, DataHubHistory, key_of
from tests.support.oracles.databus_writer import BYTES_KEY, PAYLOAD, SCHEMA_KEY, write

COLUMNS = {"one": {"id": "STRING", "v": "LONG"}, "two": {"a": "STRING", "b": "STRING", "v": "LONG"}}


def in_order(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The valid changes, the oldest first. Of two changes with the same order, the one that leaves a row comes last."""
    rows = [row for row in batch.to_pylist() if row["_error_"] is None]
    return sorted(rows, key=lambda row: ([part or 0 for part in row["_order_"].values()], row["_op_"] in LIVE))


def test_databus() -> None:
    """With SCN regressions and repeated windows. A DELETE without a payload gets the key of its event."""
    read = by_name(schemas_of([MEMBER]))["com.shop.Member"]
    for seed in (4, 5):
        history = Members(seed)
        events = pa.array([event.as_py() for event in split(history.sent()).events], pa.binary())
        source = DatabusSource("com.shop.Member", read, keys_in_schema(read.schemas.texts[-1]), read.schemas)
        changes = databus_changes(events, None, pa.array(range(len(events))), source)
        table: dict[Any, bytes] = {}
        for row in in_order(changes.batch):
            table.pop((40, row["id"]), None)
            if row["_op_"] == "UPSERT":
                table[40, row["id"]] = row["name"].encode()
        assert table == history.table
        assert changes.batch["_keys_"][0].as_py() == ["id"]


def test_the_key_of_a_databus_schema() -> None:
    text = '{"type":"record","name":"A","fields":[{"name":"key","type":"long"}]%s}'
    assert keys_in_schema(text % ',"meta":"dbFieldName=sy$a;pk=a, b;"') == ("a", "b")
    assert keys_in_schema(text % "") == ("key",)
    assert keys_in_schema('{"type":"record","name":"A","fields":[{"name":"id","type":"long"}]}') is None


def test_a_delete_with_an_unknown_key_is_an_error() -> None:
    """The event's key does not contain a key of two columns."""
    read = by_name(schemas_of([MEMBER]))["com.shop.Member"]
    events = pa.array([event.as_py() for event in split(Members(4).sent()).events], pa.binary())
    changes = databus_changes(
        events, None, None, DatabusSource("com.shop.Member", read, ("id", "name"), read.schemas)
    ).batch.to_pylist()
    assert {(row["_op_"], row["_error_"]) for row in changes} == {("UPSERT", None), ("DELETE", "MISSING_FIELD")}


def test_events_whose_schema_is_unknown_are_errors() -> None:
    """A column was added, and the new schema is not given. Bytes that are no event may be of the source, too."""
    known = schemas_of([MEMBER, '{"type":"record","name":"Other","fields":[{"name":"id","type":"long"}]}'])
    source = DatabusSource("com.shop.Member", by_name(known)["com.shop.Member"], ("id",), known)
    other_id = next(key for key, k in known.keys.items() if isinstance(key, bytes) and k == 1)
    events = [
        event(1, 40, 1, member(1, "a"), schema_id=MEMBER_ID),
        event(2, 40, 1, member(1, "b"), schema_id=bytes(16)),
        event(3, 40, 1, opcode=2, schema_id=bytes(16)),
        event(4, 41, 1, b"\2", schema_id=other_id),
        end(4),
        b"garbage",
        None,
    ]
    changes = databus_changes(pa.array(events, pa.binary()), None, None, source)
    rows = [(row["_op_"], row["_table_"], row["name"]) for row in changes.batch.to_pylist()]
    assert changes.rows.tolist() == [0, 1, 2, 5]
    assert rows[0] == ("UPSERT", "com.shop.Member", "a")
    assert [(table, name) for _, table, name in rows[1:]] == [(None, None)] * 3
    first, *others = changes.batch["_error_"].to_pylist()
    assert first is None
    assert others[:2] == ["UNKNOWN_SCHEMA"] * 2
    assert others[2] is not None


def databus_rows(*events: Any, epochs: pa.Array | None = None) -> list[dict[str, Any]]:
    known = schemas_of({0: MEMBER, MEMBER_ID: MEMBER})
    source = DatabusSource("com.shop.Member", by_name(known)["com.shop.Member"], ("id",), known)
    changes = databus_changes(pa.array(events, pa.binary()), None, None, source, epochs)
    return list(changes.batch.to_pylist())


def test_an_event_without_a_key_is_an_error() -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(MEMBER), {"id": None, "name": "a"})
    [row] = databus_rows(event(1, 40, 1, out.getvalue(), schema_id=MEMBER_ID))
    assert (row["_op_"], row["name"], row["_error_"]) == ("UPSERT", "a", "MISSING_FIELD")


def test_control_events_are_no_rows_whatever_their_schema_id() -> None:
    """The sixteen zeros of a control event are version 0 of a schema, too. Databus takes source 0 for data."""
    assert databus_rows(end(1), event(1, -4, 1, member(1, "a"), schema_id=MEMBER_ID)) == []
    [row] = databus_rows(event(1, 0, 1, member(5, "e"), schema_id=MEMBER_ID))
    assert row["_error_"] == "MISSING_FIELD"


def test_a_corrupt_event_is_a_row() -> None:
    """Its source id may be corrupt, too."""
    sound = event(1, 40, 1, member(1, "a"), schema_id=MEMBER_ID)
    for place in range(len(sound)):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[place] ^= 1 << bit
            [row] = databus_rows(bytes(damaged))
            assert row["_error_"] is not None, (place, bit)


def test_epochs_of_events() -> None:
    events = [event(1, 40, 1, member(1, "a"), schema_id=MEMBER_ID)] * 3
    rows = databus_rows(*events, epochs=pa.array([7, None, 2**40]))
    assert [(row["_order_"]["epoch"], row["_error_"]) for row in rows] == [
        (7, None),
        (None, "MISSING_FIELD"),
        (None, "MISSING_FIELD"),
    ]


@pytest.mark.parametrize(("key_type", "expected"), [(BYTES_KEY, ("abc", None)), (SCHEMA_KEY, (None, "MISSING_FIELD"))])
def test_a_delete_whose_key_has_a_schema(key_type: int, expected: tuple[str | None, str | None]) -> None:
    """The bytes of such a key are not its text."""
    text = MEMBER.replace('"long"', '"string"')
    known = schemas_of({MEMBER_ID: text})
    fields = {
        "version": 2,
        "byte_order": "BIG_ENDIAN",
        "attributes": 2 | key_type << 2 | PAYLOAD,
        "timestamp_nanos": 0,
        "src_id": 40,
        "physical_partition_id": 0,
        "sequence": 1,
        "key_bytes": b"abc",
        "key_schema_id": MEMBER_ID,
        "key_schema_version": 1,
        "value": b"",
        "schema_id": MEMBER_ID,
        "schema_version": 1,
    }
    source = DatabusSource("com.shop.Member", by_name(known)["com.shop.Member"], ("id",), known)
    [row] = databus_changes(pa.array([write(fields)], pa.binary()), None, None, source).batch.to_pylist()
    assert (row["_op_"], row["id"], row["_error_"]) == ("DELETE", *expected)


def test_the_key_of_a_schema_that_is_a_union() -> None:
    assert keys_in_schema(f'["null",{MEMBER}]') == ("id",)


def test_columns_of_all_schemas_whatever_their_order() -> None:
    newer = MEMBER.replace('"fields":[', '"fields":[{"name":"age","type":["null","int"]},')
    assert newer != MEMBER
    for schemas in ([MEMBER, newer], [newer, MEMBER]):
        known = schemas_of(schemas)
        read = by_name(known)["com.shop.Member"]._replace(fields_of_last=False)
        fields = {field.name: str(field.type) for field in databus_schema(DatabusSource("m", read, ("id",), known))}
        assert (fields["age"], fields["name"]) == ("int32", "string")


def test_columns_that_a_version_does_not_have_are_unavailable() -> None:
    """Those of a later version and those of an earlier one. A DELETE without a payload lacks its values anyway."""
    newer = MEMBER.replace('{"name":"name","type":["null","string"]}', '{"name":"age","type":["null","int"]}')
    known = schemas_of({MEMBER_ID: MEMBER, bytes(16): newer})
    read = by_name(known)["com.shop.Member"]._replace(fields_of_last=False)
    source = DatabusSource("com.shop.Member", read, ("id",), known)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(newer), {"id": 1, "age": None})
    events = [
        event(1, 40, 1, member(1, "a"), schema_id=MEMBER_ID),
        event(2, 40, 1, out.getvalue(), schema_id=bytes(16)),
        event(3, 40, 1, opcode=2, schema_id=bytes(16)),
    ]
    rows = databus_changes(pa.array(events, pa.binary()), None, None, source).batch.to_pylist()
    assert [(row["name"], row["age"], row["_unavailable_"], row["_error_"]) for row in rows] == [
        ("a", None, ["age"], None),
        (None, None, ["name"], None),
        (None, None, None, None),
    ]


@pytest.mark.parametrize("seed", [3, 5, 9])
@pytest.mark.parametrize("name", KEYS)
def test_datahub(seed: int, name: str) -> None:
    history = DataHubHistory("h", Random(seed))
    history.run(150)
    blobs = pa.array(history.delivered(), pa.binary())
    table: dict[str, int] = {}
    decode = decoder("datahub", ReadPlan(table_of(f"h.{name}"), COLUMNS[name], by_source=True, whole_before=True))
    for row in in_order(decode(MessageRecords(blobs)).batch):
        if row["_op_"] == "TRUNCATE":
            table.clear()
            continue
        assert row["_keys_"] == KEYS[name]
        for old in (row, row["_before_"]):
            table.pop(key_of(name, old) if old else "", None)
        if row["_op_"] in LIVE:
            table[key_of(name, row)] = row["v"]
    assert table == {key: row["v"] for key, row in history.tables[name].items()}
    facts = survey_messages("datahub", MessageRecords(blobs), table_of(name))
    assert Survey.of(facts, "datahub", table_of(name)).keys == tuple(KEYS[name])


def test_sequence_ids_may_have_any_length() -> None:
    texts = ["9", "010", "10", str(10**38 - 1), str(10**38), "x", "", None, "0"]
    result = numbers(pa.array(texts))
    assert result.type == NUMBER
    got = [tuple(one.values()) for one in result[:5].to_pylist()]
    assert got[0] < got[1] == got[2] < got[3] < got[4]
    assert result[5:].to_pylist() == [None, None, None, {"digits": 0, "number": ""}]


def debezium(op: str, before: Any, after: Any, lsn: int) -> str:
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t", "ts_ms": 1000, "lsn": lsn}
    source["sequence"] = f'["{lsn}","{lsn}"]'
    return json.dumps({"before": before, "after": after, "source": source, "op": op, "ts_ms": 2000})


MESSAGES = [
    debezium("r", None, {"id": 1, "v": 0, "big": "long"}, 1),
    debezium("u", {"id": 1, "v": 0, "big": "long"}, {"id": 1, "v": 5, "big": "__debezium_unavailable_value"}, 2),
    debezium("d", {"id": 1, "v": 0, "big": ""}, None, 3),
    None,
    debezium("c", None, {"id": 2, "v": 5, "big": "__debezium_unavailable_value"}, 3),
    debezium("t", None, None, 4),
]
RECORD_KEYS = ['{"id": 1}', '{"id": 1}', '{"id": 1}', '{"id": 1}', '{"id": 2}', None]
HEADERS = [[], [], [("__debezium.newkey", b'{"id":2}')], [], [("x", b""), ("__debezium.oldkey", b'{"id":1}')], None]


def test_debezium() -> None:
    """Only the key of the old row is used. A change of the key has the old key in ``_before_``, and an event in both rows."""
    headers = pa.array(HEADERS, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    columns = {"id": "int32", "v": "int32", "big": "string"}
    plan = ReadPlan(table_of("s.t"), columns, ("id",), placeholder="__debezium_unavailable_value", only_table=True)
    values, keys = (pa.array(texts, pa.string()) for texts in (MESSAGES, RECORD_KEYS))
    records = MessageRecords(values, keys, headers, offsets=pa.array([10, 11, 12, 13, 14, 15]))
    rows = decoder("debezium", plan, with_headers=True)(records).batch.to_pylist()
    assert [row["_op_"] for row in rows] == ["READ", "UPDATE", "DELETE", "DELETE", "INSERT", "TRUNCATE"]
    assert [row["_order_"] for row in rows] == [{"epoch": 0, "partition": 0, "offset": k} for k in range(10, 16)]
    key_alone = {"id": 1, "v": None, "big": None}
    assert [row["_before_"] for row in rows] == [None, key_alone, key_alone, key_alone, key_alone, None]
    assert [(row["id"], row["v"], row["big"]) for row in rows] == [
        (1, 0, "long"),
        (1, 5, None),
        (1, None, None),
        (1, None, None),
        (2, 5, None),
        (None, None, None),
    ]
    assert [row["_unavailable_"] for row in rows] == [None, ["big"], None, None, ["big"], None]
    events = [row["_event_"] for row in rows]
    assert events == [None, None, events[4], None, events[4], None]
    assert not events[4].startswith("\n")  # it has a position
    whole = decoder("debezium", plan._replace(whole_before=True, by_source=True))(records._replace(offsets=None))
    rows = whole.batch.to_pylist()
    assert [row["_error_"] for row in rows] == [None, None, None, "MISSING_FIELD", None, None], "of a tombstone"
    assert rows[1]["_before_"] == {"id": 1, "v": 0, "big": "long"}
    assert [row["_order_"] and row["_order_"]["sub_position"] for row in rows] == [1, 2, 3, None, 3, 4]
