"""Read messages in Avro: convert them to the JSON that ``JsonConverter`` would write, with the types of their schemas.

Connect's converters store the semantic type of a value in ``connect.name`` and ``connect.parameters``. If a schema has neither,
Avro's logical types apply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.json_readers import JsonReader, json_reader
from sparkwire.avro.payloads import Payloads
from sparkwire.avro.schema import parse
from sparkwire.avro.schemas import Schemas
from sparkwire.base.error_codes import BAD_FIELD, ERRORS, OK
from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import from_codes, primitive, spans_of
from sparkwire.core.names import Names, Table, fits, table_name
from sparkwire.debezium.scanned_messages import Messages
from sparkwire.debezium.table_columns import (
    Declared,
    MessageSide,
    all_columns,
    columns_text,
    names_in,
    schema_types,
)
from sparkwire.errors import SchemaError
from sparkwire.json.typed_images import Versions

_PRIMITIVES: Final = {
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
    "enum": "string",
    "fixed": "bytes",
}
_LOGICAL: Final = {
    "date": "Date",
    "time-millis": "Time",
    "time-micros": "MicroTime",
    "timestamp-millis": "Timestamp",
    "timestamp-micros": "MicroTimestamp",
    "timestamp-nanos": "NanoTimestamp",
    "local-timestamp-millis": "Timestamp",
    "local-timestamp-micros": "MicroTimestamp",
    "local-timestamp-nanos": "NanoTimestamp",
}
_TIME: Final = "io.debezium.time."
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"


class _Schema(NamedTuple):
    """A schema of a registry, prepared for reading messages."""

    read: JsonReader | None
    """decodes data; None if the schema cannot be used"""
    connect: str
    """the schema in the JSON form that Connect embeds; empty if Connect has no such schema"""
    name: str


@text_cache(1024)
def _schema(text: str) -> _Schema:
    schema = json.loads(text)
    try:
        read = json_reader(parse(_without_meaning(schema)))
    except SchemaError:
        read = None
    try:
        connect = connect_schema(schema, {})
    except (KeyError, TypeError, ValueError, RecursionError):
        connect = {}
    return _Schema(read, json.dumps(connect) if connect else "", str(connect.get("name") or ""))


def _without_meaning(schema: Any) -> Any:
    """The schema without logical types, which decodes values as stored."""
    if isinstance(schema, dict):
        return {key: _without_meaning(value) for key, value in schema.items() if key != "logicalType"}
    return [_without_meaning(branch) for branch in schema] if isinstance(schema, list) else schema


def connect_schema(schema: Any, named: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    """Convert an Avro schema to the form that Connect embeds.

    Raises ValueError, KeyError or TypeError if Connect has no such schema.
    """
    if isinstance(schema, list):
        [value] = [branch for branch in schema if branch != "null"]
        return connect_schema(value, named, namespace)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return {"type": _PRIMITIVES[schema]}
        schema_of_name: dict[str, Any] = named[schema if "." in schema or not namespace else f"{namespace}.{schema}"]
        return schema_of_name
    kind = schema["type"]
    if not isinstance(kind, str):
        return connect_schema(kind, named, namespace)
    meaning = {"name": schema.get("connect.name"), "parameters": schema.get("connect.parameters") or {}}
    if kind == "array":
        return {"type": "array", "items": connect_schema(schema["items"], named, namespace)} | meaning
    if kind == "map":
        value = connect_schema(schema["values"], named, namespace)
        return {"type": "map", "keys": {"type": "string"}, "values": value} | meaning
    if kind == "record":
        return _record(schema, named, namespace)
    if meaning["name"] is None and "logicalType" in schema:
        meaning = _meaning_of(schema)
    schema_of_name = {"type": schema.get("connect.type") or _PRIMITIVES[kind]} | meaning
    if kind in ("enum", "fixed"):
        named[_full_name(schema, namespace)] = schema_of_name
    return schema_of_name


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name, inside = schema["name"], schema.get("namespace", namespace)
    return name if "." in name or not inside else f"{inside}.{name}"


def _record(schema: Mapping[str, Any], named: dict[str, Any], namespace: str) -> dict[str, Any]:
    name = _full_name(schema, namespace)
    inner = name.rpartition(".")[0]
    fields = [connect_schema(field["type"], named, inner) | {"field": field["name"]} for field in schema["fields"]]
    struct = {"type": "struct", "fields": fields, "name": schema.get("connect.name") or name}
    named[name] = struct
    return struct


def _meaning_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The semantic type from Avro's logical type, for schemas that Connect has not written."""
    logical = schema["logicalType"]
    if logical == "decimal":
        digits = {"scale": str(schema.get("scale", 0)), "connect.decimal.precision": str(schema["precision"])}
        return {"name": _DECIMAL, "parameters": digits}
    short = _LOGICAL.get(logical)
    return {"name": None if short is None else f"{_TIME}{short}", "parameters": {}}


def avro_side(payloads: Payloads, schemas: Schemas) -> MessageSide:
    """Decode the payloads of values or keys to JSON. The errors of unreadable payloads are in their rows."""
    chosen = schemas.chosen(payloads.ids)
    prepared = [_schema(text) for text in schemas.texts]
    spans = spans_of(payloads.values)
    present = spans.sizes >= 0
    codes = np.where(present & np.asarray(payloads.is_json), BAD_FIELD, OK).astype(np.int8)
    places = np.zeros(len(chosen), np.int64)
    parts = [pa.array([None, ""], pa.string())]
    for number in np.unique(chosen[present & (chosen >= 0)]).tolist():
        rows = np.flatnonzero(present & (chosen == number) & (codes == OK))
        read = prepared[number].read
        if read is None:
            codes[rows] = BAD_FIELD
            continue
        selected = spans._replace(starts=spans.starts[rows], sizes=spans.sizes[rows])
        texts, codes[rows] = read(selected)
        places[rows] = sum(map(len, parts)) + np.arange(len(rows))
        parts.append(texts)
    unknown = pc.if_else(pa.array(present & (chosen < 0)), schemas.why_unknown(payloads.ids), None)
    errors = pc.coalesce(payloads.errors, unknown, from_codes(codes, ERRORS))
    places[np.asarray(errors.is_valid())] = 1
    column = pa.concat_arrays(parts).take(primitive(places))
    names = pa.array([*(schema.name for schema in prepared), None], pa.string()).take(
        pa.array(chosen % (len(prepared) + 1))
    )
    types = [schema_types(schema.connect) if schema.connect else {} for schema in prepared]
    return MessageSide(column, Messages(column), Declared(Versions(chosen, types), names), errors)


def avro_tables(texts: Iterable[str]) -> list[str]:
    """The sorted names of the tables that the schemas of a registry describe."""
    _, outer, tables = names_in(pa.array([_schema(text).name for text in texts], pa.string()))
    return sorted({table_name(*part) for part in zip(outer.to_pylist(), tables.to_pylist(), strict=True) if part[1]})


def avro_columns(texts: Iterable[str], table: Table | None, *, exists: bool = False) -> dict[str, str]:
    """The columns of a table from the schemas of a registry. Skips keys and other tables.

    ``exists``: messages name the table, so one of the schemas is its own. What looks like another database in their names then is
    a part of a topic's prefix with dots.
    """
    texts = list(texts)
    columns = _columns_of(texts, table)
    if columns or not exists or table is None or table.schema is None:
        return columns
    return _columns_of(texts, table._replace(database=None))


def _columns_of(texts: Iterable[str], table: Table | None) -> dict[str, str]:
    columns = []
    for text in texts:
        schema = _schema(text)
        names = names_in(pa.array([schema.name], pa.string()))
        is_row = schema.connect and names.table[0].is_valid and not schema.name.endswith(".Key")
        if is_row and (table is None or fits(table, Names.none(1), names)[0]):
            columns.append(columns_text(schema_types(schema.connect)))
    return all_columns(columns)
