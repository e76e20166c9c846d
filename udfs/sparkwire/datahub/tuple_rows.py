"""The messages of one table as typed rows: the rows of a TUPLE topic, and the values that a TUPLE topic cannot carry.

A row has the metadata columns of a TUPLE topic, one typed column for each column of the table, and three more:

    _primary_key_  ARRAY<STRING>         names of the primary key's columns, as the message has them
    _unexpected_   MAP<STRING, STRING>   the text of each unexpected value: the schema lacks the column or has another type
                                         for it, or the value does not fit (the typed column is NULL then). NULL if there are
                                         no unexpected values
    _error_        STRING                `datahub_error`: the first error of the message
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS
from sparkwire.base.sqltype import arrow_type
from sparkwire.core.column import bools_of, from_codes, primitive
from sparkwire.core.names import Table, distinct_names
from sparkwire.datahub.blob_tables import of_table
from sparkwire.datahub.blobs import BlobColumn
from sparkwire.datahub.layout import OPERATIONS, OTHER_TYPE, SQL_TYPES, TYPES
from sparkwire.json import values
from sparkwire.json.grammar import NULL
from sparkwire.json.images import Images
from sparkwire.json.typed_images import JsonRows, MapEntries, Versions, read_images, unexpected_map
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
    types = {name: TYPES.get(type, OTHER_TYPE) for name, type in columns.items()}
    source = JsonRows(images.objects, types)
    typed = read_images(source, types, Versions(np.full(len(rows), -1, np.int32), []))
    unexpected = [*typed.unexpected, *_of_other_types(messages, rows, source, columns, typed.unexpected)]
    return typed.column.flatten(), unexpected_map(unexpected, len(rows))


def _of_other_types(
    messages: BlobColumn, rows: Ints, source: JsonRows, columns: Mapping[str, str], known: Sequence[MapEntries]
) -> Iterator[MapEntries]:
    """The values whose message declares another type than the column has. ``known`` are unexpected already."""
    declared = messages.columns
    offsets, names, types = declared.offsets, declared.names.to_pylist(), declared.types.to_pylist()
    lists = [dict(zip(names[a:b], types[a:b], strict=True)) for a, b in pairwise(offsets.tolist())]
    codes = declared.distinct.codes[rows]
    for name, type in columns.items():
        differs = np.array([*(one.get(name, type) != type for one in lists), False])[codes]
        if differs.any():
            for entry in known:
                differs[entry.rows[bools_of(pc.equal(entry.names, name))]] = False
            chosen = np.flatnonzero(differs & (source.value(name).kinds > NULL))
            yield MapEntries(chosen, pa.array([name] * len(chosen), pa.string()), source.texts(name, chosen))
