"""Decode Databus events to changes: an event is an UPSERT or DELETE of one row, and its payload is the row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.payloads import Payloads
from sparkwire.avro.schemas import UNKNOWN_SCHEMA, Schemas
from sparkwire.avro.typed_rows import RowsReader
from sparkwire.base.error_codes import ERRORS, MISSING_FIELD
from sparkwire.changes.columns import DELETE, UPSERT, ChangeBatch, change_schema, names_column
from sparkwire.changes.records import int32
from sparkwire.core.column import bools_of, primitive
from sparkwire.databus.event_payloads import of_events, result_of
from sparkwire.json.typed_images import named_lists
from sparkwire.kernels import Bools

ORDER: Final = pa.struct([("epoch", pa.int32()), ("scn", pa.int64()), ("file", pa.string()), ("position", pa.int64())])


class DatabusSource(NamedTuple):
    """How to read the events of a source. Contains only plain data, which Spark pickles for workers."""

    name: str
    read: RowsReader
    keys: tuple[str, ...] | None
    all_schemas: Schemas
    """the schemas of all sources"""
    epoch: int = 0


def databus_schema(source: DatabusSource) -> pa.Schema:
    return change_schema(ORDER, source.read.fields)


def databus_changes(
    events: pa.Array,
    files: pa.Array | None,
    positions: pa.Array | None,
    source: DatabusSource,
    epochs: pa.Array | None = None,
) -> ChangeBatch:
    """The changes of a source. ``files`` and ``positions`` are the locations of the events, or None if unknown.

    An event with an unknown schema may be one of the source, so it is a row with an error.
    """
    ids = of_events(events).ids
    is_data = _may_be_data(events)
    is_unknown = (source.all_schemas.chosen(ids) < 0) & is_data
    rows = np.flatnonzero((source.read.schemas.chosen(ids) >= 0) & is_data | is_unknown)
    chosen, count = events.take(pa.array(rows)), len(rows)
    payloads = of_events(chosen)
    values, errors = source.read.rows(payloads)
    unavailable = _unavailable(payloads, source.read)
    is_delete = pc.equal(result_of("dbus_opcode", chosen), DELETE).fill_null(False)
    values, keyless = _with_keys(chosen, values, source, bools_of(is_delete))
    own_epoch = pa.repeat(pa.scalar(source.epoch, pa.int32()), count)
    epoch = own_epoch if epochs is None else int32(epochs.take(pa.array(rows)))
    lost = pc.if_else(pc.or_(pa.array(keyless), epoch.is_null()), ERRORS[MISSING_FIELD], None).cast(pa.string())
    nameless = primitive(is_unknown[rows], type=pa.bool_())
    errors = pc.coalesce(errors, pc.if_else(nameless, UNKNOWN_SCHEMA, None).cast(pa.string()))
    orders = pa.StructArray.from_arrays(
        [
            epoch,
            result_of("dbus_sequence", chosen),
            pa.nulls(count, pa.string()) if files is None else files.take(pa.array(rows)).cast(pa.string()),
            pa.nulls(count, pa.int64()) if positions is None else positions.take(pa.array(rows)).cast(pa.int64()),
        ],
        fields=list(ORDER),
    )
    schema = databus_schema(source)
    columns = [
        pc.if_else(is_delete, DELETE, UPSERT),
        orders,
        result_of("dbus_timestamp", chosen),
        pc.if_else(nameless, None, source.name).cast(pa.string()),
        pa.nulls(count, pa.string()),
        names_column(source.keys, count),
        pa.nulls(count, schema.field("_before_").type),
        *values,
        unavailable,
        pa.nulls(count, schema.field("_unexpected_").type),
        pc.coalesce(errors, lost),
    ]
    return ChangeBatch(rows, pa.RecordBatch.from_arrays(columns, schema=schema))


def _may_be_data(events: pa.Array) -> Bools:
    """Data events, corrupt events, whose source is not certain, and those of source 0, which Databus takes for data."""
    is_data = pc.equal(result_of("dbus_event_type", events), "DATA").fill_null(True)
    is_corrupt = result_of("dbus_error", events).is_valid()
    is_zero = pc.equal(result_of("dbus_src_id", events), 0).fill_null(False)
    return bools_of(pc.and_(events.is_valid(), pc.or_(pc.or_(is_data, is_corrupt), is_zero)))


def lacks_columns(read: RowsReader) -> bool:
    """Whether a version of the schema does not have all columns."""
    return any(read.missing())


def _unavailable(payloads: Payloads, read: RowsReader) -> pa.Array:
    """ARRAY<STRING>: the columns that the schema of each payload does not have; NULL if there are none."""
    names = [field.name for field in read.fields]
    lacking = np.zeros((len(read.schemas.texts) + 1, len(names)), np.bool_)  # the last row is that of no schema
    for version, missing in enumerate(read.missing()):
        lacking[version] = [name in missing for name in names]
    chosen = np.where(bools_of(payloads.values.is_valid()), read.schemas.chosen(payloads.ids), -1)
    return named_lists(lacking[chosen], names)


def _with_keys(
    events: pa.Array, values: Sequence[pa.Array], source: DatabusSource, deletes: np.ndarray
) -> tuple[list[pa.Array], np.ndarray]:
    """Fill in the key of each DELETE without a payload. Also returns which events have no key then."""
    names = [field.name for field in source.read.fields]
    columns = list(values)
    if source.keys is None:
        return columns, np.zeros(len(events), np.bool_)
    if len(source.keys) == 1 and source.keys[0] in names:
        place = names.index(source.keys[0])
        columns[place] = pc.if_else(
            pc.and_(pa.array(deletes), columns[place].is_null()),
            _event_keys(events, columns[place].type),
            columns[place],
        )
    unknown = np.ones(len(events), np.bool_)
    for name in source.keys:
        unknown &= ~bools_of(columns[names.index(name)].is_valid())
    return columns, unknown


def _event_keys(events: pa.Array, type: pa.DataType) -> pa.Array:
    """The keys in the events' headers as a column of this type; NULL for a key that does not fit it, or has a schema."""
    has_schema = pc.equal(result_of("dbus_key_type", events), "SCHEMA").fill_null(False)
    events = pc.if_else(has_schema, None, events)
    if pa.types.is_string(type):
        return result_of("dbus_key", events)
    if pa.types.is_binary(type):
        return result_of("dbus_key_bytes", events)
    if not pa.types.is_integer(type):
        return pa.nulls(len(events), type)
    numbers = result_of("dbus_key_long", events)
    if type.bit_width < 64:
        bound = 2 ** (type.bit_width - 1)
        fits = pc.and_(pc.greater_equal(numbers, -bound), pc.less(numbers, bound))
        numbers = pc.if_else(fits, numbers, None)
    return numbers.cast(type)


def keys_in_schema(text: str) -> tuple[str, ...] | None:
    """The primary key in a Databus schema: ``pk=…`` in its ``meta``, else a field ``key``; None if neither exists."""
    schema = json.loads(text)
    if isinstance(schema, list):  # a record or null
        schema = next((branch for branch in schema if isinstance(branch, dict)), {})
    names = [field["name"] for field in schema.get("fields", ())]
    for part in str(schema.get("meta", "")).split(";"):
        name, _, value = part.partition("=")
        if name.strip() == "pk" and value.strip():
            return tuple(one.strip() for one in value.split(","))
    return ("key",) if "key" in names else None
