"""The rules of Avro's schema resolution: which reader's schemas can read which writer's data, and in which units.

A date counts days. A time of day or a timestamp counts milliseconds, microseconds or nanoseconds. Timestamp columns are in
microseconds, but nanoseconds are a BIGINT. A date becomes midnight UTC of that day.
A number without a logical type has no unit. It is read unchanged, as if it had the reader's unit.

Source: Apache Avro 1.12, specification, "Schema Resolution".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from sparkwire.avro.assembler import INT_BOUNDS, LONG_BOUNDS, bounds_of
from sparkwire.avro.schema import RecordField, Schema

_PROMOTIONS: Final = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}

NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
"""numbers that JSON does not have; as strings, they are valid defaults of a float or double"""


_COMBINED: Final = {"fixed": ("bytes",), "enum": ("string",)}
"""promotions that only a schema combined from several versions allows"""
_NANOS: Final = {"millis": 10**6, "micros": 10**3, "nanos": 1}
_DAY: Final = 86_400 * 10**9  # [ns]


def matches(writer: Schema, reader: Schema) -> bool:
    """Whether the reader's schema can read data of the writer's, judged by kinds, names, sizes and units."""
    if reader.kind in ("union", "mixed"):
        return branch_for(writer, reader) is not None
    if "decimal" in (writer.logical, reader.logical):
        return _matches_decimal(writer, reader)
    if reader.combined and reader.kind in _COMBINED.get(writer.kind, ()):
        return True
    if writer.name or reader.name:
        return writer.kind == reader.kind and writer.size == reader.size and _same_name(writer, reader)
    return reader.kind in _PROMOTIONS.get(writer.kind, (writer.kind,)) and agree(writer, reader)


def _matches_decimal(writer: Schema, reader: Schema) -> bool:
    """Whether a decimal can be read: as its number in any encoding, and as bytes without the logical type."""
    if writer.logical == reader.logical:
        return True
    if reader.logical == "decimal" and writer.kind in ("int", "long"):
        return reader.combined and not writer.logical
    same_kind = writer.kind == reader.kind and writer.size == reader.size and _same_name(writer, reader)
    return same_kind and not reader.combined


def _same_name(writer: Schema, reader: Schema) -> bool:
    return not reader.name or writer.simple_name == reader.simple_name or writer.name in reader.aliases


def branch_for(writer: Schema, union: Schema) -> int | None:
    """The branch of a reader's union that reads a datum: the same type if it exists, else the first that matches."""
    tests: Iterable[Callable[[Schema], bool]] = (
        lambda branch: _key(branch) == _key(writer),
        lambda branch: (branch.kind, branch.name) == (writer.kind, writer.name),
        lambda branch: branch.kind == writer.kind and matches(writer, branch),
        lambda branch: matches(writer, branch),
    )
    for test in tests:
        for k, branch in enumerate(union.branches):
            if test(branch):
                return k
    return None


def _key(schema: Schema) -> tuple[object, ...]:
    return schema.kind, schema.name, schema.logical, schema.precision, schema.scale


def sources_of(writer: Schema, reader: Schema) -> dict[str, RecordField]:
    """The reader's field for each field of the writer that the reader selects, by the writer's name."""
    sources: dict[str, RecordField] = {}
    written = {f.name for f in writer.fields}
    for f in reader.fields:
        names = [name for name in (f.name, *f.aliases) if name in written and name not in sources]
        if names:
            sources[names[0]] = f
    return sources


def is_default(value: Any, schema: Schema) -> bool:
    """Whether a JSON value is a valid default of the schema, judged by its kind."""
    kind = schema.kind
    if kind == "union":
        return any(is_default(value, branch) for branch in schema.branches)
    if kind in ("int", "long"):
        return type(value) is int
    if kind in ("float", "double"):
        return type(value) in (int, float) or value in NO_NUMBERS
    types = {"null": type(None), "boolean": bool, "array": list, "map": dict, "record": dict}
    if kind in types:
        return isinstance(value, types[kind])
    if not isinstance(value, str):
        return False
    if kind == "enum":
        return value in schema.symbols
    return kind != "fixed" or len(value) == schema.size


# -- numbers


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
