"""The data sources as sinks: tasks get Spark's rows as record batches, and the end of a job gives the files their names."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as datasource
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from sparkwire.core.sources.format import Sink, Staged
from sparkwire.core.sources.process import process_above


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]  # PySpark is not typed
    """What a task has written."""

    staged: Staged
    job: str
    query: str | None
    """of a stream, its id"""


class _Writer:
    """What batch and streaming share."""

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
        return [one for message in messages if message is not None for one in message.staged]


class BatchWriter(_Writer, datasource.DataSourceArrowWriter):  # type: ignore[misc]
    """One job."""

    def commit(self, messages: Sequence[Any]) -> None:
        once = (self.options.job_id, 0) if self.options.job_id else None
        self.sink.commit(self.options, self.job, self._staged(messages), once)

    def abort(self, messages: Sequence[Any]) -> None:
        self.sink.abort(self.options, self.job)


if hasattr(datasource, "DataSourceStreamArrowWriter"):

    class StreamWriter(_Writer, datasource.DataSourceStreamArrowWriter):  # type: ignore[misc]
        """One streaming query: it writes each of its batches once."""

        def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
            job = self._of_tasks(messages)
            query = next((message.query for message in messages if message is not None and message.query), job)
            self.sink.commit(self.options, job, self._staged(messages), (query, batchId))

        def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
            self.sink.abort(self.options, self._of_tasks(messages))

        def _of_tasks(self, messages: Sequence[Any]) -> str:
            """The job of a batch: Spark commits by another writer than its tasks write by, whose own job has nothing to do."""
            job = next((message.job for message in messages if message is not None), self.job)
            if job != self.job:
                self.sink.abort(self.options, self.job)
            return job


def stream_writer(sink: Sink, write: Any) -> Any:
    """The writer of a streaming query; NotImplementedError in Spark 4.0, whose streams pass rows alone."""
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        raise NotImplementedError(
            "a stream can be written from Spark 4.1 on; in foreachBatch a write works in 4.0 as well"
        )
    return StreamWriter(sink, write)
