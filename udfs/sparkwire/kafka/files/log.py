"""Find the entries of a segment from any entry on, in chunks, in bounded memory for files of any size. `entries` reads them.

The entries are the same as those of `kafka.framing`: each begins at the end of the previous entry, and after corrupt bytes at the
next position of a valid entry. The next entry depends only on the bytes from the current entry on. So a reader may begin at any
entry.

Two bounds limit memory if a size is corrupt. An entry of more than `SEARCHED` bytes counts only if another entry, or the end of
the file, follows it. After corrupt bytes, the search skips entries of that size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sparkwire.base.error_codes import BAD_MAGIC, CRC_MISMATCH, OK
from sparkwire.core.column import Binary, arrays, empty, part
from sparkwire.core.sources.storage import OpenFile
from sparkwire.kafka.framing import (
    THE_END,
    EntrySums,
    FrameBlock,
    Framing,
    crc_ok,
    crc_ok_in_row,
    entry_end,
    entry_sums,
    frame_error,
    framing_of,
    framing_of_entries,
    next_valid,
    reach_of,
    size_is_plausible,
)
from sparkwire.kafka.layout import BATCH_SIZE, LEAST_SIZE, OVERHEAD
from sparkwire.kernels import Bytes, Ints, int64, kernel

CHUNK = 4 << 20
"""size of a chunk [bytes]"""
SEARCHED = 16 << 20
"""size of the largest entry that a search after corrupt bytes finds [bytes]"""
_FRAMES = 1 << 14


class Section(NamedTuple):
    """A part of a file whose entries are being found; valid until the next section."""

    position: int
    """position in the file from which the entries count [bytes]"""
    source: Binary
    """the entries' bytes; may have only the header of a corrupt entry"""
    framing: Framing

    @property
    def next(self) -> int:
        """Position in the file of the next entry to be found [bytes]."""
        return self.position + self.framing.position


class _Window(NamedTuple):
    """A window of a file around corrupt bytes."""

    position: int
    size: int
    sums: EntrySums


@kernel
def chain(data: Bytes, start: int, end: int, stop: int) -> int:
    """The end of the consecutive entries from ``start`` on: before an incomplete entry, or an entry at ``stop`` or later."""
    pos = int64(start)
    while pos < stop and frame_error(data, pos, end) == OK:
        pos = entry_end(data, pos)
    return pos


@kernel
def find_begins(data: Bytes, out: Ints) -> int:
    """Note the starts of consecutive entries, and the end of the last entry. Return the number of entries."""
    pos, count = int64(0), 0
    while pos < data.size:
        out[count] = pos
        count += 1
        pos = entry_end(data, pos)
    out[count] = pos
    return count


def _rows_of(entries: Bytes) -> Binary:
    """Consecutive complete entries, with each entry as a row."""
    offsets = empty(len(entries) // (OVERHEAD + LEAST_SIZE) + 2, np.int64)
    count = find_begins(entries, offsets)
    return Binary(entries, offsets[: count + 1], None)


@kernel
def frame_corrupt(
    data: Bytes,
    first: int,
    stop: int,
    left: int,
    bounds: tuple[int, int],
    verify: bool,
    next_entry: int,
    sums: EntrySums,
    out: FrameBlock,
) -> tuple[int, int, bool]:
    """Find the entries that begin from ``first`` to before ``stop``, as far as the bytes in ``data`` suffice.

    ``left`` is the number of bytes of the file from the beginning of ``data`` on. ``bounds`` are the end of the part of ``data``
    in which a search works, and `SEARCHED`. ``next_entry`` is the first valid entry after ``first``, -1 if unknown.

    Returns the number of entries, the first valid entry after them, and whether the caller must search for that entry to
    continue.
    """
    limit, largest = bounds
    pos, count = int64(first), 0
    while pos < stop and pos < limit and count < out.begin.size:
        error = frame_error(data, pos, left)
        whole = error == OK or error == BAD_MAGIC
        after = entry_end(data, pos) if whole else int64(left)
        if error == OK and after - pos > largest:
            if after != left:
                if after + BATCH_SIZE > data.size:
                    break
                if frame_error(data, after, left) != OK:
                    error = CRC_MISMATCH
            if error == OK and after > data.size:
                break
        if error == OK and not crc_ok_in_row(data, pos, sums):
            error = CRC_MISMATCH
        if error != OK:
            follows = False
            if whole and after < left:
                if min(after + BATCH_SIZE, left) > data.size:
                    break
                follows = frame_error(data, after, left) == OK
            valid = False
            if follows:
                following = entry_end(data, after)
                if following - after > largest or following > data.size:
                    break
                valid = crc_ok_in_row(data, after, sums)
            if not valid:
                if next_entry <= pos:
                    next_entry = next_valid(data, pos + 1, limit, left, largest, sums)
                    if next_entry == limit and limit < left:
                        return count, int64(-1), True
                if not (whole and size_is_plausible(after, left, next_entry, follows)):
                    whole = False
                    after = next_entry
            if error == CRC_MISMATCH and whole and not verify and after <= data.size:
                error = OK
        out.row[count] = count
        out.begin[count] = pos
        out.stop[count] = after
        out.reach[count] = reach_of(data, pos, min(after, data.size), error)
        out.whole[count] = whole
        out.error[count] = error
        count += 1
        pos = after
    return count, next_entry, False


class Log:
    """The entries of one file.

    Parameters
    ----------
    source
        the file
    verify
        whether an entry with a wrong checksum is corrupt
    chunk
        size of a chunk, `CHUNK` by default [bytes]
    """

    def __init__(self, source: OpenFile, verify: bool = True, chunk: int = 0) -> None:
        self.source = source
        self.verify = verify
        self.chunk: int = chunk or CHUNK
        self._window: _Window | None = None
        self._found = (-1, -1)  # start of the last search, and the valid entry that it found

    def sections(self, position: int, stop: int, in_rows: bool) -> Iterator[Section]:
        """The sections with the entries that begin from ``position`` to before ``stop``.

        ``in_rows``: whether each entry is a row, so that the limits of a row apply to one entry. Find all entries of a section
        before you take the next one.
        """
        while position < stop:
            entries = self._run(position, stop)
            if len(entries):
                source = _rows_of(entries) if in_rows else Binary(entries, np.array([0, len(entries)], np.int64), None)
                section = Section(position, source, framing_of(source, THE_END))
                yield section
                end, position = position + len(entries), section.next
                if position == end:
                    continue
            if position < stop:
                section = self._corrupt(position, stop)
                yield section
                position = section.next

    # -- valid entries

    def _run(self, position: int, stop: int) -> Bytes:
        """About a chunk of complete entries that begin from ``position`` to before ``stop``; none at corrupt bytes.

        Their checksums are not verified.
        """
        wanted = max(BATCH_SIZE, min(self.chunk, stop - position))
        data = self.source.view(position, wanted)
        if frame_error(data, 0, self.source.size - position) != OK:
            return data[:0]
        first = int(entry_end(data, 0))
        if first > wanted:
            if not self._is_credible(position, first):
                return data[:0]
            data = self.source.view(position, first)
        return data[: chain(data, 0, len(data), stop - position)]

    def _is_credible(self, position: int, size: int) -> bool:
        """Whether to load an entry with this stored size."""
        return size <= SEARCHED or position + size == self.source.size or self._frame(position + size) == OK

    def _frame(self, position: int) -> int:
        """The error of the entry at ``position``, except a wrong checksum."""
        return int(frame_error(self._header(position), 0, self.source.size - position))

    def _header(self, position: int) -> Bytes:
        return np.frombuffer(self.source.read(position, BATCH_SIZE), np.uint8)

    def is_valid(self, position: int) -> bool:
        """Whether a complete entry with a valid checksum is at ``position``."""
        if not 0 <= position < self.source.size:
            return False
        header = self._header(position)
        if frame_error(header, 0, self.source.size - position) != OK:
            return False
        size = int(entry_end(header, 0))
        return self._is_credible(position, size) and bool(crc_ok(self.source.view(position, size), 0))

    # -- after corrupt bytes

    def _corrupt(self, position: int, stop: int) -> Section:
        """One or more entries from ``position`` on, of which the first cannot be read."""
        since, next_entry = self._found
        next_entry = next_entry if since <= position + 1 <= next_entry else -1
        while True:
            window = self._around(position)
            data = self.source.view(window.position, window.size)
            final = window.position + window.size == self.source.size
            bounds = (window.size if final else max(0, window.size - SEARCHED), SEARCHED)
            frames = arrays(FrameBlock, min(_FRAMES, max(1, stop - position)))
            next_in_window = next_entry - window.position if next_entry >= 0 else -1
            count, following, missing = frame_corrupt(
                data, position - window.position, stop - window.position, self.source.size - window.position, bounds,
                self.verify, next_in_window, window.sums, frames,
            )  # fmt: skip
            if count:
                if following >= 0:
                    self._found = window.position + int(frames.begin[count - 1]) + 1, window.position + int(following)
                return Section(window.position, *framing_of_entries(data, part(frames, 0, int(count))))
            if not missing or next_entry >= 0:
                return self._single_entry(position)
            next_entry = self.search(position + 1)

    def _around(self, position: int) -> _Window:
        """A window with enough bytes after ``position``: the current window if it suffices."""
        window, size = self._window, self.source.size
        needed = min(size, position + SEARCHED + self.chunk)
        if window is None or not window.position <= position < needed <= window.position + window.size:
            length = min(2 * SEARCHED, size - position)
            window = self._window = _Window(position, length, entry_sums(0, length))
        return window

    def _single_entry(self, position: int) -> Section:
        """The single entry at ``position``, if a window is too small to determine its end."""
        left = self.source.size - position
        header = self._header(position)
        error = int(frame_error(header, 0, left))
        whole = error in (OK, BAD_MAGIC)
        stop = position + int(entry_end(header, 0)) if whole else self.source.size
        follows = whole and stop < self.source.size and self._frame(stop) == OK
        if not (follows and self.is_valid(stop)):
            next_entry = self.search(position + 1)
            if not whole or next_entry < stop or (next_entry < self.source.size and not follows):
                whole, stop = False, next_entry
        error = CRC_MISMATCH if error == OK else error
        if error == CRC_MISMATCH and whole and not self.verify and self._is_credible(position, stop - position):
            header, error = self.source.view(position, stop - position), OK
        frames = arrays(FrameBlock, 1)
        frames.row[0] = frames.begin[0] = 0
        frames.stop[0], frames.whole[0], frames.error[0] = stop - position, whole, error
        frames.reach[0] = reach_of(header, 0, min(len(header), stop - position), error)
        return Section(position, *framing_of_entries(header, frames))

    def search(self, position: int) -> int:
        """Position of the first valid entry from ``position`` on; the end of the file if there is none."""
        since, next_entry = self._found
        if since <= position <= next_entry:
            return next_entry
        at = position
        while at < self.source.size:
            at = max(at, self.source.next_data(at) - OVERHEAD)  # an entry has a byte other than 0 in its first ones
            window = self._around(at)
            data = self.source.view(window.position, window.size)
            final = window.position + window.size == self.source.size
            limit = window.size if final else window.size - SEARCHED
            left = self.source.size - window.position
            at = window.position + int(next_valid(data, at - window.position, limit, left, SEARCHED, window.sums))
            if final or at < window.position + limit:
                break
        self._found = position, at
        return at
