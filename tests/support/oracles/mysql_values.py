"""The values in messages of Canal and Maxwell, by the type of their column, read one at a time.

Shares no code with the package. A value that does not fit its column is None, and its text is unexpected.
"""

from __future__ import annotations

import base64
import re
import struct
from decimal import Decimal
from typing import Any, NamedTuple

from tests.support.oracles.mysql_truth import kind, members, moment

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_SIZES = ("tinyint", "smallint", "int", "bigint")
_SQL = {
    "mediumint": "INT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "datetime": "TIMESTAMP_NTZ",
    "timestamp": "TIMESTAMP",
    "year": "INT",
    "set": "ARRAY<STRING>",
}
_MOMENTS = ("date", "datetime", "timestamp")


class Value(NamedTuple):
    value: Any
    unexpected: str | None = None


def sql_type(type: str) -> str:
    """The SQL type of a column that is given by the user, as the documentation of ``columns`` says."""
    name, numbers = kind(type), [int(number) for number in re.findall(r"\d+", type)]
    if name in _SIZES:
        size = _SIZES.index(name) + ("unsigned" in type)
        return ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(20,0)")[size]
    if name == "decimal":
        return f"DECIMAL({numbers[0]},{numbers[1]})" if numbers[0] <= 38 else "STRING"
    if name == "bit":
        return "BIGINT" if numbers[0] < 64 else "DECIMAL(20,0)"
    return "BINARY" if name in _BYTES else _SQL.get(name, "STRING")


def canal_value(type: str, text: str | None, *, is_mariadb: bool = False) -> Value:
    """A value of a flat message of Canal: always a text. ``type`` is that of ``mysqlType``."""
    if text is None:
        return Value(None)
    name = kind(type)
    if name in ("bit", "boolean") or name in _INTEGERS:
        return Value(int(text))
    if name in _BYTES or name in ("point", "geometry"):
        return Value(text.encode("latin-1"))
    if name == "json":
        return Value(text.encode("latin-1").decode() if is_mariadb else text)
    if name == "enum":
        return Value(members(type)[int(text) - 1])
    if name == "set":
        return Value([member for place, member in enumerate(members(type)) if int(text) >> place & 1])
    return _plain(name, type, text)


def maxwell_value(type: str, text: str, value: Any) -> Value:
    """A value of Maxwell: as it is written, and as JSON with Decimal. ``type`` is the database's; geometries are texts."""
    name = kind(type)
    if isinstance(value, (dict, list)) and name != "set":
        return Value(text)
    if value == [""]:
        return Value([])  # a bootstrap's empty set
    if value is None or name in ("enum", "set", "point", "geometry", "bit") or name in _INTEGERS:
        return Value(value)
    if name in _BYTES:
        return Value(base64.b64decode(value))
    return _plain(name, type, str(value))


def _plain(name: str, type: str, text: str) -> Value:
    if name == "decimal":
        precision, scale = map(int, re.findall(r"\d+", type)) if "(" in type else (None, 0)
        if precision is None:
            return Value(text)
        return Value(Decimal(text) if precision <= 38 else f"{Decimal(text):.{scale}f}")
    if name == "float":
        return Value(*struct.unpack("<f", struct.pack("<f", float(text))))
    if name == "double":
        return Value(float(text))
    if name in _MOMENTS:
        found = moment(name, text)
        return Value(found, None if found is not None else text)
    return Value(text)
