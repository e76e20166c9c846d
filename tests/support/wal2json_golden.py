"""wal2json's golden messages, and the tables of the database at six moments."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tests.support import DATA
from tests.support.cdc_golden import Column, Point, Record, TableTruth

VARIANT = "wal2json"
TOPIC = "shop.wal2json"
_FOLDER = DATA / "wal2json"


class Origin(NamedTuple):
    """A table of the scenario."""

    keys: list[str]
    columns: dict[str, str]
    """PostgreSQL's types, as the scenario declares them"""


@cache
def records() -> list[Record]:
    """The messages of format version 2, in the order of sending."""
    lines = lzma.decompress((_FOLDER / "messages.jsonl.xz").read_bytes()).removesuffix(b"\n").split(b"\n")
    return [Record(TOPIC, 0, offset, None, line, []) for offset, line in enumerate(lines)]


def version_1() -> list[Record]:
    """Messages of format version 1."""
    lines = (_FOLDER / "version1.jsonl").read_bytes().removesuffix(b"\n").split(b"\n")
    return [Record(TOPIC, 0, offset, None, line, []) for offset, line in enumerate(lines)]


@cache
def _moments() -> Mapping[str, Any]:
    result: Mapping[str, Any] = json.loads(lzma.decompress((_FOLDER / "moments.json.xz").read_bytes()))
    return result


def tables() -> dict[str, Origin]:
    return {name: Origin(**table) for name, table in _moments()["tables"].items()}


@cache
def points() -> list[Point]:
    """The tables at every moment."""
    result, sent = [], 0
    for number, moment in enumerate(_moments()["moments"]):
        sent += moment["messages"]
        truths = {
            name: TableTruth(
                name, table.keys, [Column(*column) for column in table.columns.items()], moment["tables"][name]
            )
            for name, table in tables().items()
        }
        result.append(Point(number, {VARIANT: sent}, truths))
    return result


_LOST = {"NaN", "Infinity", "-Infinity"}
"""numbers that wal2json writes as null"""


def same(value: Any, type: str, text: str | None, unexpected: str | None = None) -> bool:
    """Whether a value, which its row should not have in ``_unexpected_``, equals PostgreSQL's text."""
    if text in _LOST and type in ("real", "double precision", "numeric"):
        text = None
    if unexpected is not None or value is None or text is None:
        return unexpected is None and value is None and text is None
    match type:
        case "char(4)":  # PostgreSQL's cast to text removes the spaces at the end
            return bool(value == text.ljust(4))
        case "inet":  # the same cast adds the length of the mask
            return bool(value == text.removesuffix("/32"))
        case "real":
            return bool(np.float32(value) == np.float32(text))
        case "double precision":
            return bool(value == float(text))
    return _text(value) == text


def _text(value: Any) -> str:
    """PostgreSQL's text of a value."""
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return f"\\x{value.hex()}"
        case datetime():
            shown = value.isoformat(" ", "microseconds").replace("+00:00", "")
            shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
            return f"{shown}+00" if value.utcoffset() == timedelta(0) else shown
        case date():
            return value.isoformat()
    return str(value)
