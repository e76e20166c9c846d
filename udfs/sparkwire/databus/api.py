"""The Databus client on Spark: run consumers over the events of a DataFrame, or list their callbacks in SQL.

    from sparkwire.databus import Consumer, Result, consume

    class Print(Consumer):
        def on_data_event(self, event):
            print(event)
            return Result.SUCCESS

    report = consume(events, Print())

``dispatch`` is the same without Spark, over the bytes of one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkwire.databus.client.consumer import Consumer
from sparkwire.databus.client.page import Source
from sparkwire.databus.client.settings import THRESHOLD, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def consume(
    df: DataFrame,
    consumer: Consumer | Callable[[], Consumer],
    *,
    group_size: int = 1,
    source_order: Sequence[int | str] | None = None,
    partitions: int | None = None,
    sources: Iterable[Source] | None = None,
    order: Sequence[str] | None = None,
    settings: Settings | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """Run a consumer over the events of a DataFrame, now; a report row for each completed window.

    One task dispatches a stream in its order, however the DataFrame is partitioned; tasks run in parallel. No task holds a
    whole stream in memory. Works in a batch query and inside ``foreachBatch``, classic and on Connect.

    Consumers get a window at least once: Spark runs a failed task again. A consumer that writes by window scn ends exactly once
    (docs/databus-client.md shows one). With speculative execution two tasks may deliver the same window at once.

    Parameters
    ----------
    df
        events: a BINARY column ``event``, a column ``stream`` (without one all events are one stream), and what orders the events
        of a stream. The data source ``databus`` gives such rows.
    consumer
        a `Consumer`, pickled to the tasks, of which every stream and member gets a copy; or what makes one, called there.
    group_size
        members of the consumer group: threads that share a stream's data events between two barriers. All other callbacks go to
        every member.
    source_order
        source ids (or names, with ``sources``): presents the sources of each window in this order, others after them.
    partitions
        n tasks a stream, each with every window, and with the data events that Databus's key filter gives it
        (`dbus_key_partition`). Each has separate consumers.
    sources
        the sources with their schemas. Data events of other sources, or with a schema id that none of them has, then fail, as in
        Databus. By default any source is known, by its id as its name.
    order
        the columns that order a stream's events; by default ``file`` and ``position``, those of them that are there.
    settings
        sizes and retries; by default those of Databus, but with 10 retries.
    tasks
        among how many tasks the streams are spread; by default ``spark.sql.shuffle.partitions``.

    Returns
    -------
    DataFrame
        ``stream STRING, partition INT`` (NULL without ``partitions``), ``scn BIGINT, events BIGINT`` (data events),
        ``rollbacks INT`` (since the previous window), ``retries INT`` (those after failures), ``seconds DOUBLE``,
        ``checkpoint STRING`` (NULL if declined). A rollback after an SCN regress is no retry. A repeated window has a row for
        each delivery. All rows exist when this returns.

    Raises
    ------
    ValueError, TypeError
        where an argument is wrong.
    pyspark.errors.PythonException
        if the consumer has failed too often, or an event is corrupt. The last line names stream, window, callback and error.

    Examples
    --------
    >>> events = spark.read.format("databus").load("/relay")
    >>> sparkwire.databus.consume(events, Orders(), partitions=4).where("retries > 0")
    """
    from sparkwire.spark import databus_client

    return databus_client.consume(
        df,
        consumer,
        group_size,
        source_order,
        partitions,
        sources,
        order,
        settings or Settings(max_retries=10),
        tasks,
    )


def callbacks(
    df: DataFrame,
    *,
    sources: Iterable[Source] | None = None,
    order: Sequence[str] | None = None,
    threshold: int = THRESHOLD,
    tasks: int | None = None,
) -> DataFrame:
    """The callbacks as rows, for SQL: those of a consumer that never fails, in order.

    Parameters
    ----------
    df, order, tasks
        as for `consume`; corrupt events are left out, and control events at which a client fails.
    sources
        what names the sources; by default their ids.
    threshold
        [bytes] after which there is a checkpoint in the middle of a window.

    Returns
    -------
    DataFrame
        ``stream STRING``, ``n BIGINT`` (0, 1, … in its stream), ``callback STRING``, ``scn BIGINT`` (NULL where the callback
        has none), ``source STRING``, ``event BINARY`` (of `on_data_event` and `on_error`).

    Examples
    --------
    >>> sparkwire.databus.callbacks(events).groupBy("callback").count()
    """
    from sparkwire.spark import databus_client

    return databus_client.callbacks(df, sources, order, threshold, tasks)


def rows_by_source(
    df: DataFrame, column: str, schemas: str | Path | Iterable[Any] | Mapping[Any, Any]
) -> dict[str, DataFrame]:
    """Typed rows of events: a DataFrame for each source, the payload's fields as columns.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the BINARY column of events
    schemas
        a folder of ``.avsc`` files, a list of schemas, or a mapping from fingerprints or versions to schemas, as for
        `sparkwire.avro.rows`. A source is the full name of a record; its last schema is the reader's schema

    Returns
    -------
    dict[str, DataFrame]
        by source: ``_sequence_``, ``_timestamp_``, ``_src_id_``, ``_opcode_`` and ``_key_`` of the event, the fields, and
        ``_error_``, as in `sparkwire.avro.rows`. Under ``UNKNOWN_SCHEMA`` the data events whose schema is unknown,
        without fields. Events of other sources and control events are in none.

    Raises
    ------
    ValueError
        where a schema is none, or cannot be read by the last one of its source.
    TypeError
        where the column is not BINARY.

    Examples
    --------
    >>> tables = sparkwire.databus.rows_by_source(events.where("status = 'OK'"), "event", "/schemas")
    >>> tables["com.shop.Orders"].where("_opcode_ = 'DELETE'")
    """
    from sparkwire.spark import avro

    return avro.events_by_source(df, column, schemas)
