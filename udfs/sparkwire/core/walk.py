"""The walker: it reads bytes by the table of their format and writes the lines of their explanation.

A table is a `Struct` of `base.grammar`. A format's own walker adds what a table does not have: what a number means (``note``),
how bytes are decompressed (``opened``), and what an error is called (``wrong``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal

from sparkwire.base.grammar import Covered, Crc, Part, PresentIf, Repeated, Sized, Struct, Varint
from sparkwire.base.wire import Field
from sparkwire.core.dump import Dump
from sparkwire.kernels import Bytes, crc32, crc32_raw, crc32c, int64, kernel
from sparkwire.kernels.checksums.one_bit import REFLECTED_CASTAGNOLI, REFLECTED_IEEE
from sparkwire.kernels.varint import varint, varlong

UNDECIDED: Final = "bytes are missing to tell"
"""what is said of a checksum that covers bytes that are not there"""

_KINDS: Final[tuple[Crc, ...]] = ("crc32", "crc32c", "crc32_raw")
_POLYNOMIALS: Final = {"crc32": REFLECTED_IEEE, "crc32c": REFLECTED_CASTAGNOLI, "crc32_raw": REFLECTED_IEEE}


class Scope:
    """What has been read of one struct."""

    def __init__(self, struct: Struct, path: str = "", number: int = 0, parent: Scope | None = None) -> None:
        self.struct = struct
        self.path = path
        """of its lines: ``batch[0].record[3]``"""
        self.number = number
        """of an item: which one it is"""
        self.parent = parent
        self.values: dict[str, int] = {}
        """the numbers, by the names of their fields"""
        self.lines: dict[str, int] = {}
        """the lines of the numbers"""
        self.places: dict[str, tuple[int, int]] = {}
        """where parts begin and end, by what the fields before say: perhaps beyond the bytes"""

    def place(self, parts: Sequence[str], side: Literal[0, 1]) -> int | None:
        """Where the first of several parts that has a place begins (0) or ends (1)."""
        return next((self.places[part][side] for part in parts if part in self.places), None)

    def name(self, part: str) -> str:
        """The name of the line of one of its parts."""
        return f"{self.path}.{part}" if self.path else part


class _Stop(Exception):
    """Nothing says where the next part begins. ``line`` is where that shows, the last one by default; ``text`` may be empty."""

    def __init__(self, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.line = line


@kernel
def checksum(data: Bytes, start: int, size: int, kind: int) -> int:
    """By the index of its kind."""
    if kind == 0:
        return int64(crc32(data, start, size))
    return int64(crc32c(data, start, size)) if kind == 1 else int64(crc32_raw(data, start, size))


class Walker:
    """Writes the lines of structs to ``dump``, each after the one before."""

    SHOWS_EMPTY = False
    """whether bytes of size 0 have a line"""

    def __init__(self, dump: Dump) -> None:
        self.dump = dump
        self.at: int = dump.at
        """where the next part begins, by what the fields before say [bytes]"""
        self._bounded = False
        """whether the current struct has a length before it: nothing in it reaches beyond"""

    # -- what a format says itself

    def note(self, scope: Scope, name: str, number: int | None) -> str | None:
        """What a number means here, None where it is cut."""

    def content_note(self, scope: Scope, part: Sized, content: bytes) -> str | None:
        """What bytes of any content mean here."""
        return part.doc

    def opened(self, scope: Scope, part: Sized, content: bytes) -> tuple[bytes | None, str]:
        """What compressed bytes become, None if that is unknown, and a note."""
        raise NotImplementedError

    def held(self, scope: Scope, part: Part) -> None:
        """What compressed bytes have."""
        self._part(part, scope.struct, scope)

    def wrong(self, scope: Scope, line: int, text: str) -> None:
        """A line says what cannot be."""
        self.dump.amend(line, text)

    # -- structs

    def walk(self, struct: Struct, path: str = "") -> Scope:
        """The lines of a struct; what has been read of it."""
        scope = Scope(struct, path)
        self.at = self.dump.at
        with suppress(_Stop):
            self._parts(struct, scope)
        return scope

    def _parts(self, struct: Struct, scope: Scope) -> None:
        start = self.at
        try:
            for part in struct.parts:
                self._part(part, struct, scope)
        except _Stop as stop:
            if self._bounded:
                raise
            self._say(scope, stop)
        finally:
            end = scope.values.get(struct.ends, None if struct.ends else self.dump.stop - start)
            if end is not None:
                scope.places[struct.name] = start, start + end
            for covered in struct.covered:
                self._judge(covered, scope)
        if struct.ends and end is not None:
            left = start + end - self.dump.at
            if struct.unclaimed and left > 0 and self.dump.left:
                self.dump.take(scope.name("unclaimed"), left, None, struct.unclaimed)
            if self.dump.at != start + end:
                # Parts that would begin inside of another one are not looked for: each byte has one line.
                raise _Stop("")
            self.at = start + end

    def _say(self, scope: Scope, stop: _Stop) -> None:
        if stop.text:
            self.wrong(scope, len(self.dump.lines) - 1 if stop.line is None else stop.line, stop.text)

    def _part(self, part: Part, struct: Struct, scope: Scope) -> None:
        match part:
            case Field():
                self._field(part, scope)
            case Varint():
                self._varint(part, scope, self._whose(struct))
            case Sized():
                self._sized(part, struct, scope)
            case Repeated():
                self._repeated(part, struct, scope)
            case PresentIf():
                self._present(part, struct, scope)
            case Struct():
                self._parts(part, scope)

    def _present(self, part: PresentIf, struct: Struct, scope: Scope) -> None:
        number = scope.values.get(part.field)
        if number is None:
            raise _Stop("")
        present = part.of(number)
        if present is None:
            raise _Stop(f"{part.title} {number & part.mask} is unknown", scope.lines[part.field])
        for each in present:
            self._part(each, struct, scope)

    # -- numbers

    def _field(self, field: Field, scope: Scope) -> int | None:
        dump = self.dump
        scope.places[field.name] = self.at, self.at + field.width
        self.at += field.width
        if not dump.left:
            if self._bounded:
                raise _Stop(f"it has no {field.name}")
            return None
        number = dump.peek(field) if dump.left >= field.width else None
        scope.lines[field.name] = len(dump.lines)
        dump.number(field, self.note(scope, field.name, number), field.doc, name=scope.name(field.name))
        if number is not None:
            scope.values[field.name] = number
        return number

    def _varint(self, part: Varint, scope: Scope, whose: str = "") -> int:
        read = varint if part.bits == 32 else varlong
        number, after = self.dump.peek_varint(read)
        if after < 0:
            raise _Stop(f"no {whose}{part.name}")
        scope.values[part.name] = number
        scope.lines[part.name] = len(self.dump.lines)
        note = self.note(scope, part.name, number)
        self.dump.take(scope.name(part.name), after - self.dump.at, str(number), note, part.doc)
        self.at = self.dump.at
        return number

    def _number(self, part: Field | Varint | str, scope: Scope, whose: str = "") -> tuple[str, int]:
        """A size or a count, and its name."""
        if isinstance(part, Varint):
            return part.name, self._varint(part, scope, whose)
        name = part if isinstance(part, str) else part.name
        number = scope.values.get(part) if isinstance(part, str) else self._field(part, scope)
        if number is None:
            raise _Stop("")
        return name, number

    def _whose(self, struct: Struct) -> str:
        """What a message says before the name of a part of an item that is in another item."""
        return f"{struct.name}'s " if self._bounded and struct.length is None else ""

    # -- bytes

    def _sized(self, part: Sized, struct: Struct, scope: Scope) -> None:
        if part.size is None:
            end = scope.values.get(struct.ends)
            size = self.dump.left if end is None else end - self.dump.at
            if size > 0 and self.at == self.dump.at:
                self._content(part, size, scope)
            return
        name, size = self._number(part.size, scope, self._whose(struct))
        if size < 0 and part.nullable:
            return
        wrong = self._trouble(part, size, struct, scope)
        if wrong and self._bounded:
            raise _Stop(wrong)
        if size < 0:
            raise _Stop(wrong, scope.lines[name])
        if wrong:
            self.wrong(scope, scope.lines[name], wrong)
        self._content(part, size, scope)

    def _trouble(self, part: Sized, size: int, struct: Struct, scope: Scope) -> str:
        """Why bytes of such a size cannot be here, "" where they can."""
        title = part.title or part.name
        end = scope.values.get(struct.ends)
        if end is not None:
            fits = size >= 0 and self.at + size <= end
            return "" if fits else f"a {title} of {size} bytes does not end within the {struct.name}"
        left = self.dump.left
        return "" if 0 <= size <= left else f"a {self._whose(struct)}{title} of {size} bytes, {left} are left"

    def _content(self, part: Sized, size: int, scope: Scope) -> None:
        dump = self.dump
        scope.places[part.name] = self.at, self.at + size
        self.at += size
        if part.size is not None and not (dump.left and (size or self.SHOWS_EMPTY)):
            return
        content = dump.data[dump.at : min(dump.at + size, dump.stop)]
        if part.opaque:
            dump.take(scope.name(part.name), size, None, part.doc)
            return
        if part.holds is None:
            dump.content(scope.name(part.name), size, self.content_note(scope, part, content))
            return
        data, note = self.opened(scope, part, content)
        dump.take(scope.name(part.name), size, None, note)
        if data is not None:
            at, self.dump, self.at = self.at, dump.decompressed(data), 0
            self.held(scope, part.holds)
            self.dump, self.at = dump, at

    # -- items

    def _repeated(self, part: Repeated, struct: Struct, scope: Scope) -> None:
        dump, of, count = self.dump, part.of, None
        line = len(dump.lines) - 1
        if part.count is not None:
            name, count = self._number(part.count, scope)
            line = scope.lines[name]
        if self._bounded:
            self._all_items(of, struct, count or 0, scope)
            return
        number, last, readable = 0, line, True
        while dump.left and (count is None or number < count) and readable:
            last = len(dump.lines)
            readable = self.item(of, number, scope)
            number += readable
        if readable and count is not None and number < count:
            self.wrong(scope, line, f"the bytes end after {number} of {count} {of.name}s")
        elif readable and dump.left and number:
            self.wrong(scope, last, f"it is the last of {count} {of.name}s, and {dump.left} bytes are left after it")
        dump.rest(scope.name("left_over"), part.after)

    def _all_items(self, of: Struct, struct: Struct, count: int, scope: Scope) -> None:
        """Items in a struct with a length, which has all of them."""
        if count < 0:
            raise _Stop(f"{count} {of.name}s")
        for number in range(count):
            if not self.dump.left:
                raise _Stop(f"the {struct.name} ends after {number} of {count} {of.name}s")
            self._parts(of, Scope(of, scope.name(f"{of.name}[{number}]"), number, scope))

    def item(self, of: Struct, number: int, scope: Scope) -> bool:
        """One item; whether the next can be found."""
        dump, end = self.dump, self.dump.stop
        item = Scope(of, scope.name(f"{of.name}[{number}]"), number, scope)
        assert of.length is not None
        size, after = dump.peek_varint(varint)
        if after < 0:
            dump.take(item.name(of.length.name), dump.left, None, "no varint")
            self.wrong(item, len(dump.lines) - 1, "no varint")
            return False
        self._varint(of.length, item)
        if not 0 <= size <= dump.left:
            self.wrong(item, len(dump.lines) - 1, f"a {of.name} of {size} bytes, {dump.left} are left")
            return False
        dump.stop, self._bounded = dump.at + size, True
        try:
            self._parts(of, item)
            if dump.left:
                raise _Stop(f"{dump.left} bytes are left in the {of.name}")
        except _Stop as stop:
            self._say(item, stop)
            dump.rest(item.name("rest"))
            return False
        finally:
            dump.stop, self._bounded = end, False
        return True

    # -- checksums

    def _judge(self, covered: Covered, scope: Scope) -> None:
        """Say of a checksum whether it is right, where all that it covers is there."""
        dump, stored = self.dump, scope.values.get(covered.checksum)
        first = scope.place(covered.first, 0) if covered.first else scope.place(covered.after, 1)
        last = scope.place(covered.last, 1)
        stop = dump.stop
        if stored is None or first is None or first < 0 or (first >= stop and (last is None or last > first)):
            return
        end = max(first, stop if last is None else min(last, stop))
        computed = int(checksum(dump.array, first, end - first, _KINDS.index(covered.crc)))
        line = scope.lines[covered.checksum]
        verdict = "right" if computed == stored else "wrong"
        if last is None or last > max(first, stop):
            verdict = UNDECIDED
        elif verdict == "wrong":
            dump.mismatch(line, first, end, _POLYNOMIALS[covered.crc], stored ^ computed)
        dump.amend(line, f"{verdict}: stored {stored}, computed {computed}")
