"""Compare changes with what Apache Flink's readers return for the same messages."""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.support.cdc_golden import Judged, JudgedRow, texts
from tests.support.table_replay import LIVE, Change

Reason = Callable[[int, str, Any, "str | None"], "str | None"]
"""why Flink is wrong, by the message's number, the column, the value and Flink's text; None if nobody knows. For all rows of a
message, the column is empty."""
_NOT_PRINTED = ("ARRAY", "ROW")
"""types whose values the judge's files do not have"""


@dataclass
class Agreement:
    """How many messages Flink reads, and in which values it differs."""

    messages: int = 0
    read: int = 0
    """messages with rows"""
    same: int = 0
    """of these, messages with the same values"""
    failed: int = 0
    """messages at which Flink's job ends, although they have rows"""
    reasons: Counter[str] = field(default_factory=Counter)
    """values that differ"""
    unexplained: list[tuple[Any, ...]] = field(default_factory=list)


def flink_columns(system: str, kind: str) -> dict[str, dict[str, str]]:
    """The columns that Flink was given, by table: their types."""
    result = {}
    for line in texts(system, f"judge/schemas.{kind}.tsv"):
        table, _, row = line.partition("\t")
        result[table] = dict(re.findall(r"`((?:[^`]|``)+)` ([A-Z]+(?:<[^>]*>)?(?:\([^)]*\))?)", row))
    return result


def compare(
    judged: Sequence[Judged],
    changes: Sequence[Sequence[Change]],
    columns: Mapping[str, Mapping[str, str]],
    reason: Reason,
) -> Agreement:
    """Compare Flink's rows with the changes of each message."""
    result = Agreement(messages=len(judged))
    for line, (theirs, ours) in enumerate(zip(judged, changes, strict=True)):
        if theirs.error is not None:
            result.failed += bool(ours)
        elif theirs.rows:
            result.read += 1
            result.same += _compare_rows(line, theirs.rows, ours, columns[theirs.table], reason, result)
    return result


def _compare_rows(
    line: int,
    theirs: Sequence[JudgedRow],
    ours: Sequence[Change],
    types: Mapping[str, str],
    reason: Reason,
    result: Agreement,
) -> bool:
    expected = [row for change in ours for row in flink_rows(change)]
    if [kind for kind, _ in expected] != [row.kind for row in theirs]:
        why = reason(line, "", None, None)
        if why is None:
            result.unexplained.append((line, [kind for kind, _ in expected], [row.kind for row in theirs]))
        result.reasons[str(why)] += 1
        return False
    all_equal = True
    for (kind, row), judged_row in zip(expected, theirs, strict=True):
        for (name, type), text in zip(types.items(), judged_row.values, strict=True):
            value = row.get(name)
            if type.startswith(_NOT_PRINTED) or equal(value, type, text):
                continue
            all_equal = False
            why = reason(line, name, value, text)
            if why is None:
                result.unexplained.append((line, kind, name, type, value, text))
            result.reasons[str(why)] += 1
    return all_equal


def flink_rows(change: Change) -> list[tuple[str, Mapping[str, Any]]]:
    """The rows of Flink's changelog for a change. It has nothing for a TRUNCATE."""
    if change.op == "UPDATE":
        return [("-U", change.before or {}), ("+U", change.row)]
    if change.op in LIVE:
        return [("+I", change.row)]
    return [("-D", change.row)] if change.op == "DELETE" else []


def equal(value: Any, type: str, text: str | None) -> bool:
    """Whether a value equals what Flink prints for its type."""
    if value is None or text is None:
        return value is None and text is None
    name = type.partition("(")[0]
    return bool(_EQUAL.get(name, _same_text)(value, text))


def _same_text(value: Any, text: str) -> bool:
    """Flink reads any type as STRING: a JSON value as its text, a number as Jackson prints it."""
    if isinstance(value, datetime.datetime):
        return _same_moment(value, text.removesuffix("Z"))
    if isinstance(value, list):
        items = [base64.b64encode(item).decode() if isinstance(item, bytes) else item for item in value]
        return bool(items == json.loads(text))
    return str(value) == text or (_is_number(value) and _is_number(text) and Decimal(value) == Decimal(text))


def _is_number(text: Any) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(E-?\d+)?", str(text)) is not None


def _same_moment(value: Any, text: str) -> bool:
    if not isinstance(value, datetime.datetime):
        return str(value) == text
    return value.replace(tzinfo=None) == datetime.datetime.fromisoformat(text)


def _same_time(value: Any, text: str) -> bool:
    def seconds(clock: str) -> Decimal:
        hours, minutes, rest = (clock + ":0").split(":")[:3]
        return Decimal(hours) * 3600 + Decimal(minutes) * 60 + Decimal(rest)

    return not value.startswith("-") and seconds(value) == seconds(text)


_EQUAL: dict[str, Callable[[Any, str], bool]] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL"), lambda value, text: Decimal(value) == Decimal(text)
    ),
    "FLOAT": lambda value, text: struct.pack("<f", value) == struct.pack("<f", float(text)),
    "DOUBLE": lambda value, text: float(value) == float(text) or (math.isnan(value) and text == "NaN"),
    "BOOLEAN": lambda value, text: bool(value) == (text == "true"),
    "TIMESTAMP": _same_moment,
    "TIMESTAMP_LTZ": _same_moment,
    "TIME": _same_time,
    "DATE": lambda value, text: value.isoformat() == text,
    "BYTES": lambda value, text: bytes(value).hex() == text,
}
