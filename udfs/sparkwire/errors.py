"""The exceptions of sparkwire. Each is a `SparkwireError`, so one clause catches them all.

    try:
        sparkwire.kafka.write(df, path)
    except sparkwire.errors.SparkwireError as error:
        ...

Python's own exceptions report what is wrong with a call: `ValueError` and `TypeError` for an argument, an option or a column,
`FileNotFoundError` and `PermissionError` for a path, `ModuleNotFoundError` for an extra that is not installed.

Spark wraps an exception of a Python worker: the driver gets a `PythonException` or a `StreamingQueryException`. The last line of
its message is the message of the exception here. From Spark 4.3 on, a line with the SQLSTATE follows. The page on error codes has
the setting that hides the lines before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparkwire.base.printable import printable

__all__ = [
    "ColumnTooLargeError",
    "ConsumerFailedError",
    "CorruptDataError",
    "CorruptEventError",
    "DataLossError",
    "DispatcherRetriesExhaustedError",
    "FileChangedError",
    "PullerRetriesExhaustedError",
    "RegistryError",
    "SchemaError",
    "ScnNotFoundError",
    "SparkwireError",
    "UnfinishedWriteError",
    "WriteConflictError",
    "WrongIndexError",
]


class SparkwireError(Exception):
    """The base class of all exceptions here. Their messages have escapes for characters that could change a screen."""

    def __init__(self, *message: str) -> None:
        super().__init__(*map(printable, message))


# -- reading


class ColumnTooLargeError(SparkwireError, ValueError):
    """The results of one batch exceed what an Arrow column holds. Lower `spark.sql.execution.arrow.maxRecordsPerBatch`."""


class CorruptDataError(SparkwireError, ValueError):
    """A query with `mode` FAILFAST found corrupt bytes. The message has the file, the position and the error code."""


class DataLossError(SparkwireError, ValueError):
    """A stream needs data that no longer exist. `failOnDataLoss` false continues with the remaining data."""


class FileChangedError(SparkwireError, ValueError):
    """A file was replaced or became shorter while a query read it. Run the query again."""


class WrongIndexError(SparkwireError, ValueError):
    """The `.index` of a Kafka segment points into the middle of a batch, so the segment was split there. Delete the index."""


# -- writing


class WriteConflictError(SparkwireError, ValueError):
    """Another job writes to the same target, or has changed it since this job began. Run the job again."""


class UnfinishedWriteError(SparkwireError, ValueError):
    """A write could neither be completed nor undone. No data are lost; `python -m sparkwire recover PATH` completes it."""


# -- schemas


class SchemaError(SparkwireError, ValueError):
    """A schema is invalid, or data of one schema cannot be read by another."""


class RegistryError(SparkwireError, RuntimeError):
    """A schema registry does not respond, or does not have what its schemas refer to. The message has no credentials."""


# -- Databus consumers


class ConsumerFailedError(SparkwireError, RuntimeError):
    """A consumer used all its retries, or needs a rollback to events that the client has discarded."""


class CorruptEventError(SparkwireError, ValueError):
    """A stream that `sparkwire.databus.consume` reads has a corrupt event. Filter such events out to continue without them."""


class ScnNotFoundError(SparkwireError):
    """An argument of `on_error`: the relay no longer has the SCN from which the client continues (error event -5)."""


class PullerRetriesExhaustedError(SparkwireError):
    """An argument of `on_error`: the puller of events has used all its retries (error event -6)."""


class DispatcherRetriesExhaustedError(SparkwireError):
    """An argument of `on_error`: the consumer failed, and the client has used all its retries."""


# -- Python's own


@contextmanager
def needing_the_extra(what: str) -> Iterator[None]:
    """Add to a ModuleNotFoundError which extra to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = str(missing.name).partition(".")[0]
        raise ModuleNotFoundError(
            f"{printable(what)} needs {printable(package)}, which is not installed: install the extra 'registry' of sparkwire"
        ) from None
