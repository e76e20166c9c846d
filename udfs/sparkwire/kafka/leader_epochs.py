r"""``kafka_leader_epochs``: a `leader-epoch-checkpoint` file, the first offset of each leader epoch of a partition.

    0           version
    2           number of entries
    0 0         epoch, its first offset
    3 1042

Lines end with ``\n`` or ``\r\n``; white space separates the numbers. Corruption is a row of NULLs: one for each line that is not
two such numbers, and one after the last entry if the count is wrong. If the first two lines are not a version and a count, this
is the only row. Kafka rejects such a file. A file that is empty, or ends after the version, has no entries: a killed broker may
leave such a file.

Source: apache/kafka, `LeaderEpochCheckpointFile`, `CheckpointFile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.core.builders import Column
from sparkwire.core.column import lists

_LARGEST_EPOCH: Final = 2**31 - 1
_LARGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = 19
_ENTRY: Final = re.compile(rb"(-1|\d+)[ \t\r]+(-1|\d+)[ \t\r]*")
_NUMBER: Final = re.compile(rb"(-1|\d+)[ \t\r]*")
_VERSION: Final = 0

Entry = tuple[int | None, int | None]
_CORRUPT: Final[Entry] = (None, None)


def _entries(text: bytes) -> Iterator[Entry]:
    """The entries of a file, and `_CORRUPT` at the end if the file is incomplete."""
    lines = text.split(b"\n")
    if not lines[-1]:
        del lines[-1]  # the empty line after the last newline
    version, count = (_numbers(_NUMBER, line) for line in [*lines, b"", b""][:2])
    if not lines or (len(lines) == 1 and version == (_VERSION,)):
        return
    entries = lines[2:] if version == (_VERSION,) and count is not None and count[0] >= 0 else []
    for line in entries:
        numbers = _numbers(_ENTRY, line)
        yield (numbers[0], numbers[1]) if numbers else _CORRUPT
    if version != (_VERSION,) or count != (len(entries),):
        yield _CORRUPT


def _numbers(pattern: re.Pattern[bytes], line: bytes) -> tuple[int, ...] | None:
    """The numbers of a line; None if the line does not match or a number is too large."""
    match = pattern.fullmatch(line)
    # The check of the number of digits comes first, because Python raises an error for thousands of digits.
    if match is None or any(len(digits.lstrip(b"0")) > _MOST_DIGITS for digits in match.groups()):
        return None
    numbers = tuple(int(digits.lstrip(b"0") or b"0") for digits in match.groups())
    return numbers if numbers[0] <= _LARGEST_EPOCH and numbers[-1] <= _LARGEST else None


def entries_of(text: bytes) -> list[tuple[int, int]] | None:
    """The entries of a file; None if it is corrupt, or has an epoch or an offset below 0, which a broker does not load."""
    entries = list(_entries(text))
    loaded = [(epoch, offset) for epoch, offset in entries if epoch is not None and offset is not None]
    return loaded if len(loaded) == len(entries) and all(min(entry) >= 0 for entry in loaded) else None


def checkpoint(entries: Sequence[tuple[int, int]]) -> bytes:
    """The bytes of a file with these entries."""
    lines = [str(_VERSION), str(len(entries)), *(f"{epoch} {offset}" for epoch, offset in entries)]
    return "".join(f"{line}\n" for line in lines).encode()


class Epochs:
    """The entries of a column of files."""

    def __init__(self, text: pa.Array) -> None:
        entry_lists = [list(_entries(file or b"")) for file in text.to_pylist()]
        self._ends = np.cumsum([0, *map(len, entry_lists)]).astype(np.int32)
        self._entries = [entry for entries in entry_lists for entry in entries]

    def epoch(self) -> pa.Array:
        return pa.array([epoch for epoch, _ in self._entries], pa.int32())

    def start_offset(self) -> pa.Array:
        return pa.array([offset for _, offset in self._entries], pa.int64())

    def lists(self, entries: pa.Array) -> pa.Array:
        return lists(self._ends, entries)


COLUMNS: Final = (
    Column("epoch", "INT", "The leader's epoch.", Epochs.epoch),
    Column("start_offset", "BIGINT", "Offset of the first record that the leader wrote.", Epochs.start_offset),
)
