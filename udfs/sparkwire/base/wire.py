"""Describe a fixed wire layout as one table, from which offsets, widths and ends are computed.

HEADER = Layout(
    "V1",
    Field("version", "i8", "version of the format"),
    Field("header_crc", "u32", "checksum of the header"),
    ...
)
"""

from __future__ import annotations

from typing import Literal, NamedTuple

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
