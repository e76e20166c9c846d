"""Decode DataHub messages to changes: an image is a row. A TRUNCATE or ERASE of the table changes all its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, MISSING_FIELD
from sparkwire.base.sqltype import arrow_type
from sparkwire.changes.batches import ChangeBatch, change_schema, names_column
from sparkwire.changes.columns import DELETE, INSERT, TRUNCATE, UPDATE, UPDATE_BEFORE
from sparkwire.changes.orders import NUMBER, numbers
from sparkwire.core.column import bools_of, primitive, timestamps
from sparkwire.core.table_names import Table
from sparkwire.datahub.blob_tables import of_table
from sparkwire.datahub.blobs import BlobColumn
from sparkwire.datahub.functions import FORMAT
from sparkwire.datahub.layout import SQL_TYPES
from sparkwire.datahub.tuple_rows import typed_rows

_ENDING = ["TRUNCATE", "ERASE"]


def datahub_schema(columns: Mapping[str, str]) -> pa.Schema:
    fields = [pa.field(name, arrow_type(SQL_TYPES.get(type, "STRING"))) for name, type in columns.items()]
    return change_schema(NUMBER, fields)


def datahub_changes(
    blobs: pa.Array, table: Table, columns: Mapping[str, str], keys: Sequence[str] | None
) -> ChangeBatch:
    """The changes of a table. Pass ``keys`` if the messages do not contain them."""
    numbered = pa.record_batch([primitive(np.arange(len(blobs)))], names=["row"])
    images = typed_rows(blobs, table, columns, numbered)
    ends = np.flatnonzero(
        of_table(BlobColumn(blobs), table) & bools_of(pc.is_in(_decode("datahub_op", blobs), pa.array(_ENDING)))
    )
    ending = blobs.take(pa.array(ends))
    rows = np.concatenate([images.column("row").to_numpy(zero_copy_only=False), ends]).astype(np.int64)
    order = np.argsort(rows, kind="stable")

    def both(of_images: pa.Array, of_endings: pa.Array) -> pa.Array:
        return pa.concat_arrays([of_images, of_endings.cast(of_images.type)]).take(pa.array(order))

    is_before = pc.and_(pc.equal(images["_before_image_"], "Y"), pc.equal(images["_after_image_"], "N")).fill_null(
        False
    )
    letter = images["_operation_type_"]
    ops = pc.case_when(
        pc.make_struct(
            pc.equal(letter, "I"),
            pc.equal(letter, "D"),
            pc.and_(pc.equal(letter, "U"), is_before),
            pc.equal(letter, "U"),
        ),
        *(pa.scalar(op) for op in (INSERT, DELETE, UPDATE_BEFORE, UPDATE)),
    )
    schema = datahub_schema(columns)
    places = [images.schema.get_field_index(name) for name in columns]
    values = [images.column(place) for place in places]
    old = pa.StructArray.from_arrays(
        values,
        fields=list(schema.field("_before_").type),
        mask=pc.invert(pc.or_(is_before, pc.equal(letter, "D").fill_null(False))),
    )
    orders = numbers(both(images["_sequence_id_"], _decode("datahub_sequence_id", ending)))
    key_names = names_column(keys, len(images)) if keys is not None else images["_primary_key_"]
    errors = both(images["_error_"], _decode("datahub_error", ending))
    unplaced = pc.if_else(orders.is_null(), ERRORS[MISSING_FIELD], None)
    times = both(images["_excute_time_"], _decode("datahub_event_time_ms", ending))
    arrays = [
        both(ops, pa.repeat(TRUNCATE, len(ends))),
        orders,
        timestamps(times.fill_null(0).to_numpy(zero_copy_only=False), "ms", bools_of(times.is_valid())),
        both(images["_source_table_"], _decode("datahub_table", ending)),
        pa.nulls(len(rows), pa.string()),
        both(key_names, names_column(keys, len(ends)) if keys is not None else _decode("datahub_primary_key", ending)),
        both(old, pa.nulls(len(ends), old.type)),
        *(both(value, pa.nulls(len(ends), value.type)) for value in values),
        pa.nulls(len(rows), schema.field("_unavailable_").type),
        both(images["_unexpected_"], pa.nulls(len(ends), images["_unexpected_"].type)),
        pc.coalesce(errors, unplaced),
    ]
    return ChangeBatch(rows[order], pa.RecordBatch.from_arrays(arrays, schema=schema))


def primary_keys(blobs: pa.Array, table: Table) -> pa.Array:
    """The distinct primary keys in messages of the table."""
    messages = blobs.filter(pa.array(of_table(BlobColumn(blobs), table)))
    return _decode("datahub_primary_key", messages)


def _decode(function: str, blobs: pa.Array) -> Any:
    return FORMAT.by_name[function].decode(blobs)
