"""Rows, tables, keys and times in messages of declared systems, where a part is missing or is something else."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.support import system_messages as m
from tests.support.decoded import changes_of
from tests.support.system_messages import ROW, numbered, record
from tests.support.what_is_read import OPTIONS

OLD = ROW | {"name": "birch"}


def rows(format: str, *messages: Any, table: str = m.TABLE, **options: Any) -> list[dict[str, Any]]:
    return changes_of(numbered([record(one) for one in messages]), format, table=table, **(OPTIONS | options)).rows


@pytest.mark.parametrize("format", ["debezium", "ogg", "datahub"])
@pytest.mark.parametrize("is_update", [False, True])
def test_a_change_without_its_new_row_is_an_error(format: str, is_update: bool) -> None:
    """The old row is no substitute: it has the values before the change."""
    message, table = {
        "debezium": (m.envelope("u" if is_update else "c", OLD, None), m.TABLE),
        "ogg": (m.goldengate("U" if is_update else "I", OLD, None), "SHOPDB.CUSTOMERS"),
        "datahub": (m.datahub("UPDATE" if is_update else "INSERT", before=OLD), m.TABLE),
    }[format]
    columns = {"id": "LONG", "name": "STRING"} if format == "datahub" else OPTIONS["columns"]
    [row] = rows(format, message, table=table, columns=columns)
    assert (row["_op_"], row["_error_"]) == ("UPDATE" if is_update else "INSERT", "MISSING_FIELD")


def test_a_row_of_canal_that_is_null() -> None:
    good, bad = rows("canal", m.canal(data=[m.ROW, None]))
    assert (good["id"], good["_error_"], bad["_error_"]) == (1, None, "MISSING_FIELD")


@pytest.mark.parametrize("other", ["x", 5, [ROW], True])
def test_an_image_that_is_no_object(other: Any) -> None:
    """A valid image beside it does not hide it: an old row that is lost is a lost key."""
    messages = [m.goldengate("U", other), m.goldengate("U", OLD, other), m.goldengate("D", other, None)]
    assert [row["_error_"] for row in rows("ogg", *messages, table="SHOPDB.CUSTOMERS")] == ["BAD_FIELD"] * 3
    [row] = rows("maxwell", m.maxwell("update", old=other))
    assert row["_error_"] == "BAD_FIELD"


@pytest.mark.parametrize(
    ("table", "read"),
    [
        ("CUSTOMERS", ["A.CUSTOMERS", "B.CUSTOMERS", "P.A.CUSTOMERS", "CUSTOMERS"]),
        ("A.CUSTOMERS", ["A.CUSTOMERS", "P.A.CUSTOMERS", "CUSTOMERS"]),
        ("P.A.CUSTOMERS", ["A.CUSTOMERS", "P.A.CUSTOMERS", "CUSTOMERS"]),
        ("Q.A.CUSTOMERS", ["A.CUSTOMERS", "CUSTOMERS"]),
    ],
)
def test_names_with_a_database_and_a_schema(table: str, read: list[str]) -> None:
    """A name that a message does not have fits any."""
    names = ["A.CUSTOMERS", "B.CUSTOMERS", "P.A.CUSTOMERS", "CUSTOMERS", "A.ORDERS"]
    messages = [m.goldengate(table=name, after=ROW | {"id": k}) for k, name in enumerate(names)]
    assert [names[row["id"]] for row in rows("ogg", *messages, table=table)] == read


def test_a_schema_without_a_database() -> None:
    sources = [
        {"schemaName": "a"},
        {"schemaName": "b"},
        {"dbName": "a", "schemaName": "c"},
        {"dbName": "d", "schemaName": "a"},
    ]
    messages = []
    for k, source in enumerate(sources):
        message = m.datahub(after={"id": k})
        message["schema"]["source"] = source | {"tableName": "customers"}
        messages.append(message)
    found = rows("datahub", *messages, table="a.customers", columns={"id": "LONG"})
    assert [row["id"] for row in found] == [0, 2, 3]
    flat = [
        {"id": k, "__op": "c", "__source_schema": name, "__source_table": "customers"} for k, name in enumerate("ab")
    ]
    assert [row["id"] for row in rows("debezium", *flat, table="a.customers")] == [0]


def test_key_names_that_are_no_texts() -> None:
    [row] = rows("maxwell", m.maxwell(primary_key_columns=[{"name": "id"}]), keys=None)
    assert row["_keys_"] is None


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2024-02-29 01:02:03.5", 3.5),
        ("2024-02-29T01:02:03.500Z", 3.5),
        ("2024-02-29T03:02:03.5+02:00", 3.5),
        ("2024-02-29 00:32:03.000001-00:30", 3.000001),
        ("2024-02-29T01:02:03", 3),
        ("2024-02-29 01:02:03.123456789", 3.123456),
        ("2024-02-29T01:02:03.1234567Z", 3.123456),
    ],
)
def test_a_time_as_text(written: str, seconds: float) -> None:
    [row] = rows("ogg", m.goldengate(op_ts=written), table="SHOPDB.CUSTOMERS")
    expected = datetime.datetime(2024, 2, 29, 1, 2, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)
    assert (row["_time_"], row["_error_"]) == (expected, None)


@pytest.mark.parametrize("written", ["soon", "2024-02-30 00:00:00", "2024-02-29", "", 5, True])
def test_a_time_that_is_none(written: Any) -> None:
    [row] = rows("ogg", m.goldengate(op_ts=written), table="SHOPDB.CUSTOMERS")
    assert (row["_time_"], row["_error_"]) == (None, "BAD_FIELD")


def test_a_time_that_is_too_late() -> None:
    """It is NULL. Multiplied with 1,000,000 it would be another time."""
    for number in (2**60, -(2**60), -(2**63), 2**64):
        for format, message in (("maxwell", m.maxwell(ts=number)), ("canal", m.canal(es=number))):
            [row] = rows(format, message)
            assert row["_time_"] is None
