"""What Spark's data sources need of a format's modules: one that reads its files as a table, one that writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from sparkwire.core.sources.job_file import Once
from sparkwire.core.sources.options import Comparison
from sparkwire.core.sources.process import Process

Staged = Sequence[Any]
"""complete files that do not have their names yet"""


class Files(Protocol):
    """A module that reads files of one format; ``query`` is what its ``query`` makes of options: plain data."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """In ``spark.read.format``."""

    def query(self, given: Mapping[str, str], /) -> Any:
        """Raises ValueError where an option is unknown or wrong."""

    def input_files(self, query: Any, /) -> Sequence[Any]:
        """The files; raises FileNotFoundError if none exists."""

    def types(self, query: Any, /) -> Mapping[str, pa.DataType]:
        """Of every column that a query may have."""

    def docs(self, query: Any, /) -> Mapping[str, str]:
        """What each column is."""

    def marks(self, query: Any, /) -> Mapping[str, Mapping[str, str]]:
        """Of columns that say where their rows come from, metadata."""

    def schema(self, query: Any, /) -> pa.Schema:
        """Of the columns that the query has."""

    def with_filters(self, query: Any, comparisons: Sequence[Comparison], /) -> Any:
        """The query for rows that a filter may let through."""

    def plan(self, query: Any, /) -> Sequence[Sequence[Any]]:
        """What each task reads: plain data."""

    def read(self, query: Any, task: Any, /) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""


class Sink(Protocol):
    """A module that writes files of one format; ``write`` is what its ``write_of`` makes of options: plain data."""

    def write_of(self, given: Mapping[str, str], schema: pa.Schema, overwrite: bool, /) -> Any:
        """Raises ValueError where an option or a column is unknown or wrong."""

    def begin(self, write: Any, job: str, owner: Process, /) -> None:
        """Before any task; raises ValueError if writing is impossible."""

    def write_rows(self, write: Any, batches: Iterator[pa.RecordBatch], job: str, attempt: str, task: int, /) -> Staged:
        """The files of a task, none of which has its name yet."""

    def commit(self, write: Any, job: str, staged: Staged, once: Once | None = None, /) -> None:
        """Give the files of all tasks their names; ``once`` is the id of a job, or of a stream, and the number of its batch."""

    def abort(self, write: Any, job: str, /) -> None:
        """Remove what a job that failed has left."""
