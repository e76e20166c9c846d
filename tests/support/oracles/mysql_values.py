"""The values in messages of Canal and Maxwell, by the type of their column, read one at a time.

Shares no code with the package. A value that does not fit its column is None, and its text is unexpected.
"""

from __future__ import annotations

import base64
import re
from decimal import Decimal
from typing import Any, NamedTuple

from tests.support.oracles.mysql_truth import kind, members, moment

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_MOMENTS = ("date", "datetime", "timestamp")


class Value(NamedTuple):
    value: Any
    unexpected: str | None = None


def canal_value(type: str, text: str | None) -> Value:
    """A value of a flat message of Canal: always a text. ``type`` is that of ``mysqlType``."""
    if text is None:
        return Value(None)
    name = kind(type)
    if name in ("bit", "boolean") or name in _INTEGERS:
        return Value(int(text))
    if name in _BYTES or name in ("point", "geometry"):
        return Value(text.encode("latin-1"))
    if name == "json":
        return Value(text.encode("latin-1").decode())
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
    if value is None or name in ("enum", "set", "point", "geometry", "bit") or name in _INTEGERS:
        return Value(value)
    if name in _BYTES:
        return Value(base64.b64decode(value))
    return _plain(name, type, str(value))


def _plain(name: str, type: str, text: str) -> Value:
    if name == "decimal":
        match = re.search(r"\((\d+)", type)
        return Value(Decimal(text) if match and int(match[1]) <= 38 else text)
    if name in ("float", "double"):
        return Value(float(text))
    if name in _MOMENTS:
        found = moment(name, text)
        return Value(found, None if found is not None else text)
    return Value(text)
