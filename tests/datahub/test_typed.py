"""Typed rows of one table: against a simple model on Arrow, and in Spark for the plan, the types and the inferred schema."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.changes.datahub import column_type
from sparkwire.changes.datahub_rows import REMARKS, TUPLE_COLUMNS, declarations, latest_columns, row_schema
from sparkwire.changes.formats import decoder_of_datahub_rows
from sparkwire.changes.records import MessageRecords
from sparkwire.core.names import Table, table_of
from tests.support import datahub_cases
from tests.support.oracles import datahub as oracle

COLUMNS = {"id": "LONG", "d": "DOUBLE", "b": "BOOLEAN", "s": "STRING", "t": "DATE", "x": "BYTES", "y": "DECIMAL"}
VALUES = [
    *("1", "-9223372036854775808", "9223372036854775808", "0.5", "1e400", "-0", "1605339932000", "253402300800000"),
    *("true", "false", "null", '"joe"', '"1"', '"AA=="', '"A"', '"\\u0041"', '"\\ud800"', "[1, 2]", '{"a": "b"}', '""'),
]
USUAL = {
    "LONG": ["1", "-9223372036854775808"],
    "DOUBLE": ["0.5", "1", "-1E-3"],
    "BOOLEAN": ["true", "false"],
    "STRING": ['"joe"', '"\\u0041"', '""'],
    "DATE": ["1605339932000", "0"],
    "BYTES": ['"AA=="', '""'],
    "DECIMAL": ["0.10", '"12.5"'],
}


# ---------------------------------------------------------------- the model


def expected_rows(blobs: list[bytes], database: str, table: str) -> list[dict[str, Any]]:
    return [row for blob in blobs for row in rows_of(blob, database, table)]


def rows_of(blob: bytes, database: str, table: str) -> list[dict[str, Any]]:
    document, intact = oracle.read(blob)
    answers = {name.removeprefix("datahub_"): answer for name, answer in oracle.answers(blob).items()}
    if intact and (answers["table"], answers["database"]) != (table, database):
        return []
    if answers["operation"] in ("DDL", "HEARTBEAT", "TRANSACTION"):
        if intact:
            return []
        answers["operation"] = None
    before, after = (
        oracle.whole("object", oracle.at(document, f"payload.{s}.dataColumn")) for s in ("before", "after")
    )
    sides = ["before"] if answers["operation"] in ("UPDATE_BEFORE", "DELETE") else ["after"]
    if answers["op"] == "UPDATE" and before is not None:
        sides = ["before", "after"]
    if answers["operation"] is None and after is None:
        sides = ["before"]
    answers["error"] = error_of(answers, intact, before, after)
    declared = {item["name"]: item["type"] for item in oracle.declared(answers["columns"])}
    return [row_of(before if side == "before" else after, answers, declared, side) for side in sides]


def error_of(answers: dict[str, Any], intact: bool, before: Any, after: Any) -> str | None:
    """The error of the message, whichever image a row shows."""
    if not intact:
        return "BAD_JSON"
    if answers["operation"] is None:
        return "UNKNOWN_OPCODE"
    return "BAD_FIELD" if answers["operation"] == "INSERT" and None not in (before, after) else None


def row_of(image: oracle.Value | None, answers: dict[str, Any], declared: dict[Any, Any], side: str) -> dict[str, Any]:
    members: dict[str, oracle.Value] = {} if image is None else image.content
    known = answers["operation"] is not None
    unexpected = [(name, oracle.text_of(value)) for name, value in members.items() if name not in COLUMNS]
    row: dict[str, Any] = {
        "_sequence_id_": answers["sequence_id"],
        "_operation_type_": oracle.LETTERS.get(answers["operation"] or ""),
        "_excute_time_": answers["event_time_ms"],
        "_source_table_": answers["table"],
        "_before_image_": ("Y" if side == "before" else "N") if known else None,
        "_after_image_": ("N" if side == "before" else "Y") if known else None,
    }
    odd = set()
    for name, type in COLUMNS.items():
        value = members.get(name)
        is_value = value is not None and value.kind != "null"
        of_message = declared.get(name) or type
        row[name] = converted(of_message, type, value) if value is not None and is_value else None
        if value is not None and is_value and (of_message != type or row[name] is None):
            unexpected.append((name, oracle.text_of(value)))
            odd |= {name} if row[name] is None else set()
    order = list(members)
    unexpected.sort(key=lambda pair: order.index(pair[0]))
    row["_primary_key_"] = keys = answers["primary_key"]
    of_row = error_of_row(row, members, odd, keys or [], image is not None)
    return row | {"_unexpected_": unexpected or None, "_error_": answers["error"] or of_row}


def error_of_row(
    row: dict[str, Any], members: dict[str, Any], odd: set[str], keys: list[str], has_image: bool
) -> str | None:
    """The rules of a change table: each row has a member for each column of its key, and not all are NULL."""
    if not has_image or not members.keys() & COLUMNS.keys():
        return "MISSING_FIELD"
    if odd & set(keys):
        return "BAD_FIELD"
    is_lost = (keys and all(row[name] is None for name in keys)) or not members.keys() >= set(keys)
    return "MISSING_FIELD" if is_lost else None


def converted(declared: str, type: str, value: oracle.Value) -> Any:
    """The value that the message declares, in the type of the column; None if that is not the same value."""
    if (declared, type) == ("DATE", "LONG"):  # the same on the wire
        return oracle.integer(value)
    exact = typed(declared, value)
    if declared == type or exact is None:
        return exact
    if type in ("STRING", "DECIMAL"):
        if isinstance(exact, datetime.datetime):
            return f"{exact:%Y-%m-%d %H:%M:%S.%f}Z"
        return exact if isinstance(exact, str) else as_text(exact)
    if isinstance(exact, str):
        is_number = type == "LONG" and re.fullmatch(r"0|-?[1-9]\d{0,18}", exact)
        return int(exact) if is_number and -(2**63) <= int(exact) < 2**63 else None
    of_python = {"LONG": int, "DOUBLE": float, "BOOLEAN": bool}.get(type)
    if of_python is None or not isinstance(exact, int | float):
        return None
    return of_python(exact) if of_python(exact) == exact and abs(exact) <= 2**63 else None


def as_text(value: Any) -> str | None:
    return None if isinstance(value, bytes) else str(pa.array([value]).cast(pa.string())[0])


def typed(type: str, value: oracle.Value) -> Any:
    if type == "LONG":
        return oracle.integer(value)
    if type == "DOUBLE":
        number = float(value.text or "") if value.kind == "number" else math.inf
        return number if math.isfinite(number) else None
    if type == "BOOLEAN":
        return {"true": True, "false": False}.get(value.kind)
    if type == "DATE":
        millis = oracle.integer(value)
        text = None if millis is None else oracle.iso(millis)
        return None if text is None else datetime.datetime.fromisoformat(text)
    if type == "DECIMAL":  # DataHub has no such type
        text = oracle.text_of(value)
        has_exponent = value.kind == "number" and re.fullmatch(r"[-.\d]+[eE]-\d{1,2}", text or "")
        return f"{Decimal(text or 0):f}" if has_exponent else text
    text = value.content if value.kind == "string" else None
    if type == "BYTES":  # padded
        return oracle.decoded(text) if text is not None and len(text) % 4 == 0 else None
    return text


def typed_rows(blobs: Sequence[bytes | None], table: str, columns: dict[str, str] = COLUMNS) -> pa.RecordBatch:
    decode = decoder_of_datahub_rows(table_of(table), columns)
    return decode(MessageRecords(pa.array(blobs, pa.binary()))).batch


# ---------------------------------------------------------------- messages


def message(random: Random) -> bytes:
    columns = [
        (name, type if random.random() < 0.95 else random.choice(list(COLUMNS.values())))
        for name, type in COLUMNS.items()
    ]
    columns += [("extra", "LONG")] * (random.random() < 0.1)
    declared = ", ".join(f'{{"name": "{name}", "type": "{type}"}}' for name, type in columns)
    images = {side: image(random, columns) for side in ("before", "after") if random.random() < 0.7}
    op = random.choice(["INSERT", "UPDATE_BEFOR", "UPDATE_AFTER", "UPDATE", "DELETE", "ALTER", "MHEARTBEAT", "UPSERT"])
    key = random.choice(["", '"primaryKey": [], ', '"primaryKey": ["id"], ', '"primaryKey": ["id", "s"], '])
    source = (
        f'{{"dbName": "{random.choice(["shop", "shop", "shop", "other"])}", "tableName": "{random.choice("tttu")}"}}'
    )
    sides = "".join(f', "{side}": {{"dataColumn": {text}}}' for side, text in images.items())
    blob = (
        f'{{"schema": {{{key}"dataColumn": [{declared}], "source": {source}}}, "payload": {{"op": "{op}", '
        f'"sequenceId": "{random.randrange(100)}", "timestamp": {{"eventTime": {random.randrange(10**13)}}}{sides}}}}}'
    ).encode()
    return blob[: random.randrange(len(blob))] if random.random() < 0.05 else blob


def image(random: Random, columns: list[tuple[str, str]]) -> str:
    pairs = [(name, random.choice(USUAL[type] if random.random() < 0.9 else VALUES)) for name, type in columns]
    pairs += [(random.choice([*COLUMNS, "extra"]), random.choice(VALUES))] * (random.random() < 0.1)
    return "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_those_of_the_model(seed: int) -> None:
    random = Random(seed)
    blobs = [message(random) for _ in range(200)]
    batch = typed_rows(blobs, "shop.t")
    batch.validate(full=True)
    got: list[dict[str, Any]] = [
        {
            name: value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
            for name, value in row.items()
        }
        for row in batch.to_pylist()
    ]
    for row in got:  # the order in a map has no meaning
        row["_unexpected_"] = row["_unexpected_"] and sorted(row["_unexpected_"])
    expected: list[dict[str, Any]] = [
        {n: v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for n, v in row.items()}
        for row in expected_rows(blobs, "shop", "t")
    ]
    for row in expected:
        row["_unexpected_"] = row["_unexpected_"] and sorted(row["_unexpected_"])
    assert got == expected
    assert len(got) > 50


def test_one_batch_is_many() -> None:
    random = Random(99)
    blobs = [message(random) for _ in range(60)]
    whole = typed_rows(blobs, "t").to_pylist()
    parts = [typed_rows([blob], "t").to_pylist() for blob in blobs]
    assert [row for part in parts for row in part] == whole
    assert typed_rows([], "t").num_rows == 0
    assert typed_rows([None], "t", {}).to_pylist() == []


def changed(op: str | None = "INSERT", schema: Any = None, **payload: Any) -> bytes:
    source = {"dbName": "shop", "tableName": "t"}
    schema = {"primaryKey": ["id"], "source": source} | (schema or {})
    payload = {"op": op, "sequenceId": "007", "timestamp": {"eventTime": 5}} | payload
    return json.dumps({"schema": schema, "payload": payload}).encode()


def image_of(**row: Any) -> dict[str, Any]:
    return {"dataColumn": row}


@pytest.mark.parametrize(
    ("blob", "errors"),
    [
        (changed(after=image_of(id=1)), [None]),
        (changed(after=image_of(id=1), schema={"source": {"dbName": "shop"}}), ["MISSING_FIELD"]),
        (changed(after=image_of(id=1), schema={"source": {"dbName": "shop", "tableName": 5}}), ["BAD_FIELD"]),
        (changed(after=image_of(id=1), schema={"source": {"schemaName": "shop", "tableName": "t"}}), [None]),
        (changed(after=image_of(id=1), schema={"source": {"dbName": "shop", "tableName": "u"}}), []),
        (changed(after=image_of(id=1), schema={"source": {"dbName": "shop", "tableName": "u"}})[:-1], ["BAD_JSON"]),
        (b'{"table": "t", "op": 5}', ["WRONG_FORMAT"]),
        (changed(after=image_of(id=1), before=image_of(id=2)), ["BAD_FIELD"]),
        (changed("UPDATE", after=image_of(id=1), before=image_of(id=2)), [None, None]),
        (changed("UPDATE", before=image_of(id=2)), [None, "MISSING_FIELD"]),
        (changed("UPDATE_AFTER", after=image_of(id=1), before=image_of(id=2)), [None]),
        (changed(after=image_of(id=None, s="x")), ["MISSING_FIELD"]),
        (changed(after=image_of(s="x")), ["MISSING_FIELD"]),
        (changed(after=image_of()), ["MISSING_FIELD"]),
        (changed(after=image_of(id="x")), ["BAD_FIELD"]),
        (changed(after=image_of(ID=1)), ["BAD_FIELD: columns has id, and the message ID: write ID"]),
        (changed(after=image_of(id=1), timestamp={}), ["MISSING_FIELD"]),
        (changed(after=image_of(id=1), timestamp={"eventTime": "x"}), ["BAD_FIELD"]),
        (changed(after=image_of(id=1), op=None), ["MISSING_FIELD"]),
        (changed("TRUNCATE"), []),
        (changed("TRUNCATE", after=image_of(id=1)), ["BAD_FIELD"]),
        (changed("ALTER", after=image_of(id=1)), []),
    ],
)
def test_errors_are_those_of_changes(blob: bytes, errors: list[str | None]) -> None:
    assert [row["_error_"] for row in typed_rows([blob], "shop.t").to_pylist()] == errors


def test_rows_without_columns() -> None:
    [row] = typed_rows([changed(after=image_of(id=1))], "t", {}).to_pylist()
    assert (row["_sequence_id_"], row["_unexpected_"], row["_error_"]) == ("007", [("id", "1")], None)


def test_an_operation_that_is_not_known_shows_the_image_that_the_message_has() -> None:
    [row] = typed_rows([changed("UPSERT", before=image_of(id=3))], "t").to_pylist()
    assert (row["id"], row["_before_image_"], row["_error_"]) == (3, None, "UNKNOWN_OPCODE")


def test_a_time_out_of_range_is_kept() -> None:
    """TIMESTAMP ends with the year 9999, and BIGINT does not."""
    [row] = typed_rows([changed(after=image_of(id=1), timestamp={"eventTime": 10**15})], "t").to_pylist()
    assert (row["_excute_time_"], row["_error_"]) == (10**15, "BAD_FIELD")


def test_a_declared_timestamp_is_read_as_a_date() -> None:
    """As in changes, although the format does not define this type."""
    schema = {"primaryKey": ["at"], "dataColumn": [{"name": "at", "type": "TIMESTAMP"}]}
    [row] = typed_rows([changed(schema=schema, after=image_of(at=1605339932000))], "t", {"at": "TIMESTAMP"}).to_pylist()
    assert row["at"] == datetime.datetime(2020, 11, 14, 7, 45, 32, tzinfo=datetime.UTC)
    assert (row["_unexpected_"], row["_error_"]) == (None, None)


def test_names_of_tables() -> None:
    assert table_of("t") == Table("t")
    assert table_of("d.t") == Table("t", "d")
    assert table_of("d.s.t") == Table("t", "d", "s")
    assert table_of("`a.b`.`c``d`") == Table("c`d", "a.b")
    for text in ("", ".", "a.", ".a", "a..b", "a.b.c.d", "`a", "`a`b", "``"):
        with pytest.raises(ValueError, match=r"table is 'table', 'database\.table' or"):
            table_of(text)


def test_columns_with_the_names_of_metadata_columns() -> None:
    types = {"_Error_": column_type("LONG"), "id": column_type("LONG"), "ID": column_type("STRING")}
    assert row_schema(types, ["_SEQUENCE_ID_", "Id"]).names == [
        *("_sequence_id__2", *list(TUPLE_COLUMNS)[1:]),
        *("_Error__2", "id_2", "ID_3"),
        *REMARKS,
    ]


def test_declarations() -> None:
    """The newest is the one with the largest number as its sequence id; dropped columns stay."""
    lists = {
        "9": [("id", "LONG"), ("old", "STRING")],
        "10": [("id", "STRING"), ("new", "DATE")],
        "010": [("id", "BYTES")],
    }
    blobs = []
    for number, (sequence, columns) in enumerate(lists.items()):
        payload = {"op": "INSERT", "sequenceId": sequence, "timestamp": {"eventTime": number}}
        schema = {"dataColumn": [{"name": n, "type": t} for n, t in columns], "source": {"tableName": "t"}}
        blobs += [json.dumps({"schema": schema, "payload": payload}).encode()] * 2
    declared = declarations(pa.array(blobs, pa.binary()), Table("t")).to_pylist()
    declared.sort(key=lambda row: tuple(row["recency"].values()))
    assert [row["recency"]["sequence_id"] for row in declared] == ["9", "10", "10"]
    assert latest_columns(row["columns"] for row in declared) == {"id": "BYTES", "new": "DATE", "old": "STRING"}
    assert declarations(pa.array(blobs, pa.binary()), Table("other")).num_rows == 0


# ---------------------------------------------------------------- Spark


@pytest.fixture(scope="module")
def messages(spark: SparkSession) -> DataFrame:
    blobs = [(case.data,) for case in datahub_cases.samples()]
    return spark.createDataFrame(blobs, "value BINARY").repartition(2).cache()


def test_rows(messages: DataFrame) -> None:
    rows = sparkwire.datahub.rows(messages, "value", table="example_db.example_table_pk")
    assert rows.schema.simpleString() == (
        "struct<_sequence_id_:string,_operation_type_:string,_excute_time_:bigint,_source_table_:string,"
        "_before_image_:string,_after_image_:string,id:bigint,name:string,comment:string,_primary_key_:array<string>,"
        "_unexpected_:map<string,string>,_error_:string>"
    )
    got = rows.orderBy("_sequence_id_", "_after_image_").selectExpr(
        "_sequence_id_", "_operation_type_", "_before_image_", "_after_image_", "id", "name", "comment", "_unexpected_"
    )
    assert [tuple(row) for row in got.collect()] == [
        ("1605339516000000004", "I", "N", "Y", 1, "joe", "comment", None),
        ("1605339516000000005", "U", "Y", "N", 1, "joe", "comment", None),
        ("1605339516000000005", "U", "N", "Y", 1, "joe", "com1", None),
        ("1605339516000000006", "D", "Y", "N", 1, "joe", "com1", None),
    ]


def test_other_columns_are_kept(spark: SparkSession, messages: DataFrame) -> None:
    """For any types and order; an UPDATE with both images has them twice."""
    given = messages.selectExpr(
        "struct(datahub_sequence_id(value) AS id) AS `a.b`",
        "value",
        "array(datahub_op(value)) AS ops",
        "1.50BD AS price",
    )
    rows = sparkwire.datahub.rows(given, "value", table="example_db.example_table_pk")
    assert rows.columns[:3] == ["a.b", "ops", "price"]
    assert rows.schema["a.b"].dataType == given.schema["a.b"].dataType
    got = rows.selectExpr("`a.b`.id AS kept", "_sequence_id_", "ops", "price", "_primary_key_").collect()
    assert len(got) == 4
    for row in got:
        assert row["kept"] == row["_sequence_id_"]
        assert (str(row["price"]), row["_primary_key_"]) == ("1.50", ["id", "name"])
    assert sorted(row["ops"][0] for row in got) == ["DELETE", "INSERT", "UPDATE_AFTER", "UPDATE_BEFOR"]
    plain = sparkwire.datahub.rows(messages, table="example_db.example_table_pk")
    clash = messages.selectExpr("value", "1 AS NAME")
    rows = sparkwire.datahub.rows(clash, table="example_db.example_table_pk")
    assert rows.columns[:1] + rows.columns[7:10] == ["NAME", "id", "name_2", "comment"]
    assert {(row["NAME"], row["name_2"]) for row in rows.collect()} == {(1, row["name"]) for row in plain.collect()}


def test_columns(messages: DataFrame) -> None:
    result = sparkwire.datahub.columns(messages, table="example_db.example_table_pk")
    assert result == {"id": "LONG", "name": "STRING", "comment": "STRING"}


def test_one_round_trip(messages: DataFrame) -> None:
    rows = sparkwire.datahub.rows(messages, table="example_table_pk", columns={"id": "LONG"})
    query = rows.where("_operation_type_ = 'U' AND id > 0").selectExpr("id", "_unexpected_['name']")
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert plan.count("MapInArrow") == 1
    assert plan.count("EvalPython") == 0
    assert [tuple(row) for row in query.collect()] == [(1, "joe"), (1, "joe")]


def test_wrong_arguments(spark: SparkSession, messages: DataFrame) -> None:
    rows = sparkwire.datahub.rows
    there = (
        r"the messages have no table x\.y, only example_db\.example_table_nopk, example_db\.example_table_pk: choose"
    )
    with pytest.raises(ValueError, match=there):
        rows(messages, table="x.y")
    with pytest.raises(ValueError, match=there):
        sparkwire.changes(messages, format="datahub", table="x.y")
    none = messages.where("false")
    no_columns = r"no message declares the columns of the table x\.y: pass columns"
    with pytest.raises(ValueError, match=no_columns):
        rows(none, table="x.y")
    with pytest.raises(ValueError, match=no_columns):
        sparkwire.changes(none, format="datahub", table="x.y")
    with pytest.raises(ValueError, match=r"rows takes the types LONG, DOUBLE.*; column id has 'BIGINT'"):
        rows(messages, table="t", columns={"id": "BIGINT"})
    with pytest.raises(ValueError, match=r"table is 'table', 'database\.table' or"):
        rows(messages, table="a..b")
    with pytest.raises(TypeError, match="rows takes a BINARY column, and value is STRING"):
        rows(messages.selectExpr("CAST(value AS STRING) AS value"), table="t")
    stream = spark.readStream.format("rate").load().selectExpr("CAST('' AS BINARY) AS value")
    with pytest.raises(ValueError, match=r"^rows\(\) expected columns= for a streaming DataFrame"):
        rows(stream, table="t")
    assert rows(stream, table="t", columns={"id": "LONG"}).isStreaming
