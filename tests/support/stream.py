"""Run a streaming source like Spark, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparkwire.databus.files import databus_table, follow_events
from sparkwire.kafka.files import follow_log, kafka_log
from sparkwire.spark.sources import LimitedFileStreamReader
from tests.support.arrow import plain_rows

Row = dict[str, Any]


class Stream:
    """A query: it requests offsets, reads the data between two of them, and stores the last one as JSON."""

    def __init__(self, source: Any, follower: Callable[[Any], Any], path: Path | str, **options: str) -> None:
        self.source = source
        self.query = source.query({"path": str(path), **options})
        self.new: Callable[[], Any] = lambda: follower(self.query)
        self.follower = self.new()
        self.place = self.follower.initial()

    def between(self, follower: Any, start: Any, end: Any) -> list[Row]:
        return self.read(follower.tasks(start, end))

    def read(self, tasks: Any) -> list[Row]:
        return plain_rows(batch for task in tasks for batch in self.source.read(self.query, task))

    def batch(self, max_bytes: int | None = None) -> list[Row]:
        """The rows of one micro-batch. Checks that a restarted query reads the same rows."""
        end = self.follower.latest(self.place)
        if max_bytes is not None:
            end = self.follower.limited(self.place, end, max_bytes)
        start, end = (json.loads(json.dumps(places)) for places in (self.place, end))
        if start == end:  # Spark plans no batch
            return []
        result = self.between(self.follower, start, end)
        assert self.between(self.new(), start, end) == result
        self.place = end
        return result

    def all(self, max_bytes: int | None = None) -> list[Row]:
        """The rows of all micro-batches until nothing is new, like ``Trigger.AvailableNow``."""
        rows: list[Row] = []
        while True:
            before = self.place
            rows += self.batch(max_bytes)
            if self.place == before:
                return rows

    def restarted(self) -> Stream:
        """The same query in a new process."""
        self.restart()
        return self

    def available_now(self, max_bytes: int | None = None, between: Callable[[], object] = lambda: None) -> list[Row]:
        """The rows of a run with ``Trigger.AvailableNow`` in a new process, by the reader that Spark uses.

        It calls ``between`` before it plans each batch but the first.
        """
        self.restart()
        reader: Any = LimitedFileStreamReader(self.follower, max_bytes, lambda task: iter(()))
        reader.prepareForTriggerAvailableNow()
        rows: list[Row] = []
        limit = reader.getDefaultReadLimit()
        while (end := json.loads(json.dumps(reader.latestOffset(self.place, limit)))) != self.place:
            result = self.read(task.parts for task in reader.partitions(self.place, end))
            assert self.between(self.new(), self.place, end) == result
            rows, self.place = rows + result, end
            between()
        return rows

    def restart(self, fail_on_data_loss: bool = True) -> None:
        """Simulate a new process with the same checkpoint."""
        self.query = self.query._replace(fail_on_data_loss=fail_on_data_loss)
        self.follower = self.new()

    def lenient_batch(self) -> list[Row]:
        """A micro-batch that continues after a loss."""
        self.restart(fail_on_data_loss=False)
        rows = self.batch()
        self.restart()
        return rows


def kafka(path: Path | str, **options: str) -> Stream:
    return Stream(kafka_log, follow_log.LogFollower, path, **options)


def events_of(path: Path | str, **options: str) -> Stream:
    return Stream(databus_table, follow_events.EventFollower, path, **options)
