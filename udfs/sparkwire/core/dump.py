"""A dump: every byte is in exactly one line, which states the field, its value and its error.

It is plain Python, for a few values that a person looks at: a line costs some microseconds. A value has at most ``MOST_LINES``
lines, however long it is; its remaining bytes are one line more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from sparkwire.base.sqltype import arrow_type
from sparkwire.kernels.checksums.one_bit import flipped_bit

MOST_LINES: Final = 10_000
"""of one value; an event has about twenty, a record of a Kafka log about eight"""
LONGEST_HEX: Final = 1 << 20
"""of the bytes of one line are written in hex [bytes]"""
LONGEST_TEXT: Final = 1 << 16
"""[bytes] of a value that are read as text"""
LONGEST_SEARCHED: Final = 1 << 26
"""span of a wrong checksum in which the flipped bit is located [bytes]"""

RETURNS: Final = "ARRAY<STRUCT<position INT, size INT, field STRING, hex STRING, value STRING, note STRING>>"
FIELD_DOCS: Final = {
    "position": "Where the bytes begin [bytes].",
    "size": "How many there are [bytes].",
    "field": "Which field they are.",
    "hex": "The bytes themselves; NULL for very many.",
    "value": "The value of the field as text, as the function of that name returns it.",
    "note": "The error code, if any, and then the explanation of the field.",
}
DECOMPRESSED: Final = "decompressed"
"""the first note of a line whose bytes are not in the value: they are decompressed from other bytes"""


@dataclass
class Line:
    """Some bytes and what they are; `FIELD_DOCS` describes the attributes."""

    position: int
    size: int
    field: str
    hex: str | None
    value: str | None
    notes: list[str]
    is_decompressed: bool = False

    @property
    def note(self) -> str | None:
        """All notes, separated by semicolons."""
        return "; ".join([DECOMPRESSED] * self.is_decompressed + self.notes) or None

    def error(self, text: str) -> None:
        """Put an error before the other notes."""
        self.notes.insert(0, text)


class Full(Exception):
    """There are ``MOST_LINES``."""


class Dump:
    """The lines of ``data`` from the first byte to the last: each takes the bytes that follow.

    ``lines`` has the lines before, if ``data`` is decompressed from bytes of another dump.
    """

    def __init__(self, data: bytes, order: Literal["big", "little"] = "big", lines: list[Line] | None = None) -> None:
        self.data = data
        self.order = order
        self.at: int = 0
        """where the next line begins, beyond ``stop`` if bytes are missing [bytes]"""
        self.stop: int = len(data)
        """where the current struct ends at the latest [bytes]"""
        self.lines: list[Line] = [] if lines is None else lines
        self.array = np.frombuffer(data or b"\0", np.uint8)
        self._is_decompressed = lines is not None
        self._searches: list[Callable[[], None]] = []

    @property
    def left(self) -> int:
        """[bytes]"""
        return max(self.stop - self.at, 0)

    def decompressed(self, data: bytes) -> Dump:
        """A dump of decompressed bytes: its lines follow the lines of this dump, its positions are in ``data``."""
        return Dump(data, self.order, self.lines)

    def take(self, field: str, size: int, value: str | None = None, *notes: str | None) -> Line:
        """A line of the next ``size`` bytes, or of as many as are left."""
        if len(self.lines) >= MOST_LINES:
            raise Full
        taken = self.data[self.at : min(self.at + size, self.stop)]
        line = Line(self.at, len(taken), field, hex_of(taken), value, list(filter(None, notes)), self._is_decompressed)
        self.lines.append(line)
        self.at += size
        return line

    def rest(self, field: str, *notes: str | None) -> None:
        """A line of all bytes that are left, if any."""
        if self.left:
            self.take(field, self.left, None, *notes)

    def search_bit(self, line: Line, start: int, stop: int, polynomial: int, difference: int) -> None:
        """Search the bit that explains the wrong checksum of bytes ``start`` to ``stop``, when all lines are there."""
        self._searches.append(partial(self._blame_bit, line, start, stop, polynomial, difference))

    def _blame_bit(self, line: Line, start: int, stop: int, polynomial: int, difference: int) -> None:
        size = stop - start
        distance = int(flipped_bit(polynomial, size, difference)) if size <= LONGEST_SEARCHED else -1
        if distance >= 0:
            at, bit = stop - 1 - distance // 8, 7 - distance % 8
            flipped = next(own for own in self.lines if _has(own, at))
            flipped.error(f"byte {at} was {self.data[at] ^ 1 << bit:#04x} if one bit has flipped")
            line.notes.append(f"one flipped bit explains it, bit {bit} of byte {at}, in {flipped.field}")
        elif difference.bit_count() == 1:
            line.notes.append("one flipped bit explains it, of the checksum itself")

    def end(self) -> list[Line]:
        """All lines; bytes without a line become the last one."""
        left = self.data[self.at :]
        if left:
            notes = ["not explained: there are too many lines"]
            self.lines.append(Line(self.at, len(left), "rest", hex_of(left), None, notes))
        for search in self._searches:
            search()
        return self.lines


def _has(line: Line, at: int) -> bool:
    """Whether a line has this byte of the value."""
    return not line.is_decompressed and line.position <= at < line.position + line.size


def hex_of(data: bytes) -> str | None:
    return data.hex() if len(data) <= LONGEST_HEX else None


def text_of(data: bytes) -> str | None:
    """The text that bytes are; None for other than UTF-8, for unprintable characters, and for very many bytes."""
    if len(data) > LONGEST_TEXT:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(character.isprintable() or character in "\t\n\r" for character in text) else None


def time_of(microseconds: int) -> str:
    """A time since the epoch in ISO 8601."""
    try:
        return (datetime(1970, 1, 1) + timedelta(microseconds=microseconds)).isoformat() + "Z"
    except OverflowError:
        return "outside of the years 1 to 9999"


def explained(explain: Callable[[bytes], Sequence[Line]]) -> Callable[[pa.Array], pa.Array]:
    """The decoder of a function that returns the lines of each row."""
    type = arrow_type(RETURNS)

    def row(value: bytes | None) -> pa.Array:
        lines = [] if value is None else explain(value)
        return pa.array([[{name: getattr(line, name) for name in FIELD_DOCS} for line in lines]], type)

    def decode(column: pa.Array) -> pa.Array:
        # By row: lines are several times as large as what they become.
        return pa.concat_arrays([pa.array([], type), *(row(value.as_py()) for value in column)])

    return decode
