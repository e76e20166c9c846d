"""Rows of JSON and Protobuf by their schemas in a registry: the prefix is ours, what Spark reads itself it reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from sparkwire.avro import protobuf
from sparkwire.avro.json_schema import row_type
from sparkwire.avro.payloads import Payloads, ids_as_text
from sparkwire.avro.protobuf import compiled
from sparkwire.avro.registered import Registered
from sparkwire.avro.registry import Registry
from sparkwire.avro.schemas import UNKNOWN_SCHEMA
from sparkwire.base.errors import BAD_FIELD, ERRORS
from sparkwire.core.column_names import distinct_names
from sparkwire.spark.frames import check_names, quoted
from sparkwire.spark.payload_column import Arrays, PayloadColumn, Taken

_OWN: Final = StructType([StructField("_schema_id_", StringType()), StructField("_error_", StringType())])
_DATA, _ROW = "_data_", "_row_"
_CORRUPT: Final = StructField("_corrupt_", StringType())
"""where ``from_json`` puts a text that it cannot read"""


def json_rows(
    df: DataFrame, column: str, registry: Registry, wire_format: str | None, headers: str | None
) -> DataFrame:
    """See ``sparkwire.avro.json_rows``."""
    messages = PayloadColumn.of(df, column, registry, None, wire_format, headers)
    known = _schemas_of_type(messages, "JSON")
    fields = from_arrow_type(row_type(known.values()))
    for name, distinct in zip(fields.names, distinct_names(fields.names), strict=True):
        if name != distinct:
            raise ValueError(
                f"json_rows reads by Spark's from_json, which does not tell {name!r} from the field that differs from it in "
                "case alone: read one of them with get_json_object"
            )
    taken = _taken(messages, list(known), StringType(), lambda payloads: _texts(payloads.values))
    row = F.from_json(_DATA, StructType([*fields, _CORRUPT]), {"columnNameOfCorruptRecord": _CORRUPT.name})
    read = taken.withColumn(_ROW, F.when(F.ltrim(_DATA).startswith("{"), row))
    is_read = F.col(_ROW).isNotNull() & F.col(f"{_ROW}.{_CORRUPT.name}").isNull()
    return _rows(read, messages, fields, is_read)


def protobuf_rows(
    df: DataFrame, column: str, registry: Registry, message: str | None, wire_format: str | None, headers: str | None
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

    taken = _taken(messages, list(files), BinaryType(), mine)
    row = from_protobuf(F.col(_DATA), name, binaryDescriptorSet=having[-1].descriptors, options={"mode": "PERMISSIVE"})
    read = taken.withColumn(_ROW, row)
    fields = read.schema[_ROW].dataType
    return _rows(read, messages, fields, F.col(_ROW).isNotNull())


def _schemas_of_type(messages: PayloadColumn, type: str) -> dict[Hashable, Registered]:
    """The schemas of the column that are of a type; ValueError where there is none: one sentence."""
    found = messages.registry.registered(messages.ids())
    of_type = {key: one for key, one in found.items() if one.type == type}
    if not of_type:
        others = ", ".join(sorted({one.type for one in found.values()})) or "none that the registry knows"
        raise ValueError(f"no schema of {messages.column} is of type {type}: there are {others}")
    return of_type


def _taken(
    messages: PayloadColumn, known: list[Hashable], type: DataType, data: Callable[[Payloads], pa.Array]
) -> DataFrame:
    """What Spark reads of payloads whose schema is known, and what names each schema; an error where there is nothing to read."""
    payloads, check, ids = messages.payloads, messages.check, [str(key) for key in known]

    def take(columns: Arrays) -> Taken:
        found = payloads(columns)
        told = ids_as_text(found.ids)
        unknown = pc.and_(told.is_valid(), pc.invert(pc.is_in(told, pa.array(ids, pa.string()))))
        values = pc.if_else(pc.or_(unknown, told.is_null()), None, found.values)
        errors = pc.coalesce(found.errors, pc.if_else(unknown, UNKNOWN_SCHEMA, None))
        check(columns[0], errors)
        return None, [data(found._replace(values=values)), told, errors]

    return messages.map_rows(StructType([StructField(_DATA, type), *_OWN]), take, keep_payload=True)


def _rows(read: DataFrame, messages: PayloadColumn, fields: StructType, is_read: Column) -> DataFrame:
    """The fields of what was read, after the columns that were there."""
    id, error = _OWN.names
    check_names(messages.df.schema, StructType([*fields, *_OWN]))
    columns = [F.when(is_read, F.col(f"{_ROW}.{quoted(name)}")).alias(name) for name in fields.names]
    wrong = F.when(F.col(messages.column).isNotNull() & ~is_read, ERRORS[BAD_FIELD])
    kept = [F.col(quoted(name)) for name in messages.df.columns]
    return read.select(*kept, *columns, id, F.coalesce(error, wrong).alias(error))


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
