"""Messages of Debezium that name no table, or only seem to be a notice: whose rows they are, and which key they delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sparkwire.changes.formats import decoder
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.core.names import table_of
from tests.support import system_messages as m
from tests.support.cdc_golden import Record, arrow
from tests.support.decoded import changes_by_table, changes_of
from tests.support.system_messages import ROW, envelope, numbered, record
from tests.support.what_is_read import OPTIONS

KEY = {"id": 1}
DELETED, UNKNOWN = ("DELETE", 1, None), ("DELETE", 1, "MISSING_FIELD")


def rows(records: Sequence[Record], **options: Any) -> list[dict[str, Any]]:
    return changes_of(numbered(records), "debezium", **({"table": m.TABLE} | OPTIONS | options)).rows


def shown(records: Sequence[Record], **options: Any) -> list[tuple[Any, ...]]:
    return [(row["_op_"], row["id"], row["_error_"]) for row in rows(records, **options)]


def flat(name: str, row: Any = None) -> dict[str, Any]:
    """A flattened row with its schema."""
    row = {"id": 1} if row is None else row
    fields = [{"field": field, "type": "int32"} for field in row]
    return {"schema": {"type": "struct", "fields": fields, "name": name}, "payload": row}


# ---------------------------------------------------------------- tombstones


def test_a_tombstone_in_a_topic_without_rows() -> None:
    other = record(None, KEY, topic="shop.shopdb.orders")
    assert shown([record(envelope(), KEY), other])[1:] == [UNKNOWN]
    named = record(None, KEY | {"id": 1}, topic=m.TOPIC)
    assert shown([named, other]) == [DELETED, UNKNOWN]
    assert shown([record(None, KEY, topic="anything")]) == [DELETED]


def test_a_tombstone_of_another_table_without_topics() -> None:
    records = [record(envelope(), KEY), record(envelope("d", KEY, table="orders"), KEY), record(None, KEY)]
    nowhere: dict[str, Any] = {"topic": None}
    without = [one._replace(**nowhere) for one in records]
    assert shown(without)[1:] == [UNKNOWN]
    assert shown([without[0], without[2]])[1:] == [DELETED]
    flattened = record({"id": 5, "name": "of orders"})._replace(**nowhere)
    assert [row["_error_"] for row in rows([*without[:2], flattened])] == [None, "MISSING_FIELD"]


def test_a_stream_without_topics_does_not_depend_on_its_batches() -> None:
    """It does not show a whole topic. A tombstone may be of another table, whatever else is in its batch."""
    dead, other = record(None, KEY), record(envelope("d", KEY, table="orders"), KEY)
    named = record(None, m.with_schema(KEY, m.key_schema()))
    flattened = record({"id": 5, "name": "ash"})
    for neighbours in ([], [other], [record(envelope(), KEY)]):
        found = in_stream([*neighbours, dead, named, flattened])[-3:]
        assert [(row["_op_"], row["_error_"]) for row in found] == [
            ("DELETE", "MISSING_FIELD"),
            ("DELETE", None),
            ("UPSERT", None),
        ]


def in_stream(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The rows of a stream with these columns: value, key, partition, offset."""
    plan = ReadPlan(table_of(m.TABLE), m.COLUMNS, ("id",), has_given_keys=True)
    batch = arrow(numbered(records))
    given = MessageRecords(batch["value"], batch["key"], None, None, batch["partition"], batch["offset"])
    return list(decoder("debezium", plan)(given).batch.to_pylist())


@pytest.mark.parametrize(
    "message", [{"id": 5, "level": "INFO", "message": "hi"}, {"id": 5, "event": "order.paid"}, {"id": 1, "name": "ash"}]
)
def test_an_object_in_a_topic_of_envelopes(message: Any) -> None:
    found = rows([record(envelope(), KEY), record(message, KEY)])
    assert [row["_error_"] for row in found] == [None, "MISSING_FIELD"]
    for marked in (message | {"__op": "u"}, message | {"__deleted": "false"}, flat("shop.shopdb.customers.Value", KEY)):
        assert [row["_error_"] for row in rows([record(envelope(), KEY), record(marked, KEY)])] == [None, None]
    elsewhere = record(message, {"id": 5}, topic="shop.shopdb.orders")
    assert len(rows([record(envelope(), KEY), record(envelope(table="orders"), topic=elsewhere.topic), elsewhere])) == 1
    assert [row["_error_"] for row in rows([record(message, KEY)])] == [None]


def test_topics_of_two_schemas() -> None:
    tenants = [record({"id": k}, {"id": k}, topic=f"shop.{name}.customers") for k, name in enumerate("abc")]
    found = [row["_error_"] for row in rows(tenants, table="b.customers")]
    assert found == ["MISSING_FIELD", None, "MISSING_FIELD"]
    assert [row["_error_"] for row in rows(tenants, table="customers")] == ["MISSING_FIELD"] * 3
    moved = [record({"id": 1}, KEY, topic="prod.customers"), record({"id": 2}, {"id": 2}, topic="prod.orders")]
    assert [row["_error_"] for row in rows(moved)] == [None, "MISSING_FIELD"]


def test_two_databases_with_one_schema() -> None:
    names = [f"srv.{name}.dbo.customers.Value" for name in ("db1", "db2")]
    found = changes_by_table(numbered([record(flat(name)) for name in names]), "debezium")
    assert {name: len(changes.rows) for name, changes in found.items()} == {
        "db1.dbo.customers": 1,
        "db2.dbo.customers": 1,
    }


@pytest.mark.parametrize("key", [b"abc", 1, {}, {"other": 1}])
def test_a_delete_without_a_key_is_an_error(key: Any) -> None:
    """Also if neither the caller nor the messages name the key's columns."""
    records = [record({"id": 1, "name": "ash"}, key), record(None, key), record(envelope("d", None), key)]
    found = rows(records, keys=None)
    assert [(row["_op_"], row["_error_"]) for row in found[1:]] == [("DELETE", "MISSING_FIELD")] * 2


@pytest.mark.parametrize("key", [b"\0\0\0\0\x074", b"\0\0\0\0\x070"])
def test_a_number_in_a_frame_may_be_one_of_avro(key: bytes) -> None:
    """The bytes of 26 and 24 in Avro are the digits 4 and 0."""
    assert [row["_error_"] for row in rows([record(envelope(), KEY), record(None, key)])] == [None, "MISSING_FIELD"]


def test_a_filler_is_no_key() -> None:
    """PostgreSQL's connector fills columns beside the primary key with zeros and empty texts."""
    columns, key = {"id": "INT", "code": "STRING"}, {"id": 1}
    delete = envelope("d", {"id": 1, "code": ""}, connector="postgresql")
    for keys in (["code"], ["id", "code"]):
        [row] = rows([record(delete, key)], columns=columns, keys=keys)
        assert row["_error_"] == "MISSING_FIELD"
    [row] = rows([record(delete, key)], columns=columns, keys=["code"], before="full")
    assert (row["code"], row["_error_"]) == ("", None)
    [row] = rows([record(delete)], columns=columns, keys=["id"])
    assert (row["id"], row["_error_"]) == (1, None)


ONE, TWO = {"id": 1, "region": "eu"}, {"id": 1, "region": None}
OF_TWO: dict[str, Any] = {"columns": {"id": "INT", "region": "STRING", "v": "INT"}, "keys": None}
"""a table whose messages have a column beside the primary key in their keys"""


@pytest.mark.parametrize(
    ("message", "key", "headers"),
    [
        (envelope("d", TWO | {"v": None}, connector="postgresql"), TWO, []),
        (None, TWO, []),
        (TWO | {"v": None, "__deleted": "true"}, TWO, []),
        (envelope("u", TWO | {"v": None}, ONE | {"v": 2}, "postgresql"), ONE, []),
        (envelope("c", None, ONE | {"v": 2}, "postgresql"), ONE, [("__debezium.oldkey", m.text(TWO))]),
    ],
)
def test_a_null_in_an_old_key_may_be_a_filler(message: Any, key: Any, headers: Any) -> None:
    """PostgreSQL's connector knows only the primary key of an old row. Other columns of `message.key.columns` are NULL."""
    records = [record(envelope("c", None, ONE | {"v": 1}, "postgresql"), ONE), record(message, key, headers=headers)]
    assert [row["_error_"] for row in rows(records, **OF_TWO)] == [None, "MISSING_FIELD"]
    for right in ({"before": "full"}, {"keys": ["id", "region"]}, {"keys": ["id"]}):
        assert [row["_error_"] for row in rows(records, **(OF_TWO | right))] == [None, None], right


# ---------------------------------------------------------------- columns that a message does not have


@pytest.mark.parametrize(
    "message",
    [{"id": 1, "name": "ash"}, {"id": 1, "name": "ash", "__op": "u"}, envelope("u", None, {"id": 1, "name": "ash"})],
)
def test_a_column_that_a_message_does_not_have(message: Any) -> None:
    """Transforms drop fields, and some connectors send only the key and what has changed."""
    columns = {"id": "INT", "name": "STRING", "amount": "DECIMAL(10,2)", "later": "INT"}
    for value in (message, m.with_schema(message, None)):
        [row] = rows([record(value, KEY)], columns=columns)
        assert (row["name"], row["amount"], row["_unavailable_"]) == ("ash", None, ["amount", "later"])
        [row] = rows([record(value, KEY)], columns=columns, nulls="absent")
        assert (row["amount"], row["_unavailable_"], row["_error_"]) == (None, None, None)


def test_the_record_key_has_a_column_of_the_row() -> None:
    [row] = rows([record({"name": "ash"}, KEY)])
    assert (row["id"], row["_unavailable_"], row["_error_"]) == (1, ["amount"], None)
    [row] = rows([record({"name": "ash"})])
    assert row["_error_"] == "MISSING_FIELD"


# ---------------------------------------------------------------- rows that look like something else


def test_rows_with_all_fields_of_a_notice() -> None:
    columns = {"id": "INT", "status": "STRING", "event_count": "INT", "data_collections": "STRING"}
    row = {"id": 1, "status": "BEGIN", "event_count": 3, "data_collections": "a,b"}
    [found] = rows([record(row, KEY)], columns=columns)
    assert {name: found[name] for name in row} == row
    assert found["_error_"] is None
    [found] = rows([record({"ts_ms": 5}, KEY)], columns={"id": "INT", "ts_ms": "BIGINT"})
    assert (found["id"], found["ts_ms"], found["_error_"]) == (1, 5, None)
    assert rows([record(row, {"id": 1})]) == []


@pytest.mark.parametrize("separator", "._")
def test_an_envelope_that_flatten_has_dissolved(separator: str) -> None:
    """Also if the table has a column with the name of one of its fields."""
    names = {"before.id": 1, "after": None, "source.connector": "mysql", "source.table": "customers"}
    message = {name.replace(".", separator): value for name, value in names.items()} | {"op": "d", "ts_ms": 5}
    columns = {"id": "INT", "ts_ms": "BIGINT"}
    [found] = rows([record(message, KEY)], columns=columns)
    assert (found["_op_"], found["_error_"]) == (None, "MISSING_FIELD")
    own = {"id": 1, "op": "d", f"source{separator}table": "x"}
    [found] = rows([record(own, KEY)], columns={"id": "INT", "op": "STRING", f"source{separator}table": "STRING"})
    assert (found["_op_"], found["op"], found["_error_"]) == ("UPSERT", "d", None)


def test_columns_of_a_table_that_shares_its_topic() -> None:
    amount = ROW | {"amount": m.decimal_bytes("9.50")}
    tables = ("customers", "orders")
    messages = [m.with_schema(envelope(after=amount, table=table), m.connect_schema()) for table in tables]
    found = changes_by_table(numbered([record(one, KEY, topic="all") for one in messages]), "debezium", keys=["id"])
    assert {name: list(changes.schema.names[7:10]) for name, changes in found.items()} == {
        "shopdb.customers": ["id", "name", "amount"],
        "shopdb.orders": ["id", "name", "amount"],
    }


# ---------------------------------------------------------------- positions


def order(**source: Any) -> tuple[Any, ...]:
    connector = source.pop("connector")
    [row] = rows([record(envelope("u", ROW, connector=connector, **source))], order="source")
    return tuple(row["_order_"].values())


def test_oracles_changes_with_one_scn() -> None:
    """RS_ID and SSN together identify a change, says Oracle of V$LOGMNR_CONTENTS."""
    places = [("0x00001a.00000345.0010", 0), ("0x00001a.00000345.0010", 1), ("0x00001a.00000345.01f0", 0)]
    places.append(("0x00001a.0000034a.0010", 0))
    orders = [order(connector="oracle", rs_id=f" {rs_id} ", ssn=ssn) for rs_id, ssn in places]
    assert [each[-1] for each in orders] == sorted({each[-1] for each in orders})
    assert len({each[:-1] for each in orders}) == 1
    assert order(connector="oracle", ssn=3)[-1] == 3
    flattened = {"id": 1, "__op": "u", "__scn": "5", "__commit_scn": "6", "__ssn": 7}
    [row] = rows([record(flattened)], order="source")
    assert list(row["_order_"].values())[-1] == 7


def test_a_change_before_the_first_commit_that_the_connector_has_seen() -> None:
    """It is later than the changes of transactions that ended before it."""
    early = order(connector="postgresql", sequence='["4000","4500"]', lsn=4500)
    first = order(connector="postgresql", sequence='[null,"5000"]', lsn=5000)
    later = order(connector="postgresql", sequence='["5100","5200"]', lsn=5200)
    assert early[3:] < first[3:] < later[3:]
