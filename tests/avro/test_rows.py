"""Payloads with schema ids: registries, Databus events compared with Java, Confluent's messages."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.avro import payloads, to_python, typed_rows
from sparkwire.avro.schemas import schemas_of, with_digests
from sparkwire.databus import event_payloads as events_payloads
from tests.support.databus_cases import golden_events, golden_lines

STREAMS = ["window_stream", "window_stream_v2_le"]


def schemas(stream: str = "window_stream") -> list[str]:
    """The schemas of a stream, as Java wrote them."""
    texts: list[str] = golden_lines(stream)[-1]["schemas"]
    return texts


def decoded(stream: str) -> list[tuple[bytes, dict[str, Any]]]:
    """Each data event with the value that Java's Avro decoded; bytes are text with one character for each byte."""
    result = []
    for java, event in golden_events(stream):
        if java.get("decoded"):
            result.append((event, json.loads(java["decoded"], object_hook=_bytes)))
    return result


def _bytes(value: dict[str, Any]) -> Any:
    return value["bytes"].encode("latin-1") if list(value) == ["bytes"] else value


def write_folder(folder: Path, stream: str = "window_stream") -> Path:
    """Write the schemas to a folder, indented: the fingerprint is that of Java's text, not of the file's."""
    for k, text in enumerate(schemas(stream)):
        indented = json.dumps(json.loads(text), indent=2)
        (folder / f"{json.loads(text)['name']}.{k + 1}.avsc").write_text(indented, "utf-8")
    return folder


@pytest.mark.parametrize("stream", STREAMS)
def test_events_as_java_decoded_them(stream: str, tmp_path: Path) -> None:
    events = decoded(stream)
    assert len(events) > 20
    column = pa.array([event for event, _ in events], pa.binary())
    reader = typed_rows.reader(schemas_of(write_folder(tmp_path, stream)))
    columns, errors = reader.rows(events_payloads.of_events(column))
    assert errors.null_count == len(events)
    names = [field.name for field in reader.fields]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(c.to_pylist() for c in columns), strict=True)]
    for row, (_, java) in zip(rows, events, strict=True):
        assert {name: row[name] for name in java} == java
        assert all(row[name] is None for name in row if name not in java)


@pytest.mark.parametrize("stream", STREAMS)
def test_one_payload_as_java_decoded_it(stream: str) -> None:
    by_id = {hashlib.md5(text.encode()).digest(): text for text in schemas(stream)}
    for event, java in decoded(stream):
        [value] = events_payloads.result_of("dbus_value", pa.array([event], pa.binary())).to_pylist()
        [id] = events_payloads.result_of("dbus_schema_id", pa.array([event], pa.binary())).to_pylist()
        assert to_python(value, by_id[id]) == java
        with pytest.raises(ValueError, match=r"^the payload of \d+ bytes cannot be read: TRUNCATED$"):
            to_python(value[:-1], by_id[id])


def test_schema_ids(tmp_path: Path) -> None:
    result = schemas_of(write_folder(tmp_path))
    texts = schemas()
    assert list(result.texts) == texts
    digests = [hashlib.md5(text.encode()).digest() for text in texts]
    crc = (0x1E4E1F13).to_bytes(4, "big")
    versions = [(k + 1).to_bytes(2, "big") + bytes(14) for k in range(3)]
    assert list(result.chosen(pa.array([*digests, *versions, None, crc, bytes(16)]))) == [0, 1, 2, 0, 1, 2, -1, -1, -1]


def test_a_short_digest_is_the_crc_of_the_text() -> None:
    import zlib

    text = schemas()[1]
    ids = pa.array([zlib.crc32(text.encode()).to_bytes(4, "big")])
    assert list(schemas_of(schemas()).chosen(ids)) == [1]


def test_a_version_of_two_names_is_no_key(tmp_path: Path) -> None:
    for text in schemas():
        (tmp_path / f"{json.loads(text)['name']}.7.avsc").write_text(text)
    assert list(schemas_of(tmp_path).chosen(pa.array([b"\0\7" + bytes(14)]))) == [-1]


def test_confluents_messages() -> None:
    reader = typed_rows.reader(
        schemas_of({7: RECORD, 9: '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}), RECORD
    )
    framed = [b"\0\0\0\0\x09\4", b"\0\0\0\0\x09", b"\0\0\0\0\x08\4", b"\1\0\0\0\x09\4", b"\0\0", None]
    [column], errors = reader.rows(payloads.of_confluent(pa.array(framed, pa.binary())))
    assert column.to_pylist() == [2, None, None, None, None, None]
    assert errors.to_pylist() == [None, "TRUNCATED", "UNKNOWN_SCHEMA", "BAD_MAGIC", "BAD_MAGIC", None]


RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"long","default":0}]}'


def test_fields_of_all_schemas_together() -> None:
    versions = [
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}]},
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "int"]}],
        },
    ]
    reader = typed_rows.reader(schemas_of({"one": versions[0], "two": versions[1]}))
    assert [(f.name, f.type) for f in reader.fields] == [("a", pa.int64()), ("gone", pa.string()), ("b", pa.int32())]
    columns, errors = reader.rows(payloads.of_column(pa.array([b"\2\2x", b"\4\2\6"]), pa.array(["one", "two"])))
    assert [column.to_pylist() for column in columns] == [[1, 2], ["x", None], [None, 3]]
    assert errors.to_pylist() == [None, None]


def test_errors(tmp_path: Path) -> None:
    broken = tmp_path / "folder" / "broken.avsc"
    broken.parent.mkdir()
    broken.write_text("{")
    rejected: list[tuple[Any, str]] = [
        (tmp_path, r"no Avro schemas found in "),
        (tmp_path / "none", r"a folder of \.avsc files, a list of schemas or a mapping, and '.*none' is not there$"),
        (broken.parent, rf"^{broken}: invalid Avro schema \(not valid JSON\): "),
        (broken, r"broken\.avsc' is a file$"),
        ({1: '"int'}, r"^the schema 1: invalid Avro schema \(not valid JSON\): "),
        (['{"type":"x"}'], r"^schema 0: the schema has the type 'x', which Avro does not know"),
    ]
    for given, sentence in rejected:
        with pytest.raises(ValueError, match=sentence):
            schemas_of(given)


def test_the_fingerprint_of_a_databus_relay() -> None:
    """Avro 1.4.0 wrote the text of this MD5: without docs of types, names of arrays, and properties that are no texts."""
    phone = {
        "name": "phone",
        "type": "record",
        "doc": "one",
        "fields": [{"name": "number", "doc": "E.164", "type": "string", "length": 20}],
        "meta": "dbFieldName=PHONES;",
    }
    phones = {"name": "phonesArray", "type": "array", "items": phone}
    customer = {
        "doc": "Auto-generated Avro schema for sy$customer",
        "type": "record",
        "name": "Customer_V1",
        "namespace": "com.shop",
        "meta": "dbFieldName=sy$customer;pk=id;",
        "fields": [
            {"name": "id", "default": None, "type": ["null", "long"], "meta": "dbFieldName=ID;dbFieldPosition=0;"},
            {"name": "phones", "default": None, "type": ["null", phones]},
        ],
    }
    fingerprint = bytes.fromhex("91e1db38967eb2218eb119f501d6e39f")
    assert schemas_of([json.dumps(customer)]).keys[fingerprint] == 0
    assert with_digests(schemas_of({7: customer})).keys[fingerprint] == 0


def test_sources(tmp_path: Path) -> None:
    readers = typed_rows.by_name(schemas_of(write_folder(tmp_path)))
    assert list(readers) == ["com.example.events.Person", "com.example.events.Order", "com.example.events.Account"]
    assert [field.name for field in readers["com.example.events.Order"].fields] == ["id", "person", "total", "note"]


def test_a_delete_may_have_no_payload() -> None:
    events = [event for java, event in golden_events("window_stream") if java.get("opcode") == "DELETE"]
    values = events_payloads.of_events(pa.array(events, pa.binary())).values
    empty = [value is None for value in values.to_pylist()]
    sizes = events_payloads.result_of("dbus_value_size", pa.array(events, pa.binary())).to_pylist()
    assert empty == [size == 0 for size in sizes]
    assert any(empty)
