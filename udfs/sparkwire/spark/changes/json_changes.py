"""Change tables of the formats in JSON, or converted to it: the survey of a batch, and the decoder.

Values and keys of Debezium may be Avro, with schemas in a registry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from sparkwire.avro.registry import Registry
from sparkwire.avro.typed_rows import LiveSchemas
from sparkwire.base.printable import printable, value_error
from sparkwire.catalogue.wire_formats import WIRE_FORMATS
from sparkwire.changes.columns import check_keys
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.formats import Decoder, Read, decoder, in_json, position_of
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.survey import Survey, survey_debezium, survey_messages
from sparkwire.core.names import Table, table_of, unknown_table
from sparkwire.debezium.avro_messages import avro_columns, avro_side, avro_tables
from sparkwire.debezium.placeholders import placeholder_of
from sparkwire.debezium.table_columns import MessageSide
from sparkwire.spark.changes.reading import Arrays, Reading
from sparkwire.spark.changes.request import Request
from sparkwire.spark.frames import quoted
from sparkwire.spark.rows.payload_column import PayloadColumn

_FACT: Final = "fact STRING"
_log = logging.getLogger("sparkwire")


class _Sides(NamedTuple):
    """How the values and keys of Debezium's records are read."""

    values: Read
    keys: Read
    registry: AvroMessages | None


def columns(request: Request) -> Mapping[str, str]:
    """The names and types of a table's columns. Raises ValueError if they are not known."""
    sides = _sides(request)
    return _columns(request, sides, _survey(request, sides, _roles(request)))


def reading(request: Request, *, with_images: bool = False) -> Reading:
    """How the changes of a table are read. Raises ValueError if its columns are not known.

    ``with_images``: the rows are those of `sparkwire.debezium.rows`.
    """
    sides, roles = _sides(request), _roles(request)
    survey = None if request.df.isStreaming else _survey(request, sides, roles)
    columns = _columns(request, sides, survey)
    if request.keys is not None:
        check_keys(request.keys, list(columns), "changes")
    keys = tuple(request.keys) if request.keys else _keys(survey, columns)
    by_source = not with_images and _by_source(request, roles)
    plan = ReadPlan(
        request.source,
        columns,
        keys,
        by_source,
        request.format != "debezium" or request.before == "full",
        request.placeholder,
        request.nulls,
        request.renamed or {},
        None if survey is None else survey.topics,
        () if survey is None else survey.enveloped,
        () if survey is None else survey.flattened,
        survey is not None and survey.only_table,
        request.epoch if isinstance(request.epoch, int) else 0,
        request.has_text_offsets,
        bool(request.keys),
    )
    placeholder_of(request.placeholder)
    decode = decoder(
        request.format,
        plan,
        with_headers=request.headers is not None,
        read_values=sides.values,
        read_keys=sides.keys,
        with_images=with_images,
    )
    if with_images:
        return Reading(decode.schema, _decode_with(decode), roles, None, ())
    topic = None if by_source else request.find(request.topic)  # positions in the source are comparable in all topics
    return Reading(decode.schema, _decode_with(decode), roles, keys, (), topic, not plan.absent_nulls)


def _decode_with(decode: Decoder) -> Callable[[Arrays], Any]:
    return lambda arrays: decode(MessageRecords(**arrays))


def _sides(request: Request) -> _Sides:
    for argument, name in (("column", request.column), ("key", request.key)):
        if name is not None and (request.schemas is None or request.format != "debezium"):
            request.check_messages(argument, name)
    if request.format != "debezium" or request.schemas is None:
        return _Sides(in_json, in_json, None)
    of_values = AvroMessages(request.df, request.column, request.schemas, request.wire_format, request.headers, "value")
    if request.key is None:
        return _Sides(of_values.read, of_values.read, of_values)
    of_keys = AvroMessages(request.df, request.key, request.schemas, request.wire_format, request.headers, "key")
    return _Sides(of_values.read, of_keys.read, of_values)


def _roles(request: Request) -> dict[str, str]:
    """The name of each column that the decoder needs, by the name of its field in `MessageRecords`."""
    named = {
        "values": request.column,
        "keys": request.key,
        "headers": request.headers,
        "topics": _place(request, request.topic),
        "partitions": _place(request, request.partition),
        "offsets": _place(request, request.offset),
    }
    return {role: name for role, name in named.items() if name is not None}


def _place(request: Request, name: str | None) -> str | None:
    """The column of the DataFrame with this name, which may have dots."""
    found = request.find(name)
    return None if found is None else quoted(found)


def _by_source(request: Request, roles: Mapping[str, str]) -> bool:
    """Whether positions in the source order the changes: on request, or because there is no offset."""
    if request.format == "datahub":
        return True
    if request.order == "source" and position_of(request.format) is None:
        raise value_error(
            f'changes() expected order to be "offset" for {request.format}, which has no positions, got "source"'
        )
    if "offsets" not in roles and position_of(request.format) is None:
        raise value_error(
            f"changes() expected a column of offsets for {request.format}, which has no positions, got none among "
            f"{', '.join(request.df.columns)}: name the column of the records' offsets with offset="
        )
    return request.order == "source" or "offsets" not in roles


def _keys(survey: Survey | None, columns: Mapping[str, str]) -> tuple[str, ...] | None:
    """The key columns that the messages name; None if they name none, or columns that the table does not have."""
    if survey is None or not survey.keys:
        return None
    spelling = {name.lower(): name for name in columns}  # Maxwell writes the names in lower case
    keys = tuple(name if name in columns else spelling.get(name, name) for name in survey.keys)
    return keys if set(keys) <= set(columns) else None


def _columns(request: Request, sides: _Sides, survey: Survey | None) -> Mapping[str, str]:
    if request.columns is not None:
        _check_spelling(request, {} if survey is None else survey.columns)
        return dict(request.columns)
    if sides.registry is not None:
        return sides.registry.columns(request.table, () if survey is None else survey.tables)
    if survey is None:
        raise value_error(
            f"{request.function}() expected columns= for a stream, whose schema cannot be inferred; got none"
        )
    if survey.columns:
        return survey.columns
    raise _no_columns(request, survey)


def _check_spelling(request: Request, declared: Mapping[str, str]) -> None:
    """Raise ValueError if the messages declare a column only in another case."""
    others = {name.lower(): name for name in declared if name not in request.columns}
    for name in request.columns:
        other = others.get(name.lower())
        if name not in declared and other is not None:
            raise value_error(
                f"{request.function}() expected columns to name {other} as the messages do, got {name}: write {other}"
            )


def no_columns(request: Request) -> ValueError:
    """The error for a table without known columns, from a survey of the messages."""
    return _no_columns(request, _survey(request, _sides(request), _roles(request)))


def _no_columns(request: Request, survey: Survey) -> ValueError:
    """The error for a table without known columns: other tables, other systems, or messages that do not declare columns."""
    names = {name for name in survey.tables if _matches(name, request.source)}
    if survey.advice and not names:
        return value_error(f"no message is of the format {request.format}. The messages look like {survey.advice[0]}")
    if survey.tables and not names:
        return unknown_table(request.table, survey.tables, "the messages")
    return value_error(f"no message declares the columns of the table {request.table}: pass columns")


def _matches(name: str, table: Table) -> bool:
    return table_of(name).name == table.name


# ---------------------------------------------------------------- one pass over a batch


def _survey(request: Request, sides: _Sides, roles: Mapping[str, str]) -> Survey:
    """The survey of a batch. If the caller says it all, nothing is read. Of Debezium, only all messages show what a topic has."""
    if request.format != "debezium" and request.columns is not None and request.keys is not None:
        return Survey([], {}, None, {}, False, [])
    return Survey.of(_facts(request, sides, roles, request.source), request.format, request.source)


def tables(request: Request) -> list[str]:
    """The sorted names of the tables in a batch. Raises ValueError if there are rows, and none of them names its table."""
    survey = Survey.of(_facts(request, _sides(request), _roles(request), None), request.format, None)
    if survey.nameless and not survey.tables:
        raise ValueError("no message names its table: call sparkwire.changes for each table")
    if survey.advice and not survey.tables:
        text = f"no message is of the format {request.format}. The messages look like {survey.advice[0]}"
        _log.warning("%s", printable(text))
    return survey.tables


def _facts(request: Request, sides: _Sides, roles: Mapping[str, str], table: Table | None) -> list[str]:
    format, names = request.format, [role for role in roles if role in ("values", "keys", "headers", "topics")]
    read_values, read_keys, columns = sides.values, sides.keys, tuple(request.columns or ())

    def facts(records: MessageRecords) -> list[str]:
        if format in SYSTEMS:
            return survey_messages(format, records, table)
        keys = None if records.keys is None else read_keys(records.keys, records.headers)
        return survey_debezium(read_values(records.values, records.headers), keys, records, table, columns)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: set[str] = set()
        for batch in batches:
            seen.update(facts(MessageRecords(**dict(zip(names, batch.columns, strict=True)))))
        yield pa.record_batch([pa.array(sorted(seen), pa.string())], names=["fact"])

    df = request.df.select(*(F.col(roles[name]).alias(name) for name in names))
    return [row[0] for row in df.mapInArrow(read, _FACT).distinct().collect()]


class AvroMessages:
    """A column of values or keys in Avro."""

    def __init__(
        self, df: DataFrame, column: str, schemas: Any, wire_format: str, headers: str | None, of: str
    ) -> None:
        by_headers = wire_format in WIRE_FORMATS and WIRE_FORMATS[wire_format].with_headers is not None
        named = headers if by_headers else None
        self._payloads = PayloadColumn.of(df, column, Registry.of(schemas), None, wire_format, named)
        self._of = of

    def columns(self, table: str, tables: Collection[str]) -> Mapping[str, str]:
        """The columns of a table from the schemas of the registry. ``tables`` are those that messages name.

        Raises ValueError if the registry has no schema of the table, or if the columns of a stream are known only from its data.
        """
        if self._payloads.df.isStreaming and self._payloads.registry.ids() is None:
            raise ValueError("changes() of a stream expected columns, or a registry with subjects=[…]; got neither")
        texts = self._payloads.schemas().texts
        columns = avro_columns(texts, table_of(table), exists=table in tables)
        if not columns:
            raise unknown_table(table, avro_tables(texts), "the registry's schemas")
        return columns

    @property
    def read(self) -> Read:
        """The decoder. It fetches schemas while it reads data, so that a stream continues after a change of the table."""
        wire, of, registry = self._payloads.wire_format, self._of, self._payloads.registry
        named_by_text = WIRE_FORMATS[wire].named_by_text is not None
        schemas = self._payloads.schemas() if named_by_text else None
        live = LiveSchemas(registry)

        def side(messages: pa.Array, headers: pa.Array | None) -> MessageSide:
            payloads = WIRE_FORMATS[wire].split(messages, headers, of)
            return avro_side(payloads, live.of(payloads.ids) if schemas is None else schemas)

        return side
