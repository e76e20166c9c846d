"""Random versions of schemas with logical types, and a comparison of columns with fastavro's values.

The comparison uses Python's ``Decimal``, ``date``, ``time`` and ``datetime`` for every type of column.
"""

from __future__ import annotations

import datetime
import io
import math
import string
import uuid
from collections.abc import Callable
from decimal import Context, Decimal
from random import Random
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

UTC = datetime.UTC
_WIDE = Context(prec=100)


def decimal(precision: int, scale: int, size: int = 0) -> dict[str, Any]:
    """A decimal in bytes, or in a fixed with this size."""
    kind = {"type": "fixed", "name": f"Decimal{size}", "size": size} if size else {"type": "bytes"}
    return {**kind, "logicalType": "decimal", "precision": precision, "scale": scale}


def logical(kind: str, name: str) -> dict[str, Any]:
    """A number with a logical type."""
    return {"type": kind, "logicalType": name}


def _decimals(chance: Random) -> Any:
    precision = chance.choice([1, 5, 10, 18, 30, 38, 50])
    return decimal(precision, chance.randrange(precision + 1) if chance.random() < 0.8 else 0)


FAMILIES: list[list[Callable[[Random], Any]]] = [
    [
        lambda chance: logical("int", "date"),
        lambda chance: logical("long", "timestamp-millis"),
        lambda chance: logical("long", "timestamp-micros"),
    ],
    [
        lambda chance: logical("int", "date"),
        lambda chance: logical("long", "local-timestamp-millis"),
        lambda chance: logical("long", "local-timestamp-micros"),
    ],
    [lambda chance: logical("int", "time-millis"), lambda chance: logical("long", "time-micros")],
    [_decimals],
    [lambda chance: "int", lambda chance: "long", lambda chance: "float", lambda chance: "double"],
    [lambda chance: "string", lambda chance: {"type": "string", "logicalType": "uuid"}, lambda chance: _enum(chance)],
    [lambda chance: "bytes", lambda chance: {"type": "fixed", "name": "F", "size": chance.choice([2, 4])}],
    [lambda chance: "boolean"],
]


def _enum(chance: Random) -> Any:
    return {"type": "enum", "name": "E", "symbols": chance.sample("ABCD", chance.randrange(1, 5))}


class Versions:
    """Generates pairs of versions of one record."""

    def __init__(self, chance: Random, mixed: float) -> None:
        """``mixed``: how often a field changes to a type of another family."""
        self.chance, self._mixed = chance, mixed

    def pair(self) -> tuple[Any, Any]:
        """Two versions. Inner named types have different names in each."""
        one, other = self.record(2, "R")
        return _own_names(one, "1"), _own_names(other, "2")

    def writer_and_reader(self) -> tuple[Any, Any]:
        """Two versions with the same names of types, as Avro's resolution requires. The reader's fields have defaults."""
        writer, reader = (_own_names(version, "") for version in self.record(2, "R"))
        return writer, self._with_defaults(reader)

    def record(self, depth: int, name: str) -> tuple[Any, Any]:
        """Two records with similar fields."""
        fields: tuple[list[Any], list[Any]] = ([], [])
        for k in range(self.chance.randrange(1, 5)):
            one, other = self.types(depth - 1)
            lacks = self.chance.random() if k else 0.5
            if lacks > 0.1:
                fields[0].append({"name": f"f{k}", "type": one})
            if lacks < 0.9:
                fields[1].append({"name": f"f{k}", "type": other})
        self.chance.shuffle(fields[1])
        return tuple({"type": "record", "name": name, "fields": some} for some in fields)  # type: ignore[return-value]

    def types(self, depth: int) -> tuple[Any, Any]:
        """A type for each version."""
        one, other = self._types(depth)
        chance = self.chance
        if chance.random() < 0.2 and not isinstance(one, list):
            one = ["null", one]
        if chance.random() < 0.2 and not isinstance(other, list):
            other = [other, "null"]
        return one, other

    def _types(self, depth: int) -> tuple[Any, Any]:
        chance = self.chance
        kind = chance.random()
        if depth > 0 and kind < 0.15:
            return self.record(depth, "Inner")
        if depth > 0 and kind < 0.4:
            part = chance.choice(["array", "map"])
            items = self.types(depth - 1)
            return tuple({"type": part, "items" if part == "array" else "values": item} for item in items)  # type: ignore[return-value]
        if kind < 0.5:
            return self._unions()
        if chance.random() < self._mixed:
            return tuple(chance.choice(chance.choice(FAMILIES))(chance) for _ in range(2))
        family = chance.choice(FAMILIES)
        return chance.choice(family)(chance), chance.choice(family)(chance)

    def _unions(self) -> tuple[Any, Any]:
        families = self.chance.sample([FAMILIES[k] for k in (0, 3, 5, 7)], 3)
        versions = [[self.chance.choice(family)(self.chance) for family in families] for _ in range(2)]
        if self.chance.random() < 0.5:
            versions[1].pop()
        return versions[0], versions[1]

    def _with_defaults(self, schema: Any) -> Any:
        """Add defaults to most fields and enums. Those of logical types are NULL, because fastavro does not convert them."""
        if isinstance(schema, list):
            return [self._with_defaults(branch) for branch in schema]
        if not isinstance(schema, dict):
            return schema
        by_name = {
            key: self._with_defaults(part) if key in ("items", "values") else part for key, part in schema.items()
        }
        if by_name["type"] == "enum" and self.chance.random() < 0.5:
            by_name["default"] = self.chance.choice(by_name["symbols"])
        if by_name["type"] == "record":
            fields = [field | {"type": self._with_defaults(field["type"])} for field in by_name["fields"]]
            by_name["fields"] = [field | _default(field["type"], self.chance) for field in fields]
        return by_name


def _own_names(schema: Any, place: str) -> Any:
    """The schema with enums, fixed and inner records named by their position, because Avro names must be unique."""
    if isinstance(schema, list):
        return [_own_names(branch, place) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    if result["type"] in ("fixed", "enum") or result.get("name") == "Inner":
        result["name"] = f"{result['name']}_{place}"
    if result["type"] == "record":
        result["fields"] = [
            field | {"type": _own_names(field["type"], place + field["name"])} for field in result["fields"]
        ]
    for part in ("items", "values"):
        if part in result:
            result[part] = _own_names(result[part], f"{place}_{part}")
    return result


def _default(schema: Any, chance: Random) -> dict[str, Any]:
    """The default of a field in JSON, if any. A logical type becomes nullable for it."""
    first = schema[0] if isinstance(schema, list) else schema
    kind = first if isinstance(first, str) else first["type"]
    values: dict[str, Any] = {
        "null": None,
        "int": -7,
        "long": 1 << 40,
        "float": 0.5,
        "double": 3.25,
        "boolean": True,
        "string": "grüße",
    }
    values |= {"array": [], "map": {}}
    if kind == "enum":
        values["enum"] = first["symbols"][-1]
    has_unit = isinstance(first, dict) and "logicalType" in first
    if chance.random() < 0.2:
        return {}
    if has_unit and first is schema:
        return {"type": ["null", schema], "default": None}
    return {"default": values[kind]} if kind in values and not has_unit else {}


def without_units(schema: Any) -> Any:
    """The schema without its logical types."""
    if isinstance(schema, list):
        return [without_units(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    units = ("logicalType", "precision", "scale")
    by_name = {key: part for key, part in schema.items() if key not in units}
    if by_name["type"] == "record":
        by_name["fields"] = [field | {"type": without_units(field["type"])} for field in by_name["fields"]]
    for part in ("items", "values"):
        if part in by_name:
            by_name[part] = without_units(by_name[part])
    return by_name


def random_value(chance: Random, schema: Any) -> Any:
    """A random value that fastavro can encode."""
    if isinstance(schema, list):
        branch = chance.choice(schema)
        if branch == "null":
            return None
        value = random_value(chance, branch)
        return (branch if isinstance(branch, str) else branch.get("name", branch["type"]), value)
    if isinstance(schema, str):
        schema = {"type": schema}
    kind, unit = schema["type"], schema.get("logicalType", "")
    if kind == "record":
        return {field["name"]: random_value(chance, field["type"]) for field in schema["fields"]}
    if kind in ("array", "map"):
        items = [random_value(chance, schema.get("items", schema.get("values"))) for _ in range(chance.randrange(4))]
        return items if kind == "array" else {f"k{k}": item for k, item in enumerate(items)}
    if unit == "decimal":
        most = 10 ** chance.randint(0, schema["precision"]) - 1
        return Decimal(chance.randint(-most, most)).scaleb(-schema["scale"], _WIDE)
    if unit:
        return _random_time(chance, unit)
    if kind == "enum":
        return chance.choice(schema["symbols"])
    if kind in ("int", "long"):
        return chance.choice(
            [0, -1, 12345, 2**31 - 1, -(2**31), *([2**53 + 1, 2**62 + 1, -(2**63)] * (kind == "long"))]
        )
    simple: dict[str, Callable[[], Any]] = {
        "boolean": lambda: chance.random() < 0.5,
        "float": lambda: chance.choice([0.0, -0.5, 1.5, 3.0e20, float("inf")]),
        "double": lambda: chance.choice([0.1, -2.5e-10, 1e300, 123456.75]),
        "string": lambda: "".join(chance.choices(string.ascii_letters + "äß😀", k=chance.randrange(6))),
        "bytes": lambda: chance.randbytes(chance.randrange(6)),
        "fixed": lambda: chance.randbytes(schema["size"]),
    }
    return simple[kind]()


def _random_time(chance: Random, unit: str) -> Any:
    if unit == "uuid":
        return uuid.UUID(bytes=chance.randbytes(16))
    micros = chance.randrange(86_400 * 10**6)
    if unit.endswith("millis"):
        micros -= micros % 1000
    day = datetime.date(1, 1, 2) + datetime.timedelta(days=chance.randrange(3_652_000))
    if unit == "date":
        return day
    at = datetime.datetime.combine(day, datetime.time()) + datetime.timedelta(microseconds=micros)
    if unit.startswith("time-"):
        return at.time()
    return at if unit.startswith("local-") else at.replace(tzinfo=UTC)


def written(schema: Any, value: Any) -> bytes:
    """The datum, encoded by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read_by_fastavro(data: bytes, writer: Any, reader: Any = None) -> Any:
    """The datum's value, decoded by fastavro."""
    parsed = None if reader is None else fastavro.parse_schema(reader)
    return fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(writer), parsed)


def differences(expected: Any, result: Any, type: pa.DataType, path: str = "") -> list[str]:
    """The paths of values that differ from fastavro's, including values that are NULL without a reason."""
    if expected is None or result is None:
        return [] if expected is None and result is None else [path]
    if isinstance(expected, dict) and pa.types.is_struct(type):
        names = [field.name for field in type]
        return [
            wrong
            for name in names
            for wrong in differences(
                expected.get(name), result[name], type.field(name).type, f"{path}.{name}" if path else name
            )
        ]
    if pa.types.is_struct(type):  # a union
        members = [name for name, value in result.items() if value is not None]
        if len(members) != 1:
            return [path]
        return differences(expected, result[members[0]], type.field(members[0]).type, path)
    if isinstance(expected, dict) and pa.types.is_map(type):
        if set(expected) != set(result):
            return [path]
        return [w for key in expected for w in differences(expected[key], result[key], type.item_type, f"{path}[]")]
    if isinstance(expected, list) and pa.types.is_list(type):
        if len(expected) != len(result):
            return [path]
        pairs = zip(expected, result, strict=True)
        return [w for one, other in pairs for w in differences(one, other, type.value_type, f"{path}[]")]
    return [] if _same(expected, result, type) else [path]


def _same(expected: Any, result: Any, type: pa.DataType) -> bool:
    if isinstance(result, str) and not isinstance(expected, str):
        return _same_text(expected, result)
    if isinstance(expected, datetime.time):
        micros = ((expected.hour * 60 + expected.minute) * 60 + expected.second) * 10**6 + expected.microsecond
        return bool(result * (1000 if pa.types.is_int32(type) else 1) == micros)
    is_date = isinstance(expected, datetime.date) and not isinstance(expected, datetime.datetime)
    if is_date and isinstance(result, datetime.datetime):
        return result.replace(tzinfo=None) == datetime.datetime.combine(expected, datetime.time())
    if isinstance(expected, str | uuid.UUID) and isinstance(result, bytes):
        return str(expected).encode() == result
    if isinstance(expected, bytes) and isinstance(result, str):
        return result.encode() == expected
    if isinstance(expected, bool) != isinstance(result, bool):
        return False
    if pa.types.is_float32(type) and isinstance(expected, float):
        return bool(np.float32(expected) == np.float32(result))  # Avro's promotion rounds to the nearest FLOAT
    return bool(expected == result)


def _same_text(expected: Any, result: str) -> bool:
    if isinstance(expected, bytes):
        return result.encode() == expected
    if isinstance(expected, bool):
        return result == str(expected).lower()
    if isinstance(expected, Decimal):
        return Decimal(result) == expected
    if isinstance(expected, float):
        narrow = float(result.replace("Infinity", "inf"))
        return math.isclose(narrow, expected, rel_tol=1e-7) or narrow == expected
    if isinstance(expected, datetime.datetime):
        return datetime.datetime.fromisoformat(result) == expected
    if isinstance(expected, datetime.time):
        return datetime.time.fromisoformat(result) == expected
    return result == str(expected)
