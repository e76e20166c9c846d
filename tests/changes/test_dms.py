"""Records of AWS DMS: its user guide's settings, and what each of them makes of a row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.support import system_messages as m
from tests.support.decoded import changes_by_table, changes_of
from tests.support.system_messages import TABLE, dms, numbered, record

OPTIONS: dict[str, Any] = {"columns": m.COLUMNS, "keys": ("id",)}
OLD = {"id": 2, "name": "birch", "amount": "1.50"}


def rows(*messages: Any, **options: Any) -> list[dict[str, Any]]:
    given = OPTIONS | options
    return changes_of(numbered([record(one) for one in messages]), "dms", TABLE, **given).rows


def test_the_row_of_a_delete_is_in_data() -> None:
    [row] = rows(dms("delete"))
    assert (row["_op_"], row["id"], row["_before_"]["name"], row["_error_"]) == ("DELETE", 1, "amber", None)
    [row] = rows(dms("delete", {"id": 1}))
    assert (row["id"], row["name"], row["_error_"]) == (1, None, None)


def test_a_before_image_of_the_key_says_nothing_of_other_columns() -> None:
    """They are not the values of the new row."""
    [row] = rows(dms("update", **{"before-image": {"id": 2}}))
    assert (row["id"], row["name"], row["_before_"]) == (1, "amber", {"id": 2, "name": None, "amount": None})


def test_a_before_image_of_all_columns() -> None:
    [row] = rows(dms("update", **{"before-image": OLD}))
    assert (row["_before_"]["id"], row["_before_"]["name"]) == (2, "birch")


def test_an_empty_before_image_is_none() -> None:
    """PostgreSQL as the source may give it."""
    [row] = rows(dms("update", **{"before-image": {}}))
    assert (row["_before_"], row["_error_"]) == (None, None)


def test_a_before_image_with_another_name() -> None:
    """The task's FieldName is the user's to say."""
    message = dms("update", was={"id": 2})
    [row] = rows(message, renamed={"before-image": "was"})
    assert row["_before_"]["id"] == 2
    [row] = rows(message)
    assert row["_error_"] == "BAD_FIELD"


def test_a_further_member_that_is_no_old_row() -> None:
    """A transform may add it. Only an update that has no before image may have one with another name."""
    assert [row["_error_"] for row in rows(dms(added=1), dms(added={"a": 1}), dms("update", added=1))] == [None] * 3
    [row] = rows(dms("update", added={"a": 1}, **{"before-image": {"id": 1}}))
    assert row["_error_"] is None


def test_an_old_key_in_data() -> None:
    """A transformation rule puts it there: add-before-image-columns."""
    inside = [dms(op, {**m.ROW, "BI_id": 2}) for op in ("insert", "update")]
    assert [row["_error_"] for row in rows(*inside)] == [None, "BAD_FIELD"]
    [row] = rows(dms("update", {**m.ROW, "BI_name": "birch"}))
    assert (row["_unexpected_"], row["_error_"]) == ({"BI_name": "birch"}, None)
    [row] = rows(inside[1], columns=m.COLUMNS | {"BI_id": "INT"})
    assert (row["BI_id"], row["_error_"]) == (2, None)


def test_the_time_is_the_commit_if_the_record_has_it() -> None:
    made = datetime(2023, 11, 14, 22, 13, 21, tzinfo=UTC)
    committed = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    with_commit = dms(metadata={"commit-timestamp": "2023-11-14T22:13:20Z"})
    assert [row["_time_"] for row in rows(dms(), with_commit)] == [made, committed]
    [row] = rows(dms(metadata={"commit-timestamp": "soon"}))
    assert (row["_time_"], row["_error_"]) == (None, "BAD_FIELD")


def test_columns_and_keys_of_a_create_table_record() -> None:
    [row] = rows(dms("create-table", control=m.DMS_TABLE), dms(), columns=None, keys=None)
    assert (row["_keys_"], str(row["amount"]), row["name"]) == (["id"], "9.50", "amber")


@pytest.mark.parametrize(
    ("declared", "type"),
    [
        ({"type": "INT8"}, "int8"),
        ({"type": "UINT32"}, "int64"),
        ({"type": "UINT64"}, "decimal128(20, 0)"),
        ({"type": "NUMERIC", "precision": 38, "scale": 10}, "decimal128(38, 10)"),
        ({"type": "NUMERIC", "precision": 40, "scale": 10}, "string"),
        ({"type": "NUMERIC", "precision": 0, "scale": 0}, "string"),
        ({"type": "REAL4"}, "float"),
        ({"type": "DATETIME"}, "timestamp[us, tz=UTC]"),
        ({"type": "BYTES"}, "binary"),
        ({"type": "NCLOB"}, "string"),
        ({"type": "BOOLEAN"}, "bool"),
        ({"type": ["odd"]}, "string"),
    ],
)
def test_the_types_of_a_create_table_record(declared: dict[str, Any], type: str) -> None:
    control = {"table-def": {"columns": {"id": {"type": "INT64"}, "x": declared}, "primary-key": ["id"]}}
    messages = [record(dms("create-table", control=control)), record(dms())]
    schema = changes_of(numbered(messages), "dms", TABLE).schema
    assert str(schema.field("x").type) == type


@pytest.mark.parametrize(
    ("type", "written", "value"),
    [
        ("BINARY", "0x00ff", b"\x00\xff"),
        ("BINARY", "CAFE", b"\xca\xfe"),  # NoHexPrefix; it is valid Base64, too
        ("BINARY", "0x", b""),
        ("BINARY", "abc", None),
        ("BINARY", "zz", None),
        ("DATE", "2024-02-29", date(2024, 2, 29)),
        ("TIMESTAMP", "2024-02-29T01:02:03Z", datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)),
        ("TIMESTAMP_NTZ", "2024-02-29T01:02:03.5Z", datetime(2024, 2, 29, 1, 2, 3, 500_000)),
        ("TIMESTAMP_NTZ", "2024-02-29T01:02:03+02:00", None),
        ("BIGINT", 2**63 - 1, 2**63 - 1),
        ("DOUBLE", 0.1, 0.1),
    ],
)
def test_values(type: str, written: Any, value: Any) -> None:
    [row] = rows(dms(data={"id": 1, "x": written}), columns={"id": "INT", "x": type})
    assert row["x"] == value
    assert (row["_unexpected_"] or {}).get("x") == (written if value is None else None)


def test_a_statement_that_ends_all_rows_needs_the_name_of_its_table() -> None:
    """Control records may have an empty name."""
    named, unnamed = rows(dms("truncate-table"), dms("drop-table", metadata={"table-name": ""}))
    assert (named["_op_"], named["_error_"], unnamed["_error_"]) == ("TRUNCATE", None, "MISSING_FIELD")


def test_tables_of_the_service_are_left_out() -> None:
    records = numbered([record(dms()), record(dms(metadata={"table-name": "awsdms_status"}))])
    assert list(changes_by_table(records, "dms", **OPTIONS)) == [TABLE]
