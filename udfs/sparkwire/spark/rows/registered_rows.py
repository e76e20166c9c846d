"""Decode payloads with schemas in a registry. A worker decodes Avro; Spark's readers decode JSON and Protobuf."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from sparkwire.avro.payloads import Payloads, ids_as_text
from sparkwire.avro.registry import Registry
from sparkwire.avro.schema_source import Registered, schemas_of_registered
from sparkwire.avro.typed_rows import RowsReader, reader
from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.base.printable import value_error
from sparkwire.catalogue.wire_formats import WIRE_FORMATS
from sparkwire.core.names import distinct_names
from sparkwire.registry import protobuf
from sparkwire.registry.json_schema import row_type
from sparkwire.registry.protobuf import compiled
from sparkwire.spark.frames import from_arrow_schema, from_arrow_type, is_name_in, quoted, renamed, with_distinct_names
from sparkwire.spark.rows.payload_column import Arrays, PayloadColumn, Taken

_CORRUPT: Final = "_corrupt_"
"""the column in which ``from_json`` stores a text that it cannot read"""


class _SparkReader(NamedTuple):
    """How Spark reads the payloads of one type of schema."""

    ids: list[str]
    type: pa.DataType
    """the type of the data that a worker returns to Spark"""
    data: Callable[[Payloads], pa.Array]
    """extracts these data from payloads; NULL if a payload cannot be read"""
    fields: list[StructField]
    row: Callable[[Column], Column]
    """decodes these data to a STRUCT with the fields ``_0``, ``_1`` …"""
    is_read: Callable[[Column], Column]
    """whether the STRUCT has no error"""


class _Field(NamedTuple):
    """A column of the result."""

    name: str
    type: DataType
    value: Column


def rows(
    df: DataFrame,
    column: str,
    registry: Registry,
    *,
    message: str | None = None,
    keep_payload: bool = True,
    wire_format: str = "confluent",
    headers: str | None = None,
) -> DataFrame:
    """Decode a column to typed columns. Each message identifies its schema, of any type, in a registry.

    `sparkwire.avro.rows` decodes Avro. Spark's ``from_json`` decodes JSON: integers are BIGINT, numbers DOUBLE, objects STRUCT
    (MAP if the schema has no properties and one type for all values), arrays ARRAY, and texts STRING. A value without one fixed
    type is a STRING with its JSON. Spark's ``from_protobuf`` from the package ``spark-protobuf`` decodes Protobuf. JSON Schema
    and Protobuf need the extra ``registry``.

    A column may contain messages of several types. Fields of the same name and type then become one column.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the name of a BINARY column of messages
    registry
        the registry with the schemas; for a stream, it needs ``subjects``
    message
        the full name of the Protobuf message to read; by default the first message of the last schema. The last schema that
        contains the message defines its columns. Messages of another name are ``BAD_FIELD``
    keep_payload
        whether the column stays in the result; a field of the same name replaces it
    wire_format
        how a message identifies its schema: ``confluent``, ``apicurio``, ``glue`` or another name from the page "Avro payloads"
    headers
        the name of a column with the headers of Kafka records, ARRAY<STRUCT<key, value>>, for ``confluent_header`` and
        ``apicurio``. If ``column`` is ``key``, the headers about keys apply

    Returns
    -------
    DataFrame
        the columns of ``df``, the fields, ``_schema_id_`` and ``_error_``. ``_error_`` is NULL or an error code:
        ``UNKNOWN_SCHEMA``, ``BAD_MAGIC`` for a message without a schema id, ``BAD_FIELD`` for a message that does not match its
        schema, or a code of ``avro_error``. If a field's name is one of the other columns', it gets the suffix ``_2``. No row is
        dropped.

    Raises
    ------
    ValueError
        if a schema is invalid, or no schema contains the ``message``.
    TypeError
        if the column is not BINARY.
    AnalysisException
        Spark's exception if a schema is Protobuf and the package ``spark-protobuf`` is missing.

    Examples
    --------
    >>> registry = sparkwire.avro.Registry.http("https://registry:8081")
    >>> sparkwire.registry.rows(messages.select("offset", "value"), "value", registry)
    """
    messages = PayloadColumn.of(df, column, Registry.of(registry), None, wire_format, headers)
    registered = messages.registry.registered(messages.ids())
    avro = reader(WIRE_FORMATS[wire_format].with_names(schemas_of_registered(registered)), framed=messages.framed)
    others = [*_json_reader(registered), *_protobuf_reader(messages, registered, message)]

    made = [
        *avro.fields,
        *(pa.field("", type) for type in (*(other.type for other in others), pa.string(), pa.string())),
    ]
    columns = from_arrow_schema(pa.schema(made))
    places = distinct_names([f"_{k}_" for k in range(len(columns) + len(others))], df.columns)
    *values, id, error = (F.col(place) for place in places[: len(columns)])
    rows_read = places[len(columns) :]
    decoded = messages.map_rows(
        renamed(columns, places[: len(columns)]), _take(messages, avro, others), keep_payload=True
    )

    fields = [_Field(f.name, f.dataType, value) for f, value in zip(columns, values[: len(avro.fields)], strict=False)]
    for of_type, data, place in zip(others, values[len(avro.fields) :], rows_read, strict=True):
        decoded, row = decoded.withColumn(place, of_type.row(data)), F.col(place)
        is_read = of_type.is_read(row)
        fields += [_Field(f.name, f.dataType, F.when(is_read, row[f"_{k}"])) for k, f in enumerate(of_type.fields)]
        error = F.coalesce(error, F.when(data.isNotNull() & ~is_read, ERRORS[BAD_FIELD]))

    fields = _joined(fields)
    id_and_error = distinct_names(["_schema_id_", "_error_"], messages.other_names)
    names = distinct_names([field.name for field in fields], [*messages.other_names, *id_and_error])
    keep_payload = keep_payload and not is_name_in(column, [*names, *id_and_error])
    return decoded.select(
        *(F.col(quoted(name)) for name in (df.columns if keep_payload else messages.other_names)),
        *(field.value.alias(name) for field, name in zip(fields, names, strict=True)),
        id.alias(id_and_error[0]),
        error.alias(id_and_error[1]),
    )


def _take(messages: PayloadColumn, avro: RowsReader, others: list[_SparkReader]) -> Callable[[Arrays], Taken]:
    """The function of a worker. It returns the fields of Avro, the data for Spark's readers, the schema ids, and errors."""
    payloads, check = messages.payloads, messages.check
    readers = [(pa.array(of_type.ids, pa.string()), of_type.data) for of_type in others]

    def take(columns: Arrays) -> Taken:
        parsed = payloads(columns)
        ids, data = ids_as_text(parsed.ids), []
        for ids_of_type, data_of in readers:
            matching = pc.is_in(ids, ids_of_type)
            payloads_of_type = parsed._replace(values=pc.if_else(matching, parsed.values, None))
            data.append(data_of(payloads_of_type))
            unread = pc.and_(payloads_of_type.values.is_valid(), data[-1].is_null())
            errors = pc.coalesce(parsed.errors, pc.if_else(unread, ERRORS[BAD_FIELD], None))
            parsed = parsed._replace(values=pc.if_else(matching, None, parsed.values), errors=errors)
        fields, errors = avro.rows(parsed)
        check(columns[0], errors)
        return None, [*fields, *data, ids, errors]

    return take


def _joined(fields: Iterable[_Field]) -> list[_Field]:
    """Join fields with the same name and type to one column, also across types of schemas."""
    joined: dict[tuple[str, str], _Field] = {}
    for field in fields:
        key = field.name, field.type.simpleString()
        value = F.coalesce(joined[key].value, field.value) if key in joined else field.value
        joined[key] = field._replace(value=value)
    return list(joined.values())


def _of_type(registered: Mapping[Hashable, Registered], type: str) -> dict[Hashable, Registered]:
    return {key: schema for key, schema in registered.items() if schema.type == type}


def _json_reader(registered: Mapping[Hashable, Registered]) -> Iterator[_SparkReader]:
    """A reader with ``from_json``, if a schema is JSON Schema."""
    schemas = _of_type(registered, "JSON")
    if not schemas:
        return
    fields = from_arrow_type(row_type(schemas.values())).fields
    [corrupt] = distinct_names([_CORRUPT], [field.name for field in fields])
    read = StructType([*fields, StructField(corrupt, StringType())])

    def row(data: Column) -> Column:
        of_text = F.from_json(data, read, {"columnNameOfCorruptRecord": corrupt})
        return F.when(F.ltrim(data).startswith("{"), of_text.cast(_by_place(read)))

    yield _SparkReader(
        [str(key) for key in schemas],
        pa.string(),
        lambda payloads: _texts(payloads.values),
        fields,
        row,
        lambda row: row.isNotNull() & row[f"_{len(fields)}"].isNull(),
    )


def _protobuf_reader(
    messages: PayloadColumn, registered: Mapping[Hashable, Registered], message: str | None
) -> Iterator[_SparkReader]:
    """A reader with ``from_protobuf``, if a schema is Protobuf. Raises ValueError if none has the message."""
    files = {key: compiled(schema) for key, schema in _of_type(registered, "PROTOBUF").items()}
    last = list(list(files.values())[-1].names.values()) if files else []
    name = message or (last[0] if last else None)
    having = [file for file in files.values() if name in file.names.values()]
    if message is not None and not having:
        has = f"the last has {', '.join(last)}" if last else "none is Protobuf"
        raise value_error(f"no schema of {messages.column} has a message {message}: {has}")
    if not files:
        return
    from pyspark.sql.protobuf.functions import from_protobuf  # needs Google's library

    paths = {str(key): [path for path, named in file.names.items() if named == name] for key, file in files.items()}

    def data(payloads: Payloads) -> pa.Array:
        names, data = protobuf.without_paths(payloads.values)
        ids = ids_as_text(payloads.ids).to_pylist()
        of_name = [path in paths.get(id, ()) for id, path in zip(ids, names.to_pylist(), strict=True)]
        return pc.if_else(pa.array(of_name, pa.bool_()), data, None)

    def read(data: Column) -> Column:
        return from_protobuf(data, name, binaryDescriptorSet=having[-1].descriptors, options={"mode": "PERMISSIVE"})

    [row] = messages.df.select(read(F.lit(None).cast("binary"))).schema.fields
    fields = row.dataType
    yield _SparkReader(
        list(paths),
        pa.binary(),
        data,
        fields.fields,
        lambda data: read(data).cast(_by_place(fields)),
        lambda row: row.isNotNull(),
    )


def _by_place(row: StructType) -> StructType:
    """The row's type with the field names ``_0``, ``_1`` …"""
    return StructType([StructField(f"_{k}", _with_distinct_fields(field.dataType)) for k, field in enumerate(row)])


def _with_distinct_fields(type: DataType) -> DataType:
    """The type with distinct field names: if two names differ only in case, the second one gets ``_2``."""
    if isinstance(type, ArrayType):
        return ArrayType(_with_distinct_fields(type.elementType), type.containsNull)
    if isinstance(type, MapType):
        return MapType(type.keyType, _with_distinct_fields(type.valueType), type.valueContainsNull)
    if isinstance(type, StructType):
        fields = [StructField(f.name, _with_distinct_fields(f.dataType), f.nullable) for f in type]
        return with_distinct_names(StructType(fields), ())
    return type


def _texts(values: pa.Array) -> pa.Array:
    """STRING; NULL if a value is not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(value) for value in values.to_pylist()], pa.string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
