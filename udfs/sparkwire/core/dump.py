"""A dump: every byte of some bytes in exactly one line, which says what field it is, what it says and what is wrong with it.

It is plain Python, for a few values that a person looks at: a line costs some microseconds. However long the bytes are, there
are at most ``MOST_LINES`` lines: what is left then is one line more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.sqltype import arrow_type
from sparkwire.base.wire import Field
from sparkwire.core.column import lists
from sparkwire.kernels import Bytes
from sparkwire.kernels.checksums.one_bit import flipped_bit

MOST_LINES: Final = 10_000
"""of one value; an event has about twenty, a record of a Kafka log about eight"""
LONGEST_HEX: Final = 1 << 20
"""of the bytes of one line are written in hex [bytes]"""
LONGEST_TEXT: Final = 1 << 16
"""[bytes] of a value that are read as text"""

LONGEST_SEARCHED: Final = 1 << 26
"""[bytes] that a bit is looked for in that explains their checksum"""

RETURNS: Final = "ARRAY<STRUCT<position INT, size INT, field STRING, hex STRING, value STRING, note STRING>>"
FIELD_DOCS: Final = {
    "position": "Where the bytes begin [bytes].",
    "size": "How many there are [bytes].",
    "field": "Which field they are.",
    "hex": "The bytes themselves; NULL for very many.",
    "value": "The value of the field as text, as the function of that name returns it.",
    "note": "The error code, if any, and then the explanation of the field.",
}
_TYPES: Final = arrow_type(RETURNS).value_type

DECOMPRESSED: Final = "decompressed"
"""how the note of a line begins whose bytes are not those of the value, but what some of them become"""

Order = Literal["big", "little"]
VarintReader = Callable[[Bytes, int, int], tuple[int, int]]


class Line(NamedTuple):
    """Some bytes and what they are."""

    position: int
    """[bytes] from the start"""
    size: int
    """[bytes]"""
    field: str
    hex: str | None
    """the bytes in hex; None where there are more than ``LONGEST_HEX``"""
    value: str | None
    """what they say: as the accessor of that name answers it, where there is one"""
    note: str | None
    """what is to be known of it, and first what is wrong"""


class Mismatch(NamedTuple):
    """A checksum that is wrong."""

    line: int
    """whose it is"""
    start: int
    stop: int
    """of the bytes that it covers"""
    polynomial: int
    difference: int
    """what is stored xor what is computed"""


class Full(Exception):
    """There are ``MOST_LINES``."""


class Dump:
    """Writes the lines of ``data`` from the first byte to the last: each takes the bytes that follow.

    ``lines`` are those that its lines follow, where it is a dump of what bytes of another become.
    """

    def __init__(self, data: bytes, order: Order = "big", lines: list[Line] | None = None) -> None:
        self.data = data
        self.order = order
        self.at: int = 0
        """where the next line begins [bytes]"""
        self.stop: int = len(data)
        """where what is being explained ends [bytes]"""
        self.lines: list[Line] = [] if lines is None else lines
        self._mismatches: list[Mismatch] = []
        self._mark = None if lines is None else DECOMPRESSED
        self.array = np.frombuffer(data or b"\0", np.uint8)

    @property
    def left(self) -> int:
        """[bytes]"""
        return self.stop - self.at

    def decompressed(self, data: bytes) -> Dump:
        """A dump of what the bytes before become, its lines after those of this one and marked; positions are in ``data``."""
        return Dump(data, self.order, self.lines)

    def take(self, field: str, size: int, value: str | None = None, *notes: str | None) -> bytes:
        """A line of the next ``size`` bytes, or of as many as are left."""
        taken = self.data[self.at : min(self.at + max(size, 0), self.stop)]
        if len(self.lines) >= MOST_LINES:
            raise Full
        note = "; ".join(filter(None, (self._mark, *notes))) or None
        self.lines.append(Line(self.at, len(taken), field, hex_of(taken), value, note))
        self.at += len(taken)
        return taken

    def number(self, field: Field, *notes: str | None, name: str | None = None) -> int | None:
        """A line of a number, and the number; of what is left of it and None, if it is cut."""
        name = name or field.name
        if self.left < field.width:
            if self.left:
                self.take(name, self.left, None, f"cut: {self.left} of its {field.width} bytes", *notes)
            return None
        number = self.peek(field)
        raw = self.data[self.at : self.at + field.width]
        self.take(name, field.width, raw.hex() if field.wire.startswith("bytes") else str(number), *notes)
        return number

    def peek(self, field: Field) -> int:
        """The number that a line of it would have."""
        raw = self.data[self.at : self.at + field.width]
        return int.from_bytes(raw, self.order, signed=field.wire.startswith("i"))

    def peek_varint(self, read: VarintReader) -> tuple[int, int]:
        """The zigzag varint that follows, and where it ends; -1 where there is none."""
        number, after = read(self.array, self.at, self.stop)
        return int(number), int(after)

    def content(self, field: str, size: int, *notes: str | None) -> bytes:
        """A line of ``size`` bytes of any content, its value their text if they are one; a note where some are missing."""
        missing = size - self.left
        cut = f"cut: {self.left} of its {size} bytes" if missing > 0 else None
        return self.take(
            field, size, None if missing > 0 else text_of(self.data[self.at : self.at + size]), cut, *notes
        )

    def rest(self, field: str, *notes: str | None) -> None:
        """A line of all that is left, if anything is."""
        if self.left:
            self.take(field, self.left, None, *notes)

    def amend(self, at: int, note: str) -> None:
        """Put a note before the others of line ``at``, but for the mark of what is decompressed."""
        line = self.lines[at]
        notes = [note, *(line.note or "").split("; ")]
        if DECOMPRESSED in notes[1:2]:
            notes[:2] = [DECOMPRESSED, note]
        self.lines[at] = line._replace(note="; ".join(filter(None, notes)))

    def mismatch(self, line: int, start: int, stop: int, polynomial: int, difference: int) -> None:
        """A line is a checksum of the bytes from ``start`` to ``stop``, and is wrong."""
        self._mismatches.append(Mismatch(line, start, stop, polynomial, difference))

    def _blame_bit(self, wrong: Mismatch) -> None:
        """Say of a wrong checksum which flipped bit explains it, if one does, and where that bit is."""
        size = wrong.stop - wrong.start
        distance = -1
        if size <= LONGEST_SEARCHED:
            distance = int(flipped_bit(wrong.polynomial, size, wrong.difference))
        at = wrong.stop - 1 - distance // 8
        line = self.lines[wrong.line]
        if distance >= 0:
            bit = 7 - distance % 8
            here, field = next((k, own) for k, own in enumerate(self.lines) if _has(own, at))
            explained = f"one flipped bit explains it, bit {bit} of byte {at}, in {field.field}"
            self.amend(here, f"byte {at} was {self.data[at] ^ 1 << bit:#04x} if one bit has flipped")
        elif wrong.difference.bit_count() == 1:
            explained = "one flipped bit explains it, of the checksum itself"
        else:
            return
        self.lines[wrong.line] = line._replace(note=f"{line.note}; {explained}")

    def end(self) -> list[Line]:
        """All lines, now that one of them is of the last byte."""
        left = self.data[self.at :]
        if left:
            self.lines.append(
                Line(self.at, len(left), "rest", hex_of(left), None, "not explained: there are too many lines")
            )
            self.at = len(self.data)
        for wrong in self._mismatches:
            self._blame_bit(wrong)
        return self.lines


def _has(line: Line, at: int) -> bool:
    """Whether a line has this byte of the value."""
    return line.position <= at < line.position + line.size and not (line.note or "").startswith(DECOMPRESSED)


def hex_of(data: bytes) -> str | None:
    return data.hex() if len(data) <= LONGEST_HEX else None


def text_of(data: bytes) -> str | None:
    """The text that bytes are, None if they are not UTF-8 or have characters that cannot be printed."""
    if len(data) > LONGEST_TEXT:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(character.isprintable() or character in "\t\n\r" for character in text) else None


def explained(explain: Callable[[bytes], Sequence[Line]]) -> Callable[[pa.Array], pa.Array]:
    """The decoder of a function that answers the lines of each row."""

    def decode(column: pa.Array) -> pa.Array:
        # By row: lines are several times as large as what they become.
        rows = [_arrow_lines(explain(row.as_py()) if row.is_valid else ()) for row in column]
        ends = np.cumsum([0, *map(len, rows)]).astype(np.int32)
        return lists(ends, pa.concat_arrays(rows) if rows else _arrow_lines(()))

    return decode


def _arrow_lines(lines: Sequence[Line]) -> pa.Array:
    columns = zip(*lines, strict=True) if lines else [()] * len(_TYPES)
    return pa.StructArray.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _TYPES, strict=True)], fields=list(_TYPES)
    )
