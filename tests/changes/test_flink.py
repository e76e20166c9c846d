"""Apache Flink's own formats: its readers over the golden messages, and the messages that it writes."""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import pytest

from sparkwire.core.names import table_name
from tests.changes import test_golden_debezium, test_golden_maxwell
from tests.support import ROOT
from tests.support import cdc_golden as golden
from tests.support.decoded import as_changes, changes_by_table, changes_of
from tests.support.flink_judge import Agreement, compare, flink_columns
from tests.support.oracles.mysql_truth import kind
from tests.support.table_replay import Change

PAGE = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
BOOLEAN = "BOOLEAN of a number is `false`"
JSON_AGAIN = "JSON has lost its spaces"
ENUM = "ENUM and SET are numbers"
TIME = "TIME has lost 24 hours or its microseconds"
OLD_ROW = "a value of an old row is NULL, because a later row of the message changes the column"
PLACEHOLDER = "an unchanged TOAST value is the placeholder"
FILLER = "a column of a deleted row, which PostgreSQL did not log, is its default"
VARIABLE = "NUMERIC without a scale is a JSON object"


class Judge(NamedTuple):
    """A file of Flink's results."""

    system: str
    variant: str
    name: str
    columns: str


JUDGES = {
    "Canal": Judge("canal", "flat", "canal-json.flat.bool", "bool"),
    "Maxwell": Judge("maxwell", "default", "maxwell-json.default.bool", "bool"),
    "Debezium": Judge("postgres2", "numeric", "debezium-json.numeric.typed", "typed"),
}


def changes_of_messages(judge: Judge) -> list[list[Change]]:
    """The changes in each message."""
    records = golden.records(judge.system, judge.variant)
    found: list[Change] = []
    if judge.system == "postgres2":
        found = test_golden_debezium.changes(judge.variant)
    elif judge.system == "canal":
        for table, decoded in changes_by_table(records, "canal").items():
            found += as_changes(decoded, table)
    else:
        for table, columns in test_golden_maxwell.columns().items():
            decoded = changes_of(records, "maxwell", table, columns=columns)
            found += as_changes(decoded, table)
    result: list[list[Change]] = [[] for _ in records]
    for change in found:
        result[change.line].append(change)
    return result


@cache
def agreement(system: str) -> tuple[Agreement, Counter[str]]:
    """How far Flink agrees, and why it fails at messages with rows."""
    judge = JUDGES[system]
    judged = golden.judged(judge.system, judge.name)
    changes, columns = changes_of_messages(judge), flink_columns(judge.system, judge.columns)
    messages = [json.loads(record.value or b"null") for record in golden.records(judge.system, judge.variant)]
    tables = set(columns)
    if judge.system != "postgres2":  # Flink read the messages of other tables with the columns of one
        own = [
            line for line, message in enumerate(messages) if table_name(message["database"], message["table"]) in tables
        ]
        judged, changes = [judged[line] for line in own], [changes[line] for line in own]
        messages = [messages[line] for line in own]
    types = golden.column_types(judge.system)
    reasons = {"canal": why_canal, "maxwell": why_maxwell, "postgres2": why_debezium}[judge.system]

    def reason(line: int, column: str, value: Any, text: str | None) -> str | None:
        return reasons(messages[line], kind_of(types, messages[line], column), value, text)

    failures = Counter(
        why_failed(message, change)
        for message, one, change in zip(messages, judged, changes, strict=True)
        if one.error is not None and change
    )
    return compare(judged, changes, columns, reason), failures


def kind_of(types: Mapping[str, Mapping[str, str]], message: Mapping[str, Any], column: str) -> str:
    """The kind of a column of MySQL; empty if it is unknown."""
    declared = (message.get("mysqlType") or {}).get(column)
    known = types.get(table_name(message.get("database"), message.get("table")), {}).get(column)
    return kind(declared or known or "-") if declared or known else ""


def why_canal(message: Mapping[str, Any], type: str, value: Any, text: str | None) -> str | None:
    if text == "false" and value:
        return BOOLEAN
    if type in ("enum", "set"):
        return ENUM
    if type == "time":
        return TIME
    old = message["old"] or []
    return OLD_ROW if text is None and len({tuple(row) for row in old}) > 1 else None


def why_maxwell(message: Mapping[str, Any], type: str, value: Any, text: str | None) -> str | None:
    if text == "false" and value:
        return BOOLEAN
    if type == "longtext" and json.loads(value) == json.loads(text or ""):
        return JSON_AGAIN
    return TIME if type == "time" else None


def why_debezium(message: Mapping[str, Any], type: str, value: Any, text: str | None) -> str | None:
    placeholder = b"__debezium_unavailable_value"
    forms = (placeholder.decode(), placeholder.hex(), base64.b64encode(placeholder).decode())
    if value is None and any(form in (text or "") for form in forms):
        return PLACEHOLDER
    if message["op"] == "d" and value is None:
        return FILLER
    return VARIABLE if (text or "").startswith('{"scale":') else None


def why_failed(message: Mapping[str, Any], changes: Sequence[Change]) -> str:
    """Why Flink's job ends at a message with rows."""
    if message.get("type", "").startswith("bootstrap"):
        return "a row of a bootstrap"
    if any(change.op == "TRUNCATE" for change in changes):
        return "a TRUNCATE"
    if message.get("op") == "u" and message["before"] is None:
        return "an UPDATE without an old row"
    values = [value for change in changes for row in (change.row, change.before or {}) for value in row.values()]
    texts = [text for change in changes for text in change.unexpected.values()]
    if any(text.startswith("0000-00-00") for text in texts):
        return "a zero date"
    if any(isinstance(value, str) and value.startswith(("POINT", "LINESTRING", "POLYGON")) for value in values):
        return "a geometry"
    if any(isinstance(value, bytes) for value in values):
        return "BINARY that is not Base64"
    outside = re.compile(r"-\d+:\d\d:\d\d|(2[4-9]|[3-9]\d|\d{3}):\d\d:\d\d")
    assert any(isinstance(value, str) and outside.match(value) for value in values), message
    return "a TIME outside of a day"


@pytest.mark.parametrize("system", JUDGES)
def test_what_flink_reads_right_is_read_the_same(system: str) -> None:
    found, _ = agreement(system)
    assert found.unexplained == []


def test_the_page_has_the_numbers() -> None:
    messages = {row[0]: row[1:] for row in page_rows("| messages of |")}
    for system in JUDGES:
        found, _ = agreement(system)
        numbers = (found.messages, found.read + found.failed, found.same, found.read - found.same, found.failed)
        assert messages[system] == [str(number) for number in numbers]
    values = {row[0]: row[1:] for row in page_rows("| the value in Flink |")}
    assert values == counts({system: agreement(system)[0].reasons for system in JUDGES})
    failures = {row[0]: row[1:] for row in page_rows("| Flink's job ends at |")}
    assert failures == counts({system: agreement(system)[1] for system in JUDGES})


def counts(by_system: Mapping[str, Counter[str]]) -> dict[str, list[str]]:
    reasons = {reason for counter in by_system.values() for reason in counter}
    return {
        reason: [str(counter[reason]) if reason in counter else "" for counter in by_system.values()]
        for reason in reasons
    }


def page_rows(head: str) -> list[list[str]]:
    """The cells of the table with this head."""
    lines = PAGE[PAGE.index(head) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


# ---------------------------------------------------------------- what Flink writes

CHANGES = {"+I": "INSERT", "-U": "DELETE", "+U": "INSERT", "-D": "DELETE"}
FORMATS = {"canal-json": "canal", "maxwell-json": "maxwell", "debezium-json": "debezium", "ogg-json": "ogg"}
"""the format of sparkwire for each of Flink's"""


def column_type(type: str, format: str) -> str:
    """The type of a column for ``columns=``, of Flink's type."""
    name = type.partition("(")[0]
    if format == "debezium":
        return {
            "DATE": "IsoDate",
            "TIME": "IsoTime",
            "TIMESTAMP": "IsoTimestamp",
            "TIMESTAMP_LTZ": "ZonedTimestamp",
            "BYTES": "BINARY",
        }.get(name, type)
    return {"TIME": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP_LTZ": "TIMESTAMP", "BYTES": "BINARY"}.get(
        name, type
    )


def typed(type: str, text: str | None) -> Any:
    """The value of Flink's changelog."""
    name = type.partition("(")[0]
    if text is None:
        return None
    if name in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return int(text)
    if name == "DECIMAL":
        return Decimal(text)
    if name == "TIME":
        return text.rstrip("0").rstrip(".") if "." in text else text
    if name == "DATE":
        return datetime.date.fromisoformat(text)
    if name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return datetime.datetime.fromisoformat(text)
    if name == "BYTES":
        return base64.b64decode(text)
    if name == "BOOLEAN":
        return text == "true"
    return float(text) if name in ("DOUBLE", "FLOAT") else text


@pytest.mark.parametrize("format", FORMATS)
def test_the_messages_that_flink_writes(format: str) -> None:
    head, *log = golden.lines("flink", "changelog.jsonl")
    types = dict(head["columns"])
    values = [line.encode() for line in golden.texts("flink", f"messages.{format}.jsonl")]
    records = [golden.Record("t", 0, offset, None, value, []) for offset, value in enumerate(values)]
    columns = {name: column_type(type, FORMATS[format]) for name, type in types.items()}
    decoded = changes_of(records, FORMATS[format], "t", columns=columns, keys=("id",), before="full")
    assert decoded.lines == list(range(len(log)))
    for change, row in zip(log, decoded.rows, strict=True):
        assert (row["_op_"], row["_error_"], row["_unexpected_"]) == (CHANGES[change["kind"]], None, None)
        for name, type in types.items():
            expected = typed(type, change["row"][name])
            if type == "FLOAT" and expected is not None:
                assert row[name] == pytest.approx(expected, rel=1e-7)
            else:
                assert row[name] == expected, (name, type)
