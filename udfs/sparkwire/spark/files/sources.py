"""The data sources: they pass options, filters and tasks to a format's modules, and record batches to Spark.

Spark creates a source in a separate Python process for planning, and pickles the plan for its workers. So everything here is
plain data, or a class of this package, which is pickled by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from sparkwire.base.printable import printable
from sparkwire.core.sources.follow import Follower
from sparkwire.core.sources.format import Files, Sink
from sparkwire.databus.files import databus_table, follow_events, write_events
from sparkwire.kafka.files import follow_log, kafka_log
from sparkwire.kafka.write import write_log
from sparkwire.spark.arrow_types import from_arrow_schema
from sparkwire.spark.files.sinks import BatchWriter, stream_writer
from sparkwire.spark.files.stream_sources import stream_reader
from sparkwire.spark.functions.worker import freeze_gc

# Before Spark 4.2, it is always UTC.
_IN_UTC = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def register(spark: SparkSession) -> None:
    """Register the sources under their names."""
    for source in SOURCES:
        spark.dataSource.register(source)


class Task(InputPartition):  # type: ignore[misc]  # PySpark is not typed
    """Parts of files that one task reads."""

    def __init__(self, parts: Sequence[Any]) -> None:
        super().__init__(parts)
        self.parts = parts


class BatchReader(DataSourceReader):  # type: ignore[misc]
    """One batch query over the files of a source."""

    def __init__(self, files: Files, query: Any, schema: StructType) -> None:
        self.files = files
        self.query = query
        self.types = to_arrow_schema(schema, **_IN_UTC)

    @property
    def pushFilters(self) -> _Pushed:  # noqa: N802
        return _Pushed(self)

    def partitions(self) -> list[Task]:
        tasks = [Task(parts) for parts in self.files.plan(self.query)]
        freeze_gc()
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Task):  # Spark's placeholder for an empty plan
            return iter(())
        return typed(self.files.read(self.query, partition.parts), self.types)


class _Pushed:
    """The callable that Spark calls with filters.

    By default, `spark.sql.python.filterPushdown.enabled` is false. Then Spark rejects a reader that implements filters, which it
    recognizes by the function of its method. This callable implements filters, but has the function of a reader that does not.
    """

    def __init__(self, reader: BatchReader) -> None:
        self.reader = reader
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)

    def __call__(self, filters: Sequence[Any]) -> Sequence[Any]:
        supported = []
        for one in filters:
            operator = _OPERATORS.get(type(one).__name__)
            if operator is not None and len(one.attribute) == 1:
                supported.append((one.attribute[0], operator, one.value))
        self.reader.query = self.reader.files.with_filters(self.reader.query, supported)
        return filters  # Spark must still apply all of them


_OPERATORS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "in",
}


def _commented(type: StructType, docs: Mapping[str, str], marks: Mapping[str, Mapping[str, str]]) -> StructType:
    """``type`` with comments, which ``DESCRIBE`` of a view shows, and with ``marks``: other metadata by field name."""
    return StructType(
        [
            StructField(
                field.name, field.dataType, field.nullable, {"comment": docs[field.name], **marks.get(field.name, {})}
            )
            for field in type
        ]
    )


def _with_marks(schema: pa.Schema, type: StructType) -> pa.Schema:
    """An Arrow schema with the text metadata of Spark's type."""
    texts = ({name: one for name, one in field.metadata.items() if isinstance(one, str)} for field in type)
    return pa.schema([field.with_metadata(some) for field, some in zip(schema, texts, strict=True)])


class FileSource(DataSource):  # type: ignore[misc]
    """A source with the options, columns and rows of a format's modules."""

    files: Files
    sink: Sink
    follower: Callable[[Any], Follower[Any, Any]]

    @classmethod
    def name(cls) -> str:
        return cls.files.NAME

    def schema(self) -> StructType:
        if {"owner", "provider"} <= {name.lower() for name in self.options}:  # properties that CREATE TABLE adds
            raise ValueError(
                printable(
                    f"{self.name()} cannot be a permanent table, because Spark passes a table's options to no Python data "
                    f"source: use CREATE TEMPORARY VIEW … USING {self.name()} OPTIONS (…)"
                )
            )
        query = self.files.query(self.options)
        self.files.input_files(query)
        freeze_gc()
        return _commented(from_arrow_schema(self.files.schema(query)), self.files.docs(query), self.files.marks(query))

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(self.files, with_schema(self.files, self.options, schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        reader = self.reader(schema)
        follower = type(self).follower(reader.query)
        return stream_reader()(follower, reader.query.max_bytes_per_trigger, Task, reader.read)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(self.sink, self.sink.write_of(self.options, _arrow_schema(schema), overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        write = self.sink.write_of(self.options, _arrow_schema(schema), overwrite)
        return stream_writer(self.sink, write)


def _arrow_schema(schema: StructType) -> pa.Schema:
    return _with_marks(to_arrow_schema(schema, **_IN_UTC), schema)


class KafkaLog(FileSource):
    """Kafka segments as a table; see `sparkwire.kafka.files.kafka_log`."""

    files = kafka_log
    sink = write_log
    follower = follow_log.LogFollower


class Databus(FileSource):
    """Databus event files as a table; see `sparkwire.databus.files.databus_table`."""

    files = databus_table
    sink = write_events
    follower = follow_events.EventFollower


def with_schema(source: Files, options: Mapping[str, str], schema: StructType) -> Any:
    """The query for the options, limited to the columns of a schema, which the user may have specified.

    Raises ValueError if the schema has an unknown column, or a column with another type.
    """
    query = source.query(options)
    types = source.types(query)
    known = from_arrow_schema(pa.schema(list(types.items())))
    for field in schema:
        if field.name not in types:
            raise ValueError(printable(f"{source.NAME} has no column {field.name!r}: it has {', '.join(types)}"))
        if field.dataType != known[field.name].dataType:
            is_, given = known[field.name].dataType.simpleString(), field.dataType.simpleString()
            raise ValueError(
                printable(f"{source.NAME} has {field.name} {is_.upper()}, and the schema says {given.upper()}")
            )
    return query._replace(columns=tuple(schema.names))


def typed(batches: Iterable[pa.RecordBatch], types: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches, all with the schema ``types``, which has Spark's names for the nested fields."""
    named = None
    for batch in batches:
        if named is None:  # equal schemas may differ in the names of nested fields
            named = _declared(batch.schema) == _declared(types)
        yield batch if named else batch.cast(types)
    freeze_gc()


def _declared(schema: pa.Schema) -> str:
    text: str = schema.to_string(show_field_metadata=False, show_schema_metadata=False)
    return text


SOURCES = (KafkaLog, Databus)
