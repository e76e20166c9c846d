"""The walker that explains bytes: it reads them by the table of their format, and writes a line for each field.

A table is a `Struct` of `base.grammar`. A format's own walker adds what a table does not have: the meaning of values (``note``),
decompression (``opened``), and the fields of error codes (``PLACES``, ``SIZE_ERRORS``). Every byte is in exactly one line.

It is plain Python, for a few values that a person looks at: a line costs some microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.grammar import Covered, Crc, Field, Part, PresentIf, Repeated, Sized, Struct, Varint
from sparkwire.base.sqltype import arrow_type
from sparkwire.kernels.checksums.crc import checksum_of, flipped_bit
from sparkwire.kernels.varint import varint, varlong

MOST_LINES: Final = 10_000
"""of one value; the items that would follow are one line. An event has about twenty, a record of a Kafka log about eight"""
LONGEST_SEARCHED: Final = 1 << 26
"""span of a wrong checksum in which the flipped bit is located [bytes]"""
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
DECOMPRESSED: Final = "decompressed"
"""the first note of a line whose bytes are not in the value: they are decompressed from other bytes"""
_TOO_MANY: Final = "not explained: there are too many lines"
_SIZES_FIT: Final = ("BAD_MAGIC", "CRC_MISMATCH", "HEADER_CRC_MISMATCH", "VALUE_CRC_MISMATCH")
"""errors of bytes whose sizes may be right nevertheless"""


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
    with suppress(UnicodeDecodeError):
        text = data.decode() if len(data) <= LONGEST_TEXT else "\0"
        if all(character.isprintable() or character in "\t\n\r" for character in text):
            return text
    return None


def time_of(microseconds: int) -> str:
    """A time since the epoch in ISO 8601."""
    try:
        return (datetime(1970, 1, 1) + timedelta(microseconds=microseconds)).isoformat() + "Z"
    except OverflowError:
        return "outside of the years 1 to 9999"


@dataclass
class Scope:
    """What the walker has read of one struct."""

    struct: Struct
    start: int
    """where it begins [bytes]"""
    path: str = ""
    """the prefix of its fields, such as ``batch[0].record[3]``"""
    parent: Scope | None = None
    row: int | None = None
    """the index of the item, or of the item that it is in"""
    values: dict[str, int] = field(default_factory=dict)
    """the numbers, by the names of their fields"""
    ends: dict[str, int] = field(default_factory=dict)
    """where parts end by the fields before them, even beyond the bytes"""

    @property
    def end(self) -> int | None:
        """Where the struct ends by its own field; None if it has none, or none yet."""
        size = self.values.get(self.struct.ends)
        if size is None:
            return None
        return size + (self.ends[self.struct.ends] if self.struct.counts_rest else self.start)

    def name(self, part: str) -> str:
        """The name of a part, as its line in the explanation shows it."""
        return f"{self.path}.{part}" if self.path else part


class _Stop(Exception):
    """The next part cannot be located. The reason is at a line already."""


class Walker:
    """Writes the lines of ``data`` from the first byte to the last: each takes the bytes that follow.

    Bytes of size 0 have no line.
    """

    PLACES: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """by error code: the fields where the error may be, the first one counts, and its meaning"""
    SIZE_ERRORS: ClassVar[Collection[str]] = ()
    """error codes that belong to the first contradiction between sizes, counts and bytes, if the walker finds one"""

    after: tuple[str, str] = ("rest", "")
    """field and note of the bytes between a struct's end and the next struct"""
    order: Literal["big", "little"] = "big"
    is_decompressed = False

    def __init__(self, data: bytes) -> None:
        self.lines = list[Line]()
        self.errors = dict[int, str]()
        """the error codes of the current struct that have no line yet, by row"""
        self._begin(data)

    def _begin(self, data: bytes) -> None:
        self.data = data
        self.array = np.frombuffer(data or b"\0", np.uint8)
        self.at = 0
        """where the next line begins [bytes]"""
        self.stop = len(data)
        """where the current struct ends at the latest [bytes]"""

    @property
    def left(self) -> int:
        """[bytes]"""
        return self.stop - self.at

    @property
    def is_full(self) -> bool:
        """Whether there are so many lines that no further item gets any."""
        return len(self.lines) >= MOST_LINES

    # -- what a format adds

    def note(self, scope: Scope, name: str, value: int | bytes) -> str | None:
        """The meaning of a number or of bytes."""

    def opened(self, scope: Scope, content: bytes) -> tuple[bytes | None, str]:
        """The decompressed bytes, None if they are unknown, and a note."""
        raise NotImplementedError

    # -- lines

    def take(self, field: str, end: int, value: str | None = None, *notes: str | None) -> Line:
        """A line of the bytes up to ``end``, or of as many as are left."""
        data = self.data[self.at : min(end, self.stop)]
        line = Line(self.at, data, field, value, list(filter(None, notes)), self.is_decompressed)
        self.lines.append(line)
        self.at += line.size
        return line

    def rest(self, field: str, *notes: str | None) -> None:
        """A line of all bytes that are left, if any."""
        if self.left:
            self.take(field, self.stop, None, *notes)

    def line_of(self, scope: Scope, part: str) -> Line | None:
        """The line of a part, if it has one."""
        name = scope.name(part)
        return next((line for line in reversed(self.lines) if line.field == name), None)

    # -- structs

    def walk(self, struct: Struct, path: str = "", errors: Sequence[str | None] = (), stop: int = -1) -> None:
        """Write the lines of a struct, and one of the bytes after it up to ``stop``, by default to the end.

        ``errors`` are the error codes that the functions of the format return, by row.
        """
        if self.is_full:
            self.rest("rest", _TOO_MANY)
            return
        self.stop = len(self.data) if stop < 0 else stop
        self.errors = {row: code for row, code in enumerate(errors) if code}
        scope, first = Scope(struct, self.at, path), len(self.lines)
        with suppress(_Stop):
            self._struct(scope)
        for row in list(self.errors):
            if not self._place(row, scope):
                self.lines[first].error("its field is not here", self.errors.pop(row))
        name, note = self.after
        self.rest(scope.name(name), note)
        self.stop = len(self.data)

    def _struct(self, scope: Scope) -> None:
        struct, bound, is_stopped = scope.struct, self.stop, False
        try:
            for part in struct.parts:
                self._part(part, scope)
        except _Stop:
            is_stopped = True
        end = scope.end
        if end is not None:
            is_stopped = self._finish(scope, end, is_stopped)
        if end is not None or not struct.ends:
            scope.ends[struct.name] = self.stop if end is None else end
        self.stop = bound
        if is_stopped:
            self.rest(scope.name("rest"), _TOO_MANY if self.is_full else None)
        for covered in struct.covered:
            self._judge(covered, scope)
        if is_stopped:
            raise _Stop

    def _finish(self, scope: Scope, end: int, is_stopped: bool) -> bool:
        """Go to the stated end of a struct. Return whether what follows cannot be located."""
        struct, size, left, reason = scope.struct, scope.values[scope.struct.ends], end - self.at, ""
        if end > self.stop:
            reason = f"the {struct.name} has {size} bytes, {size - end + self.stop} are here"
        elif not is_stopped and (left < 0 or (left > 0 and not struct.unclaimed)):
            reason = f"the {struct.name} has {size} bytes, its parts have {size - left}"
        if reason:
            self._wrong(scope, reason, struct.ends)
        if struct.unclaimed and left > 0 and self.left:
            self.take(scope.name("unclaimed"), end, None, struct.unclaimed)
        # Parts that would begin inside of another one are not looked for: each byte has one line.
        return bool(reason) or self.at != end or (is_stopped and not struct.unclaimed)

    def _part(self, part: Part, scope: Scope) -> None:
        match part:
            case Field() | Varint():
                self._number(part, scope)
            case Sized():
                self._sized(part, scope)
            case Repeated():
                self._repeated(part, scope)
            case PresentIf():
                number = scope.values[part.field]
                present = part.of(number)
                if present is None:
                    raise self._wrong(scope, f"{part.title} {number & part.mask} is unknown", part.field)
                for each in present:
                    self._part(each, scope)
            case Struct():
                self._struct(replace(scope, struct=part, start=self.at))

    def _number(self, part: Field | Varint, scope: Scope) -> None:
        name, begin = scope.name(part.name), self.at
        if isinstance(part, Varint):
            read = varint if part.bits == 32 else varlong
            number, end = map(int, read(self.array, begin, self.stop))
            text = str(number)
        else:
            end = begin + part.width
            raw = self.data[begin:end]
            number = int.from_bytes(raw, self.order, signed=part.wire.startswith("i"))
            text = raw.hex() if part.wire.startswith("bytes") else str(number)
        scope.ends[part.name] = end
        if end < 0 or not self.left:
            raise self._wrong(scope, f"the {scope.struct.name} has no {part.name}")
        if end > self.stop:
            line = self.take(name, end, None, part.doc)
            raise self._wrong(scope, f"cut: {line.size} of its {end - begin} bytes")
        self.take(name, end, text, self.note(scope, part.name, number), part.doc)
        scope.values[part.name] = number
        if part.name == scope.struct.ends and scope.row is not None and scope.end is not None:
            # An item does not reach into the next one.
            self.stop = min(self.stop, max(scope.end, self.at))

    def _count(self, part: Field | Varint | str, scope: Scope) -> tuple[int, str]:
        """A size or a count, and its name."""
        name = part if isinstance(part, str) else part.name
        if not isinstance(part, str):
            self._number(part, scope)
        return scope.values[name], name

    def _sized(self, part: Sized, scope: Scope) -> None:
        size, name = (None, "") if part.size is None else self._count(part.size, scope)
        left = max((self.stop if scope.end is None else scope.end) - self.at, 0)
        if size is None:
            size = left
        elif size < 0 and part.nullable:
            return
        elif not 0 <= size <= left:
            reason = f"a {part.title or part.name} of {size} bytes, {left} are left in the {scope.struct.name}"
            self._wrong(scope, reason, name)
        is_cut = part.size is not None and not 0 <= size <= self.left
        end = scope.ends[part.name] = self.at + size
        if size > 0 and self.left:
            self._content(part, end, scope)
        if is_cut:
            raise _Stop

    def _content(self, part: Sized, end: int, scope: Scope) -> None:
        name, content, size = scope.name(part.name), self.data[self.at : min(end, self.stop)], end - self.at
        cut = f"cut: {len(content)} of its {size} bytes" if len(content) < size else None
        if part.holds is None:
            text = None if cut or part.opaque else text_of(content)
            self.take(name, end, text, cut, self.note(scope, part.name, content), part.doc)
            return
        data, note = self.opened(scope, content)
        self.take(name, end, None, cut, note)
        if data is not None:
            inner = copy(self)
            inner.is_decompressed = True
            inner._begin(data)
            inner._part(part.holds, scope)

    def _repeated(self, part: Repeated, scope: Scope) -> None:
        items, number = f"{part.of.name}s", 0
        count, name = (None, "") if part.count is None else self._count(part.count, scope)
        while self.left and (count is None or number < count):
            if self.is_full:
                raise _Stop
            row = number if scope.row is None else scope.row
            item = Scope(part.of, self.at, scope.name(f"{part.of.name}[{number}]"), scope, row)
            try:
                self._struct(item)
            finally:
                if row in self.errors and scope.row is None:
                    self._place(row, item)
            number += 1
        if self.left and part.after:
            if number:
                self._wrong(scope, f"{self.left} bytes are left after {count} {items}", name)
            self.rest(scope.name("left_over"), part.after)
        if count is not None and number != count:
            raise self._wrong(scope, f"the {scope.struct.name} ends after {number} of {count} {items}", name)

    # -- errors

    def _wrong(self, scope: Scope, reason: str, part: str = "") -> _Stop:
        """Report a contradiction at the line of a number, by default at the last line.

        Returns what to raise if the next part cannot be located for that reason.
        """
        if not self.lines:
            self.take(scope.struct.name, self.at)
        row = min(self.errors, default=0) if scope.row is None else scope.row
        code = self.errors.pop(row) if self.errors.get(row) in self.SIZE_ERRORS else ""
        (self.line_of(scope, part) or self.lines[-1]).error(reason, code)
        return _Stop()

    def _place(self, row: int, scope: Scope) -> bool:
        """Report the error of a row at its field, if one of the fields has a line."""
        for name, text in self.PLACES.get(self.errors[row], {}).items():
            line = self.line_of(scope, name)
            if line and not line.is_right:
                left = len(self.data) - line.position - line.size
                line.error(text.format(left=left, value=line.value), self.errors.pop(row))
                return True
        return False

    # -- checksums

    def _judge(self, covered: Covered, scope: Scope) -> None:
        """Report whether a checksum is right, if its whole span is there."""
        line = self.line_of(scope, covered.checksum) if covered.checksum in scope.values else None
        if line is None:
            return
        line.is_right = False
        # Of several parts, the one that is present counts.
        first, last = (
            next((scope.ends[part] for part in parts if part in scope.ends), -1)
            for parts in (covered.after or [covered.checksum], covered.last)
        )
        end, stored = max(first, last), scope.values[covered.checksum]
        if min(first, last) < 0 or end > self.stop:
            return
        computed = checksum_of(covered.crc, self.array, first, end - first)
        text = f"stored {stored}, computed {computed}"
        if computed == stored:
            # The checksum of zeros may be zero: it is no evidence.
            line.is_right = True if stored else None
            line.notes.insert(0, f"right: {text}")
            return
        line.notes.insert(0, f"wrong: {text}")
        if end - first <= LONGEST_SEARCHED:
            self._blame_bit(covered.crc, line, first, end, stored ^ computed)

    def _blame_bit(self, crc: Crc, line: Line, first: int, end: int, difference: int) -> None:
        """Report the bit that explains a wrong checksum, if one does."""
        found = flipped_bit(crc, end - first, difference)
        if found is not None:
            at, bit = end - 1 - found[0], found[1]
            # The lines before those of this struct may be of other decompressed bytes.
            same_bytes = (each for each in reversed(self.lines) if each.is_decompressed == self.is_decompressed)
            flipped = next(each for each in same_bytes if each.position <= at)
            flipped.notes.insert(0, f"byte {at} was {self.data[at] ^ 1 << bit:#04x} if one bit has flipped")
            line.notes.append(f"one flipped bit explains it, bit {bit} of byte {at}, in {flipped.field}")
        elif difference.bit_count() == 1:
            line.notes.append("one flipped bit explains it, of the checksum itself")
