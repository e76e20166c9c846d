"""Describe the variable parts of a wire format in five words: varint, sized, repeated, present if, covered by a checksum.

A `Struct` is a table of parts in the order of the bytes: the fields of a layout, and these words.

    HEADER = Struct("header", Sized("key", Varint("key_size")), Sized("value", Varint("value_size")))
    RECORD = Struct("record", Varint("length"), Repeated(HEADER, Varint("header_count")), ends="length", counts_rest=True)

The table drives the explanation of the format (`core.explain`), its page, the sizes that writers need (`size_of`), and the slow
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
    """width of the number; a reader drops higher bits"""


@dataclass(frozen=True)
class Sized:
    """Bytes with a size before them."""

    name: str
    size: Field | Varint | str | None = None
    """the size directly before the bytes, or the name of an earlier field; None if the bytes extend to the end of the struct"""
    doc: str = ""
    nullable: bool = True
    """whether a negative size means NULL; otherwise it is an error"""
    holds: Part | None = None
    """the contents of the bytes after decompression"""
    opaque: bool = False
    """whether only additional data, such as a schema, can explain the bytes"""
    title: str = ""
    """its name in messages, if that differs from ``name``"""


@dataclass(frozen=True)
class Repeated:
    """Consecutive structs."""

    of: Struct
    count: Varint | str | None = None
    """the count directly before the first struct, or the name of an earlier field; None if they extend to the end"""
    after: str = ""
    """description of bytes after the last struct"""


@dataclass(frozen=True)
class PresentIf:
    """Parts that are present for certain bits of a field, or for a version."""

    field: str
    mask: int
    cases: Mapping[int, Sequence[Part]]
    """the parts by the field's value under the mask"""
    otherwise: Sequence[Part] | None = ()
    """the parts for other values; None if other values are an error"""
    title: str = ""
    """the name of these bits in messages about invalid values"""

    def of(self, number: int) -> Sequence[Part] | None:
        """The parts that are present for a value of the field."""
        return self.cases.get(number & self.mask, self.otherwise)


@dataclass(frozen=True)
class Covered:
    """The span that a checksum covers. Parts mark its ends; of several parts, the one that is present counts."""

    checksum: str
    """the field that stores it"""
    crc: Crc
    last: Sequence[str]
    """the part with which the span ends"""
    after: Sequence[str] = ()
    """the part after which the span begins, by default the checksum itself"""


class Struct:
    """A sequence of parts, in the order of the bytes.

    title
        its title on the format's page, if that differs from its name.
    ends
        a number of the struct with the size of the whole struct [bytes].
    counts_rest
        whether ``ends`` has only the size of the bytes after it.
    unclaimed
        description of bytes after the last part, if ``ends`` gives a larger size; otherwise, such bytes are an error.
    covered
        the spans that its checksums cover.
    """

    def __init__(
        self,
        name: str,
        *parts: Part,
        title: str = "",
        ends: str = "",
        counts_rest: bool = False,
        unclaimed: str = "",
        covered: Sequence[Covered] = (),
    ) -> None:
        self.name = name
        self.parts = parts
        self.title = title or name
        self.ends = ends
        self.counts_rest = counts_rest
        self.unclaimed = unclaimed
        self.covered = covered


Part: TypeAlias = Field | Varint | Sized | Repeated | PresentIf | Struct


def varint_size(value: int) -> int:
    """The size of the shortest zigzag varint of ``value`` [bytes]."""
    return max(1, -(-(value << 1 ^ value >> 63).bit_length() // 7))


def size_of(part: Part, values: Mapping[str, Any]) -> int:
    """The size of a part with these values [bytes].

    The keys are the names of number fields and of parts with bytes. NULL is None or a missing key. The items of a `Repeated`
    are a sequence of such mappings; the key is the name of its struct. The function computes sizes and counts itself.

        >>> size_of(RECORD, {"header": [{"key": b"k", "value": None}]})
        5
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
            length, *rest = part.parts
            if not isinstance(length, Varint) or length.name != part.ends:
                return sum(size_of(each, values) for each in part.parts)
            size = sum(size_of(each, values) for each in rest)
            return varint_size(size) + size


def _number_size(number: Field | Varint | str | None, value: int) -> int:
    """The size of a size or count [bytes]; 0 if it is not directly before what it counts."""
    if isinstance(number, Field):
        return number.width
    return varint_size(value) if isinstance(number, Varint) else 0
