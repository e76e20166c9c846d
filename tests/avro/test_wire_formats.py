"""Wire formats around Avro data: as the registries' serializers write them, corrupt, and mistaken for others."""

from __future__ import annotations

import io
import json
import lzma
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from sparkwire.avro import Registry, payloads, typed_rows
from sparkwire.avro.schemas import schemas_of
from sparkwire.catalogue.wire_formats import WIRE_FORMATS, check_fit

FILE = Path(__file__).parents[1] / "data" / "avro" / "wire_formats.jsonl.xz"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
}
HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


def golden() -> list[dict[str, Any]]:
    """Messages that the registries' serializers wrote."""
    return [json.loads(line) for line in lzma.decompress(FILE.read_bytes()).decode().splitlines()]


def taken_apart(
    name: str, values: Sequence[bytes | None], headers: list[Any] | None = None, of: str = "value"
) -> payloads.Payloads:
    column, format = pa.array(values, pa.binary()), WIRE_FORMATS[name]
    if headers is None:
        return format.payloads(column)
    assert format.with_headers is not None
    return format.with_headers(column, pa.array(headers, HEADERS), of)


def rows(name: str, result: payloads.Payloads, key: Any) -> tuple[list[Any], list[str | None]]:
    """The records, and the errors."""
    schemas = WIRE_FORMATS[name].with_names(schemas_of({key: SCHEMA}))
    columns, errors = typed_rows.reader(schemas).rows(result)
    both = zip(*(column.to_pylist() for column in columns), strict=True)
    return [{"id": id, "note": note} for id, note in both], errors.to_pylist()


@pytest.mark.parametrize("name", ["apicurio", "glue", "single_object"])
def test_messages_of_the_registries_serializers(name: str) -> None:
    plain = [line for line in golden() if line["format"] == name and line["headers"] is None]
    assert len(plain) >= 6
    result = taken_apart(name, [bytes.fromhex(line["value"]) for line in plain])
    assert result.errors.null_count == len(plain)
    ids = [key.hex() if isinstance(key, bytes) else str(key) for key in result.ids.to_pylist()]
    assert ids == [line["id"] for line in plain]
    for k, line in enumerate(plain):
        one = payloads.Payloads(*(part.slice(k, 1) for part in result))
        assert rows(name, one, line["id"]) == ([line["row"]], [None])


@pytest.mark.parametrize("of", ["key", "value"])
def test_apicurios_headers(of: str) -> None:
    named = [line for line in golden() if line["headers"] and all(f".{of}." in key for key in line["headers"])]
    headers = [[{"key": k, "value": bytes.fromhex(v)} for k, v in line["headers"].items()] for line in named]
    values = [bytes.fromhex(line["value"]) for line in named]
    payloads = taken_apart("apicurio", [*values, b"\0\0\0\0\x07\4\2x", None], [*headers, [], None], of)
    kinds = ["globalId " if "globalId" in str(line["headers"]) else "" for line in named]
    assert payloads.ids.to_pylist() == [
        *(f"{kind}{line['id']}" for kind, line in zip(kinds, named, strict=True)),
        "7",
        None,
    ]
    assert payloads.values.to_pylist() == [*values, b"\4\2x", None]
    assert payloads.errors.null_count == len(payloads.errors)
    other = taken_apart("apicurio", values[:1], headers[:1], "value" if of == "key" else "key")
    assert other.errors.to_pylist() == ["BAD_MAGIC"]


GLOBAL_300, CONTENT_7 = (
    {"key": "apicurio.value.globalId", "value": (300).to_bytes(8, "big")},
    {"key": "apicurio.value.contentId", "value": (7).to_bytes(8, "big")},
)


def test_the_format_selects_one_of_apicurios_two_headers() -> None:
    headers = [[GLOBAL_300, CONTENT_7], [CONTENT_7, GLOBAL_300], [GLOBAL_300], [CONTENT_7], []]
    values = [b"\4\2x"] * 4 + [b"\0\0\0\0\x09\4\2x"]
    assert taken_apart("apicurio", values, headers).ids.to_pylist() == ["7", "7", "globalId 300", "7", "9"]
    payloads = taken_apart("apicurio_global_id", values, headers).ids.to_pylist()
    assert payloads == ["globalId 300"] * 3 + ["7", "globalId 9"]


@pytest.mark.parametrize("name", ["apicurio", "apicurio_global_id"])
def test_the_keys_of_a_mapping_are_the_ids_in_the_messages(name: str) -> None:
    reader = typed_rows.reader(Registry.of({300: SCHEMA}).schemas([]))
    columns, errors = reader.rows(taken_apart(name, [b"\4\2x", b"\4\2x"], [[GLOBAL_300], [CONTENT_7]]))
    assert columns[0].to_pylist() == [2, None]
    assert errors.to_pylist() == [None, "UNKNOWN_SCHEMA"]


NOTE = {"type": "record", "name": "Note", "fields": [{"name": "t", "type": "State"}]}
EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "namespace": "shop",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": {"type": "int", "logicalType": "date"}},
        {"name": "big", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "ratio", "type": "double"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "digest", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "note", "type": ["null", "string", NOTE]},
        {"name": "none", "type": "null"},
    ],
}  # fmt: skip


def everything(k: int) -> dict[str, Any]:
    """Values that fastavro can encode."""
    day = datetime(2024, 5, 1, 12, 30, tzinfo=UTC) + timedelta(days=k, microseconds=k)
    note = (None, ("string", "ö" * k), ("shop.Note", {"t": "PAID"}))[k % 3]
    return {
        "flag": bool(k % 2), "small": day.date(), "big": day, "ratio": k / 7, "price": Decimal(k - 5) / 4,
        "digest": bytes([k, 255 - k]), "state": ("NEW", "PAID")[k % 2], "tags": ["a" * k] * (k % 4),
        "counts": {str(n): n - 2**40 for n in range(k % 3)}, "note": note, "none": None,
    }  # fmt: skip


def test_data_in_json_equal_those_in_binary() -> None:
    """Fastavro writes both; the header contains the encoding."""
    schema = fastavro.parse_schema(EVERYTHING)
    binary, text = [], []
    for k in range(40):
        out, lines = io.BytesIO(), io.StringIO()
        fastavro.schemaless_writer(out, schema, everything(k))
        fastavro.json_writer(lines, schema, [everything(k)])
        binary.append(out.getvalue())
        text.append(lines.getvalue().encode())
    in_json = {"key": "apicurio.value.encoding", "value": b"JSON"}
    in_binary = {"key": "apicurio.value.encoding", "value": b"BINARY"}
    reader = typed_rows.reader(schemas_of({7: EVERYTHING}))
    columns, errors = reader.rows(
        taken_apart("apicurio", [*text, *binary], [[CONTENT_7, in_json]] * 40 + [[CONTENT_7, in_binary]] * 40)
    )
    assert errors.null_count == 80
    for column in columns:
        assert column[:40].equals(column[40:])
    prefixed = taken_apart("apicurio", [b"\0\0\0\0\7" + text[3]], [[in_json]])
    assert reader.rows(prefixed)[0][0].to_pylist() == [True]


def test_json_that_is_not_a_datum_is_an_error() -> None:
    texts = [
        b'{"id": 1, "note": "x"}',
        b'{"id": 1',
        b'{"id": "1", "note": "x"}',
        b'{"id": 1}',
        b"\xff",
        b"[]",
        b"7",
        b'{"id": 1, "note": "\\ud800"}',
        None,
    ]
    headers = [[CONTENT_7, {"key": "apicurio.value.encoding", "value": b"JSON"}]] * len(texts)
    payloads = taken_apart("apicurio", texts, headers)
    columns, errors = typed_rows.reader(schemas_of({7: SCHEMA})).rows(payloads)
    bad, none = "BAD_FIELD", "BAD_JSON"
    assert errors.to_pylist() == [None, none, bad, bad, none, bad, bad, bad, None]
    assert columns[0].to_pylist() == [1] + [None] * 8


def test_the_first_header_of_a_name_counts() -> None:
    header = "__value_schema_id"
    headers = [
        [{"key": header, "value": b"\0\0\0\0\x09"}, {"key": header, "value": b"\0\0\0\0\x08"}],
        [{"key": "trace", "value": b"x"}, {"key": header, "value": b"\1" + bytes(range(16))}],
        [{"key": header, "value": b"\2what"}],
        [{"key": header, "value": None}],
        None,
    ]
    payloads = taken_apart("confluent_header", [b"a", b"b", b"c", b"\0\0\0\0\5d", b"\0\0\0\0\6e"], headers)
    assert payloads.ids.to_pylist() == ["9", "00010203-0405-0607-0809-0a0b0c0d0e0f", None, "5", "6"]
    assert payloads.values.to_pylist() == [b"a", b"b", b"c", b"d", b"e"]
    assert payloads.errors.to_pylist() == [None, None, "BAD_MAGIC", None, None]


@pytest.mark.parametrize("name", ["confluent", "apicurio", "glue", "single_object"])
def test_every_beginning_of_a_message(name: str) -> None:
    """No prefix raises an exception. A prefix without a complete schema id has an error."""
    whole = (
        b"\0\0\0\0\x07\4\2x"
        if name == "confluent"
        else bytes.fromhex(next(line["value"] for line in golden() if line["format"] == name and line["row"]["note"]))[
            :300
        ]
    )
    beginnings = [whole[:size] for size in range(len(whole))]
    payloads = taken_apart(name, [*beginnings, None])
    for data, id, error in zip(beginnings, payloads.ids.to_pylist(), payloads.errors.to_pylist(), strict=False):
        assert (id is None) == (error == "BAD_MAGIC"), data
    assert payloads.errors.to_pylist()[-1] is None


def glue(datum: bytes, packing: int = payloads.GLUE_ZLIB) -> bytes:
    return bytes([3, packing]) + bytes(range(16)) + datum


def test_a_payload_that_becomes_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is decompressed only up to the limit, plus one byte that shows the excess."""
    inflated = []

    class Counting:
        def __init__(self) -> None:
            self._stream = zlib.decompressobj()

        @property
        def eof(self) -> bool:
            return self._stream.eof

        def decompress(self, data: bytes, most: int) -> bytes:
            rows = self._stream.decompress(data, most)
            inflated.append(len(rows))
            return rows

    class Zlib:
        error = zlib.error
        decompressobj = Counting

    assert payloads.MAX_PAYLOAD == 256 << 20
    monkeypatch.setattr(payloads, "MAX_PAYLOAD", 1000)
    monkeypatch.setattr(payloads, "zlib", Zlib)
    messages = pa.array([glue(zlib.compress(bytes(size))) for size in (1000, 1001, 100_000, 1000)], pa.binary())
    result = payloads.of_glue(messages)
    assert result.errors.to_pylist() == [None, "TOO_LARGE", "TOO_LARGE", None]
    assert inflated == [1000, 1001, 1001, 1000]


def test_corrupt_zlib_of_glue() -> None:
    packed = zlib.compress(b"\4\2x" * 50)
    flipped = packed[:5] + bytes([packed[5] ^ 1]) + packed[6:]
    values = [
        glue(packed),
        glue(packed[:-1]),
        glue(flipped),
        glue(b""),
        glue(b"\4\2x", 0),
        glue(b"", 7),
        glue(packed)[:17],
    ]
    payloads = taken_apart("glue", values)
    errors = payloads.errors.to_pylist()
    assert errors == [None, "TRUNCATED", "BAD_FIELD", "TRUNCATED", None, "BAD_MAGIC", "BAD_MAGIC"]
    assert [value is None for value in payloads.values.to_pylist()] == [error is not None for error in errors]


def test_an_endless_payload_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "INT32_MAX", 1_000_000)
    bomb = glue(zlib.compress(bytes(900_000)))
    result = taken_apart("glue", [bomb, bomb, glue(zlib.compress(b"\4\2x"))])
    assert result.errors.to_pylist() == [None, "TOO_LARGE", None]


@pytest.mark.parametrize("name", ["apicurio", "glue", "single_object"])
def test_a_column_of_another_format_fails_with_its_name(name: str) -> None:
    messages = pa.array(
        [bytes.fromhex(line["value"]) for line in golden() if line["format"] == name and line["headers"] is None][::2],
        pa.binary(),
    )
    errors = pa.array(["BAD_MAGIC"] * len(messages))
    with pytest.raises(ValueError, match=f"pass wire_format='{name}'$"):
        check_fit("databus", messages, errors)
    check_fit(name, messages, errors)
    check_fit("databus", messages, pa.nulls(len(messages), pa.string()))


def test_a_column_of_no_format_fails() -> None:
    values = pa.array([b"{}"] * 100, pa.binary())
    errors = pa.array(["BAD_MAGIC"] * 100)
    for name in WIRE_FORMATS:
        with pytest.raises(ValueError, match=r"none of 100 rows has its header. The first row begins with 7b 7d"):
            check_fit(name, values, errors)
