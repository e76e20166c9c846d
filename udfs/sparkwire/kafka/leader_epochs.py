r"""``kafka_leader_epochs``: a `leader-epoch-checkpoint` file, where each leader of a partition began.

    0           version
    2           entries that follow
    0 0         epoch, its first offset
    3 1042

Lines end with ``\n`` or ``\r\n``; between the numbers is white space. Damage is a row of NULLs: a line in the place of an entry
that is not two such numbers, a file that has not as many entries as it says (after the last one), and a file
without the first two lines (its only row). Kafka refuses such a file.

Source: apache/kafka, `LeaderEpochCheckpointFile`, `CheckpointFile`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.core.builders import Column
from sparkwire.core.column import binary_of, empty, lists, primitive
from sparkwire.kernels import Bytes, Ints, int64, kernel, u8

_VERSION = 0
_LARGEST_EPOCH = 2**31 - 1
_LARGEST = 2**63 - 1
_NEWLINE, _RETURN, _SPACE, _TAB, _MINUS, _ZERO, _NINE = (ord(letter) for letter in "\n\r \t-09")
_BEYOND = -2
"""the number of what is none: those of a checkpoint are -1 at least"""


@kernel
def line_end(data: Bytes, pos: int, end: int) -> int:
    """Where the line that begins at ``pos`` ends: its newline, or the end of the file."""
    while pos < end and u8(data, pos) != _NEWLINE:
        pos += 1
    return pos


@kernel
def number(data: Bytes, pos: int, end: int, largest: int) -> tuple[int, int]:
    """The decimal number at ``pos``, -1 to ``largest``, and the position after it; ``_BEYOND`` for anything else."""
    if pos + 1 < end and u8(data, pos) == _MINUS and u8(data, pos + 1) == _ZERO + 1:
        return int64(-1), pos + 2
    value = int64(0)
    first = pos
    while pos < end and _ZERO <= u8(data, pos) <= _NINE:
        digit = int64(u8(data, pos)) - _ZERO
        if value > (largest - digit) // 10:
            return int64(_BEYOND), pos
        value = 10 * value + digit
        pos += 1
    return (value if pos > first else int64(_BEYOND)), pos


@kernel
def blank(data: Bytes, pos: int, end: int) -> int:
    """The position after white space."""
    while pos < end and (u8(data, pos) == _SPACE or u8(data, pos) == _TAB or u8(data, pos) == _RETURN):
        pos += 1
    return pos


@kernel
def lone_number(data: Bytes, pos: int, end: int) -> int:
    """The number that a line is."""
    value, after = number(data, pos, end, _LARGEST_EPOCH)
    return value if blank(data, after, end) == end else int64(_BEYOND)


@kernel
def read_entry(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Epoch and offset of a line, both ``_BEYOND`` where it is no entry."""
    epoch, gap = number(data, pos, end, _LARGEST_EPOCH)
    second = blank(data, gap, end)
    offset, after = number(data, second, end, _LARGEST)
    if epoch == _BEYOND or offset == _BEYOND or second == gap or blank(data, after, end) != end:
        return int64(_BEYOND), int64(_BEYOND)
    return epoch, offset


@kernel
def read_checkpoints(
    data: Bytes, offsets: npt.NDArray[Any], fill: bool, ends: npt.NDArray[np.int32], epochs: Ints, starts: Ints
) -> None:
    """Count the rows of each file to ``ends[row + 1]``; with ``fill`` write them as well."""
    ends[0] = 0
    for row in range(ends.size - 1):
        pos, end = int64(offsets[row]), int64(offsets[row + 1])
        stop = line_end(data, pos, end)
        version = lone_number(data, pos, stop)
        pos = min(stop + 1, end)
        stop = line_end(data, pos, end)
        count = lone_number(data, pos, stop)
        pos = min(stop + 1, end)
        at = int64(ends[row])
        found = 0
        if version == _VERSION and count >= 0:
            while pos < end:
                stop = line_end(data, pos, end)
                if fill:
                    epochs[at], starts[at] = read_entry(data, pos, stop)
                at += 1
                found += 1
                pos = stop + 1
        if version != _VERSION or found != count:
            if fill:
                epochs[at] = starts[at] = _BEYOND
            at += 1
        ends[row + 1] = at


class Epochs:
    """The entries of a column of files."""

    def __init__(self, text: pa.Array) -> None:
        source = binary_of(text)
        self._ends = empty(source.rows + 1, np.int32)
        read_checkpoints(source.data, source.offsets, False, self._ends, np.empty(0, np.int64), np.empty(0, np.int64))
        rows = int(self._ends[-1])
        self._epochs, self._starts = empty(rows, np.int64), empty(rows, np.int64)
        read_checkpoints(source.data, source.offsets, True, self._ends, self._epochs, self._starts)

    def epoch(self) -> pa.Array:
        return primitive(self._epochs.astype(np.int32), self._epochs != _BEYOND)

    def start_offset(self) -> pa.Array:
        return primitive(self._starts, self._starts != _BEYOND)

    def lists(self, found: pa.Array) -> pa.Array:
        return lists(self._ends, found)


COLUMNS: Final = (
    Column("epoch", "INT", "The leader's epoch.", Epochs.epoch),
    Column("start_offset", "BIGINT", "Offset of the first record that it wrote.", Epochs.start_offset),
)
