"""Messages for each case that Debezium's documentation leaves open, and for each kind of error."""

from __future__ import annotations

import json
from typing import Any

from tests.support.cases import Case

ORIGIN = "sparkwire.debezium says what holds"
SOURCE = {"connector": "postgresql", "ts_ms": 1714557600000, "db": "shop", "schema": "public", "table": "orders"}


def cases() -> list[Case]:
    return [*messages(), *faults()]


def message(op: Any = "u", **fields: Any) -> bytes:
    """An update with changed fields. A field with the value ``...`` is left out."""
    whole = {"before": {"id": 1}, "after": {"id": 1, "note": "a"}, "source": SOURCE, "op": op, "ts_ms": 5} | fields
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


def messages() -> list[Case]:
    """Cases of the operation and table of messages."""
    sound = {"debezium_error": None, "debezium_is_valid": True}
    flattened = {"debezium_operation": "UPSERT", "debezium_op": None, "debezium_table": None} | sound
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "id"}], "name": "shop.public.orders.Value"}
    return [
        Case("an update", ORIGIN, message(), {"debezium_operation": "UPDATE", "debezium_table": "orders"} | sound),
        Case("a truncate", ORIGIN, message("t", before=None, after=None), {"debezium_operation": "TRUNCATE"} | sound),
        Case(
            "a logical message",
            ORIGIN,
            message("m", before=..., after=..., message={"prefix": "p", "content": "aGk="}),
            {"debezium_operation": "MESSAGE", "debezium_after": None} | sound,
        ),
        Case(
            "a heartbeat", ORIGIN, b'{"ts_ms":7}', {"debezium_operation": "HEARTBEAT", "debezium_after": None} | sound
        ),
        Case(
            "the end of a transaction",
            ORIGIN,
            b'{"status":"END","id":"571:9","event_count":1,"data_collections":null,"ts_ms":7}',
            {"debezium_operation": "TRANSACTION", "debezium_processed_time_ms": 7} | sound,
        ),
        Case(
            "a change of a schema",
            ORIGIN,
            json.dumps({"source": SOURCE, "ts_ms": 7, "databaseName": "shop", "ddl": "DROP TABLE t"}).encode(),
            {"debezium_operation": "DDL", "debezium_database": "shop"} | sound,
        ),
        Case("a row", ORIGIN, b'{"id":1,"op":"x"}', {"debezium_after": '{"id":1,"op":"x"}'} | flattened),
        Case("a row like a heartbeat", ORIGIN, b'{"ts_ms":1,"id":2}', {"debezium_processed_time": None} | flattened),
        Case("a row like the end", ORIGIN, b'{"status":"END","id":"1","note":2}', flattened),
        Case(
            "a row that was deleted",
            ORIGIN,
            b'{"id":1,"__deleted":"true","__table":"orders","__source_ts_ms":9}',
            {
                "debezium_operation": "DELETE",
                "debezium_before": '{"id":1}',
                "debezium_after": None,
                "debezium_table": "orders",
                "debezium_event_time_ms": 9,
            }
            | sound,
        ),
        Case(
            "with its schema",
            ORIGIN,
            json.dumps({"schema": schema, "payload": {"id": 1}}).encode(),
            {
                "debezium_after": '{"id": 1}',
                "debezium_columns": [{"name": "id", "type": "int32", "logical": None}],
            }
            | flattened,
        ),
        Case(
            "without a schema",
            ORIGIN,
            b'{"schema":null,"payload":{"id":1}}',
            {"debezium_after": '{"id":1}'} | flattened,
        ),
        Case(
            "columns of these names",
            ORIGIN,
            b'{"schema":null,"payload":{"id":1},"id":2}',
            {"debezium_after": '{"schema":null,"payload":{"id":1},"id":2}'} | flattened,
        ),
        Case(
            "a tombstone with its schema",
            ORIGIN,
            json.dumps({"schema": schema, "payload": None}).encode(),
            {"debezium_operation": None, "debezium_after": None, "debezium_error": None},
        ),
        Case(
            "a document of MongoDB",
            ORIGIN,
            message(
                "c", source=SOURCE | {"connector": "mongodb", "collection": "c", "table": None}, after='{"_id": 1}'
            ),
            {
                "debezium_table": "c",
                "debezium_after": '{"_id": 1}',
                "debezium_after_map": [("_id", "1")],
                "debezium_operation": "INSERT",
            }
            | sound,
        ),
        Case(
            "the finest time",
            ORIGIN,
            message(source=SOURCE | {"ts_us": 1714557600000125, "ts_ns": 1714557600000126999}, ts_us=5001),
            {"debezium_event_time": 1714557600000126, "debezium_processed_time": 5001, "debezium_processed_time_ms": 5},
        ),
    ]


def faults() -> list[Case]:
    """Cases of errors and their codes."""
    return [
        Case(name, ORIGIN, data, {"debezium_error": code, "debezium_is_valid": False})
        for name, data, code in (
            ("no JSON", b"{", "BAD_JSON"),
            ("no object", b"[]", "BAD_JSON"),
            ("nothing", b"{}", "MISSING_FIELD"),
            ("no op", message(...), "MISSING_FIELD"),
            ("an op that is null", message(None), "MISSING_FIELD"),
            ("an unknown op", message("x"), "UNKNOWN_OPCODE"),
            ("an op in capitals", message("U"), "UNKNOWN_OPCODE"),
            ("an op that is no text", message(1), "UNKNOWN_OPCODE"),
            ("an unknown op of a row", b'{"id":1,"__op":"x"}', "UNKNOWN_OPCODE"),
            ("no source", message(source=...), "MISSING_FIELD"),
            ("a source that is no object", message(source="x"), "BAD_FIELD"),
            ("a time that is no integer", message(source=SOURCE | {"ts_ms": "soon"}), "BAD_FIELD"),
            ("no after", message(after=None), "MISSING_FIELD"),
            ("a delete without before", message("d", before=..., after=None), "MISSING_FIELD"),
            ("an image that is no object", message(after=[1]), "BAD_FIELD"),
            ("a row that is half deleted", b'{"id":1,"__deleted":"maybe"}', "BAD_FIELD"),
        )
    ]
