"""Describe a wire format in tables.

A `Layout` is a table of fixed fields, from which offsets, widths and ends are computed.

    HEADER = Layout(
        "V1",
        Field("version", "i8", "version of the format"),
        Field("header_crc", "u32", "checksum of the header"),
        ...
    )

Five words describe the variable parts: varint, sized, repeated, present if, covered by a checksum.

A `Struct` is a table of parts in the order of the bytes: the fields of a layout, and these words.

    HEADER = Struct("header", Sized("key", Varint("key_size")), Sized("value", Varint("value_size")))
    RECORD = Struct("record", Varint("length"), Repeated(HEADER, Varint("header_count")), ends="length", counts_rest=True)

The table drives the explanation of the format (`core.explain`), its page, the sizes that writers need (`size_of`), and the slow
reader of the tests. Kernels are written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Wire = Literal["i8", "u8", "i16", "u16", "i32", "u32", "i64", "bytes4", "bytes8", "bytes16"]

# The numpy and SQL type of each wire type. An unsigned number has the next wider type, which holds all its values.
_TYPES: dict[Wire, tuple[type[np.generic], str]] = {
    "i8": (np.int8, "TINYINT"),
    "u8": (np.int16, "SMALLINT"),
    "i16": (np.int16, "SMALLINT"),
    "u16": (np.int32, "INT"),
    "i32": (np.int32, "INT"),
    "u32": (np.int64, "BIGINT"),
    "i64": (np.int64, "BIGINT"),
    "bytes4": (np.uint8, "BINARY"),
    "bytes8": (np.uint8, "BINARY"),
    "bytes16": (np.uint8, "BINARY"),
}
_WIDTHS: dict[Wire, int] = {
    "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "bytes4": 4, "bytes8": 8, "bytes16": 16,
}  # fmt: skip


class Field(NamedTuple):
    """A field of a fixed layout: its name, its type on the wire, its meaning."""

    name: str
    wire: Wire
    doc: str = ""
    """description without a full stop; if another layout also has the field, only the differences"""

    @property
    def width(self) -> int:
        """The width [bytes]."""
        return _WIDTHS[self.wire]

    @property
    def dtype(self) -> npt.DTypeLike:
        """The numpy type that holds every value of this field."""
        return _TYPES[self.wire][0]

    @property
    def sql(self) -> str:
        """The SQL type that holds every value of this field."""
        return _TYPES[self.wire][1]

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest number that the field holds."""
        bits = 8 * self.width
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if self.wire.startswith("i") else (0, (1 << bits) - 1)


class Placed(NamedTuple):
    """A field and its offset in its layout."""

    field: Field
    offset: int

    @property
    def end(self) -> int:
        """The offset of the field's end [bytes]."""
        return self.offset + self.field.width

    def read(self, data: bytes) -> int:
        """The number in ``data``, big-endian."""
        return int.from_bytes(data[self.offset : self.end], "big", signed=self.field.wire.startswith("i"))


class Layout:
    """Consecutive fields, beginning with the first byte of a row."""

    def __init__(self, name: str, *fields: Field) -> None:
        self.name = name
        self.fields = fields
        """the consecutive fields, without overlays"""
        self.places: dict[str, Placed] = {}
        offset = 0
        for field in fields:
            self.places[field.name] = Placed(field, offset)
            offset += field.width
        self.size = offset
        """the size of all fields [bytes]"""

    def overlay(self, at: str, field: Field) -> Layout:
        """Add an alternative interpretation of the bytes that begin at field ``at``. Returns the layout."""
        self.places[field.name] = Placed(field, self.places[at].offset)
        return self

    def __getitem__(self, name: str) -> Placed:
        return self.places[name]

    def get(self, name: str) -> Placed | None:
        return self.places.get(name)


def described(name: str, *layouts: Layout) -> tuple[str, str]:
    """SQL type and doc of a field in several layouts: the widest type; the first doc with the additions of the others."""
    fields = [(layout.name, placed.field) for layout in layouts if (placed := layout.get(name))]
    first, *others = [
        field.doc if k == 0 else f"of {title} {field.doc}" for k, (title, field) in enumerate(fields) if field.doc
    ]
    widest = max((field for _, field in fields), key=lambda field: field.width)
    return widest.sql, "; ".join([first, *others]) + "."


# -- what is variable

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
