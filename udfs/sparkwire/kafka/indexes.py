"""Files of entries of a fixed size: the offset index, the time index and the `.txnindex` of a segment.

No index has a header or a checksum. A broker allocates the index of its active segment in advance and fills it with
zeros, so zeros at the end are not entries. Bytes after the last complete entry are ignored.

A `.txnindex` file has the aborted transactions whose abort marker is in the segment. A broker does not allocate it in advance, so
every complete entry counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.base.wire import Field, Layout
from sparkwire.core.builders import Column
from sparkwire.core.column import Offsets, binary_of, empty
from sparkwire.kafka.fixed_entries import (
    Entries,
    EntryFields,
    entries_columns,
    entries_scan,
    entry_reader,
    spread,
    stored,
)
from sparkwire.kafka.layout import OFFSET_INDEX, TIME_INDEX
from sparkwire.kernels import Bytes, Ints, int64, kernel, u8


@kernel
def count_entries(data: Bytes, offsets: Offsets, width: int, counts: Ints) -> None:
    """The number of entries of ``width`` bytes in each row, without zeros at its end."""
    for row in range(counts.size):
        start = int64(offsets[row])
        last = start + (int64(offsets[row + 1]) - start) // width * width
        while last > start and u8(data, last - 1) == 0:
            last -= 1
        counts[row] = (last - start + width - 1) // width


_read_offset_index = entry_reader(OFFSET_INDEX)
_read_time_index = entry_reader(TIME_INDEX)


def offset_index(data: pa.Array, base_offset: pa.Array) -> Entries:
    """The entries of a column of offset indexes; ``base_offset`` is the base offset of each file's segment."""
    return _entries(OFFSET_INDEX, _read_offset_index, data, base_offset)


def time_index(data: pa.Array, base_offset: pa.Array) -> Entries:
    """The entries of a column of time indexes."""
    return _entries(TIME_INDEX, _read_time_index, data, base_offset)


def _entries(
    layout: Layout, read: Callable[[Bytes, Ints, Ints], EntryFields], data: pa.Array, base_offset: pa.Array
) -> Entries:
    source = binary_of(data)
    counts = empty(source.rows, np.int64)
    count_entries(source.data, source.offsets, layout.size, counts)
    ends, starts = spread(source.offsets[:-1].astype(np.int64), counts, layout.size)
    fields = read(source.data, starts, np.full(len(starts), layout.size))
    bases = base_offset.fill_null(0).to_numpy(zero_copy_only=False)
    return Entries(ends, fields | {"offset": np.repeat(bases, counts) + fields["relative_offset"]})


OFFSET_INDEX_COLUMNS: tuple[Column[Entries], ...] = (
    Column("offset", "BIGINT", "The last offset of the batch that begins at position.", stored("offset")),
    Column("position", "INT", "Position of that batch in the segment [bytes].", stored("position")),
)
TIME_INDEX_COLUMNS: tuple[Column[Entries], ...] = (
    Column("timestamp_ms", "BIGINT", "Largest timestamp so far [ms since epoch].", stored("timestamp")),
    Column("offset", "BIGINT", "Offset of the batch with this timestamp.", stored("offset")),
)


TXN_INDEX: Final = Layout(
    "entry of a transaction index",
    Field("version", "i16", "0"),
    Field("producer_id", "i64", "Producer id of the transaction"),
    Field("first_offset", "i64", "First offset of the transaction"),
    Field("last_offset", "i64", "Last offset of the transaction, that of its abort marker"),
    Field("last_stable_offset", "i64", "The last stable offset at the abort: no transaction was open below it"),
)

aborted_txns = entries_scan(TXN_INDEX)
TXN_INDEX_COLUMNS: Final = entries_columns(TXN_INDEX)
