"""Run consumers on the streams of a DataFrame. Each stream is sorted in one task, then read with ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import BinaryType
from pyspark.sql.window import Window

from sparkwire.base.printable import type_error, value_error
from sparkwire.databus.client.consumer import Consumer, check_callbacks
from sparkwire.databus.client.data_events import Source
from sparkwire.databus.client.run import (
    KEYS,
    REPORT,
    SCHEMA,
    Consumption,
    callback_rows,
    consume_streams,
    source_ids,
    sources_of,
)
from sparkwire.databus.client.state import THRESHOLD, Settings
from sparkwire.spark.frames import from_arrow_schema
from sparkwire.spark.functions.udf import best_interface, udf

Batches = Iterator[pa.RecordBatch]

_ORDER: Final = ("file", "position")


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
    if not (isinstance(consumer, Consumer) or callable(consumer)):
        raise TypeError(f"consumer must be a Consumer or a zero-argument callable returning one, got {consumer!r}")
    if isinstance(consumer, Consumer):
        check_callbacks(consumer)
    _check_count("group_size", group_size)
    events, by = _events(df, order, "consume")
    by_id = sources_of(sources)
    if partitions is not None:
        _check_count("partitions", partitions)
        events = _partitioned(events, partitions)
    if source_order is not None:
        events, by = _presented(events, by, source_ids(source_order, by_id))
    plan = Consumption(consumer, group_size, by_id, settings or Settings(max_retries=10))

    def run(batches: Batches) -> Batches:
        return consume_streams(batches, plan)

    report = _sorted(events, by, tasks).mapInArrow(run, from_arrow_schema(REPORT))
    # Run now and only once: a lazy DataFrame would run the consumer again for every query.
    return df.sparkSession.createDataFrame(report.toArrow())


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
    events, by = _events(df, order, "callbacks")
    names = {source.id: source.name for source in (sources_of(sources) or {}).values()}

    def run(batches: Batches) -> Batches:
        return callback_rows(batches, names, threshold)

    return _sorted(events, by, tasks).mapInArrow(run, from_arrow_schema(SCHEMA))


def _check_count(name: str, count: int) -> None:
    if not isinstance(count, int) or count < 1:
        raise value_error(f"consume takes {name} of at least 1, got {count!r}")


def _events(df: DataFrame, order: Sequence[str] | None, function: str) -> tuple[DataFrame, list[str]]:
    """``stream, partition, event`` with the renamed columns that order a stream; and the new names of these."""
    if "event" not in df.columns or not isinstance(df.schema["event"].dataType, BinaryType):
        raise type_error(f"{function} takes a DataFrame with a BINARY column event, got {_described(df)}")
    if df.isStreaming:
        raise value_error(f"{function} takes a batch: for a stream call it in foreachBatch")
    columns = [name for name in _ORDER if name in df.columns] if order is None else list(order)
    if not columns:
        raise value_error(
            f"{function} takes order: the columns that order a stream's events, got none in {_described(df)}"
        )
    by = [f"order_{k}" for k in range(len(columns))]
    stream = F.col("stream").cast("string") if "stream" in df.columns else F.lit(None).cast("string")
    chosen = [F.col(column).alias(name) for column, name in zip(columns, by, strict=True)]
    partition = F.lit(None).cast("int").alias("partition")
    return df.select(stream.alias("stream"), partition, "event", *chosen), by


def _described(df: DataFrame) -> str:
    return f"({', '.join(f'{field.name} {field.dataType.simpleString().upper()}' for field in df.schema)})"


def _function(name: str) -> Callable[..., Column]:
    function: Callable[..., Column] = udf(name, best_interface())
    return function


def _partitioned(events: DataFrame, n: int) -> DataFrame:
    """Assign data events to the partition of their key, and all other events to every partition."""
    key, every = _function("dbus_key_partition")("event", F.lit(n)), F.sequence(F.lit(0), F.lit(n - 1))
    partitions = F.when(_function("dbus_src_id")("event") < 0, every).otherwise(F.array(F.coalesce(key, F.lit(0))))
    names = [name for name in events.columns if name != "partition"]
    return events.select(*names, F.explode(partitions).alias("partition"))


def _presented(events: DataFrame, by: list[str], ids: Sequence[int]) -> tuple[DataFrame, list[str]]:
    """Order the events of each window, or of its part between control events, by their sources."""
    rows = events.withColumn("source_id", _function("dbus_src_id")("event"))
    control = F.col("source_id") < 0
    before = Window.partitionBy(*KEYS).orderBy(*by).rowsBetween(Window.unboundedPreceding, -1)
    span = F.coalesce(F.sum(control.cast("long")).over(before), F.lit(0))
    ranks: Mapping[int, int] = {id: rank for rank, id in enumerate(ids)}
    rank = F.when(control, F.lit(len(ranks) + 1))
    for id, place in ranks.items():
        rank = rank.when(F.col("source_id") == id, F.lit(place))
    ordered = rows.select(*events.columns, span.alias("span"), rank.otherwise(len(ranks)).alias("source_rank"))
    return ordered, ["span", "source_rank", *by]


def _sorted(events: DataFrame, by: Sequence[str], tasks: int | None) -> DataFrame:
    """Sort each stream in one task. The number of tasks is fixed, because Spark would combine small streams."""
    count = tasks or int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    together = events.repartition(count, *KEYS).sortWithinPartitions(*KEYS, *by)
    return together.select(*KEYS, "event")
