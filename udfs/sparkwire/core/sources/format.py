"""The interfaces of a format's modules for Spark's data sources: one that reads files, and one that writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from sparkwire.core.sources.job_file import Once, Process
from sparkwire.core.sources.options import Comparison

Staged = Sequence[Any]
"""complete files that do not have their final names yet"""


class Files(Protocol):
    """A module that reads files of one format. Its function ``query`` parses options; the result is plain data."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """The name in ``spark.read.format``."""

    def query(self, texts: Mapping[str, str], /) -> Any:
        """Parse the options. Raises ValueError if an option is unknown or invalid."""

    def input_files(self, query: Any, /) -> Sequence[Any]:
        """The files of a query. Raises FileNotFoundError if none exists."""

    def types(self, query: Any, /) -> Mapping[str, pa.DataType]:
        """The type of every column that a query may have."""

    def docs(self, query: Any, /) -> Mapping[str, str]:
        """The description of each column."""

    def marks(self, query: Any, /) -> Mapping[str, Mapping[str, str]]:
        """Metadata of the columns that contain the origin of a row."""

    def schema(self, query: Any, /) -> pa.Schema:
        """The schema of the query's columns."""

    def with_filters(self, query: Any, comparisons: Sequence[Comparison], /) -> Any:
        """The query, limited to rows that may pass the filters."""

    def plan(self, query: Any, /) -> Sequence[Sequence[Any]]:
        """The parts that each task reads, as plain data."""

    def read(self, query: Any, task: Any, /) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""


class Sink(Protocol):
    """A module that writes files of one format. Its function ``write_of`` parses options; the result is plain data."""

    def write_of(self, texts: Mapping[str, str], schema: pa.Schema, overwrite: bool, /) -> Any:
        """Parse the options. Raises ValueError if an option or a column is unknown or invalid."""

    def begin(self, write: Any, job: str, owner: Process, /) -> None:
        """Begin a job, before any task. Raises ValueError if writing is impossible."""

    def write_rows(self, write: Any, batches: Iterator[pa.RecordBatch], job: str, attempt: str, task: int, /) -> Staged:
        """Write a task's files, which do not have their final names yet."""

    def commit(self, write: Any, job: str, staged: Staged, once: Once | None = None, /) -> None:
        """Give the files of all tasks their final names. ``once`` is the id of a job or stream, with the number of its batch."""

    def abort(self, write: Any, job: str, /) -> None:
        """Remove the files of a failed job."""
