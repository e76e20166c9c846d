"""The rows of `sparkwire.datahub.rows`: another form of the rows of `sparkwire.changes`. Each shows one image.

A row has the metadata columns of a TUPLE topic, one typed column for each column of the table, and three more:

    _primary_key_  ARRAY<STRING>         names of the primary key's columns, as the message has them
    _unexpected_   MAP<STRING, STRING>   as in a change table, and the values whose message declares another type
    _error_        STRING                as in a change table; MISSING_FIELD also if the message has no time
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, MISSING_FIELD
from sparkwire.base.sqltype import arrow_type
from sparkwire.changes.columns import READ, TRUNCATE, ChangeBatch
from sparkwire.changes.datahub import DATAHUB, declared_columns
from sparkwire.changes.orders import numbers
from sparkwire.changes.records import ReadPlan
from sparkwire.changes.systems import Fields
from sparkwire.changes.table_rows import TableRows, cast_to, typed_rows
from sparkwire.core.column import bools_of, from_codes, primitive, to_codes
from sparkwire.core.names import Table, distinct_names, fits
from sparkwire.datahub.layout import OPERATIONS
from sparkwire.json import values
from sparkwire.json.grammar import ARRAY, NULL, OBJECT
from sparkwire.json.typed_images import JsonRows, MapEntries, Versions, unexpected_map
from sparkwire.json.types import Type
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

_OPERATIONS: Final = {operation.op: operation for operation in OPERATIONS if operation.tuple_type}
_TUPLE_TYPES: Final = tuple(operation.tuple_type for operation in _OPERATIONS.values())
_OF_BEFORE: Final = np.array([*(operation.image == "before" for operation in _OPERATIONS.values()), False])
"""by the operation's code; the last item is for any other operation, -1"""
_WITH_BOTH: Final = list(_OPERATIONS).index("UPDATE")
"""the only operation whose message has two rows in a TUPLE topic; UPDATE_AFTER has another message beside it"""
_TAKEN: Final = ("ops", "errors", "times", "tables", "transactions", "keys")
_RECENCY: Final = ("digits", "sequence_id", "event_time_ms")


def row_schema(types: Mapping[str, Type], taken_names: Sequence[str] = ()) -> pa.Schema:
    """The schema of the rows of a table with these columns.

    Names must be distinct without regard to case: if two are equal, the second gets the suffix ``_2`` (`distinct_names`).
    The columns ``taken_names`` come first, then the columns that every row has, then the table's.
    """
    fixed = TUPLE_COLUMNS | REMARKS
    names = distinct_names(list(fixed), taken_names)
    before, after = names[: len(TUPLE_COLUMNS)], names[len(TUPLE_COLUMNS) :]
    of_table = distinct_names(list(types), [*taken_names, *names])
    of_fixed = {name: arrow_type(sql) for name, sql in zip(names, fixed.values(), strict=True)}
    return pa.schema(
        [
            *((name, of_fixed[name]) for name in before),
            *((name, type.arrow) for name, type in zip(of_table, types.values(), strict=True)),
            *((name, of_fixed[name]) for name in after),
        ]
    )


def datahub_rows(
    fields: Fields, said: TableRows, types: Mapping[str, Type], schema: pa.Schema, plan: ReadPlan
) -> ChangeBatch:
    """A row for each image, in the order of the messages. NULL has no row, nor has a TRUNCATE without an error.

    An UPDATE with both images becomes two rows, the before image first.
    """
    operations = to_codes(values.texts(fields.value("op").at(said.messages)), tuple(_OPERATIONS))
    rows, of_before = _images(fields, said, operations)
    images = _with_one_image(said, rows, of_before)
    typed = typed_rows(images, types, plan)
    codes = operations[rows]
    sides = (np.where(codes >= 0, side, -1).astype(np.int8) for side in (of_before, ~of_before))
    times = primitive(*values.integers(fields.value("time").at(images.messages)))
    columns = [
        values.texts(fields.value("sequence").at(images.messages)),
        from_codes(codes, _TUPLE_TYPES),
        times,
        images.tables,
        *(from_codes(side, ("N", "Y")) for side in sides),
        *typed.columns,
        typed.keys,
        unexpected_map([*typed.unexpected, *_of_other_types(images, types, typed.unexpected)], len(rows)),
        pc.coalesce(typed.errors, pc.if_else(times.is_valid(), None, ERRORS[MISSING_FIELD])),
    ]
    return ChangeBatch(images.messages, pa.RecordBatch.from_arrays(cast_to(columns, schema), schema=schema))


def _images(fields: Fields, said: TableRows, operations: npt.NDArray[np.int8]) -> tuple[Ints, Bools]:
    """The row of `said` that each image is of, and whether it is the before image."""
    is_left_out = bools_of(pc.equal(said.ops, TRUNCATE).fill_null(False)) & ~bools_of(said.errors.is_valid())
    has_both = (operations == _WITH_BOTH) & (said.before.kinds == OBJECT)
    counts = np.where(is_left_out | ~fields.valid[said.messages], 0, 1 + has_both)
    rows = np.repeat(np.arange(len(counts)), counts)
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = rows[1:] != rows[:-1]
    of_before = _OF_BEFORE[operations] | ((operations < 0) & (said.after.kinds != OBJECT))
    return rows, np.where(has_both[rows], is_first, of_before[rows])


def _with_one_image(said: TableRows, rows: Ints, of_before: Bools) -> TableRows:
    """Each image as a row that exists, so that the rules of a new row hold for it."""
    if not np.array_equal(rows, np.arange(len(said.messages))):
        taken = primitive(rows)
        said = said._replace(
            messages=said.messages[rows],
            before=said.before.at(rows),
            after=said.after.at(rows),
            versions=Versions(said.versions.codes[rows], said.versions.types),
            **{name: getattr(said, name).take(taken) for name in _TAKEN},
        )
    return said._replace(
        ops=pc.if_else(said.ops.is_valid(), READ, None),
        before=values.nothing(said.after.data, len(rows)),
        after=said.after.unless(of_before, said.before),
        missing=None,
    )


def _of_other_types(
    images: TableRows, types: Mapping[str, Type], unexpected: Sequence[MapEntries]
) -> Iterator[MapEntries]:
    """The values whose message declares another type than the column has, except those that are ``unexpected`` already."""
    source = JsonRows(images.after, types)
    for name, type in types.items():
        differs = np.array([declared != type for declared in images.versions.of(name, type)])[images.versions.codes]
        if differs.any():
            for entry in unexpected:
                differs[entry.rows[bools_of(pc.equal(entry.names, name))]] = False
            chosen = np.flatnonzero(differs & (source.value(name).kinds > NULL))
            yield MapEntries(chosen, pa.array([name] * len(chosen), pa.string()), source.texts(name, chosen))


# ---------------------------------------------------------------- columns


def declarations(blobs: pa.Array, table: Table) -> pa.RecordBatch:
    """The different lists of columns that messages of the table declare.

    Returns
    -------
    pa.RecordBatch
        ``columns`` STRING, in JSON, and ``recency`` STRUCT<digits INT, sequence_id STRING, event_time_ms BIGINT> of the list's
        last message. Recencies have the same order as the numbers of the sequence ids.
    """
    fields = Fields(DATAHUB, blobs)
    lists = fields.value("types")
    chosen = fits(table, fields.names) & fields.recognized & fields.documents.intact & (lists.kinds == ARRAY)
    rows = np.flatnonzero(chosen & bools_of(fields.names.table.is_valid()))
    lists = lists.at(rows)
    recency = _recency(fields, primitive(rows))
    newest_first = pc.sort_indices(recency, [(name, "descending") for name in _RECENCY])
    _, firsts = np.unique(values.distinct(lists).codes[newest_first], return_index=True)
    latest = np.asarray(newest_first)[firsts]
    recencies = recency.take(primitive(latest)).to_struct_array()
    return pa.record_batch([values.texts(lists.at(latest)), recencies], names=["columns", "recency"])


def _recency(fields: Fields, rows: pa.Array) -> pa.RecordBatch:
    digits, number = numbers(fields.texts("sequence").take(rows)).flatten()
    millis = pc.divide(fields.times[0].take(rows).cast(pa.int64()), 1000)
    columns = [digits.fill_null(0), number.fill_null(""), millis.fill_null(-1)]
    return pa.record_batch(columns, names=list(_RECENCY))


def latest_columns(lists: Iterable[str]) -> dict[str, str]:
    """Name and type of every column of these lists; ``lists`` begins with the oldest.

    The result begins with the columns of the newest list. A column has its type from the newest list that contains it.
    """
    columns: dict[str, str] = {}
    for text in lists:
        newest = declared_columns(text)
        columns = newest | {name: type for name, type in columns.items() if name not in newest}
    return columns
