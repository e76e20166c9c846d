"""The fields of a message in the order of ``debezium_change``. Each is a function and a field of the struct."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.base.text_cache import text_cache
from sparkwire.core.builders import Column, ColumnTable
from sparkwire.core.column import binary_of, from_codes, micros, primitive, timestamps
from sparkwire.debezium.layout import OPERATION_NAMES, is_added
from sparkwire.debezium.scanned_messages import Messages
from sparkwire.json import images as json_images
from sparkwire.json import values
from sparkwire.json.images import Images
from sparkwire.json.scan import tree_of
from sparkwire.json.values import Values
from sparkwire.kernels import Bools, Ints

FIELDS = ColumnTable[Messages]()

Unit = Literal["ns", "us", "ms"]

_UNITS: Final[dict[Unit, int]] = {"ns": 1_000_000, "us": 1_000, "ms": 1}
"""the units of the fields ``ts_*``, the finest first, and how many of each are a millisecond"""
_NAMES: Final = pa.struct([("name", pa.string()), ("type", pa.string()), ("logical", pa.string())])


def _text(name: str, doc: str, result: str, *fields: str, sample: str = "debezium") -> Column[Messages]:
    """A column with a field's text: the unescaped text of a string, the JSON of any other value."""
    example = f"debezium_{name}({sample}) -> {result}"
    return Column(name, "STRING", doc, lambda messages: messages.texts(*fields), example)


def _times(name: str, doc: str, of: str, result: str, result_ms: str) -> tuple[Column[Messages], ...]:
    """Columns with a time in its finest unit, as TIMESTAMP and as [ms since epoch]; NULL if it is not an integer."""

    def time(messages: Messages) -> pa.Array:
        return _first_valid(_instants(unit, *messages.integers(f"{of}ts_{unit}")) for unit in _UNITS)

    def time_ms(messages: Messages) -> pa.Array:
        return _first_valid(
            _millis(per, *messages.integers(f"{of}ts_{unit}")) for unit, per in reversed(_UNITS.items())
        )

    example = f"debezium_{name}(debezium) -> {result}"
    return (
        Column(name, "TIMESTAMP", f"{doc}, in the finest unit that the message has.", time, example),
        Column(
            f"{name}_ms", "BIGINT", f"{doc} [ms since epoch].", time_ms, f"debezium_{name}_ms(debezium) -> {result_ms}"
        ),
    )


def _instants(unit: Unit, numbers: Ints, valid: Bools) -> pa.Array:
    return micros(numbers, valid) if unit == "us" else timestamps(numbers, unit, valid)


def _millis(per: int, numbers: Ints, valid: Bools) -> pa.Array:
    return primitive(numbers if per == 1 else numbers // per, valid)


def _first_valid(columns: Iterator[pa.Array]) -> pa.Array:
    """The first value of each row that is not NULL. After a column without NULLs no further one is computed."""
    result = next(columns)
    while result.null_count and (other := next(columns, None)) is not None:
        result = pc.coalesce(result, other)
    return result


FIELDS.append(_text("op", "`op` as written: c, u, d, r, t or m; for a flattened message, `__op`.", "u", "op"))


@FIELDS.column("STRING", "debezium_operation(debezium) -> UPDATE")
def operation(messages: Messages) -> pa.Array:
    """The operation: INSERT, UPDATE, DELETE, READ (a row of a snapshot), TRUNCATE, MESSAGE (pg_logical_emit_message), UPSERT
    (a flattened message without an operation), TRANSACTION, HEARTBEAT or DDL. NULL for an unknown op and for a tombstone.
    """
    return from_codes(messages.operations, OPERATION_NAMES)


_DATABASE: Final = "Name of the source database; for Cassandra and Vitess, the keyspace."
_TABLE: Final = "Name of the source table; for MongoDB, the collection."
_SNAPSHOT: Final = (
    "Whether the row comes from a snapshot, as written: true, first, first_in_data_collection, last_in_data_collection, last, "
    "incremental or false."
)
_EVENT: Final = "Time of the change in the source database"
_PROCESSED: Final = "Time at which the connector processed the change"

FIELDS += [
    _text("connector", "Name of the connector, such as postgresql.", "postgresql", "source.connector"),
    _text("database", _DATABASE, "shop", "source.db", "source.keyspace", "source.database_id"),
    _text("schema_name", "Name of the schema within the database, if it has schemas.", "public", "source.schema"),
    _text("table", _TABLE, "orders", "source.table", "source.collection"),
    _text("snapshot", _SNAPSHOT, "false", "source.snapshot"),
]


@FIELDS.column("STRING", 'debezium_before(debezium) -> {"id":7,"note":"new"}')
def before(messages: Messages) -> pa.Array:
    """The row before the change as JSON text, for from_json and parse_json. The text is as written, but a repeated column has
    only its last value. PostgreSQL fills unknown values with 0, "" and defaults, without a mark. For a flattened delete, the row.
    """
    return _json(messages.before)


@FIELDS.column("STRING", 'debezium_after(debezium) -> {"id":7,"note":"paid"}')
def after(messages: Messages) -> pa.Array:
    """The row after the change as JSON text, for from_json and parse_json. The text is as written, but a repeated column has only
    its last value. For a flattened message, the row without added fields.
    """
    return _json(messages.after)


@FIELDS.column("MAP<STRING, STRING>", "debezium_before_map(debezium)['note'] -> new")
def before_map(messages: Messages) -> pa.Array:
    """The row before the change, with values as text: numbers as written, bytes in Base64, null as NULL."""
    return _map(messages.before)


@FIELDS.column("MAP<STRING, STRING>", "debezium_after_map(debezium)['note'] -> paid")
def after_map(messages: Messages) -> pa.Array:
    """The row after the change, with values as text: numbers as written, bytes in Base64, null as NULL."""
    return _map(messages.after)


@FIELDS.column("STRING", "get_json_object(debezium_source(debezium), '$.lsn') -> 75862544")
def source(messages: Messages) -> pa.Array:
    """The complete `source` as JSON text: the connector's data about the origin of the change. NULL for a flattened message."""
    return values.objects(messages.value("source"))


FIELDS += [
    *_times("event_time", _EVENT, "source.", "2024-05-01 10:00:00.000125", "1714557600000"),
    *_times("processed_time", _PROCESSED, "", "2024-05-01 10:00:00.25", "1714557600250"),
    _text(
        "transaction_id",
        "The id of the transaction, if the connector provides it; also for messages about transactions.",
        "571:75862544",
        "transaction.id",
    ),
]


@FIELDS.column(
    "ARRAY<STRUCT<name STRING, type STRING, logical STRING>>",
    "debezium_columns(debezium_schemas)[1] -> {day, int32, io.debezium.time.Date}",
)
def columns(messages: Messages) -> pa.Array:
    """The table's columns in the embedded schema: Connect's types, and the names of semantic types. NULL without a schema."""
    schemas = messages.schemas
    lists = pa.array([declared_columns(text) for text in messages.schema_texts], pa.list_(_NAMES))
    return schemas.spread(lists)


@FIELDS.column("STRING", "debezium_error(debezium) -> NULL")
def error(messages: Messages) -> pa.Array:
    """The first error of the message, in this order: BAD_JSON; op MISSING_FIELD or UNKNOWN_OPCODE; source MISSING_FIELD or
    BAD_FIELD; its time BAD_FIELD (not an integer); the image that the op needs MISSING_FIELD or BAD_FIELD. NULL if there is none.
    """
    return from_codes(messages.errors, ERRORS)


@FIELDS.column("BOOLEAN", "debezium_is_valid(debezium) -> true")
def is_valid(messages: Messages) -> pa.Array:
    """Whether debezium_error is NULL."""
    return primitive(messages.errors == OK)


# ---------------------------------------------------------------- images


def _json(images: Images) -> pa.Array:
    objects = images.objects
    textual = objects.are_texts
    texts = json_images.json_text(images)
    return pc.coalesce(texts, values.texts(objects.only(textual))) if textual.any() else texts


def _map(images: Images) -> pa.Array:
    objects = images.objects
    maps = json_images.text_map(images, lambda items, _: values.texts(items))
    textual = np.flatnonzero(objects.are_texts)
    if not len(textual):
        return maps
    inner = json_images.text_map(_inside(objects.at(textual)), lambda items, _: values.texts(items))
    places = np.arange(len(maps))
    places[textual] = len(maps) + np.arange(len(textual))
    return pa.concat_arrays([maps, inner]).take(primitive(places))


def _inside(texts: Values) -> Images:
    """The objects inside strings; MongoDB's documents have this form."""
    data, offsets, _ = binary_of(values.texts(texts))
    intact = values.documents(data, offsets[:-1], offsets[1:], tree_of([("_id",)])).intact
    return Images(values.roots(data, offsets[:-1], offsets[1:], intact))


# ---------------------------------------------------------------- embedded schemas


@text_cache(256)
def declared_columns(text: str) -> list[dict[str, Any]] | None:
    """The columns of a row in a message's schema; for an envelope, those of ``after``. None if there are none."""
    fields = row_fields(text)
    if fields is None:
        return None
    return [{"name": field["field"], "type": field["type"], "logical": field.get("name")} for field in fields]


def row_fields(text: str) -> list[dict[str, Any]] | None:
    """The schemas of a row's columns in Connect's schema of a message; None if they cannot be read."""
    try:
        fields = [field for field in json.loads(text)["fields"] if _is_field(field)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    named = {field["field"]: field for field in fields}
    image = named.get("after") or named.get("before")
    if image is None and "op" in named and named.get("source", {}).get("type") == "struct":
        return None  # a logical message has no row
    both = {named.get(name, {}).get("type") for name in ("before", "after")} == {"struct"}  # as in a CloudEvent
    if image is None or not (both or {"op", "source"} & named.keys()):
        return [field for field in fields if not is_added(field["field"])]
    inner = image.get("fields")
    return [field for field in inner if _is_field(field)] if isinstance(inner, list) else None


def _is_field(field: Any) -> bool:
    return (
        isinstance(field, dict)
        and isinstance(field.get("field"), str)
        and isinstance(field.get("type"), str)
        and isinstance(field.get("name"), str | None)
    )
