"""The walker: it reads bytes by the table of their format and writes the lines of their explanation.

A table is a `Struct` of `base.grammar`. A format's own walker adds what a table does not have: the meaning of values (``note``),
decompression (``opened``), and the fields of error codes (``PLACES``, ``SIZE_ERRORS``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sparkwire.base.grammar import Covered, Crc, Part, PresentIf, Repeated, Sized, Struct, Varint
from sparkwire.base.wire import Field
from sparkwire.core.dump import Dump, Line, text_of
from sparkwire.kernels import Bytes, crc32, crc32_raw, crc32c, int64, kernel
from sparkwire.kernels.checksums.one_bit import REFLECTED_CASTAGNOLI, REFLECTED_IEEE
from sparkwire.kernels.varint import varint, varlong

_KINDS: Final[tuple[Crc, ...]] = ("crc32", "crc32c", "crc32_raw")


@dataclass
class Scope:
    """What the walker has read of one struct."""

    struct: Struct
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
        """The name of the line of one of its parts."""
        return f"{self.path}.{part}" if self.path else part


class _Stop(Exception):
    """The next part cannot be located. The arguments are those of `Walker._wrong`: none if the reason is reported already."""


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

    # -- what a format adds

    def note(self, scope: Scope, name: str, value: int | bytes) -> str | None:
        """The meaning of a number or of bytes."""

    def opened(self, scope: Scope, content: bytes) -> tuple[bytes | None, str]:
        """The decompressed bytes, None if they are unknown, and a note."""
        raise NotImplementedError

    # -- errors

    def _wrong(self, scope: Scope, reason: str = "", part: str = "") -> None:
        """Report a contradiction, if any, at the line of a number, by default at the last line."""
        if not reason:
            return
        if not self.dump.lines:
            self.dump.take(scope.struct.name, 0)
        row = min(self.errors, default=0) if scope.row is None else scope.row
        code = f"{self.errors.pop(row)}: " if self.errors.get(row) in self.SIZE_ERRORS else ""
        line = scope.lines[part] if part else self.dump.lines[-1]
        line.error(f"{code}{reason}")

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

    def walk(self, struct: Struct, path: str = "") -> None:
        """Write the lines of a struct."""
        scope, first = Scope(struct, path), len(self.dump.lines)
        try:
            self._struct(struct, scope)
        except _Stop as stop:
            self._wrong(scope, *stop.args)
        for row in list(self.errors):
            if not self._place(row, scope, first):
                self.dump.lines[first].error(f"{self.errors.pop(row)}: its field is not here")

    def _struct(self, struct: Struct, scope: Scope) -> None:
        dump, outer, bound = self.dump, self._start, self.dump.stop
        self._start, stopped = dump.at, False
        try:
            for part in struct.parts:
                self._part(part, struct, scope)
                if scope.row is not None:
                    # An item does not reach into the next one.
                    dump.stop = min(dump.stop, max(self._end(struct, scope), dump.at))
        except _Stop as stop:
            if struct.ends not in scope.values:
                raise
            self._wrong(scope, *stop.args)
            stopped = True
        finally:
            end = self._end(struct, scope)
            if not struct.ends or struct.ends in scope.values:
                scope.ends[struct.name] = end
            dump.at = min(dump.at, dump.stop)
            self._start, dump.stop = outer, bound
            for covered in struct.covered:
                self._judge(covered, scope)
        if struct.ends:
            self._finish(struct, scope, end, stopped)

    def _end(self, struct: Struct, scope: Scope) -> int:
        """Where the current struct ends by its own field; without one, where its bytes end."""
        size = scope.values.get(struct.ends)
        if size is None:
            return self.dump.stop
        return size + (scope.ends[struct.ends] if struct.counts_rest else self._start)

    def _finish(self, struct: Struct, scope: Scope, end: int, stopped: bool) -> None:
        """Go to the stated end of a struct; `_Stop` if its parts or its bytes do not end there."""
        dump, size, reason = self.dump, scope.values[struct.ends], ""
        left, missing = end - dump.at, end - dump.stop
        if missing > 0:
            reason = f"the {struct.name} has {size} bytes, {size - missing} are here"
        elif left < 0 and not stopped:
            reason = f"the {struct.name} ends before its parts"
        elif left > 0 and not (stopped or struct.unclaimed):
            reason = f"{left} bytes are left in the {struct.name}"
        if struct.unclaimed and left > 0 and dump.left:
            dump.take(scope.name("unclaimed"), left, None, struct.unclaimed)
        if reason or dump.at != end or (stopped and not struct.unclaimed):
            # Parts that would begin inside of another one are not looked for: each byte has one line.
            raise _Stop(reason, struct.ends)

    def _part(self, part: Part, struct: Struct, scope: Scope) -> None:
        match part:
            case Field() | Varint():
                self._number(part, scope)
            case Sized():
                self._sized(part, struct, scope)
            case Repeated():
                self._repeated(part, scope)
            case PresentIf():
                for each in self._present(part, scope):
                    self._part(each, struct, scope)
            case Struct():
                self._struct(part, scope)

    def _present(self, part: PresentIf, scope: Scope) -> Sequence[Part]:
        number = scope.values.get(part.field)
        if number is None:
            raise _Stop
        present = part.of(number)
        if present is None:
            raise _Stop(f"{part.title} {number & part.mask} is unknown", part.field)
        return present

    # -- numbers

    def _number(self, part: Field | Varint, scope: Scope) -> None:
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
        scope.ends[part.name] = end
        if end < 0 or not dump.left:
            raise _Stop(f"the {scope.struct.name} has no {part.name}")
        if end > dump.stop:
            stop = _Stop(f"cut: {dump.left} of its {end - begin} bytes")
            dump.take(name, end - begin, None, part.doc)
            raise stop
        line = dump.take(name, end - begin, text, self.note(scope, part.name, number), part.doc)
        scope.values[part.name], scope.lines[part.name] = number, line

    def _given(self, part: Field | Varint | str, scope: Scope) -> tuple[int, str]:
        """A size or a count, and its name."""
        name = part if isinstance(part, str) else part.name
        if not isinstance(part, str):
            self._number(part, scope)
        return scope.values[name], name

    # -- bytes

    def _sized(self, part: Sized, struct: Struct, scope: Scope) -> None:
        if part.size is None:
            self._content(part, self._end(struct, scope) - self.dump.at, scope)
            return
        size, name = self._given(part.size, scope)
        if size < 0 and part.nullable:
            return
        left, is_cut = max(self._end(struct, scope) - self.dump.at, 0), not 0 <= size <= self.dump.left
        if not 0 <= size <= left:
            reason = f"a {part.title or part.name} of {size} bytes, {left} are left in the {struct.name}"
            self._wrong(scope, reason, name)
        self._content(part, size, scope)
        if is_cut:
            raise _Stop

    def _content(self, part: Sized, size: int, scope: Scope) -> None:
        dump, name = self.dump, scope.name(part.name)
        content = dump.data[dump.at : min(dump.at + size, dump.stop)]
        scope.ends[part.name] = dump.at + size
        if not content:
            dump.at += max(size, 0)
            return
        cut = f"cut: {len(content)} of its {size} bytes" if len(content) < size else None
        if part.holds is None:
            text = None if cut or part.opaque else text_of(content)
            dump.take(name, size, text, cut, self.note(scope, part.name, content), part.doc)
            return
        data, note = self.opened(scope, content)
        dump.take(name, size, None, cut, note)
        if data is not None:
            self.dump = dump.decompressed(data)
            try:
                self._part(part.holds, scope.struct, scope)
            finally:
                self.dump = dump

    # -- items

    def _repeated(self, part: Repeated, scope: Scope) -> None:
        dump, items, number = self.dump, f"{part.of.name}s", 0
        count, name = (None, "") if part.count is None else self._given(part.count, scope)
        while dump.left and (count is None or number < count):
            self._item(part.of, number, scope)
            number += 1
        if dump.left and part.after:
            if number:
                self._wrong(scope, f"{dump.left} bytes are left after {count} {items}", name)
            dump.rest(scope.name("left_over"), part.after)
        if count is not None and number != count:
            raise _Stop(f"the {scope.struct.name} ends after {number} of {count} {items}", name)

    def _item(self, of: Struct, number: int, scope: Scope) -> None:
        """Write one item; `_Stop` if the next one cannot be located."""
        dump, first = self.dump, len(self.dump.lines)
        row = number if scope.row is None else scope.row
        item = Scope(of, scope.name(f"{of.name}[{number}]"), scope, row)
        try:
            self._struct(of, item)
        except _Stop as stop:
            dump.rest(item.name("rest"))
            self._wrong(item, *stop.args)
            raise _Stop from None
        finally:
            if row in self.errors and scope.row is None:
                self._place(row, item, first)

    # -- checksums

    def _judge(self, covered: Covered, scope: Scope) -> None:
        """Report whether a checksum is right, if its whole span is there."""
        dump, stored = self.dump, scope.values.get(covered.checksum)
        first, last = scope.end_of(covered.after or [covered.checksum]), scope.end_of(covered.last)
        if stored is None or min(first, last) < 0 or last > max(first, dump.stop):
            return
        end = max(first, last)
        computed = int(checksum(dump.array, first, end - first, _KINDS.index(covered.crc)))
        line, is_right = scope.lines[covered.checksum], computed == stored
        line.error(f"{'right' if is_right else 'wrong'}: stored {stored}, computed {computed}")
        if not is_right:
            polynomial = REFLECTED_CASTAGNOLI if covered.crc == "crc32c" else REFLECTED_IEEE
            dump.search_bit(line, first, end, polynomial, stored ^ computed)
