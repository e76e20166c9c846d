"""The messages of one table as typed rows: the rows of a TUPLE topic, and the values that a TUPLE topic cannot carry.

A row has the metadata columns of a TUPLE topic, one typed column for each column of the table, and three more:

    _primary_key_  ARRAY<STRING>         names of the primary key's columns, as the message has them
    _unexpected_   MAP<STRING, STRING>   the text of each unexpected value: the schema lacks the column or has another type
                                         for it, or the value does not fit (the typed column is NULL then). NULL if there are
                                         no unexpected values
    _error_        STRING                `datahub_error`: the first error of the message
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS
from sparkwire.base.sqltype import arrow_type
from sparkwire.core.column import bools_of, from_codes, maps, primitive, strings, timestamps
from sparkwire.core.column_names import distinct_names
from sparkwire.core.table_names import Table
from sparkwire.datahub.blob_tables import of_table
from sparkwire.datahub.blobs import BlobColumn
from sparkwire.datahub.layout import OPERATIONS, SQL_TYPES
from sparkwire.json import values
from sparkwire.json.grammar import ESCAPED, FALSE, INTEGER, NULL, REAL, STRING, TRUE
from sparkwire.json.images import Images
from sparkwire.json.values import Codes, Ranges, Values, by_row
from sparkwire.kernels import Bools, Ints

TUPLE_COLUMNS: Final = {
    "_sequence_id_": "STRING",
    "_operation_type_": "STRING",
    "_excute_time_": "BIGINT",
    "_source_table_": "STRING",
    "_before_image_": "STRING",
    "_after_image_": "STRING",
}
REMARKS: Final = {"_primary_key_": "ARRAY<STRING>", "_unexpected_": "MAP<STRING, STRING>", "_error_": "STRING"}

# By code of the operation; the last item is for an unknown operation, -1.
_TUPLE_TYPES: Final = tuple(operation.tuple_type for operation in OPERATIONS)
_MAY_BE_ROW: Final = np.array([*(bool(operation.tuple_type) for operation in OPERATIONS), True])
_OF_BEFORE: Final = np.array([*(operation.image == "before" for operation in OPERATIONS), False])
_WHOLE_UPDATE: Final = [operation.op for operation in OPERATIONS].index("UPDATE")
"""the only operation that may have both images; a TUPLE topic carries it as two rows"""


def row_schema(columns: Mapping[str, str], taken_names: Sequence[str] = ()) -> pa.Schema:
    """The schema of typed rows; ``columns`` maps name to DataHub type. A column of an unknown type becomes text.

    Names must be distinct without regard to case: if two are equal, the second gets the suffix ``_2`` (`distinct_names`).
    The columns ``taken_names`` come first, then the columns that every row has, then the table's.
    """
    fixed = TUPLE_COLUMNS | REMARKS
    names = distinct_names(list(fixed), taken_names)
    before, after = names[: len(TUPLE_COLUMNS)], names[len(TUPLE_COLUMNS) :]
    of_table = distinct_names(list(columns), [*taken_names, *names])
    types = [*TUPLE_COLUMNS.values(), *(SQL_TYPES.get(type, "STRING") for type in columns.values()), *REMARKS.values()]
    return pa.schema([(name, arrow_type(sql)) for name, sql in zip([*before, *of_table, *after], types, strict=True)])


def typed_rows(
    blobs: pa.Array, table: Table, columns: Mapping[str, str], others: pa.RecordBatch | None = None
) -> pa.RecordBatch:
    """A row for each change of the table, in the order of the messages; it begins with the message's row of ``others``.

    An UPDATE with both images becomes two rows, the before image first. Messages of other tables, DDL, heartbeats and
    transaction marks become no row. A corrupt message becomes a row with its ``_error_``, unless its readable fields show
    that it is of another table or not a change.
    """
    messages = BlobColumn(blobs)
    rows, of_before = _choose(messages, table)
    before, after = (images.objects.at(rows) for images in (messages.before, messages.after))
    images = Images(after.unless(of_before, before))
    operations = messages.operations[rows]
    known = operations >= 0
    sides = (np.where(known, side, -1).astype(np.int8) for side in (of_before, ~of_before))
    numbers, valid = messages.event_time
    typed, unexpected = _read(messages, rows, images, columns)
    columns_out = [
        values.texts(messages.value("sequence_id").at(rows)),
        from_codes(operations, _TUPLE_TYPES),
        primitive(numbers[rows], valid[rows]),
        values.texts(messages.value("table").at(rows)),
        *(from_codes(side, ("N", "Y")) for side in sides),
        *typed,
        messages.primary_keys.take(primitive(rows)),
        unexpected,
        from_codes(messages.errors[rows], ERRORS),
    ]
    batch = pa.RecordBatch.from_arrays(
        columns_out, schema=row_schema(columns, [] if others is None else others.schema.names)
    )
    if others is None:
        return batch
    kept = others.take(primitive(rows))
    return pa.RecordBatch.from_arrays(
        [*kept.columns, *batch.columns], schema=pa.schema([*others.schema, *batch.schema])
    )


def _choose(messages: BlobColumn, table: Table) -> tuple[Ints, Bools]:
    """The message of each row, and whether the row shows the before image."""
    operations = messages.operations
    chosen = of_table(messages, table) & _MAY_BE_ROW[operations]
    twice = chosen & (operations == _WHOLE_UPDATE) & messages.before.present
    counts = chosen.astype(np.int64) + twice
    rows = np.repeat(np.arange(len(counts)), counts)
    first = np.ones(len(rows), np.bool_)
    first[1:] = rows[1:] != rows[:-1]
    return rows, np.where(twice[rows], first, _OF_BEFORE[operations[rows]])


def _read(
    messages: BlobColumn, rows: Ints, images: Images, columns: Mapping[str, str]
) -> tuple[list[pa.Array], pa.Array]:
    """The typed columns, and the unexpected values."""
    declared = messages.declared
    selected = strings(list(columns))
    (table_names, names, declared_names), count = values.numbered(selected, images.names, declared.names)
    shared = _shared_names(table_names, len(rows))
    places = values.last_places(images.ranges(names), shared, count)
    declared_ranges = Ranges(declared.firsts[rows], declared.lasts[rows], declared_names)
    declarations = values.last_places(declared_ranges, shared, count)
    shape = (len(rows), len(columns))
    typed: list[pa.Array] = []
    expected = np.zeros(len(images.listed.values.kinds), np.bool_)
    for k, type in enumerate(columns.values()):
        at, declaration = places.reshape(shape)[:, k], declarations.reshape(shape)[:, k]
        items = images.listed.values.at_or_absent(at)
        read = _READERS.get(type, _read_text)(items)
        typed.append(read.column)
        other = bools_of(pc.not_equal(declared.types, type).fill_null(False))
        fits = (~read.unfit | (items.kinds <= NULL)) & ~((declaration >= 0) & np.append(other, False)[declaration])
        expected[at[fits & (at >= 0)]] = True
    return typed, _unexpected(images, expected)


def _shared_names(names: Codes, rows: int) -> Ranges:
    """Ranges with which every row looks up every name."""
    firsts = np.arange(rows + 1) * len(names)
    return Ranges(*by_row(firsts), np.tile(names, rows))


def _unexpected(images: Images, expected: Bools) -> pa.Array:
    shown = ~expected if images.superseded is None else ~(expected | images.superseded)
    chosen = np.flatnonzero(shown)
    firsts = np.concatenate(([0], np.cumsum(shown)))[images.listed.firsts].astype(np.int32)
    names, texts = images.names.take(primitive(chosen)), values.texts(images.listed.values.at(chosen))
    return maps(firsts, names, texts, np.diff(firsts) > 0)


class TypedColumn(NamedTuple):
    """A typed column, and which rows have a value that does not fit its type."""

    column: pa.Array
    unfit: Bools


def _of(column: pa.Array) -> TypedColumn:
    return TypedColumn(column, ~bools_of(column.is_valid()))


def _read_long(items: Values) -> TypedColumn:
    return _of(primitive(*values.integers(items)))


def _read_double(items: Values) -> TypedColumn:
    numbers = pc.cast(values.texts(items.only((items.kinds == INTEGER) | (items.kinds == REAL))), pa.float64())
    return _of(pc.if_else(pc.is_finite(numbers), numbers, None))  # 1e400 does not fit a DOUBLE


def _read_boolean(items: Values) -> TypedColumn:
    return _of(primitive(items.kinds == TRUE, (items.kinds == TRUE) | (items.kinds == FALSE)))


def _read_string(items: Values) -> TypedColumn:
    return _of(values.texts(items.only((items.kinds == STRING) | (items.kinds == ESCAPED))))


def _read_date(items: Values) -> TypedColumn:
    numbers, valid = values.integers(items)
    return _of(timestamps(numbers, "ms", valid))


def _read_bytes(items: Values) -> TypedColumn:
    return _of(values.from_base64(_read_string(items).column))


def _read_text(items: Values) -> TypedColumn:
    return _of(values.texts(items))


_READERS: Final[Mapping[str, Callable[[Values], TypedColumn]]] = {
    "LONG": _read_long,
    "DOUBLE": _read_double,
    "BOOLEAN": _read_boolean,
    "STRING": _read_string,
    "DATE": _read_date,
    "BYTES": _read_bytes,
}
