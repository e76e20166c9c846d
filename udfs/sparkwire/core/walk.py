"""The walker: it reads bytes by the table of their format and writes the lines of their explanation.

A table is a `Struct` of `base.grammar`. A format's own walker adds what a table does not have: the meaning of values (``note``),
decompression (``opened``), and the fields of error codes (``PLACES``, ``SIZE_ERRORS``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from sparkwire.base.grammar import Covered, Crc, Part, PresentIf, Repeated, Sized, Struct, Varint
from sparkwire.base.wire import Field
from sparkwire.core.dump import Dump, Line, text_of
from sparkwire.kernels import Bytes, crc32, crc32_raw, crc32c, int64, kernel
from sparkwire.kernels.checksums.one_bit import REFLECTED_CASTAGNOLI, REFLECTED_IEEE
from sparkwire.kernels.varint import varint, varlong

UNDECIDED: Final = "undecided, because bytes are missing"
"""the verdict on a checksum whose span is not complete"""

_KINDS: Final[tuple[Crc, ...]] = ("crc32", "crc32c", "crc32_raw")


@dataclass
class Scope:
    """What the walker has read of one struct."""

    struct: Struct
    path: str = ""
    """the prefix of its fields, such as ``batch[0].record[3]``"""
    number: int = 0
    """the index of an item"""
    parent: Scope | None = None
    values: dict[str, int] = field(default_factory=dict)
    """the numbers, by the names of their fields"""
    lines: dict[str, Line] = field(default_factory=dict)
    """the lines of the numbers"""
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """where parts begin and end by the fields before them, even beyond the bytes"""

    def place(self, parts: Sequence[str], side: Literal[0, 1]) -> int | None:
        """Where the first of several parts that has a place begins (0) or ends (1)."""
        return next((self.places[part][side] for part in parts if part in self.places), None)

    def name(self, part: str) -> str:
        """The name of the line of one of its parts."""
        return f"{self.path}.{part}" if self.path else part


class _Stop(Exception):
    """The next part cannot be located. The reason is an error of ``line``, by default of the last one; it may be empty."""

    def __init__(self, reason: str = "", line: Line | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@kernel
def checksum(data: Bytes, start: int, size: int, kind: int) -> int:
    """The checksum with index ``kind`` in ``_KINDS``."""
    if kind == 0:
        return int64(crc32(data, start, size))
    return int64(crc32c(data, start, size)) if kind == 1 else int64(crc32_raw(data, start, size))


class Walker:
    """Writes the lines of structs to ``dump``. Bytes of size 0 have no line.

    ``errors`` has what the functions of the format return for the bytes: error codes, by row.
    """

    PLACES: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """by error code: the fields where the error may be, the first one counts, and its meaning"""
    SIZE_ERRORS: ClassVar[Collection[str]] = ()
    """error codes that belong to the first contradiction between sizes, counts and bytes, if the walker finds one"""

    def __init__(self, dump: Dump, errors: Mapping[int, str] | None = None) -> None:
        self.dump = dump
        self.errors = dict(errors or {})
        """those that have no line yet"""
        self._start: int = dump.at
        """where the current struct begins [bytes]"""
        self._bounded = False
        """whether the current struct has a length before it: none of its parts reaches beyond"""

    # -- what a format adds

    def note(self, scope: Scope, name: str, value: int | bytes) -> str | None:
        """The meaning of a number or of bytes."""

    def opened(self, scope: Scope, part: Sized, content: bytes) -> tuple[bytes | None, str]:
        """The decompressed bytes, None if they are unknown, and a note."""
        raise NotImplementedError

    # -- errors

    def _wrong(self, scope: Scope, line: Line, text: str) -> None:
        """Report a contradiction at a line."""
        row = min(self.errors, default=0) if scope.parent is None else scope.number
        if self.errors.get(row) in self.SIZE_ERRORS:
            text = f"{self.errors.pop(row)}: {text}"
        line.error(text)

    def _report(self, stop: _Stop, scope: Scope) -> None:
        lines = self.dump.lines
        if stop.reason:
            self._wrong(scope, stop.line or (lines[-1] if lines else self.dump.take(scope.struct.name, 0)), stop.reason)

    def _place(self, row: int, scope: Scope, first: int) -> bool:
        """Report the error of a row at its field, if one of the lines from ``first`` on is of such a field."""
        own = {line.field: line for line in reversed(self.dump.lines[first:])}
        for name, text in self.PLACES.get(self.errors[row], {}).items():
            if line := own.get(scope.name(name)):
                left = len(self.dump.data) - line.position - line.size
                line.error(f"{self.errors.pop(row)}: {text.format(left=left, **scope.values)}")
                return True
        return False

    # -- structs

    def walk(self, struct: Struct, path: str = "") -> Scope:
        """Write the lines of a struct; returns what it has read."""
        scope, first = Scope(struct, path), len(self.dump.lines)
        try:
            self._parts(struct, scope)
        except _Stop as stop:
            self._report(stop, scope)
        for row in list(self.errors):
            if not self._place(row, scope, first):
                self.dump.lines[first].error(f"{self.errors.pop(row)}: its field is not here")
        return scope

    def _parts(self, struct: Struct, scope: Scope) -> None:
        dump, outer, start, bound = self.dump, self._start, self.dump.at, self.dump.stop
        self._start, readable = start, True
        try:
            for part in struct.parts:
                self._part(part, struct, scope)
                if scope.parent is not None and (end := self._end(struct, scope)) is not None:
                    # An item does not reach into the next one.
                    dump.stop = min(dump.stop, max(end, dump.at))
        except _Stop as stop:
            if self._end(struct, scope) is None:
                raise
            self._report(stop, scope)
            readable = False
        finally:
            end = self._end(struct, scope) if struct.ends else bound
            if end is not None:
                scope.places[struct.name] = start, end
            dump.at = min(dump.at, dump.stop)
            self._start, dump.stop = outer, bound
            for covered in struct.covered:
                self._judge(covered, scope)
        if struct.ends and end is not None:
            self._finish(struct, scope, end, readable)

    def _finish(self, struct: Struct, scope: Scope, end: int, readable: bool) -> None:
        """Go to the stated end of a struct; `_Stop` if its parts or its bytes do not end there."""
        dump, reason = self.dump, ""
        size, missing = scope.values[struct.ends], end - dump.stop
        if readable and missing > 0:
            reason = f"the {struct.name} has {size} bytes, {size - missing} are here"
        elif readable and dump.at > end:
            reason = f"the {struct.name} ends before its parts"
        if struct.unclaimed and end > dump.at and dump.left:
            dump.take(scope.name("unclaimed"), end - dump.at, None, struct.unclaimed)
        if reason or dump.at != end:
            # Parts that would begin inside of another one are not looked for: each byte has one line.
            raise _Stop(reason, scope.lines[struct.ends])

    def _end(self, struct: Struct, scope: Scope) -> int | None:
        """Where the current struct ends by its own field, if it is known."""
        size = scope.values.get(struct.ends)
        return None if size is None else self._start + struct.uncounted + size

    def _part(self, part: Part, struct: Struct, scope: Scope) -> None:
        match part:
            case Field() | Varint():
                self._number(part, scope)
            case Sized():
                self._sized(part, struct, scope)
            case Repeated():
                self._repeated(part, struct, scope)
            case PresentIf():
                for each in self._present(part, scope):
                    self._part(each, struct, scope)
            case Struct():
                self._parts(part, scope)

    def _present(self, part: PresentIf, scope: Scope) -> Sequence[Part]:
        number = scope.values.get(part.field)
        if number is None:
            raise _Stop
        present = part.of(number)
        if present is None:
            raise _Stop(f"{part.title} {number & part.mask} is unknown", scope.lines[part.field])
        return present

    # -- numbers

    def _number(self, part: Field | Varint, scope: Scope) -> int:
        dump, name, begin = self.dump, scope.name(part.name), self.dump.at
        if isinstance(part, Varint):
            read = varint if part.bits == 32 else varlong
            number, end = map(int, read(dump.array, begin, dump.stop))
            text = str(number)
        else:
            end = begin + part.width
            raw = dump.data[begin:end]
            number = int.from_bytes(raw, dump.order, signed=part.wire.startswith("i"))
            text = raw.hex() if part.wire.startswith("bytes") else str(number)
            scope.places[part.name] = begin, end
        if end < 0 or not dump.left:
            raise _Stop(f"the {scope.struct.name} has no {part.name}")
        if end > dump.stop:
            cut = f"cut: {dump.left} of its {end - begin} bytes"
            raise _Stop(cut, dump.take(name, end - begin, None, part.doc))
        scope.values[part.name] = number
        line = dump.take(name, end - begin, text, self.note(scope, part.name, number), part.doc)
        scope.lines[part.name] = line
        return number

    def _given(self, part: Field | Varint | str, scope: Scope) -> tuple[int, Line]:
        """A size or a count, and its line."""
        if not isinstance(part, str):
            return self._number(part, scope), self.dump.lines[-1]
        if part not in scope.values:
            raise _Stop
        return scope.values[part], scope.lines[part]

    # -- bytes

    def _sized(self, part: Sized, struct: Struct, scope: Scope) -> None:
        if part.size is None:
            end = self._end(struct, scope)
            self._content(part, (self.dump.stop if end is None else end) - self.dump.at, scope)
            return
        size, line = self._given(part.size, scope)
        if size < 0 and part.nullable:
            return
        end = self._end(struct, scope)
        left = (self.dump.stop if end is None else end) - self.dump.at
        if not 0 <= size <= left:
            reason = f"a {part.title or part.name} of {size} bytes, {max(left, 0)} are left in the {struct.name}"
            if size < 0 or self._bounded:
                raise _Stop(reason, line)
            self._wrong(scope, line, reason)
        self._content(part, size, scope)

    def _content(self, part: Sized, size: int, scope: Scope) -> None:
        dump, name = self.dump, scope.name(part.name)
        content = dump.data[dump.at : min(dump.at + size, dump.stop)]
        scope.places[part.name] = dump.at, dump.at + size
        if not content:
            dump.at += max(size, 0)
            return
        cut = f"cut: {len(content)} of its {size} bytes" if len(content) < size else None
        if part.holds is None:
            text = None if cut or part.opaque else text_of(content)
            dump.take(name, size, text, cut, self.note(scope, part.name, content), part.doc)
            return
        data, note = self.opened(scope, part, content)
        dump.take(name, size, None, cut, note)
        if data is not None:
            self.dump = dump.decompressed(data)
            try:
                self._part(part.holds, scope.struct, scope)
            finally:
                self.dump = dump

    # -- items

    def _repeated(self, part: Repeated, struct: Struct, scope: Scope) -> None:
        dump, items = self.dump, f"{part.of.name}s"
        count, line = (None, None) if part.count is None else self._given(part.count, scope)
        number, first_of_last, readable = 0, len(dump.lines), True
        while dump.left and readable and (count is None or number < count):
            first_of_last = len(dump.lines)
            readable = self._item(part.of, number, scope)
            number += readable
        if not self._bounded:
            if readable and dump.left and number:
                reason = f"it is the last of {count} {items}, and {dump.left} bytes are left after it"
                self._wrong(scope, dump.lines[first_of_last], reason)
            dump.rest(scope.name("left_over"), part.after)
        if readable and count is not None and number != count:
            raise _Stop(f"the {struct.name} ends after {number} of {count} {items}", line)

    def _item(self, of: Struct, number: int, scope: Scope) -> bool:
        """Write one item; returns whether the next one can be located."""
        dump, end, bounded, first = self.dump, self.dump.stop, self._bounded, len(self.dump.lines)
        item = Scope(of, scope.name(f"{of.name}[{number}]"), number, scope)
        try:
            if of.length is not None:
                size, line = self._given(of.length, item)
                if not 0 <= size <= dump.left:
                    raise _Stop(f"a {of.name} of {size} bytes, {dump.left} are left", line)
                dump.stop, self._bounded = dump.at + size, True
            self._parts(of, item)
            if of.length is not None and dump.left:
                raise _Stop(f"{dump.left} bytes are left in the {of.name}")
        except _Stop as stop:
            if bounded:
                raise
            dump.rest(item.name("rest"))
            self._report(stop, item)
            return False
        finally:
            dump.stop, self._bounded = end, bounded
            if number in self.errors and not bounded:
                self._place(number, item, first)
        return True

    # -- checksums

    def _judge(self, covered: Covered, scope: Scope) -> None:
        """Report whether a checksum is right, if its whole span is there."""
        dump, stored = self.dump, scope.values.get(covered.checksum)
        first = scope.place(covered.first, 0) if covered.first else scope.place(covered.after, 1)
        last = scope.place(covered.last, 1)
        if stored is None or first is None or first < 0:
            return
        is_whole = last is not None and last <= max(first, dump.stop)
        if not is_whole and first >= dump.stop:
            return
        end = max(first, dump.stop if last is None else min(last, dump.stop))
        computed = int(checksum(dump.array, first, end - first, _KINDS.index(covered.crc)))
        line, verdict = scope.lines[covered.checksum], UNDECIDED
        if is_whole:
            verdict = "right" if computed == stored else "wrong"
        if verdict == "wrong":
            polynomial = REFLECTED_CASTAGNOLI if covered.crc == "crc32c" else REFLECTED_IEEE
            dump.search_bit(line, first, end, polynomial, stored ^ computed)
        line.error(f"{verdict}: stored {stored}, computed {computed}")
