"""What a decoder of changes gets: the columns of Kafka records, and what the caller says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.changes.columns import READ
from sparkwire.changes.orders import NUMBER, numbers
from sparkwire.core.column import bools_of, primitive
from sparkwire.core.names import Table
from sparkwire.kernels import Ints

OWN, OTHER, UNKNOWN = "own", "other", "unknown"
"""of a topic: all its messages are of the table, none is, or they are of several tables"""
EPOCH, PARTITION, OFFSET, ROW = "epoch", "partition", "offset", "row"
_ZERO: Final = pa.scalar(0, pa.int32())


class MessageRecords(NamedTuple):
    """The columns of a batch of records; None if the input does not have one."""

    values: pa.Array
    keys: pa.Array | None = None
    headers: pa.Array | None = None
    topics: pa.Array | None = None
    partitions: pa.Array | None = None
    offsets: pa.Array | None = None
    epochs: pa.Array | None = None

    def beside(self, rows: Ints) -> MessageRecords:
        """Some of the records, without their values."""
        taken = primitive(rows)
        others = (column if column is None else column.take(taken) for column in self[1:])
        return MessageRecords(self.values[:0], *others)


class ReadPlan(NamedTuple):
    """How to read the messages of a table. Contains only plain data, which Spark pickles for workers."""

    table: Table
    columns: Mapping[str, str]
    keys: tuple[str, ...] | None = None
    by_source: bool = False
    whole_before: bool = False
    placeholder: str = ""
    nulls: str = "written"
    """what the caller says of members that are NULL: "written" or "absent". If written, a member that a row lacks is unknown"""
    renamed: Mapping[str, str] = {}
    """other names of members, by the names in the format's declaration"""
    topics: Mapping[str, str] | None = None
    """whose messages each topic has, "" for records without topics: OWN, OTHER or UNKNOWN; None for a stream"""
    enveloped: tuple[str, ...] = ()
    """the topics with envelopes of Debezium, in which an object without an envelope is no row"""
    flattened: tuple[str, ...] = ()
    """the topics with flattened rows, in which a tombstone may be the only message about a deleted row"""
    only_table: bool = False
    """whether the input has messages of this table alone"""
    epoch: int = 0
    """the epoch of all records, if they have no column of epochs"""
    text_offsets: bool = False
    """whether offsets are texts of digits, such as the sequence numbers of Kinesis"""
    has_given_keys: bool = False
    """whether the caller names the key columns, so that a NULL in an old key is no filler"""

    @property
    def absent_nulls(self) -> bool:
        """Whether the caller says that messages leave out members that are NULL."""
        return self.nulls == "absent"


def order_type(position: pa.DataType | None, with_row: bool, text_offsets: bool = False) -> pa.DataType:
    """The type of `_order_`: the parts of a position in the source, or else the offset of a record."""
    epoch = pa.field(EPOCH, pa.int32())
    if position is not None:
        return pa.struct([epoch, *position])
    row = [pa.field(ROW, pa.int32())] if with_row else []
    return pa.struct([epoch, *place_fields(text_offsets), *row])


def place_fields(text_offsets: bool) -> list[pa.Field]:
    """The parts of an order that are the place of a record: its partition and its offset."""
    return [pa.field(PARTITION, pa.int32()), *(NUMBER if text_offsets else [pa.field(OFFSET, pa.int64())])]


def record_places(records: MessageRecords, rows: Ints, text_offsets: bool) -> list[pa.Array]:
    """The values of `place_fields` for some records; NULL where the records have none, or an offset is no number."""
    taken = primitive(rows)
    partitions = pa.repeat(_ZERO, len(rows)) if records.partitions is None else int32(records.partitions.take(taken))
    if records.offsets is None:
        return [partitions, *(pa.nulls(len(rows), field.type) for field in place_fields(text_offsets)[1:])]
    offsets = records.offsets.take(taken)
    return [partitions, *(numbers(offsets).flatten() if text_offsets else [offsets.cast(pa.int64())])]


def orders(
    type: pa.DataType,
    plan: ReadPlan,
    records: MessageRecords,
    rows: Ints,
    ops: pa.Array,
    positions: pa.Array | None,
    places: pa.Array | None,
    is_later: pa.Array | None,
) -> tuple[pa.Array, pa.Array]:
    """`_order_` of each row, and which rows have a place in it.

    By the source's positions, a row of a snapshot that has none comes before all changes of its epoch. ``is_later`` has the rows
    of a snapshot that is not the first step: without a position, these have no place.
    """
    taken = primitive(rows)
    epoch = pa.scalar(plan.epoch, pa.int32())
    epochs = pa.repeat(epoch, len(rows)) if records.epochs is None else int32(records.epochs.take(taken))
    if positions is not None:
        is_first = pc.equal(ops, READ).fill_null(False)
        is_first = is_first if is_later is None else pc.and_not(is_first, is_later)
        parts = positions.flatten()
        placed = pc.or_(positions.is_valid(), is_first)
    else:
        parts = record_places(records, rows, plan.text_offsets)
        placed = pc.and_(parts[0].is_valid(), parts[1].is_valid())
        if type.num_fields > len(parts) + 1:
            parts.append(pa.repeat(_ZERO, len(rows)) if places is None else places.cast(pa.int32()))
    placed = pc.and_(placed, epochs.is_valid())
    fields = [type.field(k) for k in range(type.num_fields)]
    columns = [part.cast(field.type) for part, field in zip([epochs, *parts], fields, strict=True)]
    mask = pa.array(~bools_of(placed))
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask), placed


def int32(numbers: pa.Array) -> pa.Array:
    """INT from integers; NULL for one that does not fit."""
    wide = numbers.cast(pa.int64())
    fits = pc.and_(pc.greater_equal(wide, -(2**31)), pc.less(wide, 2**31))
    return pc.if_else(fits, wide, None).cast(pa.int32())
