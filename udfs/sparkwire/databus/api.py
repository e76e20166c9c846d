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
    """Run a consumer over the events of a DataFrame immediately. The result has a row for each completed window.

    One task dispatches a whole stream in order, regardless of the DataFrame's partitions; tasks run in parallel. No task holds a
    whole stream in memory. It works in a batch query and inside ``foreachBatch``, in classic Spark and on Spark Connect.

    Consumers get each window at least once, because Spark repeats a failed task. A consumer that writes by window SCN gets
    exactly-once results (docs/databus-client.md has an example). With speculative execution, two tasks may deliver the same
    window at the same time.

    Parameters
    ----------
    df
        events: a BINARY column ``event``, a column ``stream``, and the columns that order the events of a stream. Without a
        column ``stream``, all events are one stream. The data source ``databus`` returns such rows.
    consumer
        a `Consumer`, or a function that returns one and runs in the task. A `Consumer` is pickled; every stream and every member
        gets its copy.
    group_size
        number of members of the consumer group: threads that share a stream's data events between two barriers. All other
        callbacks go to every member.
    source_order
        source ids (or names, with ``sources``). Each window presents its sources in this order, other sources after them.
    partitions
        number of tasks for each stream. Each task gets every window, but only the data events that Databus's key filter assigns
        to it (`dbus_key_partition`). Each has separate consumers.
    sources
        the sources with their schemas. Data events of other sources, or with an unknown schema id, then fail, as in Databus. By
        default every source is known, and its id is its name.
    order
        the columns that order a stream's events. By default ``file`` and ``position``, if the DataFrame has them.
    settings
        sizes and retries. The defaults are those of Databus, except 10 retries.
    tasks
        number of tasks that share the streams; by default ``spark.sql.shuffle.partitions``.

    Returns
    -------
    DataFrame
        ``stream STRING, partition INT`` (NULL without ``partitions``), ``scn BIGINT, events BIGINT`` (data events),
        ``rollbacks INT`` (since the previous window), ``retries INT`` (those after failures), ``seconds DOUBLE``,
        ``checkpoint STRING`` (NULL if declined). A rollback after an SCN regress does not count as a retry. A repeated window has
        a row for each delivery. All rows exist when the call returns.

    Raises
    ------
    ValueError, TypeError
        if an argument is wrong.
    pyspark.errors.PythonException
        if the consumer failed too often, or an event is corrupt. The last line names the stream, window, callback and error.

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
    """Return the callbacks as rows for SQL, in the order in which a consumer that never fails gets them.

    Parameters
    ----------
    df, order, tasks
        as for `consume`. The result omits corrupt events, and control events at which a client fails.
    sources
        the sources with their names; by default, the ids are the names.
    threshold
        size after which a window gets a checkpoint in its middle [bytes]

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
    """Return typed rows of events: for each source a DataFrame with the payload's fields as columns.

    Parameters
    ----------
    df
        a DataFrame, a batch or a stream
    column
        the BINARY column of events
    schemas
        a folder of ``.avsc`` files, a list of schemas, or a mapping from fingerprints or versions to schemas, as for
        `sparkwire.avro.rows`. A source is the full name of a record; the last schema of a source is the reader's schema

    Returns
    -------
    dict[str, DataFrame]
        by source: ``_sequence_``, ``_timestamp_``, ``_src_id_``, ``_opcode_`` and ``_key_`` of the event, the fields, and
        ``_error_``, as in `sparkwire.avro.rows`. The key ``UNKNOWN_SCHEMA`` has the data events with an unknown schema, without
        fields. No DataFrame has events of other sources or control events.

    Raises
    ------
    ValueError
        if a schema is invalid, or the last schema of its source cannot read its data.
    TypeError
        if the column is not BINARY.

    Examples
    --------
    >>> tables = sparkwire.databus.rows_by_source(events.where("status = 'OK'"), "event", "/schemas")
    >>> tables["com.shop.Orders"].where("_opcode_ = 'DELETE'")
    """
    from sparkwire.spark.rows import avro

    return avro.events_by_source(df, column, schemas)
