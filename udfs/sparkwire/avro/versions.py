"""Combine several versions of a schema to one: the narrowest columns that hold the values of each.

The rules are in the table "Versions of one type" in docs/avro.md, which a test checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Final

import pyarrow as pa

from sparkwire.avro.rules import family
from sparkwire.avro.schema import UNFRAMED, RecordField, Schema
from sparkwire.avro.targets import Slots
from sparkwire.json.types import DIGITS, INTEGER_DIGITS, wider, wider_digits

VALUE: Final = "value"
"""the column of a schema that is not a record"""
_NULL: Final = Schema("null")
_NUMBERS: Final = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}
_KINDS: Final = {type: kind for kind, type in _NUMBERS.items()}
_TEXTS: Final = ("string", "enum")
_FINEST: Final = ("millis", "micros", "nanos")


def as_record(schema: Schema) -> Schema:
    """The schema itself if it is a record; else a record with this schema as its only field, which has the same bytes."""
    others = [branch for branch in schema.branches if branch.kind != "null"]
    if len(others) == 1 and others[0].kind == "record":
        return schema
    if schema.kind == "record":
        return schema
    return Schema("record", fields=(RecordField(VALUE, schema),), levels=schema.levels)


def without_frame(schema: Schema) -> Schema:
    """The schema as Confluent's serializers write its data: a top-level ``bytes`` has no size before it."""
    if schema.kind == "bytes" and not schema.logical:
        return replace(schema, size=UNFRAMED)
    return schema


def combined(versions: Sequence[Schema], *, fields_of_last: bool = False) -> Schema:
    """The record that holds data of all versions.

    Parameters
    ----------
    fields_of_last
        if true, the record has only the fields of the last version, with their defaults for versions that lack them. By default,
        it has the fields of all versions, with NULL for versions that lack them

    Raises
    ------
    SchemaError
        if it has too many columns.
    """
    records = [record for version in versions for record in _others(version)]
    schema = _Versions(fields_of_last).record(records, ()) if records else Schema("record", combined=True)
    return schema if len(records) == len(versions) and all(v.kind == "record" for v in versions) else _or_null(schema)


def _others(schema: Schema) -> tuple[Schema, ...]:
    """The branches of a union that are not null; otherwise the schema, unless it is null."""
    branches = schema.branches if schema.kind == "union" else (schema,)
    return tuple(branch for branch in branches if branch.kind != "null")


def _or_null(schema: Schema) -> Schema:
    if schema.kind == "null":
        return schema
    if schema.kind == "union":
        null = any(branch.kind == "null" for branch in schema.branches)
        return schema if null else replace(schema, branches=(_NULL, *schema.branches))
    return Schema("union", branches=(_NULL, schema))


class _Versions:
    """The rules for combining versions. The oldest version comes first."""

    def __init__(self, fields_of_last: bool) -> None:
        self._fields_of_last = fields_of_last
        self._columns = Slots()

    def type(self, versions: Sequence[Schema], outer: tuple[Schema, ...]) -> Schema:
        """The combined type of a field, an item or a value."""
        self._columns.add_column()
        if len(versions) == 1 and versions[0].kind not in ("record", "array", "map", "union"):
            return versions[0]
        of_each = [_others(version) for version in versions]
        last = next((others for others in reversed(of_each) if others), ())
        if not last:
            return _NULL
        if all(len(others) <= 1 for others in of_each):
            combined_type = self.one([other for others in of_each for other in others], outer)
        else:
            combined_type = self._union(of_each, last, outer)
        null = any(branch.kind == "null" for version in versions for branch in (version, *version.branches))
        return _or_null(combined_type) if null else combined_type

    def _union(self, of_each: list[tuple[Schema, ...]], last: tuple[Schema, ...], outer: tuple[Schema, ...]) -> Schema:
        """The combined union: the members of the last version, then those of other versions."""
        members: list[list[Schema]] = [[member] for member in last]
        for others in of_each:
            for other in others:
                if all(other is not member for member in last):
                    self._join(members, other)
        parts = [self.one(member[::-1], outer) for member in members]
        differ = any([*map(_type, others)] != [*map(_type, last)] for others in of_each if others)
        return parts[0] if len(parts) == 1 else Schema("union", branches=tuple(parts), combined=differ)

    def _join(self, members: list[list[Schema]], other: Schema) -> None:
        tests: tuple[Callable[[Schema], bool], ...] = (
            lambda member: (member.kind, member.name, member.logical) == (other.kind, other.name, other.logical),
            lambda member: _is_one_member(member, other),
        )
        for test in tests:
            for member in members:
                if test(member[0]):
                    member.append(other)
                    return
        members.append([other])

    def one(self, versions: list[Schema], outer: tuple[Schema, ...]) -> Schema:
        """The combined type of versions without unions. It ignores versions that do not fit the last one."""
        last = versions[-1]
        for kind in ("record", "array", "map"):
            if last.kind == kind:
                same = [version for version in versions if version.kind == kind]
                if kind == "record":
                    return self.record(same, outer)
                items = self.type([version.items for version in same if version.items is not None], outer)
                return Schema(kind, items=items, combined=True)
        scalars = [version for version in versions if version.kind not in ("record", "array", "map")]
        if _same(scalars) is not None:
            return last
        combined_type = _bytes(scalars) or _scalar([scalar for scalar in scalars if not _is_bytes(scalar)])
        return replace(combined_type, combined=True)

    def record(self, versions: list[Schema], outer: tuple[Schema, ...]) -> Schema:
        """The combined record, with fields in the order of their first version. Names of older versions become aliases."""
        if any(version in outer for version in versions):
            # A column cannot hold a record inside itself. A text with a name matches no data.
            return Schema("string", versions[-1].name)
        outer = (*outer, *versions)
        names = dict.fromkeys(f.name for version in versions for f in version.fields)
        if self._fields_of_last:
            # A name of an older version that differs only in case is another field, whose values must not vanish.
            last_names = {f.name for f in versions[-1].fields}
            folded = {name.casefold() for name in last_names}
            older = [name for name in names if name not in last_names and name.casefold() in folded]
            names = dict.fromkeys([*(name for name in names if name in last_names), *older])
        self._columns.check_room_for(len(names))
        by_name = [{f.name: f for f in version.fields} for version in versions]
        fields = tuple(self._field(name, by_name, outer) for name in names)
        last = versions[-1]
        aliases = dict.fromkeys(version.name for version in versions if version.name != last.name)
        return Schema("record", last.name, tuple(aliases), fields, combined=True)

    def _field(self, name: str, versions: list[dict[str, RecordField]], outer: tuple[Schema, ...]) -> RecordField:
        last = next(fields[name] for fields in reversed(versions) if name in fields)
        aliases = last.aliases if self._fields_of_last and name in versions[-1] else ()
        versions_of_field = [f for fields in versions for f in [_named((name, *aliases), fields)] if f is not None]
        schema = self.type([f.schema for f in versions_of_field], outer)
        if self._fields_of_last and last.has_default and name in versions[-1]:
            return replace(last, schema=schema, default_schema=last.schema)
        if len(versions_of_field) < len(versions):
            schema = _or_null(schema)
        return RecordField(name, schema, aliases, has_default=True, default_schema=_NULL)


def _named(names: Sequence[str], fields: Mapping[str, RecordField]) -> RecordField | None:
    """The field with the first of these names that the record has."""
    return next((fields[name] for name in names if name in fields), None)


def _type(schema: Schema) -> tuple[object, ...]:
    symbols = schema.symbols if schema.kind == "enum" else ()
    decimal = (schema.precision, schema.scale) if schema.logical == "decimal" else schema.size
    return ("decimal" if schema.logical == "decimal" else schema.kind), schema.logical, decimal, symbols


def _is_bytes(schema: Schema) -> bool:
    return schema.kind in ("bytes", "fixed") and schema.logical not in ("decimal", "uuid")


def _is_one_member(one: Schema, other: Schema) -> bool:
    """Whether two types of different versions are the same member of a union."""
    if one.name and other.name and "decimal" not in (one.logical, other.logical):
        return one.kind == other.kind and (one.kind != "record" or one.simple_name == other.simple_name)
    if one.parts or other.parts:
        return one.kind == other.kind
    pairs = ({"int", "long"}, {"float", "double"})
    if not one.logical and not other.logical:
        return one.kind == other.kind or {one.kind, other.kind} in pairs
    return bool(_times([one, other])) or one.logical == other.logical == "decimal"


def _bytes(versions: list[Schema]) -> Schema | None:
    """Bytes, if the last version is bytes or if all versions are bytes or strings; else None."""
    raw = [version for version in versions if _is_bytes(version) or (version.kind == "fixed" and not version.precision)]
    texts = [version for version in versions if version.kind == "string"]
    if not any(map(_is_bytes, versions)) or not (_is_bytes(versions[-1]) or len(raw) + len(texts) == len(versions)):
        return None
    sizes = {version.size for version in versions if version.kind == "fixed"}
    if len(raw) == len(versions) and len(sizes) == 1 and all(version.kind == "fixed" for version in versions):
        return Schema("fixed", size=sizes.pop(), combined=True)
    return Schema("bytes", combined=True)


def _scalar(versions: list[Schema]) -> Schema:
    """The narrowest number, time or text that holds all versions."""
    return _same(versions) or _numbers(versions) or _times(versions) or _text(versions)


def _same(versions: list[Schema]) -> Schema | None:
    """The type of the versions if all have the same one; else None."""
    return versions[-1] if len({_type(version) for version in versions}) == 1 else None


def _numbers(versions: list[Schema]) -> Schema | None:
    """A number that holds all versions; None if some are no numbers, or if integers do not fit into 38 digits."""
    decimals = [version for version in versions if version.logical == "decimal"]
    plain = [version.kind for version in versions if version.logical != "decimal"]
    if any(version.logical or version.kind not in _NUMBERS for version in versions if version.logical != "decimal"):
        return None
    if not decimals:
        found = reduce(partial(wider, checked=True), (_NUMBERS[kind] for kind in plain))
        return None if found is None else Schema(_KINDS[found], combined=True)
    integers = [(INTEGER_DIGITS[_NUMBERS[kind]], 0) for kind in plain if _NUMBERS[kind] in INTEGER_DIGITS]
    if len(integers) < len(plain):
        return None
    whole, scale = reduce(wider_digits, [*((d.precision - d.scale, d.scale) for d in decimals), *integers])
    if whole + scale > DIGITS and integers:
        return None
    return Schema("bytes", logical="decimal", precision=whole + scale, scale=scale, combined=True)


def _times(versions: list[Schema]) -> Schema | None:
    """The time type of one family in the finest unit; a date counts as midnight. None if the families differ."""
    if any(version.kind not in ("int", "long") for version in versions):
        return None
    families = {family(version.logical) for version in versions}
    if families not in ({"time"}, {"instant"}, {"local"}, {"date", "instant"}, {"date", "local"}):
        return None
    finest = max(
        (version.logical for version in versions if version.logical != "date"),
        key=lambda logical: _FINEST.index(logical.rpartition("-")[2]),
    )
    return Schema("int" if finest == "time-millis" else "long", logical=finest, combined=True)


def _text(versions: list[Schema]) -> Schema:
    """A text, or ``mixed``: texts and enums are unchanged, other values become JSON texts."""
    text = Schema("string", combined=True)
    branches: dict[tuple[object, ...], Schema] = {}
    for version in versions:
        branch = text if version.kind in _TEXTS else version
        branches.setdefault((branch.kind, branch.name, *_type(branch)), branch)
    members = tuple(branches.values())
    return text if members == (text,) else Schema("mixed", branches=members, combined=True)
