"""From a writer's unit and scale to a column's: what a number is multiplied or divided by, and which numbers can be.

A date is a number of days, a time of day and a timestamp one of milliseconds, microseconds or nanoseconds. Columns of timestamps
are in microseconds, but for nanoseconds, which are a BIGINT. A date becomes the instant of its midnight in UTC.
A number without a logical type has no unit: it is taken for one of the reader's, and read as the number that it is.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sparkwire.avro.assembler import INT_BOUNDS, LONG_BOUNDS, bounds_of
from sparkwire.avro.schema import Schema

_NANOS: Final = {"millis": 10**6, "micros": 10**3, "nanos": 1}
_DAY: Final = 86_400 * 10**9  # [ns]


class Conversion(NamedTuple):
    """What a writer's number becomes: times ``factor``, or by ``divisor``, from ``lowest`` to ``highest``."""

    lowest: int
    highest: int
    factor: int = 1
    divisor: int = 1


def family(logical: str) -> str:
    """What a number of this logical type is: a date, a time, an instant, a local time; nothing known without one."""
    return logical.partition("-")[0].replace("timestamp", "instant")


def agree(writer: Schema, reader: Schema) -> bool:
    """Whether a number of the one has a meaning as one of the other."""
    if not writer.logical or not reader.logical:
        return True
    wrote, read = family(writer.logical), family(reader.logical)
    return wrote == read or (wrote == "date" and read in ("instant", "local"))


def conversion(writer: Schema, reader: Schema) -> Conversion:
    """Of an int or long read as an int or long; the two ``agree``."""
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
