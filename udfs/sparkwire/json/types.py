"""The types of Kafka Connect and Debezium: parsed from schemas and texts, and mapped to Spark's types.

    int8 … int64, float, double, boolean, string, bytes      TINYINT … BIGINT, FLOAT, DOUBLE, BOOLEAN, STRING, BINARY
    Date, IsoDate                                            DATE
    Timestamp, MicroTimestamp, NanoTimestamp, IsoTimestamp   TIMESTAMP_NTZ: a local time, as in the database
    ZonedTimestamp, Instant                                  TIMESTAMP; an Instant is [ms since epoch]
    Time, MicroTime, NanoTime, IsoTime, ZonedTime            STRING, HH:mm:ss with a fraction if any: MariaDB's may be
                                                             negative or beyond a day, and not every Spark has a TIME
    Decimal(p,s)                                             DECIMAL(p,s), STRING beyond 38 digits
    VariableScaleDecimal                                     STRING, all digits: every value has its own scale
    MicroDuration, NanoDuration                              INTERVAL DAY TO SECOND
    Interval, Year, Uuid, Json, Xml, Ltree, Tsvector, Enum   STRING, a Year INT
    EnumSet                                                  ARRAY<STRING>
    Bits(n)                                                  BINARY, the most significant byte first
    Point, Geometry, Geography                               STRUCT of those of x, y, wkb and srid that exist
    array<T>, map<K,V>, struct<name:T,…>                     ARRAY, MAP, STRUCT

Callers write column types as these texts, without a package name. SQL's words TINYINT to BIGINT, FLOAT, DOUBLE, BOOLEAN,
STRING, BINARY and DATE are synonyms of Connect's types, in upper or lower case. ``DECIMAL(p,s)`` and ``decimal(p,s)`` read
numbers and their texts; Connect's type is ``Decimal(p,s)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.base.text_cache import text_cache

LOCAL: Final = pa.timestamp("us")
DIGITS: Final = 38
"""maximum number of digits of Spark's decimals"""

_PLAIN: Final = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Final = {
    "Date": ("int32", pa.date32()),
    "Time": ("int32", pa.string()),
    "MicroTime": ("int64", pa.string()),
    "NanoTime": ("int64", pa.string()),
    "Timestamp": ("int64", LOCAL),
    "MicroTimestamp": ("int64", LOCAL),
    "NanoTimestamp": ("int64", LOCAL),
    "ZonedTimestamp": ("string", TIMESTAMP),
    "Instant": ("int64", TIMESTAMP),
    "ZonedTime": ("string", pa.string()),
    "IsoDate": ("string", pa.date32()),
    "IsoTime": ("string", pa.string()),
    "IsoTimestamp": ("string", LOCAL),
    "MicroDuration": ("int64", pa.duration("us")),
    "NanoDuration": ("int64", pa.duration("us")),
    "Interval": ("string", pa.string()),
    "Year": ("int32", pa.int32()),
    "Uuid": ("string", pa.string()),
    "Json": ("string", pa.string()),
    "Xml": ("string", pa.string()),
    "Ltree": ("string", pa.string()),
    "Tsvector": ("string", pa.string()),
    "Enum": ("string", pa.string()),
    "EnumSet": ("string", pa.list_(pa.string())),
}
"""the wire type and Spark's type of each"""
_PACKAGES: Final = (
    "org.apache.kafka.connect.data.",
    "io.debezium.data.geometry.",
    "io.debezium.data.",
    "io.debezium.time.",
)
_SQL_WORDS: Final = {
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "STRING": "string",
    "BINARY": "bytes",
    "DATE": "Date",
}
_AMBIGUOUS: Final = {
    "TIMESTAMP": "Timestamp, MicroTimestamp, NanoTimestamp, ZonedTimestamp or IsoTimestamp",
    "TIMESTAMP_NTZ": "Timestamp, MicroTimestamp, NanoTimestamp or IsoTimestamp",
    "TIME": "Time, MicroTime, NanoTime or IsoTime",
}
_TOKEN: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(-?[\w.]+)|([<>,:()]))")
_MAX_LEVELS: Final = 32


class Type(NamedTuple):
    """A type of Connect, with its semantic type."""

    kind: str
    """Connect's name: a key of ``_PLAIN``, array, map or struct, or ``number``, which accepts a number or its text.

    The kind ``text`` is a value of a database as text or as JSON, see `mysql_types`.
    """
    logical: str = ""
    """the name of the semantic type without the package; empty if unknown"""
    arguments: tuple[int, ...] = ()
    """precision and scale of Decimal, number of bits of Bits"""
    inner: tuple[Type, ...] = ()
    """the types of an array's items, of a map's keys and values, or of a struct's fields"""
    names: tuple[str, ...] = ()
    """the names of a struct's fields; the members of MySQL's enum or set"""

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the column in Spark."""
        if self.kind == "text":
            return text_type(self)
        if self.logical in _LOGICAL:
            return _LOGICAL[self.logical][1]
        if is_decimal(self):
            precision, scale = self.arguments
            digits = precision - min(scale, 0)
            return pa.decimal128(digits, max(scale, 0)) if digits <= DIGITS else pa.string()
        if self.logical == "VariableScaleDecimal":
            return pa.string()
        if self.kind == "array":
            return pa.list_(self.inner[0].arrow)
        if self.kind == "map":
            return pa.map_(self.inner[0].arrow, self.inner[1].arrow)
        if self.kind == "struct":
            return pa.struct([(name, type.arrow) for name, type in zip(self.names, self.inner, strict=True)])
        return _PLAIN[self.kind]

    @property
    def wire(self) -> pa.DataType:
        """The Arrow type of the values that Connect writes, without their semantic type."""
        if self.logical == "Decimal":  # its values have two forms
            return self.arrow
        if self.kind in ("number", "text"):
            return pa.string()
        if self.kind == "array":
            return pa.list_(self.inner[0].wire)
        if self.kind == "map":
            return pa.map_(self.inner[0].wire, self.inner[1].wire)
        if self.kind == "struct":
            return pa.struct([(name, type.wire) for name, type in zip(self.names, self.inner, strict=True)])
        return _PLAIN[self.kind]

    def __str__(self) -> str:
        arguments = f"({','.join(map(str, self.arguments))})" if self.arguments else ""
        if self.kind == "number":
            return f"DECIMAL{arguments}"
        if self.logical:
            return f"{self.logical}{arguments}"
        if self.kind == "struct":
            named = zip(self.names, self.inner, strict=True)
            return f"struct<{','.join(f'{_quoted(name)}:{type}' for name, type in named)}>"
        return f"{self.kind}<{','.join(map(str, self.inner))}>" if self.inner else self.kind


def is_decimal(type: Type) -> bool:
    """Whether the values are decimals of one precision and scale."""
    return type.logical in ("Decimal", "decimal") or type.kind == "number"


_TEXT_TYPES: Final = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "year": pa.int32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "json": pa.string(),
    "json_text": pa.string(),
    "text_latin1": pa.string(),
    "binary": pa.binary(),
    "binary_latin1": pa.binary(),
    "binary_hex": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": LOCAL,
    "timestamp_ntz_z": LOCAL,
    "timestamp": TIMESTAMP,
    "enum": pa.string(),
    "set": pa.list_(pa.string()),
    "enum_by_name": pa.string(),
    "set_by_name": pa.list_(pa.string()),
}
"""Spark's type of each type of the kind ``text``, but for decimals"""


def text_type(type: Type) -> pa.DataType:
    """The Arrow type of a type of the kind ``text``. A decimal of more than 38 digits is a STRING."""
    if type.logical == "decimal":
        precision, scale = type.arguments
        return pa.decimal128(precision, scale) if precision <= DIGITS else pa.string()
    return _TEXT_TYPES[type.logical]


_VARIABLE: Final = Type("struct", "VariableScaleDecimal", (), (Type("int32"), Type("bytes")), ("scale", "value"))
_GEOMETRY: Final = ((Type("bytes"), Type("int32")), ("wkb", "srid"))
_STRUCTS: Final = {
    "VariableScaleDecimal": _VARIABLE,
    "Point": Type("struct", "Point", (), (Type("double"), Type("double"), *_GEOMETRY[0]), ("x", "y", *_GEOMETRY[1])),
    "Geometry": Type("struct", "Geometry", (), *_GEOMETRY),
    "Geography": Type("struct", "Geography", (), *_GEOMETRY),
}
_NAMES: Final = {*_PLAIN, *_LOGICAL, *_STRUCTS, "Decimal", "Bits"}
"""the case-sensitive names of Connect and Debezium; all other words are SQL's, in any case"""


def named(kind: str, name: str | None, parameters: Mapping[str, Any]) -> Type:
    """A scalar type with Connect's name of its semantic type. If the name is unknown, only the kind counts.

    Raises KeyError if Connect does not have the kind, and ValueError if a parameter is not a number.
    """
    short = _short(name or "")
    if short in _LOGICAL and _LOGICAL[short][0] == kind:
        return Type(kind, short)
    if short == "Decimal" and kind == "bytes":
        return _decimal(int(parameters.get("connect.decimal.precision") or DIGITS), int(parameters["scale"]))
    if short == "Bits" and kind == "bytes":
        return Type(kind, short, (int(parameters["length"]),))
    _ = _PLAIN[kind]
    return Type(kind)


def _decimal(precision: int, scale: int, kind: str = "bytes") -> Type:
    """A decimal type. PostgreSQL allows scales above the precision, and negative ones."""
    return Type(kind, "Decimal" if kind == "bytes" else "", (max(precision, scale, 1), scale))


def _short(name: str) -> str:
    for package in _PACKAGES:
        if name.startswith(package):
            return name.removeprefix(package)
    return ""


def of_schema(schema: Any, levels: int = _MAX_LEVELS) -> Type | None:
    """The type of a schema that ``JsonConverter`` embeds; None if it is not such a schema."""
    try:
        return _of_schema(schema, levels)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _of_schema(schema: Mapping[str, Any], levels: int) -> Type:
    if not levels:
        raise ValueError("too many types within each other")
    kind, below = schema["type"], levels - 1
    if kind == "array":
        return Type(kind, inner=(_of_schema(schema["items"], below),))
    if kind == "map":
        return Type(kind, inner=(_of_schema(schema["keys"], below), _of_schema(schema["values"], below)))
    if kind == "struct":
        struct = _STRUCTS.get(_short(schema.get("name") or ""))
        fields = schema["fields"]
        names = tuple(str(field["field"]) for field in fields)
        if struct is not None and set(names) <= set(struct.names):
            return struct
        if len(set(names)) < len(names) or not names:
            raise ValueError("a struct has each field once, and one at least")
        return Type(kind, inner=tuple(_of_schema(field, below) for field in fields), names=names)
    return named(kind, schema.get("name"), schema.get("parameters") or {})


# ---------------------------------------------------------------- texts


@text_cache(4096)
def type_of(text: str) -> Type:
    """Parse the text of a type. Raises ValueError if it is invalid."""
    tokens: list[tuple[str, str]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise value_error(f"{text!r} is no type of a column: unexpected text at position {position}")
        tokens.append((match[1].replace("``", "`") if match[1] else match[2] or "", match[3] or ""))
        position = match.end()
    reader = _Reader(text, tokens)
    type = reader.type(_MAX_LEVELS)
    if reader.place < len(tokens):
        raise ValueError(f"{text!r} is no type of a column: it continues after the type")
    return type


class _Reader:
    def __init__(self, text: str, tokens: list[tuple[str, str]]) -> None:
        self.text, self.tokens, self.place = text, tokens, 0

    def type(self, levels: int) -> Type:
        if not levels:
            raise ValueError(f"{self.text!r} has more than {_MAX_LEVELS} types within each other")
        word = self.word()
        match word.lower():
            case "array" as kind:
                return Type(kind, inner=tuple(self.inner(1, levels)))
            case "map" as kind:
                return Type(kind, inner=tuple(self.inner(2, levels)))
            case "struct" as kind:
                names: list[str] = []
                inner = tuple(self.inner(None, levels, names))
                return Type(kind, inner=inner, names=tuple(names))
        return self.simple(word)

    def simple(self, word: str) -> Type:
        short = _short(word) or word
        if short not in _NAMES:
            short = word.upper()
        if short in _AMBIGUOUS:
            raise value_error(
                f"{self.text!r} does not say how the value is written: use {_AMBIGUOUS[short]} in a mapping"
            )
        short = _SQL_WORDS.get(short, short)
        if short in _PLAIN:
            return Type(short)
        if short in _LOGICAL:
            return Type(_LOGICAL[short][0], short)
        if short in _STRUCTS:
            return _STRUCTS[short]
        if short in ("Decimal", "DECIMAL"):
            precision, scale = self.arguments(2)
            return _decimal(precision, scale, "bytes" if short == "Decimal" else "number")
        if short == "Bits":
            return Type("bytes", short, tuple(self.arguments(1)))
        sql = ", ".join(word for word in _SQL_WORDS if word != "INTEGER")
        others = ", ".join((*_PLAIN, *_LOGICAL, *_STRUCTS, "Decimal(p,s)", "Bits(n)"))
        raise value_error(
            f"{self.text!r} is no type of a column: use one of {sql}, DECIMAL(p,s), array<>, map<,> or struct<name:…>, "
            f"or a type of Connect and Debezium: {others}"
        )

    def inner(self, count: int | None, levels: int, names: list[str] | None = None) -> list[Type]:
        self.expect("<")
        types: list[Type] = []
        while True:
            if names is not None:
                names.append(self.word())
                self.place += self.peek() == ":"
            types.append(self.type(levels - 1))
            if self.peek() != ",":
                break
            self.place += 1
        self.expect(">")
        if count is not None and len(types) != count:
            raise value_error(f"{self.text!r} is no type of a column: {count} types are expected within < and >")
        return types

    def arguments(self, count: int) -> list[int]:
        self.expect("(")
        numbers = []
        for k in range(count):
            if k:
                self.expect(",")
            word = self.word()
            if not word.removeprefix("-").isdecimal():
                raise ValueError(f"{self.text!r} is no type of a column: {word!r} is no number")
            numbers.append(int(word))
        self.expect(")")
        return numbers

    def peek(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def word(self) -> str:
        word = self.tokens[self.place][0] if self.place < len(self.tokens) else ""
        if not word:
            raise ValueError(f"{self.text!r} is no type of a column: a name is missing")
        self.place += 1
        return word

    def expect(self, sign: str) -> None:
        if self.peek() != sign:
            raise ValueError(f"{self.text!r} is no type of a column: {sign!r} is missing")
        self.place += 1


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f"`{name.replace('`', '``')}`"


# ---------------------------------------------------------------- versions of one column

INTEGER_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""how many digits a decimal needs for each type of integers, the narrowest type first"""
_FLOATS: Final = {
    pa.float32(): (pa.int8(), pa.int16()),
    pa.float64(): (pa.int8(), pa.int16(), pa.int32(), pa.float32()),
}
"""the types whose values each floating-point type holds exactly"""
_LEAST: Final = {
    frozenset({pa.int32(), pa.float32()}): pa.float64(),
    frozenset({pa.date32(), LOCAL}): LOCAL,
}
"""pairs whose common type is neither of the two, or is one of dates"""
_LOCAL_TIMES: Final = ("Date", "IsoDate", "Timestamp", "MicroTimestamp", "NanoTimestamp", "IsoTimestamp")
"""types of local dates and times, each one of which holds the values of those before it"""
TEXT: Final = Type("string")
Digits = tuple[int, int]
"""of a decimal: the digits before and after the point"""


def wider(one: pa.DataType, other: pa.DataType, *, checked: bool = False) -> pa.DataType | None:
    """The narrowest SQL type that holds the values of two types; None if there is none but STRING.

    With ``checked``, a DOUBLE holds every number: for a reader that reports the values that a DOUBLE does not have.
    """
    if one == other:
        return one
    integers = [type in INTEGER_DIGITS for type in (one, other)]
    if all(integers):
        return max(one, other, key=INTEGER_DIGITS.__getitem__)
    for narrow, wide in ((one, other), (other, one)):
        if narrow in _FLOATS.get(wide, ()):
            return wide
    if checked and all(type in INTEGER_DIGITS or type in _FLOATS for type in (one, other)):
        return pa.float64()
    least = _LEAST.get(frozenset({one, other}))
    if least is not None:
        return least
    digits = [_digits_of(type) for type in (one, other)]
    if digits[0] is None or digits[1] is None:
        return None
    whole, scale = wider_digits(digits[0], digits[1])
    return pa.decimal128(whole + scale, scale) if whole + scale <= DIGITS else None


def wider_digits(one: Digits, other: Digits) -> Digits:
    """The digits of a decimal that holds the values of two others."""
    return max(one[0], other[0]), max(one[1], other[1])


def _digits_of(type: pa.DataType) -> Digits | None:
    """The digits of a decimal or an integer; None for any other type."""
    if pa.types.is_decimal(type):
        return type.precision - type.scale, type.scale
    return (INTEGER_DIGITS[type], 0) if type in INTEGER_DIGITS else None


def widest(types: Iterable[pa.DataType]) -> pa.DataType:
    """The narrowest SQL type that holds the values of all these types; STRING if no other does."""
    return reduce(lambda one, other: wider(one, other) or pa.string(), sorted(dict.fromkeys(types), key=str))


def combined(types: Iterable[Type]) -> Type:
    """The narrowest type that holds the values of all versions of a column, whatever their order; STRING if no other does."""
    versions = sorted(dict.fromkeys(types), key=str)
    return reduce(_wider, versions) if versions else TEXT


def _wider(one: Type, other: Type) -> Type:
    if one == other:
        return one
    if one.kind == other.kind == "array":
        return Type("array", inner=(_wider(one.inner[0], other.inner[0]),))
    if one.logical in _LOCAL_TIMES and other.logical in _LOCAL_TIMES:
        return max(one, other, key=lambda one: _LOCAL_TIMES.index(one.logical))
    are_plain = [type.kind in _PLAIN and not type.logical for type in (one, other)]
    if all(are_plain):
        found = wider(one.arrow, other.arrow)
        return next((Type(kind) for kind, arrow in _PLAIN.items() if arrow == found), TEXT)
    # A decimal of Connect can have more digits than one of Arrow.
    digits = [
        (type.arguments[0] - type.arguments[1], type.arguments[1])
        if is_decimal(type)
        else _digits_of(type.arrow)
        if is_plain
        else None
        for type, is_plain in zip((one, other), are_plain, strict=True)
    ]
    if digits[0] is None or digits[1] is None:
        return TEXT
    whole, scale = wider_digits(digits[0], digits[1])
    return _decimal(whole + scale, scale, next(t.kind for t in (one, other) if is_decimal(t)))
