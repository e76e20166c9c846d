"""MySQL's types: their declarations, and the values of Canal and Maxwell in them."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.base.sqltype import sql_name
from sparkwire.core.column import binary_of
from sparkwire.json import values
from sparkwire.json.mysql_types import of_declaration, of_maxwell, of_sql, read_texts
from sparkwire.json.scan import paths
from sparkwire.json.types import Type
from tests.support.arrow import with_dicts


def read(type: Type, *written: Any) -> list[Any]:
    """The values of a column ``x``."""
    texts = [json.dumps({"x": value}).encode() for value in written]
    data = b"".join(texts)
    source = binary_of(pa.array(texts, pa.binary()))
    begins, ends = values.bounds(source)
    assert len(data) == int(ends[-1] - begins[0])
    found: list[Any] = with_dicts(read_texts(values.documents(source.data, begins, ends, paths("x")).value(0), type))
    return found


@pytest.mark.parametrize(
    ("declared", "sql"),
    [
        ("tinyint(1)", "TINYINT"),
        ("boolean", "TINYINT"),
        ("tinyint unsigned", "SMALLINT"),
        ("mediumint(8) unsigned zerofill", "INT"),
        ("int(10) unsigned", "BIGINT"),
        ("INT UNSIGNED", "BIGINT"),
        ("bigint(20)", "BIGINT"),
        ("bigint unsigned", "DECIMAL(20, 0)"),
        ("bit", "BIGINT"),
        ("bit(63)", "BIGINT"),
        ("bit(64)", "DECIMAL(20, 0)"),
        ("decimal", "STRING"),
        ("decimal(0)", "DECIMAL(10, 0)"),
        ("decimal(5)", "DECIMAL(5, 0)"),
        ("decimal(10,2,3)", "DECIMAL(10, 2)"),
        ("decimal(2,5)", "STRING"),
        ("decimal(\u0663,\u0661)", "STRING"),
        ("decimal(99999999999)", "STRING"),
        ("bit(99999999999)", "BIGINT"),
        ("decimal(12, 4) unsigned", "DECIMAL(12, 4)"),
        ("numeric(65,30)", "STRING"),
        ("double precision", "DOUBLE"),
        ("float(7,4)", "FLOAT"),
        ("varchar(80) character set latin1", "STRING"),
        ("enum('a','b')", "STRING"),
        ("set('a','b')", "ARRAY<STRING>"),
        ("varbinary(40)", "BINARY"),
        ("geometry", "BINARY"),
        ("json", "STRING"),
        ("date", "DATE"),
        ("datetime(6)", "TIMESTAMP_NTZ"),
        ("timestamp", "TIMESTAMP"),
        ("time(3)", "STRING"),
        ("year(4)", "INT"),
        ("inet6", "STRING"),
        ("", "STRING"),
    ],
)
def test_a_declaration(declared: str, sql: str) -> None:
    assert sql_name(of_declaration(declared).arrow) == sql


@pytest.mark.parametrize(
    ("declared", "written", "expected"),
    [
        ("int unsigned", "4294967295", 4294967295),
        ("int", "007", None),
        ("int", "2147483648", None),
        ("bigint unsigned", "18446744073709551615", Decimal(2**64 - 1)),
        ("decimal(12,4)", "86834.0", Decimal("86834.0000")),
        ("double", "4.9E-324", 5e-324),
        ("double", "x", None),
        ("bit(9)", "511", 511),
        ("year", "0000", 0),
        ("enum('x','y z','it''s','')", "3", "it's"),
        ("enum('x','y z')", "0", ""),
        ("enum('x','y z')", "3", None),
        ("enum('x','y z')", "y z", "y z"),
        ("set('r','g','b')", "5", ["r", "b"]),
        ("set('r','g','b')", "0", []),
        ("set('r','g','b')", "8", None),
        ("set('r','g','b')", "r,g", ["r", "g"]),
        ("blob", "\u00ff\u0000a", b"\xff\x00a"),
        ("blob", "\u20ac", None),
        ("json", '"\u00c3\u00a9"', '"\u00c3\u00a9"'),
        ("json", '"\u20ac"', '"\u20ac"'),
        ("json", '"\u00e9"', '"\u00e9"'),
        ("date", "2024-02-29", datetime.date(2024, 2, 29)),
        ("date", "0000-00-00", None),
        ("date", "2024-00-10", None),
        ("datetime", "1000-01-01 00:00:00.5", datetime.datetime(1000, 1, 1, microsecond=500000)),
        ("datetime", "0000-00-00 00:00:00", None),
        ("timestamp", "2024-02-29 01:02:03", datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.UTC)),
        ("time", "-838:59:59", "-838:59:59"),
    ],
)
def test_a_value_of_canal(declared: str, written: str, expected: Any) -> None:
    assert read(of_declaration(declared), written, None) == [expected, None]


@pytest.mark.parametrize(
    ("sql", "written", "expected"),
    [
        ("INT", 7, 7),
        ("TINYINT", 128, None),
        ("BOOLEAN", 1, True),
        ("BOOLEAN", False, False),
        ("BOOLEAN", 2, None),
        ("DECIMAL(10,2)", 1.5, Decimal("1.50")),
        ("STRING", 1.5, "1.5"),
        ("BINARY", "aGk=", b"hi"),
        ("ARRAY<STRING>", ["a", "b"], ["a", "b"]),
        ("ARRAY<STRING>", [""], []),
        ("JSON", {"a": 1}, '{"a": 1}'),
        ("JSON", "a", '"a"'),
        ("STRING", "a", "a"),
        ("TIMESTAMP", "2042-06-13 23:59:57Z", datetime.datetime(2042, 6, 13, 23, 59, 57, tzinfo=datetime.UTC)),
    ],
)
def test_a_value_of_maxwell(sql: str, written: Any, expected: Any) -> None:
    assert read(of_sql(sql), written, None) == [expected, None]


@pytest.mark.parametrize(
    ("column", "sql"),
    [
        ({"type": "int", "signed": False}, "BIGINT"),
        ({"type": "bigint", "signed": True}, "BIGINT"),
        ({"type": "decimal"}, "STRING"),
        ({"type": "enum", "enum-values": ["a"]}, "STRING"),
        ({"type": "set"}, "ARRAY<STRING>"),
        ({"type": "json"}, "JSON"),
        ({"type": "datetime", "column-length": 6}, "TIMESTAMP_NTZ"),
        ({"type": "varbinary"}, "BINARY"),
        ({"type": "point"}, "STRING"),
    ],
)
def test_a_column_that_maxwell_declares(column: dict[str, Any], sql: str) -> None:
    assert of_maxwell(column) == sql


def test_a_type_that_mysql_does_not_have() -> None:
    with pytest.raises(ValueError, match=r"'map<string,int>' is no type of a column: use one of TINYINT"):
        of_sql("map<string,int>")
