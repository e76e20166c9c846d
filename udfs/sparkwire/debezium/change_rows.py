"""Decode the changes of one table: one row for each change, with typed columns for both images.

op            STRING    INSERT, UPDATE, DELETE, READ, TRUNCATE, UPSERT; NULL if unknown
position      STRUCT    the position of the change in the source's log, which sorts in the log's order; NULL if unknown
time          TIMESTAMP the time of the change
table, transaction, snapshot   STRING
keys          ARRAY<STRING>    names of the columns of the Kafka key
before, after STRUCT    the table's columns; NULL if the message does not have this image
unavailable   ARRAY<STRING>    columns with a value that the message does not contain; NULL if there are none
unexpected    MAP<STRING, STRING>   the text of values that have no column or do not fit it; NULL if there are none. If there
                        is an after image, names from the before image have the prefix ``before.``
error         STRING    `debezium_error`
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, MISSING_FIELD, OK
from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.core.column import bools_of, from_codes, lists, primitive, struct, text_or_null
from sparkwire.core.table_names import Table
from sparkwire.debezium.layout import (
    ADDED_NAMES,
    DELETE,
    INSERT,
    OPERATION_NAMES,
    POSITION_FIELDS,
    READ,
    TRUNCATE,
    UNAVAILABLE,
    UPDATE,
    UPSERT,
    is_added,
)
from sparkwire.debezium.message_fields import FIELDS
from sparkwire.debezium.placeholders import placeholder_of
from sparkwire.debezium.placeholders import unavailable as is_unavailable
from sparkwire.debezium.scanned_messages import Messages
from sparkwire.debezium.table_columns import Declared, embedded, has_name, name_parts, of_table, topic_name, typed
from sparkwire.json import values
from sparkwire.json.images import Images
from sparkwire.json.plain_texts import integers
from sparkwire.json.typed_images import (
    Added,
    JsonRows,
    MapEntries,
    TypedImages,
    named_lists,
    read_images,
    unexpected_map,
)
from sparkwire.json.types import Type
from sparkwire.kernels import Bools, Ints

_ROWS: Final = np.isin(np.arange(-1, len(OPERATION_NAMES)), [-1, INSERT, UPDATE, DELETE, READ, TRUNCATE, UPSERT])
"""which operations change rows; the index is the code plus one"""
POSITION: Final = pa.struct(
    [
        ("log", pa.string()),
        ("lsn", pa.string()),
        ("position", pa.int64()),
        ("sub_position", pa.int64()),
        ("row", pa.int64()),
    ]
)
_NUMBERED: Final = r"^(?P<name>.*?)\.?(?P<number>[0-9]+)$"
"""the name of a binary log file: ``binlog.000001``"""
_SEQUENCE: Final = r'^\[(?:null|"(?P<before>[0-9]{1,18})"), ?(?:null|"(?P<own>[0-9]{1,18})")\]$'
"""PostgreSQL's pair of LSNs: the end of the previous commit, and the change"""
_WITH_LSN: Final = r"^([0-9]+):[0-9]+$"
"""PostgreSQL's id of a transaction; the part after the colon differs in each message"""
_RECORD: Final = r"0x[0-9a-fA-F]+\.(?P<block>[0-9a-fA-F]{1,8})\.(?P<byte>[0-9a-fA-F]{1,4})\b"
"""Oracle's ``rs_id``, such as `` 0x000012.00000345.0010 ``: the number of the log, the block in it and the byte"""
_EVENT_TIME: Final = next(column.accessor for column in FIELDS if column.name == "event_time")


class Changes(NamedTuple):
    """Changes in the order of the messages, with the index of each one's message."""

    rows: Ints
    batch: pa.RecordBatch


def row_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The schema of the changes of a table with these columns. Raises ValueError if a type is invalid."""
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
    """The values or keys of records as JSON, with the contents of their schemas."""

    column: pa.Array
    scan: Messages
    declared: Declared
    errors: pa.Array | None = None
    """STRING: the errors of the conversion to JSON, NULL if there is none; None if the messages were JSON already"""


def json_side(column: pa.Array) -> MessageSide:
    """A side for JSON, with or without embedded schemas."""
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
    """Decode the changes of a table from a column of messages.

    Parameters
    ----------
    messages
        BINARY or STRING: the values of Kafka's records
    table
        the table; None selects the messages of all tables
    columns
        names and types, in the syntax of ``sparkwire.json.types``
    keys
        the records' keys: JSON with or without its schema. With keys, a tombstone is a DELETE of its key.
    topics
        the records' topics, which identify the table of a tombstone. Without topics, the key's schema identifies it, if any
    placeholder
        the text in messages that replaces an unavailable value
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
    """Like ``change_rows``, for values and keys with known schemas."""
    types, scan = typed(columns), messages.scan
    chosen = of_table(scan, messages.declared, table) & _ROWS[scan.operations + 1]
    dead = doubtful = np.zeros(len(chosen), np.bool_)
    if keys is not None:
        dead, doubtful = _tombstones(messages, keys, topics, table)
    rows = np.flatnonzero(chosen | dead)
    versions, flattened = messages.declared.of(rows), scan.flattened[rows]
    form = placeholder_of(placeholder)
    before, after = (
        read_images(
            JsonRows(
                image.at(rows),
                types,
                unavailable=partial(is_unavailable, form),
                added=Added(flattened, is_added, ADDED_NAMES),
            ),
            types,
            versions,
        )
        for image in scan.image_objects
    )
    if keys is not None and dead.any():
        before = _or_else(before, _key_images(keys, rows, types), dead[rows])
    operations = np.where(dead[rows], np.int8(DELETE), scan.operations[rows])
    unavailable = after.unavailable | (before.unavailable & ~bools_of(after.column.is_valid())[:, None])
    arrays = [
        from_codes(operations, OPERATION_NAMES),
        position_of_source(scan, rows),
        times_of(scan, rows),
        row_texts(scan, rows, "source.table", "source.collection"),
        pc.replace_substring_regex(row_texts(scan, rows, "transaction.id"), _WITH_LSN, r"\1"),
        row_texts(scan, rows, "source.snapshot"),
        pa.nulls(len(rows), pa.list_(pa.string())) if keys is None else _key_names(keys, rows),
        before.column,
        after.column,
        named_lists(unavailable, list(types)),
        unexpected_map([*after.unexpected, *_of_before(before, after)], len(rows)),
        _errors(messages, rows, dead[rows], doubtful[rows]),
    ]
    return Changes(rows, pa.RecordBatch.from_arrays(arrays, schema=row_schema(columns)))


def _errors(messages: MessageSide, rows: Ints, dead: Bools, doubtful: Bools) -> pa.Array:
    of_dead = np.where(doubtful, np.int8(MISSING_FIELD), np.int8(OK))
    own = from_codes(np.where(dead, of_dead, messages.scan.errors[rows]), ERRORS)
    return own if messages.errors is None else pc.coalesce(messages.errors.take(primitive(rows)), own)


def times_of(scan: Messages, rows: Ints) -> pa.Array:
    """TIMESTAMP: when each change happened."""
    return _EVENT_TIME(scan).take(primitive(rows))


def row_texts(scan: Messages, rows: Ints, *fields: str) -> pa.Array:
    """STRING: the first of these fields that a message has."""
    texts = scan.value(fields[0])
    for field in fields[1:]:
        texts = texts.unless(texts.kinds <= 1, scan.value(field))
    return values.texts(texts.at(rows))


def _of_before(before: TypedImages, after: TypedImages) -> list[MapEntries]:
    """The unexpected values of the before image, renamed so that they differ from those of the after image."""
    both = bools_of(after.column.is_valid())
    unexpected = []
    for entry in before.unexpected:
        beside = primitive(both[entry.rows])
        names = pc.if_else(beside, pc.binary_join_element_wise("before.", entry.names, ""), entry.names)
        unexpected.append(entry._replace(names=names))
    return unexpected


# ---------------------------------------------------------------- keys and tombstones


def key_names(keys: MessageSide) -> pa.Array:
    """ARRAY<STRING>: the column names in Kafka's keys; NULL if a key is null or not an object."""
    return _key_names(keys, np.arange(len(keys.column)))


def _key_names(keys: MessageSide, rows: Ints) -> pa.Array:
    images = Images(_key_objects(keys, rows))
    return lists(images.listed.firsts, images.names, images.present)


def _key_objects(keys: MessageSide, rows: Ints) -> values.Values:
    return keys.scan.roots_at(rows).only(bools_of(keys.column.is_valid())[rows])


def key_rows(keys: pa.Array, columns: Mapping[str, str]) -> pa.Array:
    """STRUCT of the columns: the key's columns have values, all others are NULL."""
    return _key_images(json_side(keys), np.arange(len(keys)), typed(columns)).column


def _key_images(keys: MessageSide, rows: Ints, types: Mapping[str, Type]) -> TypedImages:
    source = JsonRows(_key_objects(keys, rows), types)
    return read_images(source, types, keys.declared.of(rows))


def _or_else(images: TypedImages, others: TypedImages, chosen: Bools) -> TypedImages:
    """Replace the ``chosen`` images by ``others``."""
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


def _tombstones(
    messages: MessageSide, keys: MessageSide, topics: pa.Array | None, table: Table | None
) -> tuple[Bools, Bools]:
    """Messages without a value that may be of the table; and those of them of which nobody knows it.

    A schema or a topic with the name of the table shows that they are. A topic whose name has no table, or the table's name in
    another place, has been renamed.
    """
    dead = (~bools_of(messages.column.is_valid()) | messages.scan.tombstones) & bools_of(keys.column.is_valid())
    if table is None or not dead.any():
        return dead, np.zeros(len(dead), np.bool_)
    names = keys.declared.names
    own = has_name(names, table)
    if topics is not None:
        names = pc.binary_join_element_wise(topics.cast(pa.string()), "Key", ".")
        own |= has_name(names, table)
    name = name_parts(names).table
    other = ~own & bools_of(pc.not_equal(name, topic_name(table.name)).fill_null(False))
    return dead & ~other, dead & ~own & ~other & bools_of(names.is_valid())


# ---------------------------------------------------------------- positions


def position_of_source(scan: Messages, rows: Ints) -> pa.Array:
    """The position of each change in its database's log, from the fields that its connector provides."""
    fields = {name: scan.value(f"source.{name}").at(rows) for name in POSITION_FIELDS}
    texts = {name: values.texts(value) for name, value in fields.items()}

    def number(name: str) -> pa.Array:
        numbers = integers(texts[name], pa.int64())
        return pc.if_else(pc.greater_equal(numbers, 0), numbers, None)

    pair = pc.extract_regex(texts["sequence"], _SEQUENCE)
    ends, own = (_int_or_null(pc.struct_field(pair, name)) for name in ("before", "own"))
    own = pc.coalesce(own, number("lsn"))
    file = pc.extract_regex(texts["file"], _NUMBERED)
    is_file = pc.not_equal(texts["file"], "").fill_null(False)  # TiCDC writes an empty one
    log = pc.if_else(is_file, pc.coalesce(text_or_null(pc.struct_field(file, "name")), texts["file"]), None)
    lsns = [_sortable(texts[name]) for name in ("commit_lsn", "change_lsn")]
    lsn = pc.binary_join_element_wise(lsns[0], pc.coalesce(lsns[1], ""), "/")
    # A snapshot as of an SCN contains the commits up to it.
    of_snapshot = pc.and_(texts["commit_scn"].is_null(), pa.array(scan.operations[rows] == READ))
    position = pc.coalesce(
        pc.if_else(is_file, _int_or_null(pc.struct_field(file, "number")), None),
        # Before the first commit that the connector has seen, the change itself is later than all earlier commits.
        pc.coalesce(ends, own),
        pc.coalesce(number("commit_scn"), pc.if_else(of_snapshot, number("scn"), None)),
        pc.if_else(texts["ord"].is_valid(), number("ts_ms"), None),
        number("commit_ts"),
    )
    sub_position = pc.coalesce(pc.if_else(is_file, number("pos"), None), own, number("scn"), number("ord"))
    row = pc.coalesce(
        pc.if_else(is_file, number("row"), None),
        number("event_serial_no"),
        _place_in_redo(texts["rs_id"], number("ssn")),
    )
    valid = bools_of(pc.or_(pc.or_(log.is_valid(), lsn.is_valid()), position.is_valid()))
    valid &= ~bools_of(pc.and_(is_file, number("pos").is_null()))
    parts = {"log": log, "lsn": lsn, "position": position, "sub_position": sub_position, "row": row}
    return struct(parts, valid)


def _place_in_redo(ids: pa.Array, numbers: pa.Array) -> pa.Array:
    """The place of a change in Oracle's redo log, from the block and byte of its record and its number there; of 63 bits."""
    if ids.null_count == len(ids):
        return numbers
    parts = pc.extract_regex(ids, _RECORD)
    pairs = zip(
        *(pc.struct_field(parts, name).to_pylist() for name in ("block", "byte")), numbers.to_pylist(), strict=True
    )
    places = [
        number if not block else (int(block, 16) << 16 | int(byte, 16)) << 15 | min(number or 0, (1 << 15) - 1)
        for block, byte, number in pairs
    ]
    return pa.array(places, pa.int64())


def _sortable(lsn: pa.Array) -> pa.Array:
    """LSNs as texts that sort like them. SQL Server's have a fixed width, Informix's are decimal numbers."""
    return pc.if_else(pc.match_substring_regex(lsn, "^[0-9]+$"), pc.utf8_lpad(lsn, 20, "0"), lsn)


def _int_or_null(texts: pa.Array) -> pa.Array:
    """A group of digits as a number; NULL if the group is empty."""
    return pc.if_else(
        pc.and_(pc.greater(pc.utf8_length(texts), 0), pc.less(pc.utf8_length(texts), 19)), texts, None
    ).cast(pa.int64())
