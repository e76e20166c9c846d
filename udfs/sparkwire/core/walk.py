"""The walker: it reads bytes by the table of their format and writes the lines of their explanation.

A table is a `Struct` of `base.grammar`. A format's own walker adds what a table does not have: the meaning of values (``note``),
decompression (``opened``), and the fields of error codes (``PLACES``, ``SIZE_ERRORS``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal

import numpy as np

from sparkwire.base.grammar import Covered, Crc, Part, PresentIf, Repeated, Sized, Struct, Varint
from sparkwire.base.wire import Field
from sparkwire.core.lines import Line, text_of
from sparkwire.kernels import Bytes, crc32, crc32_raw, crc32c, int64, kernel
from sparkwire.kernels.checksums.one_bit import REFLECTED_CASTAGNOLI, REFLECTED_IEEE, flipped_bit
from sparkwire.kernels.varint import varint, varlong

MOST_LINES: Final = 10_000
"""of one value; the items that would follow are one line. An event has about twenty, a record of a Kafka log about eight"""
LONGEST_SEARCHED: Final = 1 << 26
"""span of a wrong checksum in which the flipped bit is located [bytes]"""
_KINDS: Final[tuple[Crc, ...]] = ("crc32", "crc32c", "crc32_raw")


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
    lines: dict[str, Line] = field(default_factory=dict)
    """the lines of the numbers"""
    ends: dict[str, int] = field(default_factory=dict)
    """where parts end by the fields before them, even beyond the bytes"""

    def end_of(self, parts: Sequence[str]) -> int:
        """Where the first of several parts that is present ends; -1 if none is."""
        return next((self.ends[part] for part in parts if part in self.ends), -1)

    def name(self, part: str) -> str:
        """The name of a part, as its line in the explanation shows it."""
        return f"{self.path}.{part}" if self.path else part


class _Stop(Exception):
    """The next part cannot be located. The reason is at a line already."""


@kernel
def checksum(data: Bytes, start: int, size: int, kind: int) -> int:
    """The checksum with index ``kind`` in ``_KINDS``."""
    if kind == 0:
        return int64(crc32(data, start, size))
    return int64(crc32c(data, start, size)) if kind == 1 else int64(crc32_raw(data, start, size))


class Walker:
    """Writes the lines of ``data`` from the first byte to the last: each takes the bytes that follow.

    Bytes of size 0 have no line.
    """

    PLACES: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """by error code: the fields where the error may be, the first one counts, and its meaning"""
    SIZE_ERRORS: ClassVar[Collection[str]] = ()
    """error codes that belong to the first contradiction between sizes, counts and bytes, if the walker finds one"""

    def __init__(self, data: bytes, order: Literal["big", "little"] = "big") -> None:
        self.order = order
        self.lines: list[Line] = []
        self.errors: dict[int, str] = {}
        """the error codes of the current struct that have no line yet, by row"""
        self.is_decompressed = False
        self._begin(data)

    def _begin(self, data: bytes) -> None:
        self.data = data
        self.array = np.frombuffer(data or b"\0", np.uint8)
        self.at: int = 0
        """where the next line begins [bytes]"""
        self.stop: int = len(data)
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

    def take(self, field: str, size: int, value: str | None = None, *notes: str | None) -> Line:
        """A line of the next ``size`` bytes, or of as many as are left."""
        data = self.data[self.at : min(self.at + size, self.stop)]
        line = Line(self.at, data, field, value, list(filter(None, notes)), self.is_decompressed)
        self.lines.append(line)
        self.at += line.size
        return line

    def rest(self, field: str, *notes: str | None) -> None:
        """A line of all bytes that are left, if any."""
        if self.left:
            self.take(field, self.left, None, *notes)

    # -- errors

    def _wrong(self, scope: Scope, reason: str, part: str = "") -> _Stop:
        """Report a contradiction at the line of a number, by default at the last line.

        Returns what to raise if the next part cannot be located for that reason.
        """
        if not self.lines:
            self.take(scope.struct.name, 0)
        row = min(self.errors, default=0) if scope.row is None else scope.row
        code = self.errors.pop(row) if self.errors.get(row) in self.SIZE_ERRORS else ""
        (scope.lines[part] if part else self.lines[-1]).error(reason, code)
        return _Stop()

    def _place(self, row: int, scope: Scope, first: int) -> bool:
        """Report the error of a row at its field, if one of the lines from ``first`` on is of such a field."""
        own = {line.field: line for line in reversed(self.lines[first:])}
        for name, text in self.PLACES.get(self.errors[row], {}).items():
            line = own.get(scope.name(name))
            if line and not line.is_right:
                left = len(self.data) - line.position - line.size
                line.error(text.format(left=left, value=line.value), self.errors.pop(row))
                return True
        return False

    # -- structs

    def walk(self, struct: Struct, path: str = "", errors: Sequence[str | None] = ()) -> None:
        """Write the lines of a struct. ``errors`` are the error codes that the functions of the format return, by row."""
        scope, first = Scope(struct, self.at, path), len(self.lines)
        self.errors = {row: code for row, code in enumerate(errors) if code}
        with suppress(_Stop):
            self._struct(scope)
        for row in list(self.errors):
            if not self._place(row, scope, first):
                self.lines[first].error("its field is not here", self.errors.pop(row))

    def _struct(self, scope: Scope) -> None:
        struct, bound, is_stopped = scope.struct, self.stop, False
        try:
            for part in struct.parts:
                self._part(part, scope)
                if scope.row is not None:
                    # An item does not reach into the next one.
                    self.stop = min(self.stop, max(self._end(scope), self.at))
        except _Stop:
            is_stopped = True
        end = self._end(scope)
        if not struct.ends or struct.ends in scope.values:
            scope.ends[struct.name] = end
        if struct.ends in scope.values:
            is_stopped = self._finish(scope, end, is_stopped)
        self.stop = bound
        if is_stopped:
            self.rest(scope.name("rest"), "not explained: there are too many lines" if self.is_full else None)
        for covered in struct.covered:
            self._judge(covered, scope)
        if is_stopped:
            raise _Stop

    def _end(self, scope: Scope) -> int:
        """Where a struct ends by its own field; without one, where its bytes end."""
        struct, size = scope.struct, scope.values.get(scope.struct.ends)
        if size is None:
            return self.stop
        return size + (scope.ends[struct.ends] if struct.counts_rest else scope.start)

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
            self.take(scope.name("unclaimed"), left, None, struct.unclaimed)
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

    # -- numbers

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
            line = self.take(name, end - begin, None, part.doc)
            raise self._wrong(scope, f"cut: {line.size} of its {end - begin} bytes")
        line = self.take(name, end - begin, text, self.note(scope, part.name, number), part.doc)
        scope.values[part.name], scope.lines[part.name] = number, line

    def _given(self, part: Field | Varint | str, scope: Scope) -> tuple[int, str]:
        """A size or a count, and its name."""
        name = part if isinstance(part, str) else part.name
        if not isinstance(part, str):
            self._number(part, scope)
        return scope.values[name], name

    # -- bytes

    def _sized(self, part: Sized, scope: Scope) -> None:
        if part.size is None:
            self._content(part, self._end(scope) - self.at, scope)
            return
        size, name = self._given(part.size, scope)
        if size < 0 and part.nullable:
            return
        left, is_cut = max(self._end(scope) - self.at, 0), not 0 <= size <= self.left
        if not 0 <= size <= left:
            reason = f"a {part.title or part.name} of {size} bytes, {left} are left in the {scope.struct.name}"
            self._wrong(scope, reason, name)
        self._content(part, size, scope)
        if is_cut:
            raise _Stop

    def _content(self, part: Sized, size: int, scope: Scope) -> None:
        name, content = scope.name(part.name), self.data[self.at : min(self.at + size, self.stop)]
        scope.ends[part.name] = self.at + size
        if not content:
            return
        cut = f"cut: {len(content)} of its {size} bytes" if len(content) < size else None
        if part.holds is None:
            text = None if cut or part.opaque else text_of(content)
            self.take(name, size, text, cut, self.note(scope, part.name, content), part.doc)
            return
        data, note = self.opened(scope, content)
        self.take(name, size, None, cut, note)
        if data is not None:
            inner = copy(self)
            inner.is_decompressed = True
            inner._begin(data)
            inner._part(part.holds, scope)

    # -- items

    def _repeated(self, part: Repeated, scope: Scope) -> None:
        items, number = f"{part.of.name}s", 0
        count, name = (None, "") if part.count is None else self._given(part.count, scope)
        while self.left and (count is None or number < count):
            if self.is_full:
                raise _Stop
            self._item(part.of, number, scope)
            number += 1
        if self.left and part.after:
            if number:
                self._wrong(scope, f"{self.left} bytes are left after {count} {items}", name)
            self.rest(scope.name("left_over"), part.after)
        if count is not None and number != count:
            raise self._wrong(scope, f"the {scope.struct.name} ends after {number} of {count} {items}", name)

    def _item(self, of: Struct, number: int, scope: Scope) -> None:
        first, row = len(self.lines), number if scope.row is None else scope.row
        item = Scope(of, self.at, scope.name(f"{of.name}[{number}]"), scope, row)
        try:
            self._struct(item)
        finally:
            if row in self.errors and scope.row is None:
                self._place(row, item, first)

    # -- checksums

    def _judge(self, covered: Covered, scope: Scope) -> None:
        """Report whether a checksum is right, if its whole span is there."""
        line = scope.lines.get(covered.checksum)
        if line is None:
            return
        first, last = scope.end_of(covered.after or [covered.checksum]), scope.end_of(covered.last)
        line.is_right = False
        end, stored = max(first, last), scope.values[covered.checksum]
        if min(first, last) < 0 or end > self.stop:
            return
        computed = int(checksum(self.array, first, end - first, _KINDS.index(covered.crc)))
        text = f"stored {stored}, computed {computed}"
        if computed == stored:
            # The checksum of zeros may be zero: it is no evidence.
            line.is_right = True if stored else None
            line.notes.insert(0, f"right: {text}")
            return
        line.notes.insert(0, f"wrong: {text}")
        if end - first <= LONGEST_SEARCHED:
            self._blame_bit(covered.crc, line, first, end, stored ^ computed)

    def _blame_bit(self, kind: Crc, line: Line, first: int, end: int, difference: int) -> None:
        """Report the bit that explains a wrong checksum, if one does."""
        polynomial = REFLECTED_CASTAGNOLI if kind == "crc32c" else REFLECTED_IEEE
        distance = int(flipped_bit(polynomial, end - first, difference))
        if distance >= 0:
            at, bit = end - 1 - distance // 8, 7 - distance % 8
            # The lines before those of this struct may be of other decompressed bytes.
            own = [each for each in self.lines if each.is_decompressed == self.is_decompressed]
            flipped = next(each for each in reversed(own) if each.position <= at)
            flipped.notes.insert(0, f"byte {at} was {self.data[at] ^ 1 << bit:#04x} if one bit has flipped")
            line.notes.append(f"one flipped bit explains it, bit {bit} of byte {at}, in {flipped.field}")
        elif difference.bit_count() == 1:
            line.notes.append("one flipped bit explains it, of the checksum itself")
