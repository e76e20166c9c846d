"""What a wire format has besides fixed fields, in five words: varint, sized, repeated, present if, covered by a checksum.

A `Struct` is a table of parts in the order of the bytes: the fields of a layout, and these words.

    HEADER = Struct("header", Sized("key", Varint("key_size")), Sized("value", Varint("value_size")))
    RECORD = Struct("record", Field("attributes", "i8"), Repeated(HEADER, Varint("header_count")), length=Varint("length"))

The table drives the explanation of the format (`core.walk`), its page, the sizes that writers need (`size_of`), and the slow
reader of the tests. Kernels are written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sparkwire.base.wire import Field

Crc = Literal["crc32", "crc32c", "crc32_raw"]


@dataclass(frozen=True)
class Varint:
    """A zigzag varint, the lowest seven bits first."""

    name: str
    doc: str = ""
    bits: Literal[32, 64] = 32
    """of the number; a reader drops those beyond"""


@dataclass(frozen=True)
class Sized:
    """Bytes with a size before them."""

    name: str
    size: Field | Varint | str | None = None
    """the size, directly before the bytes; the name of a field before; None where the bytes go on to the end of the struct"""
    doc: str = ""
    nullable: bool = True
    """whether a negative size is NULL, and not an error"""
    holds: Part | None = None
    """what the bytes have when they are decompressed"""
    opaque: bool = False
    """whether they mean nothing without something else, such as a schema"""
    title: str = ""
    """what a message calls it, where that is not its name"""


@dataclass(frozen=True)
class Repeated:
    """Structs that follow each other."""

    of: Struct
    count: Varint | str | None = None
    """how many, directly before the first; the name of a field before; None where they go on to the end"""
    after: str = ""
    """what bytes after the last one are"""


@dataclass(frozen=True)
class PresentIf:
    """Parts that bits of a field, or a version, bring."""

    field: str
    mask: int
    cases: Mapping[int, Sequence[Part]]
    """by the field's bits under the mask"""
    otherwise: Sequence[Part] | None = ()
    """for other bits; None where they are an error"""
    title: str = ""
    """what a message calls these bits, where others are an error"""

    def of(self, number: int) -> Sequence[Part] | None:
        """The parts that a value of the field brings."""
        return self.cases.get(number & self.mask, self.otherwise)


@dataclass(frozen=True)
class Covered:
    """The span of a checksum. Its ends are parts; of several alternatives, the one that is present."""

    checksum: str
    """the field that stores it"""
    crc: Crc
    last: Sequence[str]
    """where the span ends: at the end of this part"""
    first: Sequence[str] = ()
    """where it begins: at this part"""
    after: Sequence[str] = ()
    """or at the end of this one"""


class Struct:
    """Parts in the order of the bytes.

    title
        what its page calls it, where that is not its name.
    length
        a varint before the struct: its size [bytes].
    ends
        a field of the struct with the size of the whole struct [bytes].
    unclaimed
        what bytes after the last part are, where ``ends`` says more.
    covered
        the spans of its checksums.
    """

    def __init__(
        self,
        name: str,
        *parts: Part,
        title: str = "",
        length: Varint | None = None,
        ends: str = "",
        unclaimed: str = "",
        covered: Sequence[Covered] = (),
    ) -> None:
        self.name = name
        self.parts = parts
        self.title = title or name
        self.length = length
        self.ends = ends
        self.unclaimed = unclaimed
        self.covered = covered


Part: TypeAlias = Field | Varint | Sized | Repeated | PresentIf | Struct


def varint_size(value: int) -> int:
    """Bytes of the shortest zigzag varint of ``value``."""
    return max(1, -(-(value << 1 ^ value >> 63).bit_length() // 7))


def size_of(part: Part, values: Mapping[str, Any]) -> int:
    """How many bytes a part takes that has these values [bytes].

    Numbers are by the names of their fields, bytes by the name of their part: None or missing for NULL. The items of a
    `Repeated` are a sequence of such mappings, by the name of its struct. Sizes and counts follow from these.

        >>> size_of(RECORD, {"header": [{"key": b"k", "value": None}]})
        6
    """
    match part:
        case Field():
            return part.width
        case Varint():
            return varint_size(values.get(part.name, 0))
        case Sized():
            content = values.get(part.name)
            size = -1 if content is None and part.nullable else len(content or b"")
            return _number_size(part.size, size) + max(size, 0)
        case Repeated():
            items = values.get(part.of.name, ())
            return _number_size(part.count, len(items)) + sum(size_of(part.of, item) for item in items)
        case PresentIf():
            present = part.of(values.get(part.field, 0))
            return sum(size_of(each, values) for each in present or ())
        case Struct():
            size = sum(size_of(each, values) for each in part.parts)
            return size if part.length is None else varint_size(size) + size


def _number_size(number: Field | Varint | str | None, value: int) -> int:
    """Of a size or a count, where it is directly before what it counts."""
    if isinstance(number, Field):
        return number.width
    return varint_size(value) if isinstance(number, Varint) else 0
