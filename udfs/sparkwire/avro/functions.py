"""SQL functions for Avro: a datum as JSON, the reason why it cannot be read, and Confluent's wire format header."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from sparkwire.avro.json_readers import JsonReader, json_reader
from sparkwire.avro.schema import parse
from sparkwire.avro.texts import JsonTexts
from sparkwire.base.error_codes import ERRORS
from sparkwire.base.printable import value_error
from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import from_codes, gather, primitive, spans_of
from sparkwire.core.function import Format, Function
from sparkwire.errors import SchemaError
from sparkwire.kernels import Bytes, i32, kernel, u8

_PREFIX: Final = 5  # [bytes]
_KEPT: Final = 256  # how many schemas have a cached reader

SAMPLES: Final = {
    "avro_order": bytes.fromhex("d40f0a68656c6c6f0214"),
    "registry_message": bytes.fromhex("000000002ad40f0a68656c6c6f0214"),
}
"""A datum with a long, a string and an optional int, as Avro's specification defines; and with Confluent's header, schema 42."""

_SCHEMA: Final = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"},'
    '{"name":"count","type":["null","int"]}]}'
)


@text_cache(_KEPT)
def _reader(schema: str) -> JsonReader:
    return json_reader(parse(schema))


def _read(function: str, value: pa.Array, schema: str) -> JsonTexts:
    try:
        read = _reader(schema)
    except SchemaError as e:
        raise value_error(f"{function}() expected an Avro schema: {e}") from None
    return read(spans_of(value))


def avro_json(value: pa.Array, schema: str) -> pa.Array:
    """STRING: each datum as plain JSON."""
    return _read("avro_json", value, schema).texts


def avro_error(value: pa.Array, schema: str) -> pa.Array:
    """STRING: why a datum cannot be read."""
    return from_codes(_read("avro_error", value, schema).errors, ERRORS)


@kernel
def _read_prefixes(data: Bytes, starts: Any, sizes: Any, ids: Any, valid: Any) -> None:
    for row in range(starts.size):
        valid[row] = sizes[row] >= _PREFIX and u8(data, starts[row]) == 0
        ids[row] = i32(data, starts[row] + 1, False) if valid[row] else 0


def schema_ids(value: pa.Array) -> tuple[Any, Any]:
    """The id in Confluent's wire format header of each row, and whether it has one."""
    spans = spans_of(value)
    ids, valid = np.empty(len(value), np.int32), np.empty(len(value), np.bool_)
    _read_prefixes(*spans, ids, valid)
    return ids, valid


def _schema_id(value: pa.Array) -> pa.Array:
    return primitive(*schema_ids(value))


def _payload(value: pa.Array) -> pa.Array:
    data, starts, sizes = spans_of(value)
    valid = schema_ids(value)[1]
    return gather(data, starts + _PREFIX, np.where(valid, sizes - _PREFIX, -1), pa.binary())


FUNCTIONS: Final = (
    Function(
        "avro_json(value BINARY, schema STRING CONSTANT) -> STRING",
        "One Avro datum as plain JSON, by its schema: no tags for unions, bytes in Base64, logical types as text. NULL where it "
        "cannot be read.",
        avro_json,
        f"avro_json(avro_order, '{_SCHEMA}') -> " + '{"id":1002,"note":"hello","count":10}',
    ),
    Function(
        "avro_error(value BINARY, schema STRING CONSTANT) -> STRING",
        "Why an Avro datum cannot be read: TRUNCATED, BAD_LENGTH, BAD_FIELD or TOO_LARGE; NULL for one that can.",
        avro_error,
        "avro_error(substr(avro_order, 1, 4), '\"string\"') -> TRUNCATED",
    ),
    Function(
        "registry_schema_id(message BINARY) -> INT",
        "The number of the schema in a registry, from its wire format header (a zero byte, four bytes); NULL without one.",
        _schema_id,
        "registry_schema_id(registry_message) -> 42",
    ),
    Function(
        "registry_payload(message BINARY) -> BINARY",
        "What comes after Confluent's wire format header; NULL without it.",
        _payload,
        "registry_payload(registry_message) = avro_order -> true",
    ),
)

ARGUMENTS: Final = {
    "value": "One Avro datum.",
    "message": "One message: Confluent's wire format header, then the payload.",
    "schema": "The schema that the datum was written with, as JSON; the same for all rows.",
}
FORMAT: Final = Format("avro", "Avro", "avro_", FUNCTIONS, SAMPLES, arguments=ARGUMENTS)
