"""Convert numbers from a writer's unit and scale to a column's: factor or divisor, and the allowed range.

A date counts days. A time of day or a timestamp counts milliseconds, microseconds or nanoseconds. Timestamp columns are in
microseconds, but nanoseconds are a BIGINT. A date becomes midnight UTC of that day.
A number without a logical type has no unit. It is read unchanged, as if it had the reader's unit.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sparkwire.avro.assembler import INT_BOUNDS, LONG_BOUNDS, bounds_of
from sparkwire.avro.schema import Schema

_NANOS: Final = {"millis": 10**6, "micros": 10**3, "nanos": 1}
_DAY: Final = 86_400 * 10**9  # [ns]


class Conversion(NamedTuple):
    """Multiply a writer's number by ``factor`` or divide it by ``divisor``; it must be from ``lowest`` to ``highest``."""

    lowest: int
    highest: int
    factor: int = 1
    divisor: int = 1


def family(logical: str) -> str:
    """The kind of a logical type: date, time, instant or local time; empty without a logical type."""
    return logical.partition("-")[0].replace("timestamp", "instant")


def agree(writer: Schema, reader: Schema) -> bool:
    """Whether a number of the writer's type has a meaning in the reader's type."""
    if not writer.logical or not reader.logical:
        return True
    wrote, read = family(writer.logical), family(reader.logical)
    return wrote == read or (wrote == "date" and read in ("instant", "local"))


def conversion(writer: Schema, reader: Schema) -> Conversion:
    """The conversion of an int or long to an int or long. The two schemas must ``agree``."""
    of_kind = INT_BOUNDS if writer.kind == "int" else LONG_BOUNDS
    read = bounds_of(reader)
    if not writer.logical or not reader.logical:
        return Conversion(max(read.lowest, of_kind[0]), min(read.highest, of_kind[1]), read.factor)
    wrote = bounds_of(writer)
    unit, column_unit = _unit(writer.logical), _unit(reader.logical) // read.factor
    lowest, highest = read.lowest * read.factor, read.highest * read.factor
    if unit >= column_unit:
        factor = unit // column_unit
        return Conversion(max(wrote.lowest, -(-lowest // factor)), min(wrote.highest, highest // factor), factor)
    divisor = column_unit // unit
    return Conversion(max(wrote.lowest, lowest * divisor), min(wrote.highest, highest * divisor), 1, divisor)


def _unit(logical: str) -> int:
    """[ns]"""
    return _NANOS.get(logical.rpartition("-")[2], _DAY)
