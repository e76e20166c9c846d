"""The samples of the source document, and messages for each case that this document leaves open."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from tests.support import DATA as DATA_FOLDER
from tests.support.cases import Case

DATA = DATA_FOLDER / "datahub"
SAMPLES = "tests/data/datahub/samples.jsonl"
SILENT = "the source is silent: sparkwire.datahub says what holds"

INSERT = (
    '{"schema": {"dataColumn": [%s], "primaryKey": ["id"], "source": {"dbName": "shop", "tableName": "t"}}, '
    '"payload": {"op": "INSERT", "sequenceId": "1", "timestamp": {"eventTime": 1}, "after": {"dataColumn": %s}}, '
    '"version": "1"}'
)


def cases() -> list[Case]:
    return [*samples(), *odd_json(), *odd_fields(), *odd_images()]


def samples() -> Iterator[Case]:
    for line in (DATA / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        sample = json.loads(line)
        blob = sample["blob"]
        answers = {name: value for name, value in sample.items() if name.startswith("datahub_")}
        meta = answers.pop("datahub_ddl_meta_base64")
        answers["datahub_ddl_meta"] = None if meta is None else base64.b64decode(meta)
        for image in ("before", "after"):
            parsed = answers[f"datahub_{image}"]
            answers[f"datahub_{image}"] = None if parsed is None else as_written(blob, image, parsed)
            pairs = None if parsed is None else [(name, str(value)) for name, value in parsed.items()]
            answers[f"datahub_{image}_map"] = pairs
        for time in ("event_time", "system_time", "checkpoint_time"):
            millis = answers[f"datahub_{time}_ms"]
            answers[f"datahub_{time}"] = None if millis is None else millis * 1000
        answers["datahub_is_valid"] = True
        answers |= {"datahub_db_version": None, "datahub_schema_name": None}
        answers["datahub_tuple"] = tuple_columns(answers)
        keyed = answers["datahub_primary_key"] is not None
        answers["datahub_shard_key"] = '[1,"joe"]' if keyed else answers["datahub_table"]
        answers["datahub_change"] = change_of(answers)
        yield Case(sample["name"], SAMPLES, blob.encode(), answers)


def as_written(blob: str, image: str, parsed: dict[str, Any]) -> str:
    """The text of the image's object, extracted from the message with the standard library."""
    start = blob.index('"dataColumn": {', blob.index(f'"{image}"')) + len('"dataColumn": ')
    value, end = json.JSONDecoder().raw_decode(blob, start)
    assert value == parsed
    return blob[start:end]


def tuple_columns(answers: dict[str, Any]) -> dict[str, Any] | None:
    """The rows I, U, U, D of the example table in the source document."""
    row = {
        "INSERT": ("I", "N", "Y"),
        "UPDATE_BEFORE": ("U", "Y", "N"),
        "UPDATE_AFTER": ("U", "N", "Y"),
        "DELETE": ("D", "Y", "N"),
    }.get(answers["datahub_operation"])
    if row is None:
        return None
    letter, before, after = row
    return {
        "_sequence_id_": answers["datahub_sequence_id"],
        "_operation_type_": letter,
        "_excute_time_": answers["datahub_event_time_ms"],
        "_source_table_": answers["datahub_table"],
        "_before_image_": before,
        "_after_image_": after,
    }


FIELDS = """
    op operation sequence_id event_time event_time_ms system_time system_time_ms checkpoint_time checkpoint_time_ms
    db_type db_version database schema_name table primary_key columns before after before_map after_map ddl_text ddl_meta
    version error is_valid
""".split()  # noqa: SIM905


def change_of(answers: dict[str, Any]) -> dict[str, Any]:
    return {field: answers[f"datahub_{field}"] for field in FIELDS}


def case(name: str, blob: str | bytes, **answers: Any) -> Case:
    data = blob if isinstance(blob, bytes) else blob.encode()
    return Case(name, SILENT, data, {f"datahub_{field}": value for field, value in answers.items()})


def message(**payload: Any) -> str:
    """A message with an op, a time, and these fields of the payload."""
    usual = {"op": "MHEARTBEAT", "timestamp": {"eventTime": 1}}
    return json.dumps({"schema": {}, "payload": usual | payload})


def insert(image: str, columns: str = "") -> str:
    return INSERT % (columns, image)


def odd_json() -> Iterator[Case]:
    intact = message()
    for name, blob in {
        "nothing": b"",
        "blanks": b" \n",
        "text": b"hello",
        "a list": b"[]",
        "a string": b'"{}"',
        "null": b"null",
        "two objects": b"{}{}",
        "UTF-16": intact.encode("utf-16"),
        "two byte-order marks": b"\xef\xbb\xbf\xef\xbb\xbf{}",
        "a comma too many": b'{"a": 1,}',
        "a comment": b'{"a": 1 /* one */}',
        "NaN": b'{"a": NaN}',
        "Infinity": b'{"a": -Infinity}',
        "a leading zero": b'{"a": 01}',
        "a point alone": b'{"a": 1.}',
        "a plus": b'{"a": +1}',
        "single quotes": b"{'a': 1}",
        "a bare key": b"{a: 1}",
        "a raw line break": b'{"a": "\n"}',
        "no escape": b'{"a": "\\x"}',
        "half an escape": b'{"a": "\\u12"}',
        "a form feed": b'{"a":\x0c1}',
        "a no-break space": '{"a":\u00a01}'.encode(),
        "an overlong slash": b'{"a": "\xc0\xaf"}',
        "an overlong slash of three": b'{"a": "\xe0\x80\xaf"}',
        "an overlong slash of four": b'{"a": "\xf0\x80\x80\xaf"}',
        "an encoded surrogate": b'{"a": "\xed\xa0\x80"}',
        "beyond Unicode": b'{"a": "\xf4\x90\x80\x80"}',
        "a lone continuation": b'{"a": "\x80"}',
        "brackets crossed": b'{"a": [1}]',
        "open without end": b'{"a": ' + b"[" * 100_000,
    }.items():
        yield case(name, blob, error="BAD_JSON", is_valid=False, op=None)
    deep = 200_000
    nested = '{"a":' * deep + "1" + "}" * deep
    yield case("deep nesting", f'{{"x": {nested}, {intact[1:]}', error=None, op="MHEARTBEAT")
    yield case("deep lists", f'{{"x": {"[" * deep}{"]" * deep}, {intact[1:]}', error=None, op="MHEARTBEAT")
    yield case("an empty object", "{}", error="MISSING_FIELD", op=None)
    yield case("a byte-order mark", b"\xef\xbb\xbf" + intact.encode(), error=None, op="MHEARTBEAT")
    yield case("cut", intact.encode()[:-1], error="BAD_JSON", op="MHEARTBEAT", event_time_ms=1)
    yield case("more after", intact + "x", error="BAD_JSON", op="MHEARTBEAT")
    yield case("a number cut", '{"payload": {"timestamp": {"eventTime": 16053', error="BAD_JSON", event_time_ms=None)
    yield case("escaped keys", '{"p\\u0061yload": {"o\\u0070": "INSERT"}}', op="INSERT", error="MISSING_FIELD")
    yield case("a key's key", '{"op": "INSERT", "payload.op": "INSERT"}', op=None)
    yield case("the last of two", '{"payload": {"op": "INSERT", "op": "DELETE"}}', op="DELETE")
    yield case("null is the last", '{"payload": {"op": "INSERT", "op": null}}', op=None, error="MISSING_FIELD")
    twice = '{"payload": {"op": "INSERT", "sequenceId": 1}, "payload": {"op": "DELETE"}}'
    yield case("the last payload", twice, op="DELETE", sequence_id=None)
    yield case("the last payload is none", '{"payload": {"op": "INSERT"}, "payload": 1}', op=None)


def odd_fields() -> Iterator[Case]:
    yield case("op in lower case", message(op="insert"), op="insert", operation=None, error="UNKNOWN_OPCODE")
    yield case("op a number", message(op=5), op="5", operation=None, error="UNKNOWN_OPCODE")
    yield case("op null", message(op=None), op=None, error="MISSING_FIELD")
    yield case("op before time", '{"payload": {"timestamp": {}, "op": "x"}}', error="UNKNOWN_OPCODE")
    yield case("no time", message(timestamp={}), error="MISSING_FIELD", event_time_ms=None)
    for name, time in {
        "text": "1605339932000",
        "a fraction": 1.0,
        "true": True,
        "an object": {},
        "2^63": 2**63,
        "2^64 + 1": 2**64 + 1,
    }.items():
        yield case(f"time {name}", message(timestamp={"eventTime": time}), error="BAD_FIELD", event_time_ms=None)
    yield case(
        "the last time",
        message(timestamp={"eventTime": 2**63 - 1}),
        error=None,
        event_time_ms=2**63 - 1,
        event_time=None,
    )
    yield case("before 1970", message(timestamp={"eventTime": -1}), event_time_ms=-1, event_time=-1000)
    yield case(
        "system time is text", message(timestamp={"eventTime": 1, "systemTime": "2"}), error=None, system_time_ms=None
    )
    for sequence in (7, "7", 12345678901234567890123, "1605339516000000004"):
        yield case(f"sequence id {sequence!r}", message(sequenceId=sequence), sequence_id=str(sequence), error=None)
    yield case("no sequence id", message(), sequence_id=None, error=None)
    for op, canonical, tuple_type, before in (
        ("UPDATE", "UPDATE_AFTER", "U", "N"),
        ("UPDATE_BEFORE", "UPDATE_BEFORE", "U", "Y"),
        ("UPDATE_BEFOR", "UPDATE_BEFORE", "U", "Y"),
    ):
        change = message(op=op, before={"dataColumn": {}}, after={"dataColumn": {}})
        columns = {
            "_sequence_id_": None,
            "_operation_type_": tuple_type,
            "_excute_time_": 1,
            "_source_table_": None,
            "_before_image_": before,
            "_after_image_": "N" if before == "Y" else "Y",
        }
        yield case(f"op {op}", change, op=op, operation=canonical, tuple=columns, error=None)
    for op, canonical in (("GTID", "TRANSACTION"), ("XACOMMIT", "TRANSACTION"), ("ERASE", "DDL"), ("QUERY", "DDL")):
        yield case(f"op {op}", message(op=op), operation=canonical, tuple=None, error=None)
    yield case("half a pair", '{"version": "a\\ud800b\\udc00\\ud83d\\ude00"}', version="a\ufffdb\ufffd😀")
    yield case("escapes", '{"version": "\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000é"}', version='"\\/\b\f\n\r\t\0é')
    for text, data in (
        ("", b""),
        ("AA==", b"\0"),
        ("AA", b"\0"),
        ("\\/+8=", b"\xff\xef"),
        ("AA=", None),
        ("A_==", None),
        (" AA==", None),
    ):
        yield case(f"ddlMeta {text!r}", f'{{"payload": {{"ddl": {{"ddlMeta": "{text}"}}}}}}', ddl_meta=data)
    listed = (
        '{"schema": {"primaryKey": ["a", null, 1, "\\u0062"], "dataColumn": [{"type": "LONG", "name": "a"}, 5, {}]}}'
    )
    items = [{"name": "a", "type": "LONG"}, None, {"name": None, "type": None}]
    yield case("odd lists", listed, primary_key=["a", None, "1", "b"], columns=items)
    yield case("no lists", '{"schema": {"primaryKey": "id", "dataColumn": {}}}', primary_key=None, columns=None)
    yield case("empty lists", '{"schema": {"primaryKey": [ ], "dataColumn": []}}', primary_key=[], columns=[])


def odd_images() -> Iterator[Case]:
    yield case("no image", message(op="INSERT"), error="MISSING_FIELD", after=None)
    yield case("the other image", message(op="DELETE", after={"dataColumn": {}}), error="MISSING_FIELD", after="{}")
    yield case("image null", message(op="INSERT", after=None), error="MISSING_FIELD")
    yield case("image without columns", message(op="INSERT", after={}), error="MISSING_FIELD")
    yield case("image a list", message(op="INSERT", after=[]), error="BAD_FIELD")
    yield case(
        "columns a list", message(op="INSERT", after={"dataColumn": []}), error="BAD_FIELD", after=None, after_map=None
    )
    yield case("an empty image", insert("{ }"), error=None, after="{ }", after_map=[], shard_key="[null]")
    exact = (
        '{"id": 9007199254740993, "d": 0.10000000000000000000000001, "e": 1E+2, "n": null, "b": true, "o": {"x" : [1]}}'
    )
    pairs = [
        ("id", "9007199254740993"),
        ("d", "0.10000000000000000000000001"),
        ("e", "1E+2"),
        ("n", None),
        ("b", "true"),
        ("o", '{"x" : [1]}'),
    ]
    yield case("exact values", insert(exact), after=exact, after_map=pairs, shard_key="[9007199254740993]")
    repeated = '{"id": 1, "a": "x", "\\u0061" :  "\\u0079", "id": 2}'
    yield case(
        "a column twice",
        insert(repeated),
        after='{"\\u0061" :  "\\u0079","id": 2}',
        after_map=[("a", "y"), ("id", "2")],
        shard_key="[2]",
    )
    dates = '{"name": "d", "type": "DATE"}, {"name": "id", "type": "STRING"}, {"type": "DATE", "name": "\\u0065"}'
    image = '{"d": 1590315269000, "id": "1590315269000", "e": -62135596800001, "f": 1}'
    pairs = [("d", "2020-05-24T10:14:29.000Z"), ("id", "1590315269000"), ("e", "-62135596800001"), ("f", "1")]
    yield case("dates", insert(image, dates), after_map=pairs, after=image, shard_key='["1590315269000"]')
    for millis, text in (
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (951782400000, "2000-02-29T00:00:00.000Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, "253402300800000"),
        (-62135596800000, "0001-01-01T00:00:00.000Z"),
    ):
        yield case(
            f"date {millis}", insert(f'{{"d": {millis}}}', '{"name": "d", "type": "DATE"}'), after_map=[("d", text)]
        )
    key = '{"id": "\\u00e9\\u0022\\/\\u001f\\n"}'
    yield case("a key in escapes", insert(key), shard_key='["é\\"/\\u001F\\n"]')
    yield case("a key as it is", insert('{"id": "é/"}'), shard_key='["é/"]')
