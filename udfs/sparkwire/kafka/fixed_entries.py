"""Read files that consist of entries of a fixed size, by their layout table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.wire import Layout
from sparkwire.core.builders import Column
from sparkwire.core.column import binary_of, empty, lists, primitive
from sparkwire.kernels import Bytes, Ints, field_reader, kernel, variant_of

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


class Entries(NamedTuple):
    """The entries of a column of files."""

    ends: npt.NDArray[np.int32]
    """the end of each file's entries; item 0 is 0"""
    fields: EntryFields

    def lists(self, entries: pa.Array) -> pa.Array:
        return lists(self.ends, entries)


def stored(name: str) -> Callable[[Entries], pa.Array]:
    """The accessor of a field that is never NULL."""
    return lambda entries: primitive(entries.fields[name])


def spread(firsts: Ints, counts: Ints, width: int) -> tuple[npt.NDArray[np.int32], Ints]:
    """The ends of the rows in a column of entries, and the position of each entry [bytes].

    Row ``i`` has ``counts[i]`` entries, the first at ``firsts[i]``.
    """
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
    return ends.astype(np.int32), np.repeat(firsts, counts) + width * within


def entries_scan(table: Layout) -> Callable[[pa.Array], Entries]:
    """The scan of files that consist of entries. Bytes after the last complete entry are ignored."""
    read = entry_reader(table)

    def scan(data: pa.Array) -> Entries:
        source = binary_of(data)
        offsets = source.offsets.astype(np.int64)
        ends, starts = spread(offsets[:-1], np.diff(offsets) // table.size, table.size)
        return Entries(ends, read(source.data, starts, np.full(len(starts), table.size)))

    return scan


def entries_columns(table: Layout) -> tuple[Column[Entries], ...]:
    """A column for each field of the table."""
    return tuple(
        Column(name, place.field.sql, f"{place.field.doc}.", stored(name)) for name, place in table.places.items()
    )
