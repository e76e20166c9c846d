"""A run of events of one stream as columns: what the dispatcher steps over, and what data events look into."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.catalogue import FUNCTIONS
from sparkwire.formats.databus import layout
from sparkwire.formats.databus.scan import Events

Ints = npt.NDArray[np.int64]

DATA, END_OF_PERIOD, CHECKPOINT, SCN_REGRESS, ERROR, OTHER = range(6)
"""What an event is to the dispatcher. Source id 0 is data: the original calls it a system's, and looks it up as a source."""

ROWS: Final = 1 << 14  # of a page: the columns that a consumer asks for are decoded for so many events at once


class Source(NamedTuple):
    """A source that a relay serves, and the schemas that its payloads may have."""

    id: int
    name: str
    schemas: Mapping[bytes, str]
    """schema as JSON text by schema id; the last one is the latest"""

    @property
    def schema(self) -> str | None:
        """The latest schema, which `on_start_source` and `on_end_source` tell."""
        return next(reversed(list(self.schemas.values())), None)


class Page:
    """Events that follow one another in a stream, one a row.

    What the dispatcher needs of every event stands in arrays; what a consumer asks of a data event is decoded for all of the
    page when it is first asked for.
    """

    def __init__(self, events: pa.BinaryArray, known: Collection[bytes] | None = None) -> None:
        self.events = events
        self._known = known
        scan = Events(events)
        fields = scan.header.fields
        self.rows = scan.rows
        self.offsets = scan.offsets
        self.scns: Ints = fields["sequence"]
        self.src_ids: Ints = fields["src_id"]
        self.partitions: npt.NDArray[np.int16] = fields["physical_partition_id"]
        self.timestamps: Ints = fields["timestamp_nanos"]
        self.kinds = kinds_of(self.src_ids)

    @cached_property
    def heads(self) -> list[int]:
        """Where runs begin, and the end: a run is data events of one source, or one control event."""
        data = self.kinds == DATA
        head = np.ones(self.rows + 1, np.bool_)
        if self.rows > 1:
            head[1:-1] = ~(data[1:] & data[:-1]) | (self.src_ids[1:] != self.src_ids[:-1])
            if self.unknown_schemas is not None:
                head[1:-1] |= self.unknown_schemas[1:] != self.unknown_schemas[:-1]
        return np.flatnonzero(head).tolist()

    @cached_property
    def unknown_schemas(self) -> npt.NDArray[np.bool_] | None:
        """Which events have a schema id that the relay never told, None where that is not checked."""
        known = self._known
        if known is None:
            return None
        return np.fromiter((id not in known for id in self.values("schema_id")), np.bool_, self.rows)

    def size(self, first: int, last: int) -> int:
        """Of the events from ``first`` to before ``last`` [bytes]."""
        return int(self.offsets[last]) - int(self.offsets[first])

    def first_beyond(self, first: int, last: int, size: int) -> int:
        """Up to where the events from ``first`` on take more than ``size`` [bytes] with the last of them; ``last`` if never."""
        ends = self.offsets[first + 1 : last + 1]
        return min(first + int(np.searchsorted(ends, int(self.offsets[first]) + size, side="right")) + 1, last)

    def values(self, field: str) -> list[Any]:
        """A field of `dbus_event` of every event, as Python values."""
        found = self._values.get(field)
        if found is None:
            found = FUNCTIONS[f"dbus_{field}"].decode(self.events).to_pylist()
            self._values[field] = found
        return found

    @cached_property
    def _values(self) -> dict[str, list[Any]]:
        return {}


def kinds_of(src_ids: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """What the events of these source ids are to the dispatcher."""
    kinds = np.zeros(len(src_ids), np.int8)
    control = np.flatnonzero(src_ids < 0)
    if len(control):
        ids = src_ids[control]
        chosen = [
            ids == layout.END_OF_PERIOD,
            ids == layout.CHECKPOINT,
            ids == layout.SCN_REGRESS,
            (ids >= layout.FIRST_ERROR) & (ids <= layout.LAST_ERROR),
        ]
        kinds[control] = np.select(chosen, [END_OF_PERIOD, CHECKPOINT, SCN_REGRESS, ERROR], OTHER)
    return kinds


def pages(events: pa.BinaryArray, known: Collection[bytes] | None = None) -> Iterator[Page]:
    """The events in pages of a bounded number of rows; nothing is copied. ``known``: schema ids, None not to check them."""
    for first in range(0, len(events), ROWS):
        yield Page(events.slice(first, ROWS), known)
