"""One entry that is being explained: what its numbers mean, and the errors that `kafka_records` has for it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.base.grammar import Sized
from sparkwire.core.dump import Dump
from sparkwire.core.walk import Scope, Walker
from sparkwire.kafka import layout
from sparkwire.kafka.codecs import NAMES, READABLE
from sparkwire.kafka.records import scan_records

MOST_INFLATED: Final = 16 << 20
"""what all payloads of a value may become [bytes]"""

_COLUMNS: Final = ("position", "error")
_FLAGS: Final = {
    layout.TRANSACTIONAL: "transactional",
    layout.CONTROL: "control",
    layout.DELETE_HORIZON: "delete horizon",
}


class Errors:
    """What `kafka_records` answers: by the position of an entry, which of its rows have which error."""

    def __init__(self, column: pa.Array) -> None:
        records = scan_records(column, max_batch_bytes=MOST_INFLATED, columns=_COLUMNS)
        errors, positions = records.error(), records.position().to_numpy()
        bad = np.flatnonzero(errors.is_valid())
        rows = bad - np.searchsorted(positions, positions[bad])  # the rows of an entry follow each other
        self._by_entry: dict[int, dict[int, str]] = {}
        for at, row in zip(bad.tolist(), rows.tolist(), strict=True):
            self._by_entry.setdefault(int(positions[at]), {})[row] = errors[at].as_py()

    def of(self, position: int) -> dict[int, str]:
        return self._by_entry.get(position, {})


class EntryWalker(Walker):
    """Explains an entry: ``path`` is its name, ``payload`` what it has when it is decompressed."""

    def __init__(
        self, dump: Dump, path: str, magic: int, errors: dict[int, str] | None = None, payload: bytes | None = None
    ) -> None:
        super().__init__(dump)
        self.path = path
        self.magic = magic
        self.errors = {} if errors is None else errors
        """by row, those that are not yet at their place"""
        self.payload = payload
        self.first: int = len(dump.lines)
        self.is_short = False
        """whether a message ends before what it announces"""

    def blame(self, row: int, field: str, text: str, *codes: str) -> None:
        """Put the error of a row, if it is one of ``codes``, to the line of a field of this entry."""
        if self.errors.get(row) not in codes:
            return
        names = [line.field for line in self.dump.lines[self.first :]]
        at = names.index(f"{self.path}.{field}") if f"{self.path}.{field}" in names else 0
        self.dump.amend(self.first + at, f"{self.errors.pop(row)}: {text}")

    def blame_header(self) -> None:
        self.blame(0, "crc", "the bytes that it covers are not those that were written", "CRC_MISMATCH")
        self.blame(0, "attributes", "no such codec", "UNKNOWN_CODEC")
        self.blame(0, "payload", "it is not what its codec writes", "DECOMPRESS_FAILED")
        bound = f"it becomes more than {MOST_INFLATED} bytes, the bound of an explanation"
        self.blame(0, "payload", bound, "TOO_LARGE")

    def note(self, scope: Scope, name: str, number: int | None) -> str | None:
        if number is None:
            return None
        batch = scope.parent.values if scope.parent is not None else scope.values
        match name:
            case "attributes" if scope.struct is not layout.RECORD:
                return bits(number, self.magic)
            case "timestamp" | "base_timestamp" | "max_timestamp":
                return time_of(number)
            case "timestamp_delta":
                return time_of(_timestamp(batch, number))
            case "last_offset_delta" | "offset_delta":
                return f"offset {batch['offset'] + number}"
        return None

    def content_note(self, scope: Scope, part: Sized, content: bytes) -> str | None:
        is_control = scope.struct is layout.RECORD and _attributes(scope.parent) & layout.CONTROL
        return _control(content) if is_control and part.name == "key" else None

    def opened(self, scope: Scope, part: Sized, content: bytes) -> tuple[bytes | None, str]:
        size = "not decompressed" if self.payload is None else f"{len(self.payload)} bytes when decompressed"
        codec = bits(scope.values["attributes"], self.magic).partition(",")[0]
        return self.payload, f"{codec}, {size}" if self.magic == 2 else size

    def wrong(self, scope: Scope, line: int, text: str) -> None:
        """What is wrong with a record; with the number of records only if `kafka_records` finds the same."""
        if self.magic < 2:
            self.is_short = True
            return
        is_record = scope.struct is layout.RECORD
        row = scope.number if is_record else min(self.errors, default=-1)
        if self.errors.get(row) == "BAD_RECORD":
            text = f"{self.errors.pop(row)}: {text}"
        elif not is_record:
            return
        self.dump.amend(line, text)


def _attributes(batch: Scope | None) -> int:
    return 0 if batch is None else batch.values["attributes"]


def _timestamp(batch: Mapping[str, int], delta: int) -> int:
    return batch["max_timestamp"] if batch["attributes"] & layout.LOG_APPEND_TIME else batch["base_timestamp"] + delta


def _control(key: bytes) -> str | None:
    """What a control record's key says."""
    if len(key) < 4:
        return None
    type = int.from_bytes(key[2:4], "big", signed=True)
    return layout.CONTROL_TYPES[type] if 0 <= type < len(layout.CONTROL_TYPES) - 1 else layout.CONTROL_TYPES[-1]


def bits(attributes: int, magic: int) -> str:
    """The attribute bits by name."""
    codec = attributes & layout.CODEC_MASK
    names = [NAMES[codec] if READABLE[magic] >> codec & 1 else f"unknown codec {codec}"]
    if magic > 0:
        names.append(layout.TIMESTAMP_TYPES[1 if attributes & layout.LOG_APPEND_TIME else 0])
    if magic == 2:
        names += [name for bit, name in _FLAGS.items() if attributes & bit]
    return ", ".join(names)


def time_of(ms: int) -> str | None:
    if ms == layout.NO_TIMESTAMP:
        return "none"
    try:
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)).isoformat() + "Z"
    except OverflowError:
        return "outside of the years 1 to 9999"
