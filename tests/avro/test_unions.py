"""Unions whose meaning is in their branches: logical types of numbers, and several records; and names that differ in case."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

from sparkwire.avro import payloads, typed_rows
from sparkwire.avro.payloads import Payloads
from sparkwire.avro.schemas import schemas_of
from sparkwire.avro.typed_values import typed
from sparkwire.base.sqltype import sql_name

ORDER = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}
NOTE = {"type": "record", "name": "shop.Note", "fields": [{"name": "text", "type": "string"}]}
SEVEN, HELLO = b"\x0e", b"\x0ahello"


def rows_of(reader: typed_rows.RowsReader, given: Payloads) -> tuple[list[list[Any]], list[str | None]]:
    columns, errors = reader.rows(given)
    return [column.to_pylist() for column in columns], errors.to_pylist()


def test_numbers_of_two_logical_types() -> None:
    """A BIGINT would not say whether it counts days or microseconds."""
    date, moment = {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-micros"}
    decoder = typed(["null", date, moment])
    assert sql_name(decoder.type) == "STRUCT<member0 DATE, member1 TIMESTAMP>"
    assert decoder.decode(pa.array([b"\2\2", b"\4\2", b"\0"])).to_pylist() == [
        {"member0": datetime.date(1970, 1, 2), "member1": None},
        {"member0": None, "member1": datetime.datetime(1970, 1, 1, 0, 0, 0, 1, datetime.UTC)},
        None,
    ]
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    for union, column in (
        (["int", moment], "STRUCT<member0 INT, member1 TIMESTAMP>"),
        ([date, "long"], "STRUCT<member0 DATE, member1 BIGINT>"),
        (["int", nanos], "STRUCT<member0 INT, member1 BIGINT>"),
        (["int", "long"], "BIGINT"),
        (["null", "float", "double"], "DOUBLE"),
    ):
        assert sql_name(typed(union).type) == column


UNION_DATA = {
    b"\2" + SEVEN: "order",
    b"\4" + HELLO: "note",
    b"\0": "null",
    b"\6" + SEVEN: "no branch",
}


def of_union() -> Payloads:
    return payloads.of_column(pa.array([*UNION_DATA, SEVEN, None]), pa.array([1, 1, 1, 1, 2, 1]))


def test_a_union_of_records_has_a_table_for_each() -> None:
    readers = typed_rows.by_name(schemas_of({1: ["null", ORDER, NOTE], 2: ORDER}))
    assert list(readers) == ["shop.Order", "shop.Note"]
    selected = {name: reader.selected(of_union()) for name, reader in readers.items()}
    assert [sum(rows) for rows in zip(*(rows.tolist() for rows in selected.values()), strict=True)] == [1] * 6
    parts = {name: Payloads(*(part.filter(pa.array(rows)) for part in of_union())) for name, rows in selected.items()}
    assert rows_of(readers["shop.Order"], parts["shop.Order"]) == (
        [[7, None, None, 7, None]],
        [None, None, "BAD_FIELD", None, None],
    )
    assert rows_of(readers["shop.Note"], parts["shop.Note"]) == ([["hello"]], [None])


def test_a_readers_schema_reads_one_record_of_a_union() -> None:
    schemas = schemas_of({1: ["null", ORDER, NOTE], 2: ORDER})
    columns, errors = rows_of(typed_rows.reader(schemas, NOTE), of_union())
    assert columns == [[None, "hello", None, None, None, None]]
    assert errors == ["BAD_FIELD", None, "BAD_FIELD", "BAD_FIELD", "BAD_FIELD", None]
    typed_rows.check_one_type(schemas_of({1: [ORDER, NOTE]}), NOTE)


def test_a_large_union_of_records() -> None:
    """The number of a branch can have two bytes."""
    records = [NOTE | {"name": f"n.R{k}"} for k in range(100)]
    readers = typed_rows.by_name(schemas_of({1: records}))
    data = payloads.of_column(pa.array([bytes([0xC6, 1]) + HELLO, b"\x02" + HELLO, b"\x80", b""]), pa.array([1] * 4))
    selected = {name: reader.selected(data).tolist() for name, reader in readers.items() if reader.selected(data).any()}
    assert selected == {"n.R0": [0, 0, 1, 1], "n.R1": [0, 1, 0, 0], "n.R99": [1, 0, 0, 0]}


def test_names_that_differ_in_case_between_versions() -> None:
    """The value of the first version has a column of its own, as it has if all versions share one table."""
    first = {"type": "record", "name": "R", "fields": [{"name": "total", "type": "long"}]}
    last = {"type": "record", "name": "R", "fields": [{"name": "TOTAL", "type": "long", "default": 5}]}
    schemas = schemas_of({1: first, 2: last})
    given = payloads.of_column(pa.array([SEVEN, b"\x10"]), pa.array([1, 2]))
    expected = {"total": [7, None], "TOTAL": [5, 8]}
    reader = typed_rows.by_name(schemas)["R"]
    columns, errors = rows_of(reader, given)
    assert [field.name for field in reader.fields] == ["TOTAL", "total_2"]
    assert (columns, errors) == ([expected["TOTAL"], expected["total"]], [None, None])
    whole = typed_rows.reader(schemas)
    assert [field.name for field in whole.fields] == ["total", "TOTAL_2"]
    assert rows_of(whole, given) == ([expected["total"], [None, 8]], [None, None])


def test_the_reason_why_a_value_is_null() -> None:
    """A value that the reader's type does not hold, also deep inside, has a reason beside the column."""

    def record(moment: str, scale: int) -> dict[str, Any]:
        decimal = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": scale}
        items = {"type": "array", "items": {"type": "map", "values": decimal}}
        fields = [{"name": "at", "type": {"type": "long", "logicalType": moment}}, {"name": "items", "type": items}]
        return {"type": "record", "name": "R", "fields": fields}

    writer, reader = record("timestamp-nanos", 8), record("timestamp-millis", 0)
    whole = b"\x80\x89\x7a" + b"\2\2\2a\x08\x05\xf5\xe1\x00\0\0"
    odd = b"\x80\x89\x7a" + b"\2\2\2a\x02\x05\0\0"
    late = b"\x02" + b"\0"
    data = pa.array([whole, odd, late, b"", None])
    reasons = typed(writer, reader, reasons=True)
    assert reasons.type == pa.string()
    assert reasons.decode(data).to_pylist() == [None, "BAD_FIELD: items[][]", "BAD_FIELD: at", "TRUNCATED", None]
    decoded = typed(writer, reader).decode(data).to_pylist()
    assert [row and row["at"] is None for row in decoded] == [False, False, True, None, None]
