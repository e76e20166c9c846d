"""The data sources as streams: offsets and tasks come from each format's `files`, limits and triggers from Spark.

From Spark 4.2 on, a query can limit its batches (`maxBytesPerTrigger`), run with `Trigger.AvailableNow`, and show the end of the
files. Before that, each batch reads all available data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from sparkwire.core.sources.follow import Checkpoint, Follower

HAS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None


class FileStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # PySpark is not typed
    """Reads one streaming query, with the methods that every version of Spark needs."""

    def __init__(
        self,
        follower: Follower[Any, Any],
        max_bytes: int | None,
        task: Callable[[tuple[Any, ...]], InputPartition],
        read: Callable[[InputPartition], Iterator[pa.RecordBatch]],
    ) -> None:
        if max_bytes is not None and not HAS_LIMITS:
            raise ValueError("maxBytesPerTrigger needs Spark 4.2 or later")
        self._follower = follower
        self._max_bytes = max_bytes
        self._task = task
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
        return [self._task(parts) for parts in self._follower.tasks(start, end)]

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
