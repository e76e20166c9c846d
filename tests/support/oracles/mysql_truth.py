"""Check whether a value equals the text that MySQL or MariaDB prints for it, by the column's type in the database.

Shares no code with the package. Values are what Arrow gives to Python. Dates that no calendar has are no values: the row has
their text in ``_unexpected_``.
"""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

UTC = datetime.UTC
Point = tuple[float, float]


def same(value: Any, type: str, text: str | None, unexpected: str | None = None) -> bool:
    """Whether a value, with the text that its row has in ``_unexpected_``, equals the text of the database."""
    if text is None:
        return value is None and unexpected is None
    name = kind(type)
    if name in _MOMENTS and moment(name, text) is None:
        return value is None and unexpected == text
    return value is not None and unexpected is None and _SAME.get(name, same_text)(value, type, text)


@cache
def kind(type: str) -> str:
    """The name of a type without its parameters."""
    match = re.match(r"[a-z]+", type)
    assert match is not None, type
    return match[0]


def moment(name: str, text: str) -> datetime.date | datetime.datetime | None:
    """A date or time of day and date; None if the calendar does not have it."""
    try:
        if name == "date":
            return datetime.date.fromisoformat(text)
        result = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return result.replace(tzinfo=UTC) if name == "timestamp" else result


def members(type: str) -> list[str]:
    """The members of an enum or a set."""
    return [member.replace("''", "'") for member in re.findall(r"'((?:[^']|'')*)'", type)]


def points(text: str) -> list[Point]:
    """The points of ``POINT(1 2)`` or ``POLYGON((0 0,1 0))``."""
    numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?", text)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def points_of_wkb(value: bytes) -> list[Point]:
    """The points of little-endian WKB; of lines and points alone, as the golden data have no others."""
    [shape] = struct.unpack_from("<I", value, 1)
    count, start = (1, 5) if shape == 1 else (struct.unpack_from("<I", value, 5)[0], 9)
    return [struct.unpack_from("<dd", value, start + 16 * k) for k in range(count)]


def same_number(value: Any, type: str, text: str) -> bool:
    return Decimal(value) == Decimal(text)


def same_float(value: Any, type: str, text: str) -> bool:
    return struct.pack("<f", value) == struct.pack("<f", float(text))


def same_double(value: Any, type: str, text: str) -> bool:
    """Not the sign of zero: the database prints both as 0."""
    return float(value) == float(text)


def same_bit(value: Any, type: str, text: str) -> bool:
    return int(value) == int(text, 2)


def same_bytes(value: Any, type: str, text: str) -> bool:
    """Canal and Maxwell cut the zero bytes at the end of BINARY(n)."""
    given, expected = bytes(value), bytes.fromhex(text)
    return given == expected or (kind(type) == "binary" and given.ljust(len(expected), b"\0") == expected)


def same_set(value: Any, type: str, text: str) -> bool:
    return list(value) == (text.split(",") if text else [])


def same_geometry(value: Any, type: str, text: str) -> bool:
    """Canal's bytes are the SRID and WKB, Maxwell's text is WKT."""
    return (points(value) if isinstance(value, str) else points_of_wkb(bytes(value)[4:])) == points(text)


def same_moment(value: Any, type: str, text: str) -> bool:
    return bool(value == moment(kind(type), text))


def same_text(value: Any, type: str, text: str) -> bool:
    return bool(value == text)


_MOMENTS = ("date", "datetime", "timestamp")
_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year", "decimal")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_SAME: dict[str, Callable[[Any, str, str], bool]] = {
    "float": same_float,
    "double": same_double,
    "bit": same_bit,
    "set": same_set,
    "point": same_geometry,
    "geometry": same_geometry,
    **dict.fromkeys(_MOMENTS, same_moment),
    **dict.fromkeys(_NUMBERS, same_number),
    **dict.fromkeys(_BYTES, same_bytes),
}
