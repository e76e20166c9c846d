"""A slow and simple reader of any format by its table. It shares no code with the package's walker or with the kernels.

It reads the available bytes, and leaves out truncated numbers and bytes. It stops if the start of the next part is unknown.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

from crc32c import crc32c

from sparkwire.base.grammar import Field, Part, PresentIf, Repeated, Sized, Struct, Varint

Values = dict[str, Any]
Unpack = Callable[[Values, bytes], bytes]

CRCS: dict[str, Callable[[bytes], int]] = {
    "crc32": zlib.crc32,
    "crc32c": crc32c,
    "crc32_raw": lambda data: zlib.crc32(data, 0xFFFFFFFF) ^ 0xFFFFFFFF,
}


class Ends(Exception):
    """The start of the next part is unknown."""


class Read:
    """The values of one struct."""

    def __init__(self, parent: Read | None = None) -> None:
        self.parent = parent
        self.values: Values = {}
        self.ends: dict[str, int] = {}
        """the expected end of each part"""
        self.checks: dict[str, bool] = {}
        """whether each checksum is correct, if all its bytes exist"""
        self.wrong = False
        """whether a size, a count or a kind contradicts the bytes"""


class Reader:
    """Reads ``data[at:stop]``; ``unpack`` decompresses."""

    def __init__(
        self, data: bytes, little: bool = False, at: int = 0, stop: int | None = None, unpack: Unpack | None = None
    ):
        self.data, self.at, self.stop = data, at, len(data) if stop is None else stop
        self.order: Any = "little" if little else "big"
        self.unpack = unpack

    def read(self, struct: Struct, read: Read | None = None) -> Read:
        read = Read() if read is None else read
        start = self.at
        try:
            for part in struct.parts:
                self.part(part, struct, read)
                if isinstance(part, Varint) and part.name == struct.ends:
                    if not 0 <= read.values[part.name] <= self.stop - self.at:
                        raise Ends
                    self.stop = self.at + read.values[part.name]
        except Ends:
            if self.is_item(struct):
                raise
        if not struct.ends or self.is_item(struct):
            read.ends[struct.name] = self.stop
        elif struct.ends in read.values:
            end = (read.ends[struct.ends] if struct.counts_rest else start) + read.values[struct.ends]
            read.ends[struct.name] = end
            read.wrong |= self.at > end
            fixed = [read.ends[part.name] for part in struct.parts if isinstance(part, Field)]
            self.at = end if end >= max(fixed, default=end) else -1
        for covered in struct.covered:
            begin, end = self.end(read, covered.after or [covered.checksum]), self.end(read, covered.last)
            if (
                None not in (begin, end)
                and covered.checksum in read.values
                and begin >= 0
                and end <= max(begin, self.stop)
            ):
                computed = CRCS[covered.crc](self.data[begin : max(begin, end)])
                read.checks[covered.checksum] = computed == read.values[covered.checksum]
        return read

    def is_item(self, struct: Struct) -> bool:
        """Whether the struct begins with its size: no part of it reaches beyond."""
        return isinstance(struct.parts[0], Varint) and struct.parts[0].name == struct.ends

    def end(self, read: Read, names: Sequence[str]) -> Any:
        return next((read.ends[name] for name in names if name in read.ends), None)

    def part(self, part: Part, struct: Struct, read: Read) -> None:
        if self.at < 0:
            raise Ends
        if isinstance(part, Struct):
            self.read(part, read)
        elif isinstance(part, PresentIf):
            number = read.values.get(part.field)
            if number is None:
                raise Ends
            present = part.cases.get(number & part.mask, part.otherwise)
            if present is None:
                read.wrong = True
                raise Ends
            for each in present:
                self.part(each, struct, read)
        elif isinstance(part, Sized):
            self.sized(part, struct, read)
        elif isinstance(part, Repeated):
            self.repeated(part, struct, read)
        else:
            self.number(part, read)

    def take(self, name: str, size: int, read: Read) -> bytes | None:
        """Bytes, if all of them exist."""
        at, self.at = self.at, self.at + size
        read.ends[name] = self.at
        return self.data[at : self.at] if self.at <= self.stop else None

    def number(self, part: Field | Varint, read: Read) -> int:
        """Read a number. A truncated number stops the reader only if its width is unknown."""
        if isinstance(part, Field):
            raw = self.take(part.name, part.width, read)
            if raw is None:
                return 0
            is_bytes = part.wire.startswith("bytes")
            read.values[part.name] = raw if is_bytes else int.from_bytes(raw, self.order, signed=part.wire[0] == "i")
            return 0 if is_bytes else int(read.values[part.name])
        value = shift = 0
        longest = 5 if part.bits == 32 else 10
        for byte in self.data[self.at : min(self.at + longest, self.stop)]:
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                value &= (1 << part.bits) - 1
                read.values[part.name] = value >> 1 ^ -(value & 1)
                read.ends[part.name] = self.at
                return int(read.values[part.name])
        read.wrong = True
        raise Ends

    def before(self, part: Field | Varint | str, read: Read) -> int:
        """Read a size or a count before a part."""
        name = part if isinstance(part, str) else part.name
        if not isinstance(part, str):
            self.number(part, read)
        if name not in read.values:
            raise Ends
        return int(read.values[name])

    def sized(self, part: Sized, struct: Struct, read: Read) -> None:
        if part.size is None:
            if struct.ends and struct.ends not in read.values:
                raise Ends
            end = self.stop
            if struct.ends:
                end = read.values[struct.ends] + (read.ends[struct.ends] if struct.counts_rest else 0)
            size = end - self.at
            if size < 0:
                read.wrong = True
                raise Ends
        else:
            size = self.before(part.size, read)
        if size < 0:
            if part.nullable:
                read.values[part.name] = None
                return
            read.wrong = True
            raise Ends
        content = self.take(part.name, size, read)
        if content is None:
            read.wrong = True
        elif part.holds is not None and self.unpack is not None:
            Reader(self.unpack(read.values, content), unpack=self.unpack).part(part.holds, struct, read)
        else:
            read.values[part.name] = content

    def repeated(self, part: Repeated, struct: Struct, read: Read) -> None:
        """Read items up to one that cannot be read."""
        count = None if part.count is None else self.before(part.count, read)
        if count is not None and count < 0:
            read.wrong = True
            raise Ends
        items = read.values.setdefault(part.of.name, [])
        while len(items) != count and (count is not None or self.at < self.stop):
            item = Read(read)
            stop = self.stop
            try:
                self.read(part.of, item)
                if item.wrong or (self.is_item(part.of) and self.at != self.stop):
                    raise Ends
            except Ends:
                read.wrong = True
                raise
            finally:
                self.stop = stop
            items.append(item.values)
        if self.at != self.stop and part.after:
            read.wrong = True
