"""Rows of JSON and Protobuf by their schemas in a registry: the prefix is ours, what Spark reads itself it reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructField, StructType

from sparkwire.avro import protobuf
from sparkwire.avro.json_schema import row_type
from sparkwire.avro.payloads import Payloads, ids_as_text
from sparkwire.avro.protobuf import compiled
from sparkwire.avro.registered import Registered
from sparkwire.avro.registry import Registry
from sparkwire.avro.schemas import UNKNOWN_SCHEMA
from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.core.column_names import distinct_names
from sparkwire.spark.frames import quoted, with_distinct_names
from sparkwire.spark.payload_column import Arrays, PayloadColumn, Taken

_CORRUPT: Final = "_corrupt_"
"""where ``from_json`` puts a text that it cannot read"""


class _Names(NamedTuple):
    """Columns beside those of a DataFrame: the first two are gone in the result."""

    data: str
    row: str
    schema_id: str
    error: str

    @classmethod
    def beside(cls, df: DataFrame) -> _Names:
        """None has a name that is taken."""
        return cls(*distinct_names(["_data_", "_row_", "_schema_id_", "_error_"], df.columns))


def json_rows(df: DataFrame, column: str, registry: Registry, wire_format: str, headers: str | None) -> DataFrame:
    """See ``sparkwire.avro.json_rows``."""
    messages = PayloadColumn.of(df, column, registry, None, wire_format, headers)
    known = _schemas_of_type(messages, "JSON")
    fields = from_arrow_type(row_type(known.values()))
    [corrupt] = distinct_names([_CORRUPT], fields.names)
    read = StructType([*fields, StructField(corrupt, StringType())])
    names = _Names.beside(messages.df)
    taken = _taken(messages, names, list(known), StringType(), lambda payloads: _texts(payloads.values))
    row = F.from_json(names.data, read, {"columnNameOfCorruptRecord": corrupt})
    objects = F.when(F.ltrim(names.data).startswith("{"), row.cast(_by_place(read)))
    rows = taken.withColumn(names.row, objects)
    is_read = F.col(names.row).isNotNull() & F.col(f"{names.row}._{len(fields)}").isNull()
    return _rows(rows, messages, names, fields.names, is_read)


def protobuf_rows(
    df: DataFrame, column: str, registry: Registry, message: str | None, wire_format: str, headers: str | None
) -> DataFrame:
    """See ``sparkwire.avro.protobuf_rows``."""
    messages = PayloadColumn.of(df, column, registry, None, wire_format, headers)
    files = {key: compiled(one) for key, one in _schemas_of_type(messages, "PROTOBUF").items()}
    from pyspark.sql.protobuf.functions import from_protobuf  # which needs Google's library

    [*_, last] = files.values()
    name = message or last.names["0"]
    having = [file for file in files.values() if name in file.names.values()]
    if not having:
        raise ValueError(f"no schema of {column} has a message {name}: the last has {', '.join(last.names.values())}")
    paths = {str(key): [path for path, named in file.names.items() if named == name] for key, file in files.items()}

    def mine(payloads: Payloads) -> pa.Array:
        found, data = protobuf.without_paths(payloads.values)
        ids = ids_as_text(payloads.ids).to_pylist()
        of_name = [path in paths.get(id, ()) for id, path in zip(ids, found.to_pylist(), strict=True)]
        return pc.if_else(pa.array(of_name, pa.bool_()), data, None)

    names = _Names.beside(messages.df)
    taken = _taken(messages, names, list(files), BinaryType(), mine)
    options = {"mode": "PERMISSIVE"}
    row = from_protobuf(F.col(names.data), name, binaryDescriptorSet=having[-1].descriptors, options=options)
    fields = taken.select(row.alias("row")).schema["row"].dataType
    rows = taken.withColumn(names.row, row.cast(_by_place(fields)))
    return _rows(rows, messages, names, fields.names, F.col(names.row).isNotNull())


def _schemas_of_type(messages: PayloadColumn, type: str) -> dict[Hashable, Registered]:
    """The schemas of the column that are of a type; ValueError if none exists: one sentence."""
    found = messages.registry.registered(messages.ids())
    of_type = {key: one for key, one in found.items() if one.type == type}
    if not of_type:
        others = ", ".join(sorted({one.type for one in found.values()})) or "none that the registry knows"
        raise ValueError(f"no schema of {messages.column} is of type {type}: there are {others}")
    return of_type


def _taken(
    messages: PayloadColumn,
    names: _Names,
    known: list[Hashable],
    type: DataType,
    data: Callable[[Payloads], pa.Array],
) -> DataFrame:
    """What Spark reads of payloads whose schema is known, and what names each schema; an error where there is nothing to read."""
    payloads, check, ids = messages.payloads, messages.check, [str(key) for key in known]

    def take(columns: Arrays) -> Taken:
        found = payloads(columns)
        ids_told = ids_as_text(found.ids)
        unknown = pc.and_(ids_told.is_valid(), pc.invert(pc.is_in(ids_told, pa.array(ids, pa.string()))))
        values = pc.if_else(pc.or_(unknown, ids_told.is_null()), None, found.values)
        errors = pc.coalesce(found.errors, pc.if_else(unknown, UNKNOWN_SCHEMA, None))
        check(columns[0], errors)
        return None, [data(found._replace(values=values)), ids_told, errors]

    texts = [StructField(name, StringType()) for name in (names.schema_id, names.error)]
    return messages.map_rows(StructType([StructField(names.data, type), *texts]), take, keep_payload=True)


def _rows(rows: DataFrame, messages: PayloadColumn, own: _Names, fields: list[str], is_read: Column) -> DataFrame:
    """The fields of what was read, ``_0``, ``_1`` …, after the columns that were there."""
    there = messages.df.columns
    names = distinct_names(fields, [*there, own.schema_id, own.error])
    columns = [F.when(is_read, F.col(f"{own.row}._{k}")).alias(name) for k, name in enumerate(names)]
    wrong = F.when(F.col(messages.column).isNotNull() & ~is_read, ERRORS[BAD_FIELD])
    kept = [F.col(quoted(name)) for name in there]
    return rows.select(*kept, *columns, own.schema_id, F.coalesce(own.error, wrong).alias(own.error))


def _by_place(row: StructType) -> StructType:
    """The type of a row whose fields are ``_0``, ``_1`` …"""
    return StructType([StructField(f"_{k}", _with_distinct_fields(field.dataType)) for k, field in enumerate(row)])


def _with_distinct_fields(type: DataType) -> DataType:
    """The type; of two fields that differ in case alone the second has ``_2`` after it."""
    if isinstance(type, ArrayType):
        return ArrayType(_with_distinct_fields(type.elementType), type.containsNull)
    if isinstance(type, MapType):
        return MapType(type.keyType, _with_distinct_fields(type.valueType), type.valueContainsNull)
    if isinstance(type, StructType):
        fields = [StructField(f.name, _with_distinct_fields(f.dataType), f.nullable) for f in type]
        return with_distinct_names(StructType(fields), ())
    return type


def _texts(values: pa.Array) -> pa.Array:
    """STRING, NULL where one is no UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(value) for value in values.to_pylist()], pa.string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
