"""Typed rows of messages that are not in the golden data: odd values, changed schemas, placeholders, other connectors."""

from __future__ import annotations

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkwire.changes.record_keys import RecordKeys
from sparkwire.changes.records import MessageRecords
from sparkwire.core.names import table_of
from sparkwire.debezium.placeholders import uuid_of
from sparkwire.json.types import combined, type_of
from tests.support.debezium_cases import SOURCE
from tests.support.debezium_rows import ORDERS, Rows, debezium_rows, survey

UNAVAILABLE = "__debezium_unavailable_value"


def insert(row: Any, fields: list[dict[str, Any]] | None = None, /, **source: Any) -> bytes:
    """A message that inserts a row, with a schema if fields are given."""
    payload = {"before": None, "after": row, "source": SOURCE | source, "op": "c", "ts_ms": 5}
    if fields is None:
        return json.dumps(payload).encode()
    after = {"type": "struct", "optional": True, "field": "after", "fields": fields}
    schema = {
        "type": "struct",
        "name": "s.public.orders.Envelope",
        "fields": [after, {"type": "string", "field": "op"}],
    }
    return json.dumps({"schema": schema, "payload": payload}).encode()


def changed(messages: list[bytes | None], columns: dict[str, str], **given: Any) -> Rows:
    return debezium_rows(pa.array(messages, pa.binary()), columns, **given)


def typed(type: str, *values: Any) -> list[Any]:
    """The typed values; ``[text]`` for an unexpected value."""
    rows = changed([insert({"x": value}) for value in values], {"x": type}).batch.to_pylist()
    return [row["after"]["x"] if row["unexpected"] is None else [dict(row["unexpected"])["x"]] for row in rows]


def in_base64(number: int, size: int) -> str:
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


@pytest.mark.parametrize(
    ("type", "written", "expected"),
    [
        ("int8", 127, 127),
        ("int8", 128, ["128"]),
        ("int16", -32769, ["-32769"]),
        ("int32", 2**31, ["2147483648"]),
        ("int64", 2**63, ["9223372036854775808"]),
        ("int64", 1.5, ["1.5"]),
        ("int64", "1", ["1"]),
        ("boolean", True, True),
        ("boolean", 1, ["1"]),
        ("string", "a\u00df", "a\u00df"),
        ("string", {"a": 1}, ['{"a": 1}']),
        ("bytes", "aGk=", b"hi"),
        ("bytes", "a", ["a"]),
        ("bytes", "aGk", ["aGk"]),
        ("Decimal(5,2)", "NaN", ["NaN"]),
        ("double", 1, 1.0),
        ("double", "Infinity", float("inf")),
        ("double", "-Infinity", float("-inf")),
        ("double", "inf", ["inf"]),
        ("float", 0.1, pytest.approx(0.1, rel=1e-7)),
        ("float", 1.17549435e-38, pytest.approx(1.17549435e-38)),  # as Java writes it; 1.1754944E-38 is shorter
        ("float", 0.10000000149011612, pytest.approx(0.1, rel=1e-7)),  # the same number as a DOUBLE
        ("float", 16777217, ["16777217"]),
        ("float", 1.123456789012, ["1.123456789012"]),
        ("float", 1e-50, ["1e-50"]),
        ("float", 1e39, ["1e+39"]),
        ("float", "NaN", pytest.approx(float("nan"), nan_ok=True)),
        ("float", "-Infinity", float("-inf")),
        ("Date", -719_162, datetime.date(1, 1, 1)),
        ("Date", -719_163, ["-719163"]),
        ("Date", 2_932_897, ["2932897"]),
        ("Date", -2147472692, ["infinity"]),
        ("Date", -2147472691, ["-infinity"]),
        ("IsoDate", "2024-02-29Z", datetime.date(2024, 2, 29)),
        ("IsoDate", "2023-02-29Z", ["2023-02-29Z"]),
        ("Timestamp", -1, datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)),
        ("MicroTimestamp", 1, datetime.datetime(1970, 1, 1, 0, 0, 0, 1)),
        ("MicroTimestamp", 9223372036825200000, ["infinity"]),
        ("NanoTimestamp", -1000, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("NanoTimestamp", -1, ["-1"]),
        ("NanoTimestamp", 1_700_000_000_123_456_700, ["1700000000123456700"]),
        ("IsoTimestamp", "2024-02-29T01:02:03.123456789Z", ["2024-02-29T01:02:03.123456789Z"]),
        ("IsoTimestamp", "2024-02-29T01:02:03.123456000Z", datetime.datetime(2024, 2, 29, 1, 2, 3, 123456)),
        ("IsoTimestamp", "2024-02-29T01:02:03.1234567", ["2024-02-29T01:02:03.1234567"]),
        ("IsoTimestamp", "2024-02-29T01:02:03.1234560", datetime.datetime(2024, 2, 29, 1, 2, 3, 123456)),
        ("ZonedTimestamp", "2024-02-29T01:02:03Z", datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.UTC)),
        ("ZonedTimestamp", "2024-02-29T01:02:03+02:00", datetime.datetime(2024, 2, 28, 23, 2, 3, tzinfo=datetime.UTC)),
        ("ZonedTimestamp", "2024-02-29T01:02:03.1234567+02:00", ["2024-02-29T01:02:03.1234567+02:00"]),
        ("ZonedTimestamp", "infinity", ["infinity"]),
        ("ZonedTimestamp", "+12345-01-01T00:00:00Z", ["+12345-01-01T00:00:00Z"]),
        ("Time", 86_399_999, "23:59:59.999"),
        ("MicroTime", -3_020_399_999_999, "-838:59:59.999999"),
        ("MicroTime", 86_400_000_000, "24:00:00"),
        ("MicroTime", -(2**63), ["-9223372036854775808"]),
        ("NanoTime", 1_000_000_100, "00:00:01.0000001"),
        ("IsoTime", "12:34:56.789Z", "12:34:56.789"),
        ("MicroDuration", -1, datetime.timedelta(microseconds=-1)),
        ("NanoDuration", 1000, datetime.timedelta(microseconds=1)),
        ("NanoDuration", 1999, ["1999"]),
        ("Interval", "P1Y2M3DT4H5M6.000007S", "P1Y2M3DT4H5M6.000007S"),
        ("Year", 1999, 1999),
        ("Decimal(5,2)", in_base64(-12345, 2), Decimal("-123.45")),
        ("Decimal(5,2)", in_base64(100000, 3), [in_base64(100000, 3)]),
        ("Decimal(38,0)", in_base64(10**38 - 1, 16), Decimal(10**38 - 1)),
        ("Decimal(38,0)", in_base64(-(10**38) + 1, 16), Decimal(-(10**38) + 1)),
        ("Decimal(38,0)", in_base64(10**38, 16), [in_base64(10**38, 16)]),
        ("Decimal(38,0)", in_base64(-(10**38), 16), [in_base64(-(10**38), 16)]),
        ("Decimal(50,2)", in_base64(10**45, 20), f"{10**43}.00"),
        ("Decimal(3,-2)", in_base64(12, 1), Decimal(1200)),
        ("Decimal(5,2)", 1.5, Decimal("1.50")),
        ("Decimal(5,2)", -123, Decimal("-123.00")),
        ("Decimal(5,2)", 1.505, ["1.505"]),
        ("Decimal(5,2)", 12345.6, ["12345.6"]),
        ("array<Decimal(5,2)>", [1.5, None, in_base64(150, 2)], [Decimal("1.50"), None, Decimal("1.50")]),
        ("int32", 5.0, 5),
        ("int32", 1e3, 1000),
        ("int64", 9.3e18, ["9.3e+18"]),
        ("IsoTimestamp", "2013-02-17 19:43:30.1", datetime.datetime(2013, 2, 17, 19, 43, 30, 100000)),
        ("DECIMAL(5,2)", "1.5", Decimal("1.50")),
        ("DECIMAL(5,2)", 1.25, Decimal("1.25")),
        ("DECIMAL(5,2)", "NaN", ["NaN"]),
        ("DECIMAL(5,2)", 1234.5, ["1234.5"]),
        ("VariableScaleDecimal", {"scale": 3, "value": in_base64(-5, 1)}, "-0.005"),
        ("VariableScaleDecimal", {"scale": -3, "value": in_base64(5, 1)}, "5000"),
        ("Bits(12)", base64.b64encode(b"\x05\x01").decode(), b"\x01\x05"),
        ("Bits(12)", "", b"\0\0"),
        ("Bits(2147483647)", base64.b64encode(b"\x05\x01").decode(), b"\x01\x05"),
        ("Enum", "c\\,d", "c,d"),
        ("EnumSet", "a,b", ["a", "b"]),
        ("EnumSet", "", []),
        ("array<int32>", [1, None, 2], [1, None, 2]),
        ("array<int32>", [1, "a"], ['[1, "a"]']),
        ("array<array<int32>>", [[1], [], None], [[1], [], None]),
        ("array<Date>", [0, None], [datetime.date(1970, 1, 1), None]),
        ("map<string,int32>", {"a": 1, "b": None}, [("a", 1), ("b", None)]),
        ("map<int32,string>", [[1, "a"], [2, None]], [(1, "a"), (2, None)]),
        ("map<int32,string>", [[1, "a"], [None, "b"]], ['[[1, "a"], [null, "b"]]']),
        ("struct<a:int32,`b c`:array<string>>", {"a": 1, "b c": ["x"]}, {"a": 1, "b c": ["x"]}),
        ("Geometry", {"wkb": "AQ==", "srid": None}, {"wkb": b"\x01", "srid": None}),
    ],
)
def test_a_value(type: str, written: Any, expected: Any) -> None:
    assert typed(type, None, written, None) == [None, expected, None]


def test_not_a_number() -> None:
    [result] = typed("double", "NaN")
    assert result != result


@pytest.mark.parametrize(
    "text",
    [
        "int8",
        "Decimal(12,2)",
        "Decimal(3,-2)",
        "DECIMAL(5,2)",
        "Bits(8)",
        "struct<a:int32,`b c`:array<map<string,Date>>>",
    ],
)
def test_a_type_is_its_text(text: str) -> None:
    assert str(type_of(text)) == text
    assert str(type_of(f" {text} ")) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ARRAY<STRING>", "array<string>"),
        ("bigint", "int64"),
        ("Map<string, INT>", "map<string,int32>"),
        ("STRUCT<a: INT, `b c` Array<date>>", "struct<a:int32,`b c`:array<Date>>"),
        ("decimal(10,2)", "DECIMAL(10,2)"),
        ("io.debezium.time.Date", "Date"),
    ],
)
def test_words_of_sql_are_types_in_any_case(text: str, same: str) -> None:
    assert type_of(text) == type_of(same)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("timestamp", "'timestamp' does not say how the value is written: use Timestamp, MicroTimestamp, "),
        ("TIMESTAMP", "'TIMESTAMP' does not say how the value is written: use Timestamp, MicroTimestamp, "),
        ("uint8", "'uint8' is no type of a column: use one of TINYINT, "),
        (
            "INTT",
            "'INTT' is no type of a column: use one of TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, BOOLEAN, STRING, ",
        ),
        ("Decimal(1)", "'Decimal(1)' is no type of a column: ',' is missing"),
        ("array<int8", "'array<int8' is no type of a column: '>' is missing"),
        ("int8 int8", "'int8 int8' is no type of a column: it continues after the type"),
        ("", "'' is no type of a column: a name is missing"),
    ],
)
def test_an_invalid_type_gives_a_clear_error(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"no type|does not say") as rejected:
        type_of(text)
    assert str(rejected.value).startswith(sentence)


@pytest.mark.parametrize(
    ("older", "newer", "both"),
    [
        ("int32", "int64", "int64"),
        ("int64", "int32", "int64"),
        ("float", "double", "double"),
        ("Decimal(6,2)", "Decimal(8,3)", "Decimal(8,3)"),
        ("Decimal(8,3)", "Decimal(8,1)", "Decimal(10,3)"),
        ("int32", "Decimal(6,2)", "Decimal(12,2)"),
        ("int32", "float", "double"),
        ("int64", "double", "string"),
        ("Decimal(5,2)", "double", "string"),
        ("Timestamp", "ZonedTimestamp", "string"),
        ("array<int32>", "array<int64>", "array<int64>"),
        ("int32", "string", "string"),
        ("Date", "MicroTimestamp", "MicroTimestamp"),
    ],
)
def test_types_of_an_altered_column(older: str, newer: str, both: str) -> None:
    """The narrowest type that holds the values of all versions, whatever their order."""
    assert str(combined([type_of(older), type_of(newer)])) == both
    assert str(combined([type_of(newer), type_of(older)])) == both


def test_each_value_is_read_by_its_own_schema() -> None:
    day, moment = "io.debezium.time.Date", "io.debezium.time.MicroTimestamp"
    messages = [
        insert(
            {"id": 1, "at": 1},
            [{"type": "int16", "field": "id"}, {"type": "int32", "name": day, "field": "at"}],
            ts_ms=1,
        ),
        insert(
            {"id": 2, "at": 2, "n": "x"},
            [
                {"type": "int64", "field": "id"},
                {"type": "int64", "name": moment, "field": "at"},
                {"type": "string", "field": "n"},
            ],
            ts_ms=2,
        ),
        insert(
            {"id": 3, "at": 3},
            [{"type": "int16", "field": "id"}, {"type": "int32", "name": day, "field": "at"}],
            ts_ms=1,
        ),
    ]
    columns = survey(MessageRecords(pa.array(messages)), ORDERS).columns
    assert columns == {"id": "int64", "at": "MicroTimestamp", "n": "string"}
    rows = [row["after"] for row in changed(list(messages), columns).batch.to_pylist()]
    assert rows == [
        {"id": 1, "at": datetime.datetime(1970, 1, 2), "n": None},
        {"id": 2, "at": datetime.datetime(1970, 1, 1, 0, 0, 0, 2), "n": "x"},
        {"id": 3, "at": datetime.datetime(1970, 1, 4), "n": None},
    ]


def test_values_without_a_column_are_unexpected() -> None:
    [row] = changed([insert({"id": 1, "more": {"a": 1}, "none": None})], {"id": "int32"}).batch.to_pylist()
    assert row["after"] == {"id": 1}
    assert row["unexpected"] == [("more", '{"a": 1}'), ("none", None)]


def test_unexpected_values_of_both_images_are_distinguished() -> None:
    update = json.dumps({"before": {"id": "x"}, "after": {"id": "y"}, "source": SOURCE, "op": "u"}).encode()
    [row] = changed([update], {"id": "int32"}).batch.to_pylist()
    assert dict(row["unexpected"]) == {"id": "y", "before.id": "x"}


@pytest.mark.parametrize(
    ("type", "written"),
    [
        ("string", UNAVAILABLE),
        ("string", UNAVAILABLE.encode().hex()),
        ("Json", UNAVAILABLE),
        ("bytes", base64.b64encode(UNAVAILABLE.encode()).decode()),
        ("array<string>", [UNAVAILABLE]),
        ("array<int32>", list(UNAVAILABLE.encode())),
        ("array<Uuid>", [str(uuid_of(UNAVAILABLE.encode()))]),
        ("map<string,string>", {UNAVAILABLE: UNAVAILABLE}),
        ("Json", json.dumps({UNAVAILABLE: UNAVAILABLE}, separators=(",", ":"))),
        ("array<int64>", list(UNAVAILABLE.encode())),
        ("array<Date>", list(UNAVAILABLE.encode())),
        ("array<double>", [float(byte) for byte in UNAVAILABLE.encode()]),
        ("array<string>", [f"{byte}.00" for byte in UNAVAILABLE.encode()]),
        ("array<Decimal(8,2)>", [in_base64(byte * 100, 2) for byte in UNAVAILABLE.encode()]),
        ("array<Decimal(8,2)>", [in_base64(byte, 2) for byte in UNAVAILABLE.encode()]),
        ("array<decimal(8,2)>", [in_base64(byte * 100, 2) for byte in UNAVAILABLE.encode()]),
        ("array<VariableScaleDecimal>", [{"scale": 0, "value": in_base64(byte, 1)} for byte in UNAVAILABLE.encode()]),
        ("array<string>", [{"scale": 2, "value": in_base64(byte * 100, 2)} for byte in UNAVAILABLE.encode()]),
        ("VariableScaleDecimal", {"scale": 0, "value": base64.b64encode(UNAVAILABLE.encode()).decode()}),
        ("array<bytes>", [base64.b64encode(UNAVAILABLE.encode()).decode()]),
        ("Point", {"x": -99999999.0, "y": -99999999.0, "wkb": "AQEAAAAAAAD8g9eXwQAAAPyD15fB", "srid": None}),
        ("Geometry", {"wkb": "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "srid": 4326}),
        ("Geography", {"wkb": "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==", "srid": 4326}),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : ")])
def test_a_placeholder_is_no_value(type: str, written: Any, separators: tuple[str, str]) -> None:
    message = json.dumps(json.loads(insert({"id": 1, "x": written})), separators=separators).encode()
    [row] = changed([message], {"id": "int32", "x": type}).batch.to_pylist()
    assert (row["after"], row["unavailable"], row["unexpected"]) == ({"id": 1, "x": None}, ["x"], None)


@pytest.mark.parametrize(
    ("type", "written"),
    [
        ("string", f"{UNAVAILABLE} "),
        ("array<int32>", list(UNAVAILABLE.encode())[:-1]),
        ("array<int32>", [byte * 2 for byte in UNAVAILABLE.encode()]),
        ("array<Decimal(8,2)>", [in_base64(byte + 1, 2) for byte in UNAVAILABLE.encode()]),
        ("array<int32>", [0, *list(UNAVAILABLE.encode())[1:]]),
        ("array<string>", [UNAVAILABLE, "a"]),
        ("map<string,string>", {UNAVAILABLE: "a"}),
        ("Point", {"x": -99999999.0, "y": 1.0}),
        ("bytes", base64.b64encode(UNAVAILABLE.encode()[1:]).decode()),
    ],
)
def test_a_value_like_a_placeholder(type: str, written: Any) -> None:
    [row] = changed([insert({"x": written})], {"x": type}).batch.to_pylist()
    assert row["unavailable"] is None
    assert row["after"]["x"] is not None


def test_a_placeholder_in_hexadecimal() -> None:
    """``unavailable.value.placeholder=hex:…``: bytes instead of a text."""
    written = base64.b64encode(b"\xff\x00").decode()
    [row] = changed([insert({"x": written})], {"x": "bytes"}, placeholder="hex:ff00").batch.to_pylist()
    assert row["unavailable"] == ["x"]


def test_another_placeholder() -> None:
    messages: list[bytes | None] = [insert({"x": "<unchanged>"}), insert({"x": UNAVAILABLE})]
    rows = changed(messages, {"x": "string"}, placeholder="<unchanged>").batch.to_pylist()
    assert [(row["after"]["x"], row["unavailable"]) for row in rows] == [(None, ["x"]), (UNAVAILABLE, None)]


def test_a_tombstone_deletes_its_key() -> None:
    keys = pa.array([b'{"id":1}', b'{"id":2}', None], pa.binary())
    result = changed([insert({"id": 1, "n": "a"}), None, None], {"id": "int32", "n": "string"}, keys=keys)
    assert result.rows.tolist() == [0, 1]
    rows = result.batch.to_pylist()
    assert rows[1]["op"] == "DELETE"
    assert rows[1]["before"] == {"id": 2, "n": None}
    assert rows[1]["keys"] == ["id"]
    assert rows[1]["error"] is None
    [row] = changed([None], {"id": "int32"}).to_pylist()
    assert (row["op"], row["error"]) == (None, "MISSING_FIELD")


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("p.app.customers", [None]),
        ("customers", [None]),
        ("p.app.orders", ["MISSING_FIELD"]),
        ("orders", []),
    ],
)
def test_a_tombstone_in_a_topic_of_an_unknown_table_is_an_error(topic: str, expected: list[str | None]) -> None:
    """The topic's messages show the table of a tombstone, else its name does. Other messages are in the topic orders."""
    table, topics = table_of("app.customers"), ["x", "orders", topic]
    keys = pa.array([b'{"id":1}', b'{"id":1}', b'{"id":2}'], pa.binary())
    messages = [insert({"id": 1}, schema="app", table="customers"), insert({"id": 1}), None]
    result = debezium_rows(pa.array(messages), {"id": "int32"}, table, keys=keys, topics=pa.array(topics))
    assert [row["error"] for row in result.to_pylist()] == [None, *expected]


def test_keys() -> None:
    schema = {"type": "struct", "name": "s.public.orders.Key", "fields": [{"type": "int32", "field": "id"}]}
    keys = pa.array(
        [b'{"id":1,"\\u00e9":2}', json.dumps({"schema": schema, "payload": {"id": 3}}).encode(), None, b"7"]
    )
    types = {"id": type_of("int64"), "n": type_of("string")}
    record_keys, rows = RecordKeys.of_texts(keys.cast(pa.binary()), types, None), np.arange(len(keys))
    assert record_keys.names(rows).to_pylist() == [["id", "\u00e9"], ["id"], None, None]
    assert record_keys.images(rows).column.to_pylist() == [
        {"id": 1, "n": None},
        {"id": 3, "n": None},
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ({"sequence": '["5","7"]', "lsn": 7}, (None, None, 5, 7, None)),
        ({"sequence": '[null,"7"]', "lsn": 7}, (None, None, 7, 7, None)),
        ({"lsn": 7}, (None, None, 7, 7, None)),
        ({"file": "mysql-bin.000012", "pos": 4, "row": 2}, ("mysql-bin", None, 12, 4, 2)),
        ({"file": "odd", "pos": 4, "row": 0}, ("odd", None, None, 4, 0)),
        (
            {"commit_lsn": "0025:8:3", "change_lsn": "0025:8:2", "event_serial_no": 1},
            (None, "0025:8:3/0025:8:2", None, None, 1),
        ),
        ({"scn": "100", "commit_scn": "101", "ssn": 3}, (None, None, 101, 100, 3)),
        ({"ord": 2, "ts_ms": 9}, (None, None, 9, 2, None)),
        ({}, None),
    ],
)
def test_position(source: dict[str, Any], position: Any) -> None:
    [row] = changed([insert({"id": 1}, **source)], {"id": "int32"}).batch.to_pylist()
    assert row["position"] == (
        None
        if position is None
        else dict(zip(("log", "lsn", "position", "sub_position", "row"), position, strict=True))
    )
