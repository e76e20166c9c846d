"""The lines of an explanation: every byte is in exactly one line, which states the field, its value and its error.

`core.walk` writes them. It is plain Python, for a few values that a person looks at: a line costs some microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import pyarrow as pa

from sparkwire.base.sqltype import arrow_type

LONGEST_HEX: Final = 1 << 20
"""of the bytes of one line are written in hex [bytes]"""
LONGEST_TEXT: Final = 1 << 16
"""[bytes] of a value that are read as text"""

RETURNS: Final = "ARRAY<STRUCT<position INT, size INT, field STRING, hex STRING, value STRING, note STRING>>"
FIELD_DOCS: Final = {
    "position": "Where the bytes begin [bytes].",
    "size": "How many there are [bytes].",
    "field": "Which field they are.",
    "hex": "The bytes themselves; NULL for very many.",
    "value": "The value of the field as text, as the function of that name returns it.",
    "note": "The error code, if any, and then the explanation of the field.",
}
_SIZES_FIT: Final = ("BAD_MAGIC", "CRC_MISMATCH", "HEADER_CRC_MISMATCH", "VALUE_CRC_MISMATCH")
"""errors of bytes whose sizes may be right nevertheless"""
DECOMPRESSED: Final = "decompressed"
"""the first note of a line whose bytes are not in the value: they are decompressed from other bytes"""


@dataclass
class Line:
    """Some bytes and what they are; `FIELD_DOCS` describes the columns."""

    position: int
    data: bytes
    field: str
    value: str | None
    notes: list[str]
    is_decompressed: bool = False
    code: str | None = None
    """the error that arises here; empty for a contradiction that no function reports"""
    is_right: bool | None = None
    """of a checksum: whether it is right; False if bytes are missing, None if it covers nothing but zeros"""

    @property
    def size(self) -> int:
        """[bytes]"""
        return len(self.data)

    @property
    def hex(self) -> str | None:
        return self.data.hex() if self.size <= LONGEST_HEX else None

    @property
    def note(self) -> str | None:
        """All notes, separated by semicolons."""
        return "; ".join([DECOMPRESSED] * self.is_decompressed + self.notes) or None

    def error(self, text: str, code: str = "") -> None:
        """Put an error before the other notes."""
        self.code = self.code or code
        self.notes.insert(0, f"{code}: {text}" if code else text)


class Explained(NamedTuple):
    """Bytes, explained in one format."""

    format: str
    """the name of the format, such as ``an event of Databus, V1, BIG_ENDIAN``"""
    lines: list[Line]
    column: str = ""
    """the name of their column; empty for bytes that are not of a row"""
    evidence: tuple[int, str] | None = None
    """what `confidence` returns, if lines do not show it"""

    @property
    def confidence(self) -> tuple[int, str]:
        """The rank of the evidence that they have this format, from 0 to 4, and the evidence in words."""
        if self.evidence is not None:
            return self.evidence
        checks = [line.is_right for line in self.lines if line.is_right is not None]
        if all(checks) and checks:
            return 4, "sure: every checksum is right"
        if any(checks):
            return 3, f"likely: {sum(checks)} of {len(checks)} checksums are right"
        ends = len(self.lines) > 1 and not self.lines[-1].field.endswith(("rest", "left_over"))
        if ends and all(line.code in (None, *_SIZES_FIT) for line in self.lines):
            return 2, "likely: the sizes fit, no checksum is right" if checks else "likely: the header fits"
        if any(line.field.endswith(("version", "magic")) and line.code is None for line in self.lines):
            return 1, "a guess: by the version byte or the magic byte"
        return 0, "unlikely: neither checksums nor sizes nor versions fit"


def explained(explain: Callable[[bytes], Explained]) -> Callable[[pa.Array], pa.Array]:
    """The decoder of a function that returns the lines of each row."""
    type = arrow_type(RETURNS)

    def row(value: bytes | None) -> pa.Array:
        lines = [] if value is None else explain(value).lines
        return pa.array([[{name: getattr(line, name) for name in FIELD_DOCS} for line in lines]], type)

    def decode(column: pa.Array) -> pa.Array:
        # By row: lines are several times as large as what they become.
        return pa.concat_arrays([pa.array([], type), *(row(value.as_py()) for value in column)])

    return decode


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
