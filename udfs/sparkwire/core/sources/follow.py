"""Streams over growing logs: what a query has read, and what it reads next.

For each log, a query checkpoint contains the next offset and the last entry that was returned, which identifies the log. File and
position are only a hint. Each plan looks for that entry. If it is missing, data are lost: the query fails, or with
``failOnDataLoss`` false continues with the remaining data.

A checkpoint is a JSON object, ``{"version": 2, "logs": {name: …}}``.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from sparkwire.base.printable import printable, value_error
from sparkwire.core.sources.storage import File, steady
from sparkwire.core.sources.table import FILE_COST, packed
from sparkwire.errors import DataLossError

_log = logging.getLogger("sparkwire")


class Lost(Exception):
    """Data are lost. The message describes what exists instead of the data with which the query must continue."""


def report_loss(name: str, resume_at: str, lost: Lost, fails: bool) -> None:
    """Raise DataLossError, or write a warning to the log if ``fails`` is false."""
    sentence = f"data loss in {name}: the query continues at {resume_at}, but {lost}"
    if fails:
        raise DataLossError(
            f"{sentence}. Set failOnDataLoss=false to continue with the remaining data. For a topic that was created again, use "
            "a new checkpoint, and for sparkwire.changes a greater epoch, too"
        ) from None
    _log.warning("%s; failOnDataLoss is false: it continues with the remaining data", printable(sentence))


VERSION = 2
QUIET = 60.0
"""time without writes after which a file counts as complete [s]"""

Checkpoint = dict[str, Any]
"""a JSON object that Spark stores"""
Log = TypeVar("Log")
Offset = TypeVar("Offset", bound=NamedTuple)


def may_grow(file: File, is_last: bool = True) -> bool:
    """Whether the file may still grow. Without a time of the last write, only the last file of a stream may."""
    if file.compressed or file.modified is None:
        return is_last and not file.compressed
    return time.time() - file.modified < QUIET


class Follower(ABC, Generic[Log, Offset]):
    """Follows the logs of a query from one micro-batch to the next. A subclass for each source defines what a log is."""

    source: str
    offset: type[Offset]

    def __init__(self, query: Any) -> None:
        self.query = query

    # -- called by Spark

    def initial(self) -> Checkpoint:
        """The checkpoint before the first batch. A log that appears later starts with its first offset at that time."""
        return self._dumped({})

    def latest(self, start: Checkpoint) -> Checkpoint:
        """The checkpoint of what can be read now."""
        begins = self._parsed(start)
        ends = steady(lambda: {name: self.end(name, log, begins.get(name)) for name, log in self._logs(begins).items()})
        return self._dumped(begins | ends)

    def up_to(self, start: Checkpoint, target: Checkpoint) -> Checkpoint:
        """``target``, completed by the logs of ``start`` that it does not contain."""
        return self._dumped(self._parsed(start) | self._parsed(target))

    def limited(self, start: Checkpoint, end: Checkpoint, max_bytes: int) -> Checkpoint:
        """A checkpoint up to ``end``, so that about ``max_bytes`` are between ``start`` and it."""
        begins, ends = self._parsed(start), self._parsed(end)
        return self._dumped(steady(lambda: self._limited(begins, ends, max_bytes)))

    def _limited(self, begins: Mapping[str, Offset], ends: Mapping[str, Offset], max_bytes: int) -> dict[str, Offset]:
        ends = dict(ends)
        logs = {name: log for name, log in self._logs(begins).items() if name in ends}
        behind = {name: self.bytes_between(log, begins.get(name), ends[name]) for name, log in logs.items()}
        total = sum(behind.values())
        if total > max_bytes:
            for name, size in behind.items():
                if size:
                    share = max(1, size * max_bytes // total)
                    ends[name] = self.nearer(logs[name], begins.get(name), ends[name], share)
        return ends

    def tasks(self, start: Checkpoint, end: Checkpoint) -> list[tuple[Any, ...]]:
        """The tasks that read the data between two checkpoints. If data are lost, raises DataLossError with failOnDataLoss."""
        begins, ends = self._parsed(start), self._parsed(end)
        parts = steady(lambda: self._parts(begins, ends))
        costs = [max(0, min(part.stop, self.size(part)) - part.start) + FILE_COST for part in parts]
        return packed(parts, costs, self.query.max_split_bytes)

    def _parts(self, begins: Mapping[str, Offset], ends: Mapping[str, Offset]) -> list[Any]:
        logs = self._logs(begins)
        parts: list[Any] = []
        for name, stop in ends.items():
            begin = begins.get(name)
            if name not in logs:
                self.report_missing(name, begin, stop)
            elif begin != stop:
                parts += self.parts(name, logs[name], begin, stop)
        return parts

    def _logs(self, begins: Mapping[str, Offset]) -> Mapping[str, Log]:
        """The current logs. A stream that has not begun waits for the first file; later, an empty directory is a data loss."""
        try:
            return self.logs(may_be_empty=not begins)
        except (FileNotFoundError, ValueError):
            if self.query.fail_on_data_loss:
                raise
            return {}  # nothing is left, but files may come back

    # -- implemented by a source

    @abstractmethod
    def logs(self, may_be_empty: bool) -> Mapping[str, Log]:
        """The logs of the query, by name. ``may_be_empty``: whether a directory without files is allowed."""

    @abstractmethod
    def end(self, name: str, log: Log, begin: Offset | None) -> Offset:
        """The end of the readable part of a log; ``begin`` itself if nothing comes after it."""

    @abstractmethod
    def bytes_between(self, log: Log, begin: Offset | None, end: Offset) -> int:
        """The approximate number of bytes between two offsets."""

    @abstractmethod
    def nearer(self, log: Log, begin: Offset | None, end: Offset, share: int) -> Offset:
        """The first offset at least ``share`` bytes after ``begin``; ``end`` if none exists."""

    @abstractmethod
    def parts(self, name: str, log: Log, begin: Offset | None, end: Offset) -> Sequence[Any]:
        """The parts between two offsets. Raises DataLossError like `tasks`."""

    @abstractmethod
    def size(self, part: Any) -> int:
        """The size of a part's file [bytes]."""

    @abstractmethod
    def report_missing(self, name: str, begin: Offset | None, end: Offset) -> None:
        """Report a log that no longer exists. Raises DataLossError like `tasks`."""

    @abstractmethod
    def offset_from(self, stored: Any) -> Offset:
        """Parse a log's offset in a checkpoint. Raises TypeError, ValueError or KeyError if it is invalid."""

    @abstractmethod
    def to_checkpoint(self, offset: Offset) -> Mapping[str, Any]:
        """The form of an offset in a checkpoint."""

    # -- checkpoints

    def _dumped(self, offsets: Mapping[str, Offset]) -> Checkpoint:
        return {
            "version": VERSION,
            "logs": {name: self.to_checkpoint(offset) for name, offset in sorted(offsets.items())},
        }

    def _parsed(self, checkpoint: Any) -> dict[str, Offset]:
        """Parse the offsets of a checkpoint. Raises ValueError if this source did not write it."""
        if not isinstance(checkpoint, dict) or "version" not in checkpoint:
            self._reject(checkpoint)
        version, logs = checkpoint["version"], checkpoint.get("logs")
        if version != VERSION:
            raise value_error(
                f"{self.source}: the query checkpoint has version {version!r}, this sparkwire reads {VERSION}: "
                "continue with the version that wrote it, or a newer one"
            )
        if not isinstance(logs, dict):
            self._reject(checkpoint)
        offsets = {}
        for name, stored in logs.items():
            try:
                offsets[name] = self.offset_from(stored)
            except (TypeError, ValueError, KeyError, AttributeError):
                self._reject({name: stored})
        return offsets

    def _reject(self, stored: Any) -> NoReturn:
        raise value_error(
            f"{self.source}: the query checkpoint says {stored!r:.200}, which no stream of {self.source} has written: "
            "it is of another source or was edited. Start the query with a new checkpointLocation"
        )


def integer(value: Any, least: int = 0) -> int:
    """An integer in a checkpoint. Raises ValueError if the value is not an integer, or too small or too large."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 2**63:
        raise ValueError(value)
    return value


def text(value: Any) -> str:
    """A text in a checkpoint. Raises ValueError if the value is not a text."""
    if not isinstance(value, str):
        raise ValueError(value)
    return value
