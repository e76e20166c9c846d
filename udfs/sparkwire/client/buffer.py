"""The client's event buffer: what of a relay's responses reaches the dispatcher."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.client.page import END_OF_PERIOD, SCN_REGRESS, kinds_of
from sparkwire.column import binary_of
from sparkwire.errors import OK
from sparkwire.formats.databus import event, stream
from sparkwire.formats.databus.event import UNKNOWN
from sparkwire.formats.databus.layout import NO_VARIANT, V2_KEY
from sparkwire.formats.databus.parts import NUMBERS, SPANS, PartSpans
from sparkwire.formats.databus.scan import Events
from sparkwire.kernels import Bytes, kernel
from sparkwire.kernels.range_crc import Prefixes, prefixes

UNSEEN: Final = -1


class MissingEnd(NamedTuple):
    """Where events of a new window come and the window before has no end."""

    skipped: int
    """events that were skipped before in this response"""
    window: int
    """scn of the last window that ended"""
    latest: int
    """highest scn read"""
    written: int
    """scn of the last event that was kept"""


class Read(NamedTuple):
    """What one response of a relay comes to."""

    events: pa.BinaryArray
    """those that are kept"""
    rows: int
    """events read, with those that were skipped"""
    error: int
    """why it was not read to its end, `errors.OK` if it was; a torn event at the end is TRUNCATED, and dropped"""
    missing_end: MissingEnd | None = None
    """where reading ended because the window before has no end"""


class EventBuffer:
    """What the original's `DbusEventBuffer.readEvents` keeps of each response.

    Of end-of-period events that follow one another in a response only the first is kept: of a run of empty windows in one
    response consumers hear nothing. With ``drop_old_events``, the mode of relays and not of clients, events of windows that have
    been seen are skipped, and a window without an end ends the response.
    """

    def __init__(self, drop_old_events: bool = False) -> None:
        self.drop_old_events = drop_old_events
        self._regress = False
        self._written = UNSEEN
        self._seen_window = UNSEEN

    def read(self, chunk: bytes | memoryview | pa.Buffer) -> Read:
        """One response: whole events, one after another. Reading ends at the first that is not intact."""
        events, error = split(chunk)
        scan = Events(events)
        scns, kinds = scan.header.fields["sequence"], kinds_of(scan.header.fields["src_id"])
        missing_end = None
        if self.drop_old_events:
            keep, missing_end = self._order(scns, kinds)
            rows = len(keep)
        else:
            ends = kinds == END_OF_PERIOD
            keep = np.ones(len(kinds), np.bool_)
            keep[1:] = ~(ends[1:] & ends[:-1])
            rows = len(events)
        if not keep.all() or rows < len(events):
            events = events.slice(0, rows).filter(pa.array(keep))
        return Read(events, rows, error, missing_end)

    def _order(
        self, scns: npt.NDArray[np.int64], kinds: npt.NDArray[np.int8]
    ) -> tuple[npt.NDArray[np.bool_], MissingEnd | None]:
        """Which events are kept, up to where a window's end is missing, and that place."""
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


def split(chunk: bytes | memoryview | pa.Buffer) -> tuple[pa.BinaryArray, int]:
    """The intact events from the front, nothing copied, and why there are no more: an error code, `errors.OK` at the end."""
    buffer = chunk if isinstance(chunk, pa.Buffer) else pa.py_buffer(chunk)
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(np.array([0, buffer.size])), buffer])
    data = binary_of(whole).data
    ends = np.empty(buffer.size // V2_KEY + 2, np.int64)  # no intact event is shorter than V2's fixed header
    scratch = PartSpans(*(np.full((k, 1), UNKNOWN, np.int64) for k in (SPANS, SPANS, NUMBERS)))
    count, error = walk(data, buffer.size, ends, prefixes(0, buffer.size), scratch)
    offsets = pa.py_buffer(ends[: count + 1])
    return pa.Array.from_buffers(pa.large_binary(), count, [None, offsets, buffer]), error


@kernel
def walk(data: Bytes, size: int, ends: npt.NDArray[np.int64], before: Prefixes, scratch: PartSpans) -> tuple[int, int]:
    """Where the events end, up to the first that is not intact; how many there are, and what is wrong with that one."""
    count, pos, variant = 0, 0, NO_VARIANT
    ends[0] = 0
    while pos < size:
        variant = stream.stream_variant(data, pos, size - pos, variant)
        error = stream.stream_header_error(data, pos, size - pos, variant, before)
        if error == OK:
            error = stream.body_error(data, pos, size - pos, variant, scratch)
        if error != OK:
            return count, error
        pos += event.total_length(data, pos, size - pos, variant)
        count += 1
        ends[count] = pos
    return count, OK
