"""One entry that is being explained: the fields of its header, and the errors that `kafka_records` has for it."""

from __future__ import annotations

import datetime
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.base.wire import Field, Layout
from sparkwire.core.dump import Dump
from sparkwire.kafka import layout
from sparkwire.kafka.codecs import NAMES, READABLE
from sparkwire.kafka.records import scan_records
from sparkwire.kernels import Bytes, crc32, crc32c, int64, kernel
from sparkwire.kernels.checksums.one_bit import REFLECTED_CASTAGNOLI, REFLECTED_IEEE

MOST_INFLATED: Final = 16 << 20
"""what all payloads of a value may become [bytes]"""

_COLUMNS: Final = ("position", "error")


@kernel
def checksum(data: Bytes, start: int, size: int, is_batch: bool) -> int:
    """What an entry's CRC is computed to be."""
    return int64(crc32c(data, start, size)) if is_batch else int64(crc32(data, start, size))


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


class ExplainedEntry:
    """An entry that is being explained."""

    def __init__(self, dump: Dump, path: str, errors: dict[int, str]) -> None:
        self.dump = dump
        self.path = path
        self.errors = errors
        """by row, those that are not yet at their place"""
        self.first: int = len(dump.lines)

    def blame(self, row: int, field: str, text: str, *codes: str) -> None:
        """Put the error of a row, if it is one of ``codes``, to the line of a field of this entry."""
        if self.errors.get(row) not in codes:
            return
        names = [line.field for line in self.dump.lines[self.first :]]
        at = names.index(f"{self.path}.{field}") if f"{self.path}.{field}" in names else 0
        self.dump.amend(self.first + at, f"{self.errors.pop(row)}: {text}")


def header(entry: ExplainedEntry, table: Layout) -> dict[str, int]:
    """The fields of a header, as far as they are there."""
    begin = entry.dump.at
    found: dict[str, int] = {}
    for field in table.fields:
        if entry.dump.left <= 0:
            break
        notes = _notes(entry.dump, table, field, begin, found)
        number = entry.dump.number(field, *notes, field.doc, name=f"{entry.path}.{field.name}")
        if number is not None:
            found[field.name] = number
    return found


def _notes(dump: Dump, table: Layout, field: Field, begin: int, found: dict[str, int]) -> list[str | None]:
    """What a field of a header says here."""
    if dump.left < field.width:
        return []
    number = dump.peek(field)
    if field.name == "crc" and dump.stop - begin == layout.OVERHEAD + found.get(
        "size", dump.stop - begin - layout.OVERHEAD
    ):
        first = begin + table["crc"].end
        computed = int(checksum(np.frombuffer(dump.data, np.uint8), first, dump.stop - first, table is layout.BATCH))
        if computed != number:
            polynomial = REFLECTED_CASTAGNOLI if table is layout.BATCH else REFLECTED_IEEE
            dump.mismatch(first, dump.stop, polynomial, computed ^ number)
        return [f"{'right' if computed == number else 'wrong'}: stored {number}, computed {computed}"]
    if field.name == "attributes":
        return [bits(number, table)]
    if field.name in ("timestamp", "base_timestamp"):
        return [time_of(number)]
    if field.name == "last_offset_delta":
        return [f"offset {found['offset'] + number}"]
    return []


def bits(attributes: int, table: Layout) -> str:
    """The attribute bits by name."""
    codec = attributes & layout.CODEC_MASK
    names = [NAMES[codec] if READABLE[2 if table is layout.BATCH else 0] >> codec & 1 else f"unknown codec {codec}"]
    if table not in (layout.MESSAGE_ENTRY_0, layout.MESSAGE_0):
        names.append(layout.TIMESTAMP_TYPES[1 if attributes & layout.LOG_APPEND_TIME else 0])
    if table is layout.BATCH:
        flags = {
            layout.TRANSACTIONAL: "transactional",
            layout.CONTROL: "control",
            layout.DELETE_HORIZON: "delete horizon",
        }
        names += [name for bit, name in flags.items() if attributes & bit]
    return ", ".join(names)


def time_of(ms: int) -> str | None:
    if ms == layout.NO_TIMESTAMP:
        return "none"
    try:
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)).isoformat() + "Z"
    except OverflowError:
        return "outside of the years 1 to 9999"


def blame_header(entry: ExplainedEntry) -> None:
    entry.blame(0, "crc", "the bytes that it covers are not those that were written", "CRC_MISMATCH")
    entry.blame(0, "attributes", "no such codec", "UNKNOWN_CODEC")
    entry.blame(0, "payload", "it is not what its codec writes", "DECOMPRESS_FAILED")
    entry.blame(0, "payload", f"it becomes more than {MOST_INFLATED} bytes, the bound of an explanation", "TOO_LARGE")
