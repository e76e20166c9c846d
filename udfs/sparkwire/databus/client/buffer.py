"""The client's event buffer: the events of a relay's responses that reach the dispatcher."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import OK
from sparkwire.core.column import binary_of, empty
from sparkwire.databus import layout, stream
from sparkwire.databus.client.data_events import END_OF_PERIOD, SCN_REGRESS, EventColumns, kinds_of
from sparkwire.databus.layout import NO_VARIANT, V2_KEY
from sparkwire.databus.parts import PartSpans, one_row
from sparkwire.kernels import Bytes, Ints, field_reader, kernel, variant_of
from sparkwire.kernels.checksums.crc import CRC32_RAW
from sparkwire.kernels.checksums.range_crc import RangeSums, range_sums

UNSEEN: Final = -1

_FIELDS: Final = ("sequence", "src_id", "physical_partition_id", "timestamp_nanos")  # in the order of EventColumns


_PLACES: Final = tuple(
    variant_of(table, _FIELDS, little) for table in (layout.V1, layout.V2) for little in (False, True)
)
_read_columns = field_reader((_PLACES[0], *_PLACES))  # valid events have a variant, so the first is never used


class MissingEnd(NamedTuple):
    """The position at which a new window begins although the previous window has no end."""

    skipped: int
    """number of events skipped before it in this response"""
    window: int
    """SCN of the last window that ended"""
    latest: int
    """highest SCN read"""
    written: int
    """SCN of the last event kept"""


class ReadResponse(NamedTuple):
    """The result of reading one response of a relay."""

    events: pa.BinaryArray
    """the events kept"""
    columns: EventColumns
    """columns of the events kept"""
    rows: int
    """number of events read, including skipped events"""
    error: int
    """why reading stopped before the end, `errors.OK` if it did not; a truncated event at the end is TRUNCATED and dropped"""
    missing_end: MissingEnd | None = None
    """the position at which reading stopped because the previous window has no end"""


class EventBuffer:
    """Keeps the same events of each response as Databus's `DbusEventBuffer.readEvents`.

    Of consecutive end-of-period events in a response, it keeps only the first. So consumers get no callbacks for the empty
    windows that follow a window in one response. ``drop_old_events`` is the mode of relays, not of clients. It skips events of
    earlier windows, and a window without an end then ends the response.
    """

    def __init__(self, drop_old_events: bool = False) -> None:
        self.drop_old_events = drop_old_events
        self._regress = False
        self._written = UNSEEN
        self._seen_window = UNSEEN

    def read(self, chunk: bytes | memoryview | pa.Buffer) -> ReadResponse:
        """Read one response of concatenated events. Reading stops at the first invalid event."""
        events, columns, error = split(chunk)
        kinds = kinds_of(columns.src_ids)
        missing_end = None
        if self.drop_old_events:
            keep, missing_end = self._order(columns.scns, kinds)
        else:
            ends = kinds == END_OF_PERIOD
            keep = np.ones(len(kinds), np.bool_)
            keep[1:] = ~(ends[1:] & ends[:-1])
        rows = len(keep)
        if rows < len(events) or not keep.all():
            events = events.slice(0, rows).filter(pa.array(keep))
            columns = EventColumns(*(column[:rows][keep] for column in columns))
        return ReadResponse(events, columns, rows, error, missing_end)

    def _order(
        self, scns: npt.NDArray[np.int64], kinds: npt.NDArray[np.int8]
    ) -> tuple[npt.NDArray[np.bool_], MissingEnd | None]:
        """Which events to keep, up to a window whose previous window has no end, and that position."""
        keep = np.ones(len(scns), np.bool_)
        latest, window, after_end, skipped = self._written, self._seen_window, False, 0
        for row, (scn, kind) in enumerate(zip(scns.tolist(), kinds.tolist(), strict=True)):
            self._regress |= kind == SCN_REGRESS
            if not self._regress:
                if scn > 0 and latest > 0 and (scn < latest or scn == window):
                    keep[row] = False
                    skipped += 1
                    continue
                if latest > 0 and scn > latest and window < latest:
                    return keep[:row], MissingEnd(skipped, window, latest, self._written)
            if kind == END_OF_PERIOD and after_end:
                keep[row] = False
                skipped += 1
                continue
            after_end = kind == END_OF_PERIOD
            if after_end:
                self._regress = False
            latest = max(latest, scn)
            if after_end:
                window = max(window, latest)
            self._written, self._seen_window = scn, max(self._seen_window, window)
        return keep, None


class Split(NamedTuple):
    """The valid events at the front of a chunk."""

    events: pa.BinaryArray
    columns: EventColumns
    error: int
    """the error of the bytes after them, `errors.OK` at the end of the chunk"""


def split(chunk: bytes | memoryview | pa.Buffer) -> Split:
    """Split a chunk into its events, without copying."""
    buffer = chunk if isinstance(chunk, pa.Buffer) else pa.py_buffer(chunk)
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(np.array([0, buffer.size])), buffer])
    most = buffer.size // V2_KEY + 1
    ends, scns, timestamps = (empty(most + 1, np.int64) for _ in range(3))
    src_ids, partitions = empty(most, np.int32), empty(most, np.int16)
    columns = (scns, src_ids, partitions, timestamps)
    sums = range_sums(CRC32_RAW, 0, buffer.size)
    count, error = walk(binary_of(whole).data, buffer.size, ends, columns, sums, one_row())
    events = pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(ends[: count + 1]), buffer])
    return Split(events, EventColumns(*(column[:count] for column in columns)), error)


@kernel
def walk(
    data: Bytes,
    size: int,
    ends: Ints,
    columns: tuple[npt.NDArray[Any], ...],
    sums: RangeSums,
    scratch: PartSpans,
) -> tuple[int, int]:
    """Note the ends of events and the columns for the dispatcher, up to the first invalid event.

    Returns the number of valid events, and the error of the event after them.
    """
    count, pos, variant = 0, 0, NO_VARIANT
    ends[0] = 0
    while pos < size:
        left = size - pos
        variant, error, length = stream.next_event(data, pos, left, variant, sums, scratch)
        if error != OK:
            return count, error
        _read_columns(data, pos, left, variant, columns, count)
        pos += length
        count += 1
        ends[count] = pos
    return count, OK
