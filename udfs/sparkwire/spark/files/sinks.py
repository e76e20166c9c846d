"""The data sources as sinks: tasks write Spark's record batches to files, and the commit renames the files."""

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
from sparkwire.core.sources.job_file import process_above


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
        return [one for message in messages if message is not None for one in message.staged]


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
            """The job that the tasks of a batch used. Spark commits with another writer object, whose own job is unused."""
            job = next((message.job for message in messages if message is not None), self.job)
            if job != self.job:
                self.sink.abort(self.options, self.job)
            return job


def stream_writer(sink: Sink, write: Any) -> Any:
    """The writer of a streaming query. Raises NotImplementedError in Spark 4.0, whose streams do not pass record batches."""
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        raise NotImplementedError("writing a stream needs Spark 4.1 or later; with Spark 4.0, write in foreachBatch")
    return StreamWriter(sink, write)
