"""Check whether a typed value equals the database's text, which is parsed by the database's type in plain Python."""

from __future__ import annotations

import datetime
import json
import re
import struct
from decimal import Decimal
from typing import Any

EPOCH = datetime.datetime(1970, 1, 1)
SECOND = 10**6
DAY = 86_400 * SECOND


def same(value: Any, logical: str, type: str, text: str | None) -> bool:
    """Whether ``value``, of a column with Debezium's type ``logical``, equals the text of the database's ``type``."""
    if value is None or text is None:
        return value is None and text is None
    if isinstance(value, bool):
        return value == (text not in ("false", "0", "f") and not (type == "tinyint(1)" and int(text) <= 0))
    if isinstance(value, list):
        return same_list(value, logical, type, text)
    if isinstance(value, dict):
        return same_point(value, text)
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1) == duration(text)
    if isinstance(value, datetime.datetime):
        micros = (value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)
        return micros == (moment(text) // 1000 * 1000 if logical == "Timestamp" else moment(text))
    if isinstance(value, datetime.date):
        return value.isoformat() == text
    if isinstance(value, Decimal):
        return value == number(text)
    if isinstance(value, int):
        return value == int(text) or ("unsigned" in type and value == int(text) - 2**64)
    if isinstance(value, float):
        return same_float(value, type, text)
    if isinstance(value, bytes):
        return same_bytes(value, logical, text)
    return same_text(value, logical, type, text)


def same_list(value: list[Any], logical: str, type: str, text: str) -> bool:
    if (value and isinstance(value[0], tuple)) or type == "hstore":
        return dict(value) == hstore(text)
    if logical == "EnumSet":
        return value == (text.split(",") if text else [])
    items, inner = array(text), type.rsplit("[", 1)[0]
    item = logical.removeprefix("array<").removesuffix(">")
    return len(items) == len(value) and all(same(a, item, inner, b) for a, b in zip(value, items, strict=True))


def same_point(value: dict[str, Any], text: str) -> bool:
    """Compare with PostgreSQL's ``(1,2)``, and ``POLYGON((0 0,1 0))`` from ST_AsText."""
    result = numbers(text)
    points = list(zip(result[::2], result[1::2], strict=True))
    well_known = value["wkb"]
    [kind] = struct.unpack_from("<I", well_known, 1)
    count, start = (1, 5) if kind == 1 else (struct.unpack_from("<I", well_known, 5)[0], 9)
    held = [struct.unpack_from("<dd", well_known, start + 16 * k) for k in range(count)]
    return held == points and ("x" not in value or (value["x"], value["y"]) == points[0])


def same_float(value: float, type: str, text: str) -> bool:
    expected = float(re.sub(r"[$,]", "", text))
    if expected != expected:
        return value != value
    return value == expected or (
        type in ("real", "float") and value == struct.unpack("<f", struct.pack("<f", expected))[0]
    )


def same_bytes(value: bytes, logical: str, text: str) -> bool:
    if logical.startswith("Bits"):
        return int.from_bytes(value, "big") == (int(text, 2) if text else 0)
    return value.hex() == text


def same_text(value: str, logical: str, type: str, text: str) -> bool:
    if logical in ("Time", "MicroTime", "IsoTime"):
        expected = clock(text)
        return clock(value) == (expected // 1000 * 1000 if logical == "Time" else expected)
    if logical == "ZonedTime":
        zoned = re.fullmatch(r"([\d:.]+)([+-].*)", text)
        assert zoned is not None
        return value.endswith("Z") and clock(value[:-1]) == (clock(zoned[1]) - offset(zoned[2])) % DAY
    if logical == "Interval":
        return interval_parts(value) == months_days_micros(text)
    if re.match(r"numeric|decimal|money|.*\.d_amt", type):
        return number(text) == Decimal(value) if text != "NaN" else value.upper() == "NAN"
    if type == "hstore":
        return bool(json.loads(value) == hstore(text))
    if type == "inet":
        return value == re.sub(r"/(32|128)$", "", text)
    if type in ("box", "circle", "int4multirange"):
        return numbers(bytes.fromhex(value).decode()) == numbers(text)
    return value == text


# ---------------------------------------------------------------- texts of databases


def number(text: str) -> Decimal:
    return Decimal(re.sub(r"[$,]", "", text))


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]


def clock(text: str) -> int:
    """Microseconds since midnight."""
    match = re.fullmatch(r"(-?)(\d+):(\d\d)(?::(\d\d)(?:\.(\d+))?)?", text)
    assert match is not None, text
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)
    micros = seconds * SECOND + int(((match[5] or "") + "000000")[:6])
    return -micros if match[1] else micros


def offset(text: str) -> int:
    if text in ("", "Z"):
        return 0
    minutes = int(text[4:6]) if len(text) > 3 else 0
    return (1 if text[0] == "+" else -1) * (int(text[1:3]) * 3600 + minutes * 60) * SECOND


def moment(text: str) -> int:
    """Microseconds since 1970; -1 << 63 if Python cannot represent the day."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)[ T](\d+:\d\d(?::\d\d)?(?:\.\d+)?)(Z|[+-]\d\d(?::?\d\d)?)?", text)
    if match is None:
        return -1 << 63
    try:
        day = datetime.date.fromisoformat(match[1])
    except ValueError:
        return -1 << 63
    return (day - EPOCH.date()).days * DAY + clock(match[2]) - offset(match[3] or "")


def months_days_micros(text: str) -> tuple[int, int, int]:
    months = days = micros = 0
    for count, unit in re.findall(r"([+-]?\d+) (year|mon|day)s?", text):
        months += int(count) * {"year": 12, "mon": 1, "day": 0}[unit]
        days += int(count) if unit == "day" else 0
    time = re.search(r"([+-]?)(\d+:\d\d:\d\d(?:\.\d+)?)", text)
    if time is not None:
        micros = clock(time[2]) * (-1 if time[1] == "-" else 1)
    return months, days, micros


def duration(text: str) -> int:
    months, days, micros = months_days_micros(text)
    return months * 2_629_800 * SECOND + days * DAY + micros


def interval_parts(text: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"P(-?\d+)Y(-?\d+)M(-?\d+)DT(-?\d+)H(-?\d+)M(-?[\d.]+)S", text)
    assert match is not None, text
    seconds = int(match[4]) * 3600 + int(match[5]) * 60 + Decimal(match[6])
    return int(match[1]) * 12 + int(match[2]), int(match[3]), int(seconds * SECOND)


def array(text: str) -> list[str | None]:
    """The items of PostgreSQL's ``{a,"b c",NULL}``."""
    if text == "{}":
        return []
    result: list[str | None] = []
    for quoted, plain in re.findall(r'[{,](?:"((?:[^"\\]|\\.)*)"|([^",}][^,}]*))', text):
        result.append(re.sub(r"\\(.)", r"\1", quoted) if not plain else None if plain == "NULL" else plain)
    return result


def hstore(text: str) -> dict[str, str | None]:
    pairs = re.findall(r'"((?:[^"\\]|\\.)*)"=>(NULL|"(?:[^"\\]|\\.)*")', text)
    return {plain(key): None if value == "NULL" else plain(value[1:-1]) for key, value in pairs}


def plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
