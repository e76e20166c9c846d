"""The data sources, as batches, streams and sinks: the only module that knows Spark's classes for them.

They pass options, filters and tasks to a format's modules, and record batches to Spark.

Spark creates a source in a separate Python process for planning, and pickles the plan for its workers. So everything here is
plain data, or a class of this package, which is pickled by name.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as datasource
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from sparkwire.base.printable import value_error
from sparkwire.core.sources.follow import Checkpoint, Follower
from sparkwire.core.sources.format import Files, Sink, Staged
from sparkwire.core.sources.job_file import process_above
from sparkwire.databus.files import databus_table, follow_events, write_events
from sparkwire.kafka.files import follow_log, kafka_log
from sparkwire.kafka.write import write_log
from sparkwire.spark.frames import from_arrow_schema
from sparkwire.spark.functions.worker import freeze_gc

# Before Spark 4.2, it is always UTC.
_IN_UTC = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


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
        for filter in filters:
            operator = _OPERATORS.get(type(filter).__name__)
            if operator is not None and len(filter.attribute) == 1:
                supported.append((filter.attribute[0], operator, filter.value))
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


# -- streams
#
# From Spark 4.2 on, a query can limit its batches (`maxBytesPerTrigger`), run with `Trigger.AvailableNow`, and show the end of
# the files. Before that, each batch reads all available data.

HAS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None


class FileStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # PySpark is not typed
    """Reads one streaming query, with the methods that every version of Spark needs."""

    def __init__(
        self,
        follower: Follower[Any, Any],
        max_bytes: int | None,
        read: Callable[[InputPartition], Iterator[pa.RecordBatch]],
    ) -> None:
        if max_bytes is not None and not HAS_LIMITS:
            raise ValueError("maxBytesPerTrigger needs Spark 4.2 or later")
        self._follower = follower
        self._max_bytes = max_bytes
        self._read = read
        self._start = follower.initial()
        self._has_target = False
        self._target: Checkpoint | None = None
        self._newest: Checkpoint | None = None

    def initialOffset(self) -> Checkpoint:  # noqa: N802
        return self._follower.initial()

    def latestOffset(self) -> Checkpoint:  # noqa: N802
        return self._follower.latest(self._start)

    def partitions(self, start: Checkpoint, end: Checkpoint) -> list[InputPartition]:
        self._start = end
        return [Task(parts) for parts in self._follower.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition)


if HAS_LIMITS:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        SupportsTriggerAvailableNow,
    )

    class LimitedFileStreamReader(FileStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
        """A reader with limits, and with a target for `Trigger.AvailableNow`."""

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            return ReadAllAvailable() if self._max_bytes is None else ReadMaxBytes(self._max_bytes)

        def latestOffset(self, start: Checkpoint, limit: ReadLimit) -> Checkpoint:  # type: ignore[override]  # noqa: N802
            follower = self._follower
            self._newest = follower.latest(start) if self._target is None else follower.up_to(start, self._target)
            if self._has_target and self._target is None:
                self._target = self._newest
            if isinstance(limit, ReadMaxBytes):
                return self._follower.limited(start, self._newest, limit.max_bytes)
            return self._newest

        def reportLatestOffset(self) -> Checkpoint | None:  # noqa: N802
            return self._newest

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            # The first batch sets the target, because an offset depends on the one before it.
            self._has_target = True


def stream_reader() -> type[FileStreamReader]:
    """The reader for this version of Spark."""
    return LimitedFileStreamReader if HAS_LIMITS else FileStreamReader


# -- sinks: tasks write files, and the commit renames them


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]  # PySpark is not typed
    """The files that a task has written."""

    staged: Staged
    job: str
    query: str | None
    """the id of a streaming query"""


class _Writer:
    """The common part of batch and streaming writers."""

    def __init__(self, sink: Sink, write: Any) -> None:
        self.sink: Sink = sink
        self.options = write
        self.job: str = uuid.uuid4().hex[:12]
        self.sink.begin(write, self.job, process_above("java"))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = TaskContext.get()
        attempt = f"{task.taskAttemptId()}-{os.getpid()}"
        staged = self.sink.write_rows(self.options, iterator, self.job, attempt, task.partitionId())
        return Written(staged, self.job, task.getLocalProperty("sql.streaming.queryId"))

    def _staged(self, messages: Sequence[Any]) -> Staged:
        return [file for message in messages if message is not None for file in message.staged]


class BatchWriter(_Writer, datasource.DataSourceArrowWriter):  # type: ignore[misc]
    """Writes one job."""

    def commit(self, messages: Sequence[Any]) -> None:
        once = (self.options.job_id, 0) if self.options.job_id else None
        self.sink.commit(self.options, self.job, self._staged(messages), once)

    def abort(self, messages: Sequence[Any]) -> None:
        self.sink.abort(self.options, self.job)


if hasattr(datasource, "DataSourceStreamArrowWriter"):

    class StreamWriter(_Writer, datasource.DataSourceStreamArrowWriter):  # type: ignore[misc]
        """Writes one streaming query, each batch only once."""

        def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
            job = self._of_tasks(messages)
            query = next((message.query for message in messages if message is not None and message.query), job)
            self.sink.commit(self.options, job, self._staged(messages), (query, batchId))

        def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
            self.sink.abort(self.options, self._of_tasks(messages))

        def _of_tasks(self, messages: Sequence[Any]) -> str:
            """The job that the tasks of a batch used. Spark commits with another writer object, whose job is unused."""
            job = next((message.job for message in messages if message is not None), self.job)
            if job != self.job:
                self.sink.abort(self.options, self.job)
            return job


def stream_writer(sink: Sink, write: Any) -> Any:
    """The writer of a streaming query. Raises NotImplementedError in Spark 4.0, whose streams do not pass record batches."""
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        raise NotImplementedError("writing a stream needs Spark 4.1 or later; with Spark 4.0, write in foreachBatch")
    return StreamWriter(sink, write)


# -- the sources


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
    texts = ({name: text for name, text in field.metadata.items() if isinstance(text, str)} for field in type)
    return pa.schema([field.with_metadata(metadata) for field, metadata in zip(schema, texts, strict=True)])


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
            raise value_error(
                f"{self.name()} cannot be a permanent table, because Spark passes a table's options to no Python data "
                f"source: use CREATE TEMPORARY VIEW … USING {self.name()} OPTIONS (…)"
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
        return stream_reader()(follower, reader.query.max_bytes_per_trigger, reader.read)

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
    columns = from_arrow_schema(pa.schema(list(types.items())))
    for field in schema:
        if field.name not in types:
            raise value_error(f"{source.NAME} has no column {field.name!r}: it has {', '.join(types)}")
        if field.dataType != columns[field.name].dataType:
            is_, requested = columns[field.name].dataType.simpleString(), field.dataType.simpleString()
            raise value_error(f"{source.NAME} has {field.name} {is_.upper()}, and the schema says {requested.upper()}")
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


def register(spark: SparkSession) -> None:
    """Register the sources under their names."""
    for source in SOURCES:
        spark.dataSource.register(source)
