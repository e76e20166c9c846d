"""Create change tables for every capture system: one ``mapInArrow`` over the columns that its format needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from sparkwire.avro.schemas import schemas_of
from sparkwire.avro.typed_rows import by_name
from sparkwire.changes.batches import ChangeBatch
from sparkwire.changes.columns import BEFORE, KEYS, KEYS_KNOWN, NEVER, UNAVAILABLE
from sparkwire.changes.databus import DatabusSource, databus_changes, databus_schema, keys_in_schema
from sparkwire.changes.datahub import datahub_changes, datahub_schema, primary_keys
from sparkwire.changes.debezium import DebeziumTable, debezium_changes, debezium_schema
from sparkwire.core.table_names import table_of, unknown_table
from sparkwire.datahub.layout import SQL_TYPES
from sparkwire.debezium.change_rows import key_names
from sparkwire.debezium.layout import UNAVAILABLE as UNAVAILABLE_VALUE
from sparkwire.spark import datahub
from sparkwire.spark.arrow_types import from_arrow_schema
from sparkwire.spark.changes.debezium_messages import AvroMessages, JsonMessages, Read
from sparkwire.spark.frames import check_binary, check_names, is_name_in, quoted
from sparkwire.spark.message_tables import message_tables

FORMATS: Final = ("databus", "datahub", "debezium")
Arrays = Mapping[str, pa.Array]


class Request(NamedTuple):
    """The arguments of `sparkwire.changes`."""

    df: DataFrame
    column: str
    table: str
    key: str | None = None
    headers: str | None = None
    keys: tuple[str, ...] | None = None
    schemas: Any = None
    columns: Mapping[str, str] | None = None
    wire_format: str = "confluent"
    before: str = "key"
    placeholder: str = UNAVAILABLE_VALUE


class Reading(NamedTuple):
    """How the changes of a table are read."""

    schema: pa.Schema
    decode: Callable[[Arrays], ChangeBatch]
    """decodes changes from the needed columns, by their roles"""
    needs: Mapping[str, str]
    """the name of each needed column, by its role"""
    keys: Sequence[str] | None
    never: Sequence[str]
    """columns that are NULL in every row"""


def changes(request: Request, format: str) -> DataFrame:
    """See ``sparkwire.changes``."""
    if format not in FORMATS:
        raise ValueError(f"changes() expected format to be one of {', '.join(FORMATS)}, got {format!r}")
    if request.before not in ("key", "full"):
        raise ValueError(f'changes() expected before to be "key" or "full", got {request.before!r}')
    reading = _READINGS[format](request)
    if format == "databus":
        request = request._replace(df=in_ended_windows(request.df, request.column))
    return _read(request, reading)


def _read(request: Request, reading: Reading) -> DataFrame:
    df, new_columns = request.df, from_arrow_schema(reading.schema)
    kept = StructType([field for field in df.schema if not is_name_in(request.column, [field.name])])
    check_names(kept, new_columns)
    decode, needed, width = reading.decode, list(reading.needs), len(reading.needs)
    names = [*kept.names, *new_columns.names]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            given = dict(zip(needed, batch.columns[:width], strict=True))
            changes = decode(given)
            places = pa.array(changes.rows)
            beside = [column.take(places) for column in batch.columns[width:]]
            yield pa.RecordBatch.from_arrays([*beside, *changes.batch.columns], names=names)

    inputs = [F.col(name).alias(f"needed_{k}") for k, name in enumerate(reading.needs.values())]
    inputs += [F.col(quoted(name)).alias(f"kept_{k}") for k, name in enumerate(kept.names)]
    rows = df.select(*inputs).mapInArrow(read, StructType([*kept, *new_columns]))
    marks: dict[str, dict[str, Any]] = {name: {NEVER: True} for name in reading.never}
    if reading.keys is not None:
        marks[KEYS] = {KEYS_KNOWN: list(reading.keys)}
    return rows.select(*(_with_metadata(name, marks) for name in names)) if marks else rows


def _with_metadata(name: str, marks: Mapping[str, dict[str, Any]]) -> Column:
    column = F.col(quoted(name))
    return column.alias(name, metadata=marks[name]) if name in marks else column


def _found(df: DataFrame, *names: str) -> str | None:
    """The first of these columns that exists."""
    present = {name.lower() for name in df.columns}
    return next((name for name in names if name in present), None)


# ---------------------------------------------------------------- Databus


def _databus(request: Request) -> Reading:
    check_binary(request.df, request.column)
    if request.schemas is None:
        raise ValueError(
            "changes() of databus expected schemas, a folder of .avsc files, a list or a mapping; got none"
        )
    readers = by_name(schemas_of(request.schemas))
    name = request.table if request.table in readers else _by_short_name(request.table, list(readers))
    read = readers[name]
    keys = request.keys or keys_in_schema(read.schemas.texts[-1])
    source = DatabusSource(name, read, keys)
    absent = [key for key in keys or () if key not in {field.name for field in read.fields}]
    if absent:
        raise ValueError(
            f"the schema {name} has no column {absent[0]}, which its key names: pass keys=[…], the columns of the primary key"
        )
    needs = {"event": request.column}
    for what, names in (("file", ("file", "stream")), ("position", ("position",))):
        present = _found(request.df, *names)
        if present:
            needs[what] = present

    def decode(given: Arrays) -> ChangeBatch:
        return databus_changes(given["event"], given.get("file"), given.get("position"), source)

    return Reading(databus_schema(source), decode, needs, keys, (BEFORE, UNAVAILABLE))


def _by_short_name(table: str, names: Sequence[str]) -> str:
    matches = [name for name in names if name.rpartition(".")[2] == table]
    if len(matches) != 1:
        raise unknown_table(table, sorted(names), "the schemas")
    return matches[0]


def in_ended_windows(df: DataFrame, column: str) -> DataFrame:
    """Leave out events of windows without an end, if the columns of ``df`` identify these windows."""
    if _found(df, "window_scn"):
        return df.where("window_scn IS NOT NULL")
    stream, position = _found(df, "stream", "file"), _found(df, "position")
    if df.isStreaming or stream is None or position is None:
        return df
    event = F.col(column)
    ids = (b"\x00", 2, (b"\xff\xfe", b"\xfe\xff")), (b"\x02", 4, (b"\xff\xff\xff\xfe", b"\xfe\xff\xff\xff"))
    ends = F.lit(False)
    for version, width, marks in ids:
        ends = ends | (F.substring(event, 1, 1) == F.lit(version)) & F.substring(event, 32, width).isin(
            *(F.lit(mark) for mark in marks)
        )
    within = [F.col(name) for name in dict.fromkeys(filter(None, (_found(df, "file"), position)))]
    place = F.struct(*within)
    last = df.where(ends).groupBy(F.col(stream).alias("ended_stream")).agg(F.max(place).alias("last_end"))
    return df.join(
        F.broadcast(last), F.col(stream).eqNullSafe(F.col("ended_stream")) & (place < F.col("last_end"))
    ).select(*(F.col(quoted(name)) for name in df.columns))


# ---------------------------------------------------------------- DataHub


def _datahub(request: Request) -> Reading:
    check_binary(request.df, request.column)
    table = table_of(request.table)
    columns = request.columns
    if columns is None:
        if request.df.isStreaming:
            raise ValueError(
                "changes() expected columns= for a streaming DataFrame, whose schema cannot be inferred; got none"
            )
        columns = datahub.columns(request.df, request.column, request.table)
    unknown = [name for name, type in columns.items() if request.columns is not None and type not in SQL_TYPES]
    if unknown:
        raise ValueError(
            f"changes() expected the types {', '.join(SQL_TYPES)}, got {columns[unknown[0]]!r} for column {unknown[0]}"
        )
    given, keys = dict(columns), request.keys

    def decode(arrays: Arrays) -> ChangeBatch:
        return datahub_changes(arrays["blob"], table, given, keys)

    known_keys = keys or _distinct_keys(request, lambda batch: primary_keys(batch.column(0), table), [request.column])
    return Reading(datahub_schema(given), decode, {"blob": request.column}, known_keys, (UNAVAILABLE,))


def _distinct_keys(
    request: Request, keys: Callable[[pa.RecordBatch], pa.Array], columns: Sequence[str]
) -> Sequence[str] | None:
    """The primary key in the messages of a batch; None if they contain no key or several."""
    if request.df.isStreaming:
        return None

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = {tuple(one) for one in keys(batch).to_pylist() if one}
            yield pa.record_batch([pa.array([list(one) for one in texts], pa.list_(pa.string()))], names=["keys"])

    some = request.df.select(*(F.col(name).alias(f"c{k}") for k, name in enumerate(columns)))
    rows = some.mapInArrow(read, "keys ARRAY<STRING>").distinct().limit(2).collect()
    return list(rows[0][0]) if len(rows) == 1 else None


# ---------------------------------------------------------------- Debezium


def debezium_messages(request: Request, column: str, of: str) -> AvroMessages | JsonMessages:
    """The values or keys of records; ``of`` is "value" or "key"."""
    if request.schemas is None:
        return JsonMessages(request.df, column)
    return AvroMessages(request.df, column, request.schemas, request.wire_format, request.headers, of)


def _debezium(request: Request) -> Reading:
    df, messages = request.df, debezium_messages(request, request.column, "value")
    of_keys = None if request.key is None else debezium_messages(request, request.key, "key")
    columns = messages.columns(request.table) if request.columns is None else request.columns
    read_value, read_key = messages.read, None if of_keys is None else of_keys.read
    keys = request.keys or _debezium_keys(request, read_key, columns)
    needs = {"value": request.column}
    others = {
        "key": request.key,
        "headers": request.headers,
        "topic": _found(df, "topic"),
        "offset": _found(df, "offset"),
    }
    needs |= {what: name for what, name in others.items() if name is not None}
    how = DebeziumTable(
        table_of(request.table), dict(columns), keys, request.before == "full", request.placeholder, "offset" in needs
    )

    def decode(given: Arrays) -> ChangeBatch:
        return debezium_changes(
            read_value(given["value"], given.get("headers")),
            how,
            keys=None if read_key is None else read_key(given["key"], given.get("headers")),
            headers=given.get("headers"),
            topics=given.get("topic"),
            offsets=given.get("offset"),
        )

    return Reading(debezium_schema(how), decode, needs, keys, ())


def _debezium_keys(request: Request, read: Read | None, columns: Mapping[str, str]) -> tuple[str, ...] | None:
    """The key columns in a table's records; None if they contain none, or columns that the table does not have."""
    if read is None or request.key is None:
        return None
    df = request.df.where(F.col(request.key).isNotNull())
    if _found(df, "topic"):
        df = df.where(F.col("topic").endswith("." + table_of(request.table).name))

    def names(batch: pa.RecordBatch) -> pa.Array:
        return key_names(read(batch.column(0), batch.column(1) if batch.num_columns > 1 else None))

    needed = [request.key] if request.headers is None else [request.key, request.headers]
    known_keys = _distinct_keys(request._replace(df=df), names, needed)
    return tuple(known_keys) if known_keys and set(known_keys) <= set(columns) else None


_READINGS: Final = {"databus": _databus, "datahub": _datahub, "debezium": _debezium}


# ---------------------------------------------------------------- all tables


def tables(request: Request, format: str) -> list[str]:
    """The sorted names of the tables in messages."""
    df = request.df
    if format == "databus":
        return sorted(by_name(schemas_of(request.schemas)))
    if format not in FORMATS:
        raise ValueError(f"changes_by_table() expected format to be one of {', '.join(FORMATS)}, got {format!r}")
    if df.isStreaming:
        raise ValueError(
            "changes_by_table() expected a batch, got a stream, whose tables are not known: call changes for each table"
        )
    if format == "datahub" or request.schemas is None:
        return message_tables(df.select(request.column), format)
    in_json = debezium_messages(request, request.column, "value").read
    names = [request.column] if request.headers is None else [request.column, request.headers]

    def as_json(batch: pa.RecordBatch) -> pa.Array:
        return in_json(batch.column(0), batch.column(1) if batch.num_columns > 1 else None).column

    return message_tables(df.select(*names), format, as_json)
