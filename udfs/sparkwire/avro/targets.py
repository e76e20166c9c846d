"""Map a reader's schema to columns: the types of Spark's `from_avro`, and the slots in which they are built.

null                       VOID
boolean, int, long         BOOLEAN, INT, BIGINT; date DATE; timestamp-millis and -micros TIMESTAMP, local- TIMESTAMP_NTZ;
                           of other logical types the number
float, double              FLOAT, DOUBLE
string, enum               STRING
bytes, fixed               BINARY; decimal DECIMAL(precision, scale)
record                     STRUCT
array, map                 ARRAY, MAP<STRING, …>
union with null            the type without null; null is NULL
union of int and long      BIGINT, if neither has a logical type; of float and double DOUBLE
other unions               STRUCT<member0 …, member1 …>: only the member of the datum's branch is not NULL
decimal beyond 38 digits   STRING
versions that are mixed    STRING, the text of each as JSON has it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa

from sparkwire.avro.readers import DIGITS
from sparkwire.avro.schema import Schema
from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.core.names import distinct_names
from sparkwire.errors import SchemaError

MAX_COLUMNS: Final = 50_000
"""upper limit: a short schema can use its records so often that the columns exceed any memory"""

_SCALARS: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_WIDE: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


class Slot(NamedTuple):
    """A buffer with ``width`` bytes for each item of its level and for ``extra`` more items. Level -1 is a buffer of bytes."""

    level: int
    width: int
    extra: int = 0


@dataclass
class Slots:
    """The buffers and levels of a target."""

    slots: list[Slot] = field(default_factory=list)
    levels: int = 1
    columns: int = 0
    as_written: bool = False
    """whether fields keep their names even if two names differ only in case"""
    as_json: bool = False
    """whether the column will become JSON: each union branch is a member, and decimals beyond 38 digits are bytes"""

    def add_column(self) -> None:
        """Count one more column, or part of one."""
        self.columns += 1
        self.check_room_for(0)

    def check_room_for(self, columns: int) -> None:
        """Raise SchemaError if ``columns`` more columns exceed the limit."""
        if self.columns + columns > MAX_COLUMNS:
            raise SchemaError(f"an Avro schema of more than {MAX_COLUMNS} columns is not read: read it as JSON")

    def add(self, level: int, width: int, extra: int = 0) -> int:
        """Add a buffer and return its number."""
        self.slots.append(Slot(level, width, extra))
        return len(self.slots) - 1

    def add_text(self, level: int) -> int:
        """Add the offsets and bytes of a text. Returns the number of the offsets; the bytes are the next buffer."""
        offsets = self.add(level, 4, 1)
        self.add(-1, 1)
        return offsets

    def add_level(self) -> int:
        """Add a level and return its number."""
        self.levels += 1
        return self.levels - 1


@dataclass(eq=False)
class Target:
    """A column, or a nested part of one."""

    schema: Schema
    """the reader's schema; for a union with null, the other type"""
    kind: str
    """null, scalar, text, digits (a decimal of any size), struct, union, mixed, list, map"""
    type: pa.DataType
    level: int
    valid: int = -1
    """slot of the validity, one byte for each item; -1 if never NULL"""
    slot: int = -1
    """slot of the values or of the offsets"""
    inner: int = -1
    """for a list or map: the level of its items; for digits: the slot of the scale"""
    children: tuple[Target, ...] = ()


def target_of(schema: Schema, slots: Slots, nullable: bool = False) -> Target:
    """The column of a schema. Adds its slots to ``slots``.

    Raises SchemaError if the schema is recursive.
    """
    return _target(schema, slots, 0, nullable, ())


def _target(schema: Schema, slots: Slots, level: int, nullable: bool, outer: tuple[Schema, ...]) -> Target:
    slots.add_column()
    if schema in outer:
        raise SchemaError(f"{schema.title} is recursive, which no column can be: read it as JSON, with avro_json")
    if schema.kind in ("union", "mixed"):
        return _union(schema, slots, level, nullable, outer)
    valid = slots.add(level, 1) if nullable and schema.kind != "null" else -1
    if schema.kind == "null":
        return Target(schema, "null", pa.null(), level)
    if schema.kind == "record":
        children = tuple(_target(f.schema, slots, level, False, (*outer, schema)) for f in schema.fields)
        names = [f.name for f in schema.fields]
        named = zip(names if slots.as_written else distinct_names(names), children, strict=True)
        type = pa.struct([pa.field(name, child.type) for name, child in named])
        return Target(schema, "struct", type, level, valid, children=children)
    if schema.items is not None:
        return _collection(schema, schema.items, slots, level, valid, outer)
    if schema.logical == "decimal":
        if schema.precision > DIGITS and slots.as_json:
            return _text(schema, slots, level, valid)
        if schema.precision > DIGITS:
            bytes, scale = _text(schema, slots, level, valid), slots.add(level, 4)
            return Target(schema, "digits", pa.string(), level, valid, bytes.slot, scale)
        type = pa.decimal128(schema.precision, schema.scale)
        return Target(schema, "scalar", type, level, valid, slots.add(level, 16))
    scalar = _SCALARS.get(schema.logical) or _SCALARS.get(schema.kind)
    if scalar is not None:
        width = 1 if schema.kind == "boolean" else scalar.bit_width // 8
        return Target(schema, "scalar", scalar, level, valid, slots.add(level, width))
    return _text(schema, slots, level, valid)


def _text(schema: Schema, slots: Slots, level: int, valid: int) -> Target:
    type = pa.string() if schema.kind in ("string", "enum") else pa.binary()
    return Target(schema, "text", type, level, valid, slots.add_text(level))


def _collection(
    schema: Schema, items: Schema, slots: Slots, level: int, valid: int, outer: tuple[Schema, ...]
) -> Target:
    offsets, inner = slots.add(level, 4, 1), slots.add_level()
    key = (_text(Schema("string"), slots, inner, -1),) if schema.kind == "map" else ()
    child = _target(items, slots, inner, False, outer)
    type = pa.map_(pa.string(), child.type) if key else pa.list_(child.type)
    return Target(schema, "map" if key else "list", type, level, valid, offsets, inner, (*key, child))


def _union(schema: Schema, slots: Slots, level: int, nullable: bool, outer: tuple[Schema, ...]) -> Target:
    others = tuple(branch for branch in schema.branches if branch.kind != "null")
    nullable = nullable or len(others) < len(schema.branches)
    if len(others) == 1 and schema.kind == "union":
        return _target(others[0], slots, level, nullable, outer)
    # A number does not say which of two logical types it has. Spark ignores them.
    kinds = frozenset(branch.kind for branch in others if not branch.logical)
    wide = _WIDE.get(kinds) if len(others) == 2 and not slots.as_json else None
    if wide is not None:
        return _target(Schema(wide), slots, level, nullable, outer)
    valid = slots.add(level, 1) if nullable else -1
    children = tuple(_target(branch, slots, level, True, outer) for branch in others)
    type = pa.struct([pa.field(f"member{k}", child.type) for k, child in enumerate(children)])
    mixed = schema.kind == "mixed"
    remaining = Schema(schema.kind, branches=others)
    return Target(remaining, schema.kind, pa.string() if mixed else type, level, valid, children=children)


def paths_of(target: Target, path: str = "") -> Iterator[tuple[Target, str]]:
    """The column and its nested parts, each with its field's path: ``lines[].total``."""
    yield target, path
    if target.kind == "struct":
        for name, child in zip((f.name for f in target.schema.fields), target.children, strict=True):
            yield from paths_of(child, f"{path}.{name}" if path else name)
    else:
        inner = f"{path}[]" if target.kind in ("list", "map") else path
        for child in target.children:
            yield from paths_of(child, inner)
