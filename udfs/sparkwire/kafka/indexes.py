"""Files of entries of a fixed size: the offset index, the time index and the `.txnindex` of a segment.

No index has a header or a checksum. A broker allocates the index of its active segment in advance and fills it with
zeros, so zeros at the end are not entries. Bytes after the last complete entry are ignored.

A `.txnindex` file has the aborted transactions whose abort marker is in the segment. A broker does not allocate it in advance, so
every complete entry counts.

`entries_scan` and `entries_columns` make the scan and the columns of such a file from its layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.grammar import Field, Layout
from sparkwire.core.builders import Column
from sparkwire.core.column import Offsets, binary_of, empty, lists, primitive
from sparkwire.kafka.layout import OFFSET_INDEX, TIME_INDEX
from sparkwire.kernels import Bytes, Ints, field_reader, int64, kernel, u8, variant_of

EntryFields = dict[str, npt.NDArray[Any]]
"""a column for each field of the table"""


def entry_reader(table: Layout) -> Callable[[Bytes, Ints, Ints], EntryFields]:
    """A function ``read(data, starts, sizes)`` for the fields of the entries ``data[start:start + size]``.

    A field is 0 if its entry is too short.
    """
    places = list(table.places.values())
    read_fields = field_reader([variant_of(table, list(table.places))])

    @kernel(key=table.name)
    def read_entries(data: Bytes, starts: Ints, sizes: Ints, columns: tuple[npt.NDArray[Any], ...]) -> None:
        for entry in range(starts.size):
            read_fields(data, starts[entry], sizes[entry], 0, columns, entry)

    def read(data: Bytes, starts: Ints, sizes: Ints) -> EntryFields:
        columns = {place.field.name: empty(len(starts), place.field.dtype) for place in places}
        read_entries(data, starts, sizes, tuple(columns.values()))
        return columns

    return read


class IndexEntries(NamedTuple):
    """The entries of a column of files."""

    ends: npt.NDArray[np.int32]
    """the end of each file's entries; item 0 is 0"""
    fields: EntryFields

    def lists(self, entries: pa.Array) -> pa.Array:
        return lists(self.ends, entries)


def stored(name: str) -> Callable[[IndexEntries], pa.Array]:
    """The accessor of a field that is never NULL."""
    return lambda entries: primitive(entries.fields[name])


def spread(firsts: Ints, counts: Ints, width: int) -> tuple[npt.NDArray[np.int32], Ints]:
    """The ends of the rows in a column of entries, and the position of each entry [bytes].

    Row ``i`` has ``counts[i]`` entries, the first at ``firsts[i]``.
    """
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
    return ends.astype(np.int32), np.repeat(firsts, counts) + width * within


@kernel
def count_entries(data: Bytes, offsets: Offsets, width: int, counts: Ints) -> None:
    """The number of entries of ``width`` bytes in each row, without zeros at its end."""
    for row in range(counts.size):
        start = int64(offsets[row])
        last = start + (int64(offsets[row + 1]) - start) // width * width
        while last > start and u8(data, last - 1) == 0:
            last -= 1
        counts[row] = (last - start + width - 1) // width


def entries_scan(table: Layout, preallocated: bool = False) -> Callable[[pa.Array], IndexEntries]:
    """The scan of files that consist of entries. Bytes after the last complete entry are ignored.

    Zeros at the end of ``preallocated`` files are not entries.
    """
    read = entry_reader(table)

    def scan(data: pa.Array) -> IndexEntries:
        source = binary_of(data)
        offsets = source.offsets.astype(np.int64)
        counts = np.diff(offsets) // table.size
        if preallocated:
            count_entries(source.data, source.offsets, table.size, counts)
        ends, starts = spread(offsets[:-1], counts, table.size)
        return IndexEntries(ends, read(source.data, starts, np.full(len(starts), table.size)))

    return scan


def entries_columns(table: Layout) -> tuple[Column[IndexEntries], ...]:
    """A column for each field of the table."""
    return tuple(
        Column(name, place.field.sql, f"{place.field.doc}.", stored(name)) for name, place in table.places.items()
    )


# -- offset index and time index

_offset_entries = entries_scan(OFFSET_INDEX, preallocated=True)
_time_entries = entries_scan(TIME_INDEX, preallocated=True)


def offset_index(data: pa.Array, base_offset: pa.Array) -> IndexEntries:
    """The entries of a column of offset indexes; ``base_offset`` is the base offset of each file's segment."""
    return _with_offsets(_offset_entries(data), base_offset)


def time_index(data: pa.Array, base_offset: pa.Array) -> IndexEntries:
    """The entries of a column of time indexes."""
    return _with_offsets(_time_entries(data), base_offset)


def _with_offsets(entries: IndexEntries, base_offset: pa.Array) -> IndexEntries:
    """The entries with absolute offsets."""
    bases = base_offset.fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.repeat(bases, np.diff(entries.ends)) + entries.fields["relative_offset"]
    return IndexEntries(entries.ends, entries.fields | {"offset": offsets})


OFFSET_INDEX_COLUMNS: tuple[Column[IndexEntries], ...] = (
    Column("offset", "BIGINT", "The last offset of the batch that begins at position.", stored("offset")),
    Column("position", "INT", "Position of that batch in the segment [bytes].", stored("position")),
)
TIME_INDEX_COLUMNS: tuple[Column[IndexEntries], ...] = (
    Column("timestamp_ms", "BIGINT", "Largest timestamp so far [ms since epoch].", stored("timestamp")),
    Column("offset", "BIGINT", "Offset of the batch with this timestamp.", stored("offset")),
)

# -- transaction index

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
