"""The changes of one table, a row each: what the message says, and both images with a typed column for each of the table's.

op            STRING    INSERT, UPDATE, DELETE, READ, TRUNCATE, UPSERT; NULL if unknown
position      STRUCT    where in the source's log the change is: what sorts as the log does, NULL where it is not told
time          TIMESTAMP when it was made
table, transaction, snapshot   STRING
keys          ARRAY<STRING>    names of the columns of the Kafka key
before, after STRUCT    the table's columns; NULL where the message has no such image
unavailable   ARRAY<STRING>    columns whose value the message does not have, although there is one; NULL for none
unexpected    MAP<STRING, STRING>   the text of values that have no column or do not fit it, NULL for none. Those of the before
                        image under ``before.`` and their name where there is an after image
error         STRING    `debezium_error`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.core import json_values as values
from sparkwire.core.column import bools_of, from_codes, lists, primitive, struct
from sparkwire.core.json_images import Images
from sparkwire.core.table_names import Table
from sparkwire.debezium.connect_types import Type
from sparkwire.debezium.layout import (
    DELETE,
    INSERT,
    OPERATION_NAMES,
    POSITION_FIELDS,
    READ,
    TRUNCATE,
    UNAVAILABLE,
    UPDATE,
    UPSERT,
)
from sparkwire.debezium.message_fields import FIELDS
from sparkwire.debezium.scanned_messages import Messages
from sparkwire.debezium.table_columns import Declared, embedded, name_parts, of_table, typed
from sparkwire.debezium.typed_images import (
    JsonRows,
    MapEntries,
    TypedImages,
    named_lists,
    read_images,
    unexpected_map,
)
from sparkwire.kernels import Bools, Ints

_ROWS: Final = np.isin(np.arange(-1, len(OPERATION_NAMES)), [-1, INSERT, UPDATE, DELETE, READ, TRUNCATE, UPSERT])
"""which operations are changes of rows, by code and one more"""
POSITION: Final = pa.struct(
    [("log", pa.string()), ("position", pa.int64()), ("sub_position", pa.int64()), ("row", pa.int64())]
)
_NUMBERED: Final = r"^(?P<name>.*?)\.?(?P<number>[0-9]+)$"
"""a file of a binary log: ``binlog.000001``"""
_SEQUENCE: Final = r'^\[(?:null|"(?P<before>[0-9]{1,18})"), ?(?:null|"(?P<own>[0-9]{1,18})")\]$'
"""PostgreSQL's pair: the end of the commit before, and the change"""
_WITH_LSN: Final = r"^([0-9]+):[0-9]+$"
"""PostgreSQL's id of a transaction, of which every message has another end"""
_EVENT_TIME: Final = next(column.accessor for column in FIELDS if column.name == "event_time")


class Changes(NamedTuple):
    """Rows, and the message of each: they are in the order of the messages."""

    rows: Ints
    batch: pa.RecordBatch


def row_schema(columns: Mapping[str, str]) -> pa.Schema:
    """Of the changes of a table with these columns; ValueError where a type is none."""
    image = pa.struct([(name, type.arrow) for name, type in typed(columns).items()])
    texts = pa.list_(pa.string())
    return pa.schema(
        [
            ("op", pa.string()),
            ("position", POSITION),
            ("time", TIMESTAMP),
            ("table", pa.string()),
            ("transaction", pa.string()),
            ("snapshot", pa.string()),
            ("keys", texts),
            ("before", image),
            ("after", image),
            ("unavailable", texts),
            ("unexpected", pa.map_(pa.string(), pa.string())),
            ("error", pa.string()),
        ]
    )


class MessageSide(NamedTuple):
    """The values or the keys of records, as JSON, and what their schemas say."""

    column: pa.Array
    scan: Messages
    declared: Declared
    errors: pa.Array | None = None
    """STRING: what is wrong with those that could not be made JSON, NULL where all is well; None for JSON as it came"""


def json_side(column: pa.Array) -> MessageSide:
    """Of JSON, with schemas in it or not."""
    scan = Messages(column)
    return MessageSide(column, scan, embedded(scan))


def change_rows(
    messages: pa.Array,
    table: Table | None,
    columns: Mapping[str, str],
    *,
    keys: pa.Array | None = None,
    topics: pa.Array | None = None,
    placeholder: str = UNAVAILABLE,
) -> Changes:
    """The changes of a table that are in a column of messages.

    Parameters
    ----------
    messages
        BINARY or STRING: the values of Kafka's records
    table
        None for every message, of whatever table
    columns
        name to type, as ``connect_types`` writes it
    keys
        the records' keys: JSON with or without its schema. Then a tombstone is a DELETE of its key.
    topics
        the records' topics, which identify the table of a tombstone; without them the key's schema does, if any
    placeholder
        what stands for a value that the connector was not told
    """
    return changes_of(
        json_side(messages), table, columns, None if keys is None else json_side(keys), topics, placeholder
    )


def changes_of(
    messages: MessageSide,
    table: Table | None,
    columns: Mapping[str, str],
    keys: MessageSide | None,
    topics: pa.Array | None,
    placeholder: str,
) -> Changes:
    """As ``change_rows``, of values and keys with known schemas."""
    types, scan = typed(columns), messages.scan
    chosen = of_table(scan, messages.declared, table) & _ROWS[scan.operations + 1]
    dead = np.zeros(len(chosen), np.bool_) if keys is None else _tombstones(messages, keys, topics, table)
    rows = np.flatnonzero(chosen | dead)
    versions, flattened = messages.declared.of(rows), scan.flattened[rows]
    before, after = (
        read_images(JsonRows(image.at(rows), types, flattened, placeholder), types, versions)
        for image in scan.image_objects
    )
    if keys is not None and dead.any():
        before = _or_else(before, _key_images(keys, rows, types), dead[rows])
    operations = np.where(dead[rows], np.int8(DELETE), scan.operations[rows])
    unavailable = after.unavailable | (before.unavailable & ~bools_of(after.column.is_valid())[:, None])
    arrays = [
        from_codes(operations, OPERATION_NAMES),
        _positions(scan, rows),
        _EVENT_TIME(scan).take(primitive(rows)),
        _texts(scan, rows, "source.table", "source.collection"),
        pc.replace_substring_regex(_texts(scan, rows, "transaction.id"), _WITH_LSN, r"\1"),
        _texts(scan, rows, "source.snapshot"),
        pa.nulls(len(rows), pa.list_(pa.string())) if keys is None else _key_names(keys, rows),
        before.column,
        after.column,
        named_lists(unavailable, list(types)),
        unexpected_map([*after.unexpected, *_of_before(before, after)], len(rows)),
        _errors(messages, rows, dead[rows]),
    ]
    return Changes(rows, pa.RecordBatch.from_arrays(arrays, schema=row_schema(columns)))


def _errors(messages: MessageSide, rows: Ints, dead: Bools) -> pa.Array:
    own = from_codes(np.where(dead, np.int8(OK), messages.scan.errors[rows]), ERRORS)
    return own if messages.errors is None else pc.coalesce(messages.errors.take(primitive(rows)), own)


def _texts(scan: Messages, rows: Ints, *fields: str) -> pa.Array:
    texts = scan.value(fields[0])
    for field in fields[1:]:
        texts = texts.unless(texts.kinds <= 1, scan.value(field))
    return values.texts(texts.at(rows))


def _of_before(before: TypedImages, after: TypedImages) -> list[MapEntries]:
    """Unexpected values of the before image, with other names than those of the after image."""
    both = bools_of(after.column.is_valid())
    unexpected = []
    for entry in before.unexpected:
        beside = primitive(both[entry.rows])
        names = pc.if_else(beside, pc.binary_join_element_wise("before.", entry.names, ""), entry.names)
        unexpected.append(entry._replace(names=names))
    return unexpected


# ---------------------------------------------------------------- keys and tombstones


def key_names(keys: MessageSide) -> pa.Array:
    """ARRAY<STRING>: the names of the columns of Kafka's keys; NULL for a key that is null or no object."""
    return _key_names(keys, np.arange(len(keys.column)))


def _key_names(keys: MessageSide, rows: Ints) -> pa.Array:
    images = Images(_key_objects(keys, rows))
    return lists(images.listed.firsts, images.names, images.present)


def _key_objects(keys: MessageSide, rows: Ints) -> values.Values:
    return keys.scan.roots_at(rows).only(bools_of(keys.column.is_valid())[rows])


def key_rows(keys: pa.Array, columns: Mapping[str, str]) -> pa.Array:
    """STRUCT of the columns: those of the key have its values, others are NULL."""
    return _key_images(json_side(keys), np.arange(len(keys)), typed(columns)).column


def _key_images(keys: MessageSide, rows: Ints, types: Mapping[str, Type]) -> TypedImages:
    source = JsonRows(_key_objects(keys, rows), types, np.zeros(len(rows), np.bool_), UNAVAILABLE)
    return read_images(source, types, keys.declared.of(rows))


def _or_else(images: TypedImages, others: TypedImages, chosen: Bools) -> TypedImages:
    """The images, but where ``chosen`` the others."""
    rows = len(chosen)
    places = np.where(chosen, rows, 0) + np.arange(rows)
    column = pa.concat_arrays([images.column, others.column]).take(primitive(places))
    unexpected = [
        _only(entry, mask)
        for entries, mask in ((images.unexpected, ~chosen), (others.unexpected, chosen))
        for entry in entries
    ]
    return TypedImages(column, np.where(chosen[:, None], others.unavailable, images.unavailable), unexpected)


def _only(entry: MapEntries, chosen: Bools) -> MapEntries:
    kept = np.flatnonzero(chosen[entry.rows])
    return MapEntries(entry.rows[kept], entry.names.take(primitive(kept)), entry.texts.take(primitive(kept)))


def _tombstones(messages: MessageSide, keys: MessageSide, topics: pa.Array | None, table: Table | None) -> Bools:
    """Messages without a value whose key is of the table, as far as known."""
    dead = (~bools_of(messages.column.is_valid()) | messages.scan.tombstones) & bools_of(keys.column.is_valid())
    if table is None or not dead.any():
        return dead
    names = keys.declared.names
    if topics is not None:
        names = pc.binary_join_element_wise(topics.cast(pa.string()), "Key", ".")
    name, outer = name_parts(names)
    of_table_rows = pc.equal(name, table.name).fill_null(True)
    inside = table.schema or table.database
    if inside is not None:
        of_table_rows = pc.and_(of_table_rows, pc.equal(outer, inside).fill_null(True))
    return dead & bools_of(of_table_rows)


# ---------------------------------------------------------------- positions


def _positions(scan: Messages, rows: Ints) -> pa.Array:
    """Where in the log of its database each change is, by the fields that its connector has."""
    fields = {name: scan.value(f"source.{name}").at(rows) for name in POSITION_FIELDS}
    texts = {name: values.texts(value) for name, value in fields.items()}

    def number(name: str) -> pa.Array:
        whole = pc.match_substring_regex(texts[name], "^[0-9]{1,18}$")
        return pc.if_else(whole, texts[name], None).cast(pa.int64())

    pair = pc.extract_regex(texts["sequence"], _SEQUENCE)
    ends, own = (_int_or_null(pc.struct_field(pair, name)) for name in ("before", "own"))
    own = pc.coalesce(own, number("lsn"))
    file = pc.extract_regex(texts["file"], _NUMBERED)
    is_file = texts["file"].is_valid()
    log = pc.coalesce(
        pc.if_else(is_file, pc.coalesce(_text_or_null(pc.struct_field(file, "name")), texts["file"]), None),
        pc.binary_join_element_wise(texts["commit_lsn"], pc.coalesce(texts["change_lsn"], ""), "/"),
    )
    is_scn = pc.or_(texts["scn"].is_valid(), texts["commit_scn"].is_valid())
    position = pc.coalesce(
        pc.if_else(is_file, _int_or_null(pc.struct_field(file, "number")), None),
        pc.if_else(own.is_valid(), pc.coalesce(ends, 0), None),
        pc.if_else(is_scn, pc.coalesce(number("commit_scn"), 0), None),
        pc.if_else(texts["ord"].is_valid(), number("ts_ms"), None),
    )
    sub_position = pc.coalesce(pc.if_else(is_file, number("pos"), None), own, number("scn"), number("ord"))
    row = pc.coalesce(number("row"), number("event_serial_no"), number("ssn"))
    valid = bools_of(pc.or_(log.is_valid(), position.is_valid()))
    return struct({"log": log, "position": position, "sub_position": sub_position, "row": row}, valid)


def _text_or_null(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _int_or_null(texts: pa.Array) -> pa.Array:
    """A group of digits as a number, NULL where the group was not there."""
    return pc.if_else(
        pc.and_(pc.greater(pc.utf8_length(texts), 0), pc.less(pc.utf8_length(texts), 19)), texts, None
    ).cast(pa.int64())
