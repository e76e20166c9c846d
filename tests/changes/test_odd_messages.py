"""Messages with extreme values, partial keys and names of many forms: each is a right row, or a row with an error."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from tests.support import system_messages as m
from tests.support.cdc_golden import Record
from tests.support.decoded import changes_by_table, changes_of
from tests.support.system_messages import canal, envelope, numbered, record, with_schema
from tests.support.what_is_read import OPTIONS

KEY = {"id": 1}
TWO_KEYS: dict[str, Any] = {"columns": {"a": "INT", "b": "INT", "v": "STRING"}, "keys": ("a", "b")}
AS_TEXT = ("x", "decimal(1,2,3)")
"""types that MySQL does not have"""
DEEP = b"[" * 100_000


def rows(records: Sequence[Record], format: str = "debezium", **options: Any) -> list[dict[str, Any]]:
    return changes_of(numbered(records), format, **({"table": m.TABLE} | OPTIONS | options)).rows


def parts(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def cassandra(cells: str, op: str = "i") -> bytes:
    source = '{"connector":"cassandra","keyspace":"shopdb","table":"customers"}'
    return f'{{"op":"{op}","source":{source},"after":{{"id":{{"value":1,"set":true}},{cells}}}}}'.encode()


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("number", ["1e-99999999", "1e-77", "5e2000000", "1e400", "1" * 5000])
@pytest.mark.parametrize("type", ["INT", "DECIMAL(10,2)", "DECIMAL(38,0)"])
def test_an_extreme_number_is_unexpected(number: str, type: str) -> None:
    """Arrow's decimals lose digits of some of them, and crash for others."""
    columns = {"id": "INT", "x": type}
    cases = {
        "debezium": record(f'{{"id":1,"x":{number}}}'.encode()),
        "canal": record(canal(data=[{"id": "1", "x": number}])),
        "maxwell": record(json.dumps(m.maxwell(data={"id": 1, "x": "#"})).replace('"#"', number).encode()),
    }
    for format, message in cases.items():
        [row] = rows([message], format, columns=columns)
        assert parts(row, "id", "x", "_error_") == (1, None, None)
        assert dict(row["_unexpected_"]) == {"x": number}


@pytest.mark.parametrize(("type", "text"), [("SMALLINT", "9223372036825200"), ("DATE", "infinity")])
def test_a_number_like_that_of_an_endless_date(type: str, text: str) -> None:
    [row] = rows([record({"id": 1, "x": 9223372036825200})], columns={"id": "INT", "x": type})
    assert dict(row["_unexpected_"]) == {"x": text}


@pytest.mark.parametrize("text", ["9_5", "1_0e1", "\u0661e1", " 1e1", "1e1\n"])
def test_what_only_python_calls_a_number(text: str) -> None:
    [row] = rows([record(canal(data=[{"id": "1", "amount": text}]))], "canal")
    assert (row["amount"], dict(row["_unexpected_"])) == (None, {"amount": text})


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        ("12345678901234567890.12", "DECIMAL(38,2)", Decimal("12345678901234567890.12")),
        ("1e400", "DOUBLE", None),
        ("1" * 5000, "DOUBLE", None),
        ('"a\\"b\\u00e9"', "STRING", 'a"b\u00e9'),
    ],
)
def test_the_value_of_a_cell_is_as_written(value: str, type: str, expected: Any) -> None:
    [row] = rows([record(cassandra(f'"x":{{"value":{value},"set":true}}'))], columns={"id": "INT", "x": type})
    assert parts(row, "id", "x", "_error_") == (1, expected, None)
    assert (row["_unexpected_"] is not None) == (expected is None)


@pytest.mark.parametrize("key", [None, {"id": 1}])
def test_cassandra_has_keyspaces(key: Any) -> None:
    """Its connector writes the text NULL as the database."""
    message = record(envelope("i", after=m.cassandra_cells(m.ROW), connector="cassandra"), key)
    assert list(changes_by_table([message], "debezium", columns=m.COLUMNS)) == [m.TABLE]
    [row] = rows([message], columns=m.COLUMNS)
    assert parts(row, "_op_", "id", "name", "_error_") == ("INSERT", 1, "amber", None)


def test_columns_that_an_update_of_spanner_does_not_modify() -> None:
    old, new = {"id": 1, "name": None, "x": 10}, {"id": 1, "name": None, "x": None}
    for capture, expected in (
        ("OLD_AND_NEW_VALUES", ("UPDATE", ["name"], None)),
        ("NEW_ROW_AND_OLD_VALUES", ("UPDATE", None, None)),
        ("NEW_VALUES", (None, None, "WRONG_FORMAT: Spanner's NEW_VALUES")),
    ):
        message = envelope("u", old, new, "spanner", value_capture_type=capture)
        for value in (message, with_schema(message, None), m.cloud_event(message)):
            [row] = rows([record(value, KEY)], columns={"id": "INT", "name": "STRING", "x": "INT"})
            got = parts(row, "_op_", "_unavailable_", "_error_")
            assert got[:2] == expected[:2]
            assert (got[2] or "").startswith(expected[2] or "")
            assert (got[2] is None) == (expected[2] is None)
        [row] = rows([record(envelope("c", None, new, "spanner", value_capture_type=capture), KEY)])
        assert parts(row, "_op_", "name", "_error_") == ("INSERT", None, None)


@pytest.mark.parametrize("connector", ["yugabytedb", "scylla"])
def test_cells_of_other_connectors(connector: str) -> None:
    """Their NULL is a column that the change does not set."""
    cells = {"id": {"value": 1, "set": True}, "name": None, "amount": {"value": "9.50", "set": True}}
    for op, before, after in (("c", None, cells), ("u", None, cells), ("d", cells, None)):
        [row] = rows([record(envelope(op, before, after, connector), KEY)])
        assert row["_error_"].startswith("WRONG_FORMAT: columns of this connector that are objects")
    plain = record(envelope("c", None, m.ROW, connector), KEY)
    assert parts(rows([plain])[0], "_op_", "name", "_error_") == ("INSERT", "amber", None)
    for cell in ({"value": "9.50"}, {"value": None}, {"value": "9.50", "set": True}):  # the key may be none
        [row] = rows([record(envelope("u", None, {"id": 1, "name": None, "amount": cell}, connector), KEY)])
        assert row["_error_"].startswith("WRONG_FORMAT: columns of this connector that are objects")


@pytest.mark.parametrize("of_cell", [["value"], ["value", "set"]])
@pytest.mark.parametrize("flat", [False, True])
def test_cells_by_their_schema(of_cell: list[str], flat: bool) -> None:
    """YugabyteDB's plugin yboutput has the connector's name of PostgreSQL, and a flattened row has none."""
    types = {"value": "int32", "set": "boolean"}
    cell = {"type": "struct", "optional": True, "fields": [{"type": types[name], "field": name} for name in of_cell]}
    columns = [{"type": "int32", "field": "id"}, {**cell, "field": "name"}, {**cell, "field": "amount"}]
    schema = {"type": "struct", "fields": columns}
    row = {
        "id": 1,
        "name": None,
        "amount": {name: value for name, value in (("value", 9), ("set", True)) if name in of_cell},
    }
    if not flat:
        images = [{**schema, "field": image, "optional": True} for image in ("before", "after")]
        schema = {"type": "struct", "fields": [*images, {"type": "string", "field": "op"}]}
    message = row if flat else envelope("u", None, row, "postgresql")
    [found] = rows([record(with_schema(message, schema), KEY)], table="customers")
    assert found["_error_"].startswith("WRONG_FORMAT")


def test_an_old_row_of_wal2json_without_the_key() -> None:
    """The replica identity may be another index than the primary key: then the old key is nowhere."""
    old = m.wal2json("U", m.ROW, {"name": "amber"})
    [row] = rows([record(old)], "wal2json", keys=None)
    assert row["_error_"] == "MISSING_FIELD"
    [row] = rows([record(old)], "wal2json", keys=("name",))
    assert (row["name"], row["_error_"]) == ("amber", None)
    [row] = rows([record(m.wal2json("U", m.ROW, {}))], "wal2json")
    assert row["_error_"] is None


def test_an_envelope_in_a_payload_without_a_schema() -> None:
    """TiCDC writes it with debezium-disable-schema."""
    of_tidb = [envelope(op, before, connector="TiCDC") for op, before in (("c", None), ("u", m.ROW), ("d", m.ROW))]
    notice = record({"payload": envelope("m", connector="TiCDC")})
    got = rows([*(record({"payload": message}, KEY) for message in of_tidb), notice], before="full")
    assert [parts(row, "_op_", "id", "name", "_error_") for row in got] == [
        (op, 1, "amber", None) for op in ("INSERT", "UPDATE", "DELETE")
    ]
    [row] = rows([record({"payload": {"id": 1}}, KEY)], columns={"id": "INT", "payload": "struct<id:int32>"})
    assert row["payload"] == {"id": 1}


@pytest.mark.parametrize(
    "mark", [{"onlyHandleKey": True}, {"claimCheckLocation": "s3://bucket/claim/1.json"}, {"claimCheckLocation": {}}]
)
def test_a_row_of_ticdc_that_is_elsewhere(mark: dict[str, Any]) -> None:
    """It writes only the key of a row that is larger than a message may be, or the name of the file with the row."""
    tidb = {"_tidb": {"commitTs": 447_507_027_004_751_877} | mark}
    of_format: dict[str, list[Any]] = {
        "canal": [canal(type, old=[{}] if type == "UPDATE" else None) for type in ("INSERT", "UPDATE", "DELETE")],
        "maxwell": [m.maxwell(type) for type in ("insert", "update", "delete")],
        "debezium": [envelope(op, None if op == "c" else KEY, KEY, "TiCDC") for op in "cud"],
    }
    of_format["debezium"] += [{"payload": message} for message in of_format["debezium"]]
    for format, messages in of_format.items():
        for message in messages:
            marked = {"payload": message["payload"] | tidb} if "payload" in message else message | tidb
            [row] = rows([record(marked, KEY)], format)
            assert row["_error_"] == "MISSING_FIELD"
            [row] = rows([record(message | {"_tidb": {"commitTs": 1, "onlyHandleKey": False}}, KEY)], format)
            assert row["_error_"] is None or "payload" in message
    [row] = rows([record(KEY | tidb, KEY)], columns={"id": "INT", "_tidb": "STRING"})
    assert row["_error_"] is None


def test_columns_say_what_plain_values_mean() -> None:
    """A schema may leave it out."""
    fields = [
        {"type": type, "optional": True, "field": name}
        for name, type in (("id", "int32"), ("s", "string"), ("n", "int64"))
    ]
    message = {"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, "s": "2024-01-02", "n": 1_000_000}}
    [row] = rows([record(message, KEY)], columns={"id": "INT", "s": "IsoDate", "n": "MicroTimestamp"})
    assert parts(row, "s", "n", "_unexpected_") == (
        datetime.date(2024, 1, 2),
        datetime.datetime(1970, 1, 1, 0, 0, 1),
        None,
    )


def test_a_message_of_datahub_without_an_operation() -> None:
    message = m.datahub()
    del message["payload"]["op"]
    [row] = rows([record(message)], "datahub", columns={"id": "LONG"})
    assert row["_error_"] == "MISSING_FIELD"


@pytest.mark.parametrize("format", ["canal", "datahub", "maxwell", "wal2json"])
def test_messages_of_several_tables(format: str) -> None:
    """Rows of one table are the same without the messages of others, and so are errors of messages that may be of it."""
    columns = {"id": "LONG"} if format == "datahub" else {"id": "INT", "name": "STRING"}
    own = [m.MAKERS[format]("INSERT", m.ROW | {"id": k}, None) for k in range(3)]
    others = [json.loads(json.dumps(message).replace("customers", "others")) for message in own]
    mixed = [others[0], own[0], {"x": 1}, own[1], others[1], others[2], own[2], {"x": 2}]
    found = rows([record(message) for message in mixed], format, columns=columns)
    assert [row["_order_"]["offset"] for row in found] == [1, 2, 3, 6, 7]
    assert [row["id"] for row in found] == [0, None, 1, 2, None]
    assert [row["_error_"] for row in found] == [None, "WRONG_FORMAT", None, None, "WRONG_FORMAT"]


@pytest.mark.parametrize("op", ["UPDATE_BEFOR", "DELETE"])
def test_an_old_row_of_datahub_is_in_before(op: str) -> None:
    message = m.datahub(op)
    image = message["payload"].pop("before", None) or message["payload"]["after"]
    message["payload"]["after"] = image
    [row] = rows([record(message)], "datahub", columns={"id": "LONG"})
    assert row["_error_"] == "MISSING_FIELD"


def test_an_old_key_in_part() -> None:
    """The message does not show whether the other column is NULL, or as it is now."""
    new = {"a": 1, "b": 2, "v": "y"}
    [row] = rows([record(envelope("u", {"a": 1}, new))], **TWO_KEYS)
    assert row["_error_"] == "MISSING_FIELD"
    for before in ({"a": 1, "b": None}, {"v": "x"}, None):
        [row] = rows([record(envelope("u", before, new))], **TWO_KEYS)
        assert row["_error_"] is None


def test_a_deep_value_of_a_cell() -> None:
    deep = DEEP[:5000].decode() + "]" * 5000
    [row] = rows([record(cassandra(f'"x":{{"value":{deep},"set":true}}'))], columns={"id": "INT", "x": "DOUBLE"})
    assert parts(row, "id", "x") == (1, None)


def test_the_deletion_of_a_partition_is_an_error() -> None:
    """The clustering key is NULL in it: the rows that it deletes are not known."""
    message = record(cassandra('"ck":{"value":null,"deletion_ts":null,"set":true}', "d"))
    [row] = rows([message], columns={"id": "INT", "ck": "INT"}, keys=("id", "ck"))
    assert parts(row, "_op_", "_error_") == ("DELETE", "MISSING_FIELD")


@pytest.mark.parametrize("nulls", ["written", "absent"])
def test_a_column_in_another_case_is_an_error_that_names_both(nulls: str) -> None:
    """Of a stream, nobody knows the names before. A message that has both names has the column."""
    options = {"columns": {"id": "INT", "NAME": "STRING"}, "nulls": nulls}
    message = canal(data=[{"id": "1", "name": "x"}], mysqlType={})
    [row] = rows([record(message)], "canal", **options)
    assert row["_error_"] == "BAD_FIELD: columns has NAME, and the message name: write name"
    [row] = rows([record(message)], "canal", columns={"ID": "INT", "name": "STRING"}, keys=("ID",))
    assert row["_error_"] == "BAD_FIELD: columns has ID, and the message id: write id"
    both = canal(data=[{"id": "1", "name": "x", "NAME": "y"}], mysqlType={})
    [row] = rows([record(both)], "canal", **options)
    assert parts(row, "NAME", "_error_") == ("y", None)


def test_types_without_arguments() -> None:
    """TiCDC leaves out the members of an enum and the digits of a decimal, unless it is set to content-compatible."""
    types = {"id": "int", "amount": "decimal", "e": "enum", "s": "set"}
    message = canal(data=[{"id": "1", "amount": "9.50", "e": "2", "s": "3"}], mysqlType=types)
    [row] = rows([record(message)], "canal", columns=None)
    assert parts(row, "amount", "e", "s") == ("9.50", None, None)
    assert dict(row["_unexpected_"]) == {"e": "2", "s": "3"}


def test_names_of_digits() -> None:
    """Canal writes the index of an enum and the mask of a set, and TiCDC their names."""
    types = {"id": "int", "e": "enum('2','1','x')", "s": "set('1','2','3')"}
    cases = {"1": ("2", "1"), "2": ("1", "2"), "3": ("x", "3")}
    for text, (of_canal, of_tidb) in cases.items():
        message = canal(data=[{"id": "1", "e": text, "s": "3"}], mysqlType=types)
        [row] = rows([record(message)], "canal", columns=None)
        assert parts(row, "e", "s") == (of_canal, ["1", "2"])
        [row] = rows([record(message | {"_tidb": {"commitTs": 1}})], "canal", columns=None)
        assert parts(row, "e", "s") == (of_tidb if of_tidb != "3" else "x", ["3"])  # no member is 3: the index


@pytest.mark.parametrize("type", ["set('a','b')", "enum('a')", "decimal(0)", "decimal(1,2,3)", "bit(x)", "int", "x"])
def test_a_long_value_of_any_type(type: str) -> None:
    digits = "1" * 5000
    [row] = rows(
        [record(canal(data=[{"id": "1", "x": digits}], mysqlType={"id": "int", "x": type}))], "canal", columns=None
    )
    assert (
        (row["x"], row["_unexpected_"]) == (digits, None)
        if type in AS_TEXT
        else dict(row["_unexpected_"]) == {"x": digits}
    )


@pytest.mark.parametrize(
    "definition", [{"columns": 5}, {"columns": [5, {"name": 5}, {"name": "id"}]}, {"columns": None}, {}]
)
def test_an_odd_definition_declares_nothing_wrong(definition: Any) -> None:
    messages = [record(m.maxwell("table-create", sql="x", **{"def": definition})), record(m.maxwell())]
    found = rows([messages[1]], "maxwell")
    assert [row["id"] for row in found] == [1]
    changes_of(numbered(messages), "maxwell", table=m.TABLE, columns=None, keys=("id",))


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize("key", [DEEP, DEEP + b"]" * len(DEEP), b'["a","b",[{"\\ud800":1}]]', b"1" * 5000, b"NaN"])
def test_an_odd_key_is_an_error_where_it_is_needed(key: bytes) -> None:
    found = rows([record(envelope(), key), record(None, key)])
    assert [row["_error_"] for row in found] == [None, "BAD_FIELD" if key[:1] == b"1" else "MISSING_FIELD"]
    [row] = rows([record(m.maxwell(), key)], "maxwell", keys=None)
    assert parts(row, "id", "_keys_", "_error_") == (1, None, None)


@pytest.mark.parametrize(
    "key", ["1234567890123456789.0123456789", '{"schema":null,"payload":1234567890123456789.0123456789}']
)
def test_a_number_as_a_key_keeps_its_digits(key: str) -> None:
    [row] = rows([record(None, key.encode())], columns={"id": "DECIMAL(38,10)"})
    assert parts(row, "_op_", "id") == ("DELETE", Decimal("1234567890123456789.0123456789"))
    [row] = rows([record(None, b"9007199254740993.0")], columns={"id": "BIGINT"})
    assert row["id"] == 9007199254740993


def test_a_binary_key_is_no_frame_of_json() -> None:
    """A BIGINT of Kafka's LongSerializer may look like the wire format of a schema registry with the id 0."""
    [row] = rows([record(None, b"\0\0\0\0\x009  ")])
    assert row["_error_"] == "MISSING_FIELD"
    for number in (b"9", b"2"):  # in Avro, these are -29 and 25
        [row] = rows([record(None, b"\0\0\0\0\x07" + number)])
        assert row["_error_"] == "MISSING_FIELD"
    for written in (b'{"id":9}', b'{ "id" : 9 }'):
        [row] = rows([record(None, b"\0\0\0\0\x07" + written)])
        assert parts(row, "_op_", "id", "_error_") == ("DELETE", 9, None)


def test_the_kafka_key_has_what_the_row_lacks() -> None:
    inserts = [{"before": None, "after": {"a": 1, "v": "x"}, "op": "c"}, {"a": 1, "v": "x"}]
    for message in inserts:
        [row] = rows([record(message, {"a": 1, "b": 2})], **TWO_KEYS)
        assert parts(row, "a", "b", "v", "_error_") == (1, 2, "x", None)


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ({"a": 1, "B2": 2}, None),
        ({"a": 1, "v": "x"}, {"a": 1}),
        (None, {"a": 1}),
        ({"before": {"a": 1}, "after": None, "op": "d"}, None),
        ({"before": {"a": 1}, "after": None, "op": "d"}, {"a": 1}),
    ],
)
def test_a_part_of_the_key_is_nowhere(message: Any, key: Any) -> None:
    """A member that is not there is no NULL: rows with other values of it would become one row."""
    [row] = rows([record(message, key)], **TWO_KEYS)
    assert row["_error_"] == "MISSING_FIELD"


def test_a_part_of_the_key_is_null() -> None:
    found = rows(
        [record({"a": 1, "b": None}), record({"before": {"a": 1, "b": None}, "after": None, "op": "d"})], **TWO_KEYS
    )
    assert [parts(row, "a", "b", "_error_") for row in found] == [(1, None, None)] * 2


def test_a_column_that_goldengate_marks_as_missing() -> None:
    """Its handler for Kafka Connect writes null for a column that the trail does not have, and says so beside it."""
    new = {"id": 1, "name": None, "name_isMissing": True, "amount": None, "amount_isMissing": False}
    [row] = rows([record(m.goldengate("U", KEY, new))], "ogg", table="SHOPDB.CUSTOMERS")
    assert parts(row, "id", "amount", "_unavailable_", "_unexpected_", "_error_") == (1, None, ["name"], None, None)
    [row] = rows([record(m.goldengate("U", KEY, new | {"id_isMissing": True}))], "ogg", table="SHOPDB.CUSTOMERS")
    assert row["_error_"] == "MISSING_FIELD"
    columns = {"id": "INT", "name_isMissing": "BOOLEAN"}
    [row] = rows([record(m.goldengate("I", None, new))], "ogg", table="SHOPDB.CUSTOMERS", columns=columns)
    assert parts(row, "name_isMissing", "_error_") == (True, None)


def test_a_delete_with_two_rows_is_an_error() -> None:
    [row] = rows([record({"before": KEY, "after": {"id": 2}, "op": "d"})])
    assert row["_error_"] == "BAD_FIELD"


def test_a_delete_of_canal_with_its_rows_in_old() -> None:
    found = rows([record(canal("DELETE", data=[], old=[{"id": "1"}, {"id": "2"}]))], "canal")
    assert [parts(row, "_op_", "id") for row in found] == [("DELETE", 1), ("DELETE", 2)]


# ---------------------------------------------------------------- messages that contradict themselves


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("canal", canal("TRUNCATE", isDdl=False)),
        ("canal", canal("TRUNCATE") | {"data": [{"id": "1"}]}),
        ("canal", canal("TRUNCATE", old=[{"id": "1"}])),
        ("canal", canal("ALTER") | {"data": [{"id": "1"}]}),
        ("canal", canal("INSERT", isDdl=True)),
        ("canal", canal("DELETE", isDdl=True)),
        ("maxwell", m.maxwell("insert", sql="DROP TABLE customers")),
        ("maxwell", m.maxwell("table-drop", sql="DROP TABLE customers")),
        ("maxwell", m.maxwell("bootstrap-start")),
        ("maxwell", m.maxwell("insert", old={"name": "x"})),
        ("ogg", m.goldengate("T", None, m.ROW)),
        ("ogg", m.goldengate("T", m.ROW, None)),
        ("datahub", m.datahub("TRUNCATE")),
        ("datahub", m.datahub("ERASE", before=m.ROW)),
        ("debezium", envelope("t") | {"after": m.ROW}),
        ("debezium", envelope("t", m.ROW)),
        ("debezium", envelope("c", m.ROW)),
        ("debezium", envelope("r", m.ROW)),
        ("debezium", envelope("d", m.ROW) | {"after": m.ROW}),
        ("debezium", envelope("d") | {"after": m.ROW}),
        ("debezium", m.cloud_event(envelope("t") | {"after": m.ROW})),
        ("debezium", with_schema(envelope("t") | {"after": m.ROW}, None)),
        ("debezium", m.ROW | {"__op": "t", "__table": "customers"}),
        ("debezium", m.ROW | {"__op": "u", "__deleted": "true"}),
        ("debezium", m.ROW | {"__op": "d", "__deleted": "false"}),
    ],
)
def test_a_message_that_contradicts_itself(format: str, message: Any) -> None:
    options: dict[str, Any] = {"table": "SHOPDB.CUSTOMERS"} if format == "ogg" else {}
    if format == "datahub":
        options["columns"] = {"id": "LONG", "name": "STRING"}
    [row] = rows([record(message, KEY)], format, **options)
    assert row["_error_"] == "BAD_FIELD"


@pytest.mark.parametrize("names", [{"database": None}, {"table": None}, {"database": "", "table": ""}])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_row_of_an_unknown_table(names: dict[str, Any], is_first: bool) -> None:
    """Only Flink writes messages without names; they have nothing else, either."""
    for format, whole in (("canal", canal()), ("maxwell", m.maxwell())):
        left = {name: value for name, value in (whole | names).items() if value is not None}
        for message in (left, whole | names):
            neighbours = [record(whole)] * is_first
            *_, row = rows([*neighbours, record(message)], format)
            assert row["_error_"] == "MISSING_FIELD"
    [row] = rows([record({"type": "insert", "data": m.ROW})], "maxwell")
    assert row["_error_"] is None


@pytest.mark.parametrize("op", ["INSERT", "TRUNCATE"])
def test_a_row_of_an_unknown_schema(op: str) -> None:
    """Two schemas may have a table of this name: wal2json with include-schemas=0, control records of DMS."""
    images = (m.ROW if op == "INSERT" else None), None
    for format in ("wal2json", "dms", "ogg"):
        message = m.MAKERS[format](op, *images)
        message.pop("schema", None)
        message |= {"metadata": message["metadata"] | {"schema-name": ""}} if format == "dms" else {}
        message |= {"table": "customers"} if format != "dms" else {}
        options = ("pk", "xid", "lsn", "timestamp")
        for one in (message, {name: message[name] for name in message if name not in options}):
            [row] = rows([record(one)], format)
            assert row["_error_"] == "MISSING_FIELD"
        [row] = rows([record(message)], format, table="customers")
        assert parts(row, "_op_", "_error_") == (op, None)


# ---------------------------------------------------------------- what a message is


@pytest.mark.parametrize(
    "message",
    [
        {"before": None, "after": None, "op": "t", "source.table": "orders"},
        {"before.id": 1, "after": None, "op": "d", "source.table": "orders"},
        {"id": 1, "op": "t", "after": None},
        {"id": 1, "op": "d", "after": None},
        {"id": 1, "op": "m", "before": None},
    ],
)
def test_an_envelope_with_other_members_is_an_error(message: Any) -> None:
    """It is what the transform Flatten makes of an envelope, or the row of a table with such columns."""
    [row] = rows([record(message, KEY)])
    assert parts(row, "_op_", "_error_") == (None, "MISSING_FIELD")


@pytest.mark.parametrize(
    "message",
    [
        {"ts_ms": 1},
        {"source": {"a": 1}, "databaseName": "x", "ddl": "y", "id": 1},
        {"id": 1, "name": "a", "__op": "m"},
        envelope("m", None),
    ],
)
def test_a_notice_with_a_key_of_the_table_does_not_vanish(message: Any) -> None:
    [row] = rows([record(message, KEY)])
    assert parts(row, "_op_", "_error_") == (None, "MISSING_FIELD")
    assert rows([record(message, {"serverName": "a"}), record(message)]) == []


def test_a_notice_with_one_member_more() -> None:
    """What a notice has identifies it. If it has a column of the table, too, it may be a row."""
    assert rows([record(m.END | {"sink": "a"}, {"id": "571"})]) == []
    assert rows([record(m.HEARTBEAT | {"sink": "a"}, {"serverName": "shop"})]) == []
    assert rows([record(m.SCHEMA_CHANGE | {"sink": "a"}, {"databaseName": "shopdb"})]) == []
    [row] = rows([record(m.END | {"name": "a"}, {"id": "571"})])
    assert row["_error_"] == "MISSING_FIELD"


@pytest.mark.parametrize(
    "mark",
    [
        {"_fivetran_deleted": True},
        {"_fivetran_deleted": False},
        {"_change_type": "delete"},
        {"METADATA$ACTION": "DELETE"},
        {"__$operation": 1},
        {"_ab_cdc_deleted_at": None},
        {"Op": "D"},
        {"op_type": "D"},
        {"op": "d"},
        {"operation": "delete"},
        {"eventName": "REMOVE", "dynamodb": {"Keys": {"id": {"N": "1"}}}},
    ],
)
def test_a_row_that_says_what_happened_to_it(mark: dict[str, Any]) -> None:
    """As a column of the table it is a value."""
    [row] = rows([record(m.ROW | mark, KEY)])
    assert row["_op_"] is None
    assert row["_error_"].split(":")[0] == ("MISSING_FIELD" if mark == {"op": "d"} else "WRONG_FORMAT")
    [row] = rows([record(m.ROW | mark, KEY)], columns=m.COLUMNS | dict.fromkeys(mark, "STRING"))
    assert (row["_op_"], row["_error_"]) == ("UPSERT", None)


@pytest.mark.parametrize("row", [{"operation": "welding"}, {"op": "sum"}, {"status": "BEGIN"}, {"deleted": True}])
def test_a_row_with_more_columns_than_those_asked_for(row: dict[str, Any]) -> None:
    [found] = rows([record(m.ROW | row, KEY)])
    assert (found["_op_"], found["_error_"]) == ("UPSERT", None)


def test_a_notice_of_debezium_1() -> None:
    notice = {"status": "BEGIN", "id": "571:42", "event_count": None, "data_collections": None}
    assert rows([record(notice)], columns={"id": "STRING"}) == []


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"id": 1, "type": "INSERT", "data": None}, {"type": "STRING", "data": "STRING"}),
        ({"id": 1, "op_type": "I", "table": "x"}, {"op_type": "STRING", "table": "STRING"}),
        ({"id": 1, "metadata": {"operation": "load"}}, {"metadata": "STRING"}),
    ],
)
def test_columns_like_the_members_of_another_system(row: Any, columns: dict[str, str]) -> None:
    [found] = rows([record(row)], columns={"id": "INT"} | columns)
    assert parts(found, "_op_", "id", "_error_") == ("UPSERT", 1, None)


def test_a_truncate_of_an_unknown_table() -> None:
    [row] = rows([record(canal("TRUNCATE", data=None, table=None, database=None))], "canal")
    assert row["_error_"] == "MISSING_FIELD"
    [row] = rows([record({"__op": "t", "__table": "customers"})])
    assert parts(row, "_op_", "_error_") == ("TRUNCATE", None)


def test_an_old_row_that_is_no_array() -> None:
    [row] = rows([record(canal("UPDATE", old={"id": "2"}))], "canal")
    assert row["_error_"] == "BAD_FIELD"


# ---------------------------------------------------------------- names


def flattened(name: str) -> Record:
    fields = [{"field": "id", "type": "int32"}]
    return record({"schema": {"type": "struct", "fields": fields, "name": name}, "payload": {"id": 1}})


@pytest.mark.parametrize(
    ("name", "table", "is_own"),
    [
        ("shop.shopdb.order_items.Value", "shopdb.order items", True),
        ("shop.gr__e.order_items.Value", "gr\u00f6\u00dfe.order items", True),
        ("srv.testDB.dbo.customers.Value", "testDB.customers", True),
        ("srv.testDB.dbo.customers.Value", "dbo.customers", True),
        ("srv.testDB.dbo.customers.Value", "testDB.dbo.customers", True),
        ("srv.otherDB.dbo.customers.Value", "testDB.dbo.customers", False),
        ("srv.testDB.dbo.customers.Value", "sales.customers", False),
        ("shop.public.customers.Value", "any.public.customers", True),
        ("shop.public.customers.Value", "any.sales.customers", False),
    ],
)
def test_the_name_of_a_schema(name: str, table: str, is_own: bool) -> None:
    assert len(rows([flattened(name)], table=table, columns={"id": "INT"})) == is_own


def test_an_empty_name_is_no_name() -> None:
    message = envelope(connector="vitess")
    message["source"] |= {"db": "", "keyspace": "shopdb", "table": "customers"}
    assert len(rows([record(message)])) == 1
    assert rows([record(message)], table="other.customers") == []


def test_tables_of_one_name_in_two_schemas() -> None:
    found = changes_by_table(
        [flattened(f"shop.{schema}.customers.Value") for schema in ("public", "sales")], "debezium"
    )
    assert {name: len(changes.rows) for name, changes in found.items()} == {"public.customers": 1, "sales.customers": 1}


def test_a_changefeed_of_cockroachdb_names_its_table() -> None:
    source = {"changefeed_sink": "kafka", "database_name": "shopdb", "schema_name": "public"}
    messages = [
        {"after": {"id": k}, "before": None, "op": "c", "source": source | {"table_name": name}, "ts_ns": 1}
        for k, name in enumerate(("customers", "orders"))
    ]
    assert [parts(row, "id", "_table_") for row in rows([record(one) for one in messages])] == [(0, "customers")]


# ---------------------------------------------------------------- positions


@pytest.mark.parametrize(
    ("connector", "position"),
    [
        ("oracle", {"scn": "2122185", "commit_scn": None}),
        ("oracle", {"scn": "2122185", "commit_scn": "99999999999999999999"}),
        ("mysql", {"file": "binlog.000003", "pos": None}),
    ],
)
def test_a_position_without_its_number_is_no_position(connector: str, position: dict[str, Any]) -> None:
    [row] = rows([record(envelope(connector=connector, **position))], order="source")
    assert row["_error_"] == "MISSING_FIELD"


def test_a_position_of_19_digits() -> None:
    [row] = rows([record(envelope(connector="oracle", scn="1", commit_scn="1234567890123456789"))], order="source")
    assert row["_order_"]["position"] == 1234567890123456789


@pytest.mark.parametrize(
    ("connector", "early", "read", "late"),
    [
        ("mysql", {"pos": 1}, {"pos": 2}, {"pos": 3}),
        ("postgresql", {"sequence": '["1","5"]'}, {"sequence": '[null,"7"]'}, {"sequence": '["8","9"]'}),
        ("oracle", {"scn": "1", "commit_scn": "7"}, {"scn": "7", "commit_scn": None}, {"scn": "6", "commit_scn": "8"}),
        ("sqlserver", {"commit_lsn": "1"}, {"commit_lsn": "2", "change_lsn": None}, {"commit_lsn": "3"}),
        ("TiCDC", {"commit_ts": 1}, {"commit_ts": 2}, {"commit_ts": 3}),
    ],
)
def test_a_row_of_a_snapshot_has_its_place(connector: str, early: Any, read: Any, late: Any) -> None:
    """A second snapshot comes after the changes before it."""
    for snapshot in ("true", "incremental"):
        messages = [envelope("u", connector=connector, **early), envelope("r", connector=connector, **read)]
        messages[1]["source"]["snapshot"] = snapshot
        messages.append(envelope("u", connector=connector, **late))
        orders = [sortable(row["_order_"]) for row in rows([record(one, KEY) for one in messages], order="source")]
        assert orders == sorted(orders)
        assert len(set(orders)) == 3


def sortable(order: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((part is not None, part) for part in order.values())


def test_the_default_tombstones_of_debezium_by_source() -> None:
    """A tombstone has no position. In a topic of envelopes, the delete before it says everything."""
    delete = [record(envelope("d", KEY), KEY), record(None, KEY)]
    [row] = rows(delete, order="source")
    assert parts(row, "_op_", "_error_") == ("DELETE", None)
    assert [row["_op_"] for row in rows(delete)] == ["DELETE", "DELETE"]
    flattened = record(m.ROW | {"__op": "u", "__file": "binlog.000003", "__pos": 1, "__row": 0}, KEY)
    found = rows([*delete, flattened], order="source")
    assert [row["_error_"] for row in found] == [None, "MISSING_FIELD", None]


def test_a_row_of_a_snapshot_without_a_position() -> None:
    """That of an initial snapshot comes first. Of another one, its place is unknown."""
    nowhere: dict[str, Any] = {"connector": "postgresql", "lsn": None, "sequence": None}
    for snapshot, code in (("true", None), ("last", None), ("incremental", "MISSING_FIELD")):
        for message in (envelope("r", snapshot=snapshot, **nowhere), m.ROW | {"__op": "r", "__snapshot": snapshot}):
            [row] = rows([record(message, KEY)], order="source")
            assert row["_error_"] == code
            assert code or sortable(row["_order_"]) == ((True, 0), *[(False, None)] * 5)
            [row] = rows([record(message, KEY)])
            assert row["_error_"] is None


def test_a_row_of_a_bootstrap_has_its_place() -> None:
    places = [
        m.maxwell("insert", position="binlog.000001:10"),
        m.maxwell("bootstrap-insert", position="binlog.000001:10"),
        m.maxwell("update", old={"name": "x"}, position="binlog.000001:11"),
    ]
    del places[0]["commit"], places[1]["commit"], places[1]["xid"]
    places[0]["xoffset"] = 3
    orders = [sortable(row["_order_"]) for row in rows([record(one) for one in places], "maxwell", order="source")]
    assert orders == sorted(orders)
    assert len(set(orders)) == 3
    del places[1]["position"]
    [row] = rows([record(places[1])], "maxwell", order="source")
    assert (row["_error_"], row["_order_"]["position"]) == (None, None)


def test_the_last_row_of_a_transaction_of_maxwell() -> None:
    """Only ``"commit": true`` says that a row is the last one."""
    messages = [m.maxwell(commit=value, position="binlog.000001:4711") for value in (True, False)]
    first, second = rows([record(message) for message in messages], "maxwell", order="source")
    assert (first["_order_"]["row"], second["_error_"]) == (2**63 - 1, "MISSING_FIELD")
    [row] = rows([record(m.maxwell(position="binlog.000001:4711:9"))], "maxwell", order="source")
    assert row["_order_"]["log"] != "binlog.000001:"


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"data": "AAAAAAcC"}, "CloudEvents with Avro data are not supported: set data.serializer.type=json"),
        ({"data": "AAAAAAcC", "iodebeziumop": None}, "CloudEvents of another source than Debezium are not supported"),
    ],
)
def test_cloud_events_that_are_not_read(changed: dict[str, Any], advice: str) -> None:
    [row] = rows([record(m.cloud_event(envelope("c", None, m.ROW)) | changed, KEY)])
    assert row["_error_"] == f"WRONG_FORMAT: {advice}"
