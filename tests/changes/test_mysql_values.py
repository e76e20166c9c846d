"""Values of MySQL in messages of Canal and Maxwell that look like others: labels with a backslash, texts like Base64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import system_messages as m
from tests.support.decoded import changes_by_table, changes_of
from tests.support.system_messages import canal, numbered, record


def value(declared: str, text: Any, type: str | None = None) -> tuple[Any, Any]:
    """A value of Canal, and its text if it does not fit."""
    message = canal(data=[{"id": "1", "v": text}]) | {"mysqlType": {"id": "int", "v": declared}}
    columns = None if type is None else {"id": "INT", "v": type}
    [row] = changes_of(numbered([record(message)]), "canal", table=m.TABLE, columns=columns, keys=["id"]).rows
    assert row["_error_"] is None
    return row["v"], dict(row["_unexpected_"] or {}).get("v")


@pytest.mark.parametrize(
    ("declared", "text", "label"),
    [
        (r"ENUM('back\slash','b')", "1", r"back\slash"),
        (r"ENUM('tail\','b','c')", "2", "b"),
        (r"enum('c\%','d\_')", "1", r"c\%"),
        (r"SET('tail\','b','c')", "6", ["b", "c"]),
        ("enum('it''s',',','')", "1", "it's"),
        ("enum ( 'a' , 'b' ) charset utf8mb4", "2", "b"),
        ("set('a','b') comment 'c'", "3", ["a", "b"]),
    ],
)
def test_labels_as_canal_declares_them(declared: str, text: str, label: Any) -> None:
    """Canal 1.1.7 doubles a quote, and writes a backslash as it is."""
    assert value(declared, text) == (label, None)


@pytest.mark.parametrize("declared", ["enum(0x41,'b','c')", "enum(x'41','b')", "enum('a', _utf8'b')", "set(0x41,'b')"])
def test_labels_that_are_not_all_quoted(declared: str) -> None:
    """An index counts all labels, so none of them is known."""
    assert value(declared, "1") == (None, "1")


def test_a_mask_beyond_the_labels() -> None:
    assert value("set('a','b') comment 'c'", "4") == (None, "4")


@pytest.mark.parametrize("declared", ["TEXT(1000)", "long", "clob", "varchar(70000)"])
def test_texts_that_canal_takes_for_bytes(declared: str) -> None:
    assert value(declared, "naïve €".encode().decode("latin-1")) == ("naïve €", None)
    assert value("text", "Ã¯") == ("Ã¯", None)


@pytest.mark.parametrize(("declared", "text"), [("decimal(5,2)", "325.09"), ("decimal(10,2)", "52319252.55")])
def test_a_decimal_as_the_nearest_double(declared: str, text: str) -> None:
    assert value(declared, text, "DOUBLE") == (float(text), None)


@pytest.mark.parametrize("declared", ["float(25)", "float(53)", "float( 30 )"])
def test_a_float_that_is_a_double(declared: str) -> None:
    assert value(declared, "1.123456789012") == (1.123456789012, None)


@pytest.mark.parametrize("declared", ["float", "float(24)", "float(10,2)"])
def test_a_float_has_few_digits(declared: str) -> None:
    assert value(declared, "1.123456789012") == (None, "1.123456789012")
    assert value(declared, "0.25") == (0.25, None)
    for text in ("0.1", "3.40282e38", "-1.17549435E-38", "1.1234568", "99999.9"):
        found, unexpected = value(declared, text)
        assert (unexpected, np.float32(found)) == (None, np.float32(text))


def test_a_float_as_a_decimal() -> None:
    """Its text counts, and not the binary number that is nearest to it."""
    found, unexpected = value("float", "0.1", "DECIMAL(38,10)")
    assert (str(found), unexpected) == ("0.1000000000", None)
    assert value("double", "0.125", "DECIMAL(10,2)") == (None, "0.125")


@pytest.mark.parametrize("declared", ["bigint unsigned", "decimal(3,0)", "double", "tinyint"])
def test_a_number_as_a_boolean(declared: str) -> None:
    assert [value(declared, text, "BOOLEAN") for text in ("1", "0", "2")] == [(True, None), (False, None), (None, "2")]


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("datetime", "2020-01-01 01:02:03"),
        ("datetime(3)", "2020-01-01 01:02:03.120"),
        ("year", "0000"),
        ("decimal(10,2)", "1.50"),
        ("date", "0000-00-00"),
        ("double", "1.0E10"),
    ],
)
def test_a_text_of_the_message(declared: str, text: str) -> None:
    """Such as after a column became a VARCHAR."""
    assert value(declared, text, "STRING") == (text, None)


def maxwell(data: Any, type: str, **more: Any) -> dict[str, Any]:
    message = m.maxwell(data={"id": 1, "v": data}) | more
    columns = {"id": "INT", "v": type}
    [row] = changes_of(numbered([record(message)]), "maxwell", table=m.TABLE, columns=columns, keys=["id"]).rows
    return row


@pytest.mark.parametrize(("written", "text"), [(1234, "1234"), (True, "true"), (1e10, "10000000000.0")])
def test_only_a_text_is_base64(written: Any, text: str) -> None:
    row = maxwell(written, "BINARY")
    assert (row["v"], dict(row["_unexpected_"])) == (None, {"v": text})


def test_a_set_with_an_empty_member() -> None:
    """A bootstrap writes a set without members as [""]."""
    assert [maxwell(members, "ARRAY<STRING>")["v"] for members in (["a", ""], [""], [])] == [["a", ""], [], []]
    for members in ([None, "a"], [{"a": 1}], [1]):
        row = maxwell(members, "ARRAY<STRING>")
        assert row["v"] is None
        assert "v" in dict(row["_unexpected_"])


@pytest.mark.parametrize("zero", ["0000-00-00 00:00:00", "0000-00-00", "0000-00-00 00:00:00.000"])
def test_a_zero_date_in_a_key_is_null(zero: str) -> None:
    assert [row["_error_"] for row in with_key_of_times(zero)] == [None]


def test_another_date_in_a_key_is_an_error() -> None:
    """Canal writes such texts for the first second of 1970: two of them are two keys."""
    texts = "0000-00-00 00:00:00.001", "2020-00-01 00:00:00"
    assert [row["_error_"] for row in with_key_of_times(*texts)] == ["BAD_FIELD"] * 2


def with_key_of_times(*texts: str) -> list[dict[str, Any]]:
    messages = [
        canal(data=[{"id": "1", "t": text}]) | {"mysqlType": {"id": "int", "t": "timestamp(3)"}, "pkNames": ["id", "t"]}
        for text in texts
    ]
    return changes_of(numbered([record(message) for message in messages]), "canal", table=m.TABLE).rows


@pytest.mark.parametrize("time", [10**20, 10**15 * 1000, -(10**18)])
def test_a_time_out_of_range_is_an_error(time: int) -> None:
    for format, message in (("canal", canal() | {"es": time}), ("maxwell", m.maxwell() | {"ts": time})):
        [row] = changes_of(numbered([record(message)]), format, table=m.TABLE, columns=m.COLUMNS, keys=["id"]).rows
        assert (row["_time_"], row["_error_"]) == (None, "BAD_FIELD")


@pytest.mark.parametrize("type", [None, "STRING"])
def test_a_partial_update_of_json_is_no_value(type: str | None) -> None:
    """With MySQL's binlog_row_value_options=PARTIAL_JSON, Canal writes an expression; without a change, the column's name."""
    for text in ("JSON_REPLACE(v, '$.id', 3)", "JSON_INSERT(JSON_REPLACE(v, '$.id', 3), '$.star', 5)", "v"):
        assert value("json", text, type) == (None, text)
    for text in ('{"a": 1}', "[]", '"JSON_SET("', "-1.5", "true", "null", ' {"a": 1}', ""):
        assert value("json", text, type) == (text, None)


# ---------------------------------------------------------------- old rows


@pytest.mark.parametrize("old", [[{"id": "1"}], [{"id": "1"}, {"id": "2"}, {"id": "3"}]])
def test_old_rows_of_another_number(old: Any) -> None:
    message = canal("UPDATE", data=[{"id": "11"}, {"id": "12"}], old=old)
    found = changes_of(numbered([record(message)]), "canal", table=m.TABLE, columns=m.COLUMNS, keys=["id"]).rows
    assert {row["_error_"] for row in found} == {"BAD_FIELD"}


def test_an_old_row_where_none_belongs() -> None:
    """It would be the old key of a change of the key."""
    messages = [
        ("canal", canal("INSERT", data=[m.ROW], old=[{"id": "7"}])),
        ("maxwell", m.maxwell("insert", old={"id": 7})),
        ("maxwell", m.maxwell("delete", old={"id": 7})),
        ("canal", canal("DELETE", data=[m.ROW], old=[{"id": "7"}])),
        ("ogg", m.goldengate("I", {"id": 7}, m.ROW)),
    ]
    for format, message in messages:
        table = "SHOPDB.CUSTOMERS" if format == "ogg" else m.TABLE
        [row] = changes_of(numbered([record(message)]), format, table=table, columns=m.COLUMNS, keys=["id"]).rows
        assert row["_error_"] == "BAD_FIELD"


def test_an_old_key_that_does_not_fit() -> None:
    """Without it, the old row would stay beside the new one."""
    messages = [
        ("canal", m.TABLE, canal("UPDATE", data=[{"id": "7"}], old=[{"id": "x"}])),
        ("maxwell", m.TABLE, m.maxwell("update", old={"id": "x"})),
        ("ogg", "SHOPDB.CUSTOMERS", m.goldengate("U", {"id": "x"}, m.ROW)),
        ("debezium", m.TABLE, m.envelope("u", {"id": "x"}, m.ROW)),
    ]
    for format, table, message in messages:
        [row] = changes_of(numbered([record(message)]), format, table=table, columns=m.COLUMNS, keys=["id"]).rows
        assert (row["_error_"], dict(row["_unexpected_"])) == ("BAD_FIELD", {"before.id": "x"})


@pytest.mark.parametrize("format", ["canal", "maxwell", "ogg"])
def test_a_row_without_its_key(format: str) -> None:
    message = {
        "canal": canal(data=[{"name": "ash"}]),
        "maxwell": m.maxwell(data={"name": "ash"}),
        "ogg": m.goldengate(after={"name": "ash"}),
    }[format]
    table = "SHOPDB.CUSTOMERS" if format == "ogg" else m.TABLE
    [row] = changes_of(numbered([record(message)]), format, table=table, columns=m.COLUMNS, keys=["id"]).rows
    assert row["_error_"] == "MISSING_FIELD"


def test_a_key_beside_a_column_whose_name_differs_in_case() -> None:
    """Maxwell writes the names of a key in lower case."""
    message = m.maxwell(data={"id": 1, "ID": 2})
    both = numbered([record(message, m.maxwell_key(id=1)), record(message, m.maxwell_key(id=1, other=2))])
    for columns, key in (({"id": "INT", "ID": "INT"}, "id"), ({"ID": "INT"}, "ID")):
        found = changes_of(both, "maxwell", table=m.TABLE, columns=columns).rows
        assert found[0]["_keys_"] == [key]


# ---------------------------------------------------------------- statements of Maxwell


def statement(kind: str, type: str) -> dict[str, Any]:
    columns = [{"name": "id", "type": "int", "signed": True}, {"name": "v", "type": type}]
    definition = {"database": "shopdb", "table": "customers", "columns": columns}
    return {"type": kind, "database": "shopdb", "table": "customers", "def": definition, "ts": 1, "sql": "x"}


@pytest.mark.parametrize(
    ("types", "named"),
    [
        (("varchar", "blob"), "BINARY and as STRING"),
        (("int", "blob"), "BINARY and as INT"),
        (("json", "text"), "JSON and as STRING"),
        (("datetime", "timestamp"), "TIMESTAMP and as TIMESTAMP_NTZ"),
    ],
)
def test_two_types_whose_values_look_alike(types: tuple[str, str], named: str) -> None:
    """A row of Maxwell does not say of which type it is."""
    both = numbered([record(statement("table-create", types[0])), record(statement("table-alter", types[1]))])
    with pytest.raises(ValueError, match=rf"declare the column v as {named}, .* do not say which they are: pass col"):
        changes_of(both, "maxwell", table=m.TABLE)


def test_two_types_of_which_one_holds_both() -> None:
    both = numbered([record(statement("table-create", "int")), record(statement("table-alter", "bigint"))])
    assert changes_of(both, "maxwell", table=m.TABLE).schema.field("v").type == "int64"


def test_maxwells_own_tables_are_no_tables() -> None:
    own = {"database": "maxwell", "table": "bootstrap", "type": "insert", "ts": 1, "data": {"id": 1}}
    messages = [statement("table-create", "int"), m.maxwell(data={"v": 1}), own]
    found = changes_by_table(numbered([record(one) for one in messages]), "maxwell")
    assert list(found) == [m.TABLE]


@pytest.mark.parametrize(
    ("gtid", "text"),
    [
        ("0-4711-55", '{"a": "é"}'),
        ("0-4711-55,1-4711-3", '{"a": "é"}'),  # Canal's MariaGTIDSet has one of each domain
        ("", '{"a": "Ã©"}'),
        ("3e11fa47-71ca-11e1-9e33-c80aa9429562:23", '{"a": "Ã©"}'),
        (None, '{"a": "Ã©"}'),
    ],
)
@pytest.mark.parametrize("type", [None, "STRING"])
def test_json_is_restored_only_where_it_is_mariadbs(gtid: str | None, text: str, type: str | None) -> None:
    """Canal writes a character for each byte of MariaDB's JSON. MySQL's JSON with the same characters stays."""
    messages = [
        canal(data=[{"id": "1", "v": '{"a": "Ã©"}'}], gtid=one) | {"mysqlType": {"id": "int", "v": "json"}}
        for one in (gtid, "")
    ]
    columns = None if type is None else {"id": "INT", "v": type}
    records = numbered([record(message) for message in messages])
    rows = changes_of(records, "canal", table=m.TABLE, columns=columns, keys=["id"]).rows
    assert [row["v"] for row in rows] == [text, '{"a": "Ã©"}']
