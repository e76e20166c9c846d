"""A slow and simple oracle for Avro: random schemas and data, their bytes, and the expected results of each reader.

A datum of a union is ``(branch, datum)``. Dates and times are numbers, a decimal is its unscaled number, a map a list of pairs.
"""

from __future__ import annotations

import base64
import datetime
import json
import struct
import uuid
from decimal import Context, Decimal
from random import Random
from typing import Any

from sparkwire.avro.schema import Schema

EPOCH = datetime.datetime(1970, 1, 1)
_LOGICAL = {
    "int": ["date", "time-millis"],
    "long": ["time-micros", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"],
    "string": ["uuid"],
}
_TEXTS = [
    "",
    "a",
    'quo"te\\',
    "line\nbreak\x01",
    "grüße",
    "日本語テキスト",
    "😀😀",
    "plain ASCII text of some length " * 3,
]


# ---------------------------------------------------------------- random schemas


class Names:
    """Gives every named type a unique name."""

    def __init__(self) -> None:
        self.given = 0

    def next(self) -> str:
        self.given += 1
        return f"N{self.given}"


def random_schema(chance: Random, depth: int = 3, names: Names | None = None, in_union: bool = False) -> Any:
    """A random schema in JSON, with every kind and every logical type, not recursive."""
    names = names or Names()
    kinds = [
        "null",
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "bytes",
        "string",
        "enum",
        "fixed",
        "int",
        "long",
        "string",
    ]
    if depth > 0:
        kinds += ["record", "record", "array", "map"] + ([] if in_union else ["union", "option", "option"])
    kind = chance.choice(kinds)
    if kind in ("union", "option"):
        return _random_union(chance, depth, names, option=kind == "option")
    if kind == "record":
        fields = [
            {"name": f"f{k}", "type": random_schema(chance, depth - 1, names)} for k in range(chance.randrange(0, 5))
        ]
        return {"type": "record", "name": names.next(), "fields": fields}
    if kind in ("array", "map"):
        return {"type": kind, "items" if kind == "array" else "values": random_schema(chance, depth - 1, names)}
    if kind == "enum":
        return {"type": "enum", "name": names.next(), "symbols": [f"S{k}" for k in range(chance.randrange(1, 5))]}
    if kind == "fixed":
        return _random_fixed(chance, names)
    if kind == "bytes" and chance.randrange(2):
        precision = chance.randrange(1, 39)
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": precision,
            "scale": chance.randrange(precision + 1),
        }
    if kind in _LOGICAL and chance.randrange(2):
        return {"type": kind, "logicalType": chance.choice(_LOGICAL[kind])}
    return kind


def _random_union(chance: Random, depth: int, names: Names, option: bool) -> Any:
    by_name: dict[str, Any] = {"null": "null"} if option else {}
    for _ in range(2 if option else chance.randrange(1, 6)):
        branch = random_schema(chance, depth - 1, names, in_union=True)
        kind = branch if isinstance(branch, str) else branch.get("name", branch["type"])
        if not option or len(by_name) < 2:
            by_name.setdefault(kind, branch)
    branches = list(by_name.values())
    chance.shuffle(branches)
    return branches


def _random_fixed(chance: Random, names: Names) -> Any:
    size = chance.choice([0, 1, 4, 12, 16])
    schema: dict[str, Any] = {"type": "fixed", "name": names.next(), "size": size}
    if size == 4 and chance.randrange(2):
        schema |= {"logicalType": "decimal", "precision": 9, "scale": 2}
    if size == 12 and chance.randrange(2):
        schema |= {"logicalType": "duration"}
    return schema


# ---------------------------------------------------------------- random data


def random_datum(chance: Random, schema: Schema) -> Any:
    """A random datum of the schema, including bounds and empty values."""
    kind = schema.kind
    if kind == "union":
        k = chance.randrange(len(schema.branches))
        return k, random_datum(chance, schema.branches[k])
    if kind == "record":
        return {f.name: random_datum(chance, f.schema) for f in schema.fields}
    if schema.items is not None:
        count = chance.choice([0, 1, 2, 3, 5])
        items = [random_datum(chance, schema.items) for _ in range(count)]
        return items if kind == "array" else [(chance.choice(_TEXTS), item) for item in items]
    if kind == "enum":
        return chance.randrange(len(schema.symbols))
    if schema.logical == "decimal":
        most = 10**schema.precision - 1
        return chance.choice([0, most, -most, chance.randint(-most, most), chance.randint(-99, 99) % (most + 1)])
    if kind in ("bytes", "fixed"):
        return chance.randbytes(schema.size if kind == "fixed" else chance.choice([0, 1, 2, 3, 60, 300]))
    return _random_scalar(chance, schema)


def _random_scalar(chance: Random, schema: Schema) -> Any:
    if schema.kind == "string":
        if schema.logical == "uuid":
            return str(uuid.UUID(bytes=chance.randbytes(16)))
        return chance.choice(_TEXTS) + str(chance.randrange(100))
    if schema.kind == "double":
        words = [0.0, -0.0, 1.5, 1e300, 5e-324, 0.1, struct.unpack("<d", chance.randbytes(8))[0]]
        return _finite(chance.choice(words))
    if schema.kind == "float":
        return _finite(chance.choice([0.0, -2.5, struct.unpack("<f", chance.randbytes(4))[0]]))
    if schema.kind == "boolean":
        return chance.randrange(2) == 1
    return None if schema.kind == "null" else chance.choice(_numbers(chance, schema))


def _finite(number: float) -> float:
    return number if number == number and abs(number) != float("inf") else 2.0


def _numbers(chance: Random, schema: Schema) -> list[int]:
    day = 86_400_000
    bounds = {
        "date": (-719162, 2932896),
        "time-millis": (0, day - 1),
        "time-micros": (0, day * 1000 - 1),
        "timestamp-millis": (-719162 * day, 2932897 * day - 1),
        "timestamp-micros": (-719162 * day * 1000, 2932897 * day * 1000 - 1),
    }
    bits = 31 if schema.kind == "int" else 63
    low, high = bounds.get(schema.logical.removeprefix("local-"), (-(1 << bits), (1 << bits) - 1))
    return [low, high, max(low, 0), max(low, -3), 64, chance.randint(low, high), chance.randint(max(low, -70), 70)]


# ---------------------------------------------------------------- bytes


def encode(schema: Schema, datum: Any, chance: Random | None = None) -> bytes:
    """Avro's binary encoding. With ``chance``, collections have several blocks, some with sizes."""
    kind = schema.kind
    if kind == "union":
        return varint(datum[0]) + encode(schema.branches[datum[0]], datum[1], chance)
    if kind == "record":
        return b"".join(encode(f.schema, datum[f.name], chance) for f in schema.fields)
    if schema.items is not None:
        return _blocks([_item(schema, item, chance) for item in datum], chance)
    if schema.logical == "decimal":
        size = schema.size or (datum.bit_length() // 8 + 1)
        number: bytes = datum.to_bytes(size, "big", signed=True)
        return number if kind == "fixed" else varint(len(number)) + number
    if kind in ("int", "long", "enum"):
        return varint(datum)
    raw: bytes = datum.encode() if kind == "string" else datum
    if kind in ("string", "bytes"):
        return varint(len(raw)) + raw
    codes = {"float": "<f", "double": "<d", "boolean": "<?"}
    return struct.pack(codes[kind], datum) if kind in codes else (b"" if kind == "null" else raw)


def _item(schema: Schema, item: Any, chance: Random | None) -> bytes:
    assert schema.items is not None
    if schema.kind == "array":
        return encode(schema.items, item, chance)
    key: bytes = item[0].encode()
    return varint(len(key)) + key + encode(schema.items, item[1], chance)


def _blocks(items: list[bytes], chance: Random | None) -> bytes:
    out = b""
    while items:
        count = len(items) if chance is None else chance.randrange(1, len(items) + 1)
        block, items = items[:count], items[count:]
        sized = chance is not None and chance.randrange(2)
        out += (varint(-count) + varint(sum(map(len, block))) if sized else varint(count)) + b"".join(block)
    return out + b"\0"


def varint(number: int) -> bytes:
    """A zigzag varint."""
    folded, out = (number << 1) ^ (number >> 63), b""
    while folded > 127:
        out, folded = out + bytes([folded & 127 | 128]), folded >> 7
    return out + bytes([folded])


# ---------------------------------------------------------------- expected results


def as_fastavro(schema: Schema, datum: Any) -> Any:
    """The result of `fastavro.schemaless_reader`."""
    kind = schema.kind
    if kind == "union":
        return as_fastavro(schema.branches[datum[0]], datum[1])
    if kind == "record":
        return {f.name: as_fastavro(f.schema, datum[f.name]) for f in schema.fields}
    if kind == "array":
        assert schema.items is not None
        return [as_fastavro(schema.items, item) for item in datum]
    if kind == "map":
        assert schema.items is not None
        return {key: as_fastavro(schema.items, item) for key, item in datum}
    if schema.logical == "uuid" and kind == "string":
        return uuid.UUID(datum)
    if schema.logical.startswith("time-"):
        unit = 1000 if schema.logical == "time-millis" else 1
        return (EPOCH + datetime.timedelta(microseconds=datum * unit)).time()
    return _scalar(schema, datum)


def as_column(schema: Schema, datum: Any) -> Any:
    """The expected column value, in the form of ``to_pylist``."""
    kind = schema.kind
    if kind == "union":
        return _union_column(schema, datum)
    if kind == "record":
        return {f.name: as_column(f.schema, datum[f.name]) for f in schema.fields}
    if kind == "array":
        assert schema.items is not None
        return [as_column(schema.items, item) for item in datum]
    if kind == "map":
        assert schema.items is not None
        return {key: as_column(schema.items, item) for key, item in datum}
    return _scalar(schema, datum)


def _union_column(schema: Schema, datum: Any) -> Any:
    chosen = schema.branches[datum[0]]
    others = [branch for branch in schema.branches if branch.kind != "null"]
    if chosen.kind == "null":
        return None
    if len(others) == 1:
        return as_column(chosen, datum[1])
    are_numbers = {branch.kind for branch in others} in ({"int", "long"}, {"float", "double"})
    if are_numbers and not any(branch.logical for branch in others):
        return datum[1]
    return {f"member{k}": as_column(chosen, datum[1]) if other is chosen else None for k, other in enumerate(others)}


def _scalar(schema: Schema, datum: Any) -> Any:
    if schema.kind == "enum":
        return schema.symbols[datum]
    if schema.logical == "decimal":
        return Decimal(datum).scaleb(-schema.scale, Context(prec=60))
    if schema.logical == "date":
        return datetime.date.fromordinal(datetime.date(1970, 1, 1).toordinal() + datum)
    if "timestamp" in schema.logical:
        time = EPOCH + datetime.timedelta(microseconds=datum * (1000 if schema.logical.endswith("millis") else 1))
        return time if schema.logical.startswith("local") else time.replace(tzinfo=datetime.UTC)
    return datum


def as_json(schema: Schema, datum: Any) -> Any:
    """The expected JSON value, in the form of ``json.loads``."""
    kind = schema.kind
    if kind == "union":
        return as_json(schema.branches[datum[0]], datum[1])
    if kind == "record":
        return {f.name: as_json(f.schema, datum[f.name]) for f in schema.fields}
    if kind == "array":
        assert schema.items is not None
        return [as_json(schema.items, item) for item in datum]
    if kind == "map":
        assert schema.items is not None
        return {key: as_json(schema.items, item) for key, item in datum}
    return _json_scalar(schema, datum)


def _json_scalar(schema: Schema, datum: Any) -> Any:
    logical = schema.logical
    if logical == "decimal":
        return format(Decimal(datum).scaleb(-schema.scale, Context(prec=60)), "f")
    if logical == "duration":
        months, days, millis = struct.unpack("<III", datum)
        return f"P{months}M{days}DT{millis // 1000}.{millis % 1000:03d}S"
    if logical == "uuid" and schema.kind == "fixed":
        return str(uuid.UUID(bytes=datum))
    if schema.kind in ("bytes", "fixed"):
        return base64.b64encode(datum).decode()
    if logical == "date" or "time" in logical:
        return _json_time(logical, datum)
    if schema.kind == "float":
        return json.loads(shortest_float(datum))
    return schema.symbols[datum] if schema.kind == "enum" else datum


def _json_time(logical: str, datum: int) -> str:
    if logical == "date":
        return str(_scalar(Schema("int", logical=logical), datum))
    digits = 3 if logical.endswith("millis") else 6
    seconds, fraction = divmod(datum, 10**digits)
    time = EPOCH + datetime.timedelta(seconds=seconds)
    text = f"{time:%H:%M:%S}" if logical.startswith("time-") else time.isoformat()
    zone = "Z" if logical.startswith("timestamp") else ""
    return f"{text}.{fraction:0{digits}d}{zone}"


def shortest_float(number: float) -> str:
    """The shortest digits that are read as the same FLOAT."""
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", number):
            return text
    raise AssertionError(number)
