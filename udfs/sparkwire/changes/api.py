"""Change data as tables: compute the current table, or keep a stored table up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.types import StructType


class MergeResult(NamedTuple):
    """What `merge` has done with a batch. A number is None if the table's format does not report it."""

    rows: int
    """changes without an error"""
    changed: int | None
    """rows of the target that were inserted, updated or deleted; with them deleted rows that the target only remembers"""
    late: int
    """keys whose last change in the batch is not newer than what the target has, repeated changes among them"""
    errors: int
    """rows with an ``_error_``, which were left out"""


def changes(
    df: DataFrame,
    column: str = "value",
    *,
    format: str,
    table: str,
    key: str | None = None,
    headers: str | None = None,
    topic: str | None = "topic",
    partition: str | None = "partition",
    offset: str | None = "offset",
    epoch: int | str | Column = 0,
    order: Literal["offset", "source"] = "offset",
    keys: Sequence[str] | str | None = None,
    schemas: Any = None,
    columns: Mapping[str, str] | str | StructType | None = None,
    wire_format: str = "confluent",
    before: Literal["key", "full"] = "key",
    placeholder: str = "__debezium_unavailable_value",
    nulls: Literal["written", "absent"] = "written",
) -> DataFrame:
    """Decode the changes of one table: one row for each change, with the same columns for every format.

    Each message becomes at least one row, which is right or has an ``_error_``. Left out are only messages of other tables and
    those that are no changes of rows: Debezium's notices, statements of Canal and Maxwell except TRUNCATE, marks of a bootstrap,
    and records with neither key nor value.

    Parameters
    ----------
    df
        a DataFrame with a column of messages or events, a batch or a stream
    column
        the name of the column of messages
    format
        "databus" (events), "datahub", "debezium" (JSON, or Avro by ``schemas``), "canal" (flat messages), "maxwell", or "ogg"
    table
        for Databus, the name of the source's schema; otherwise ``table``, ``database.table`` or ``database.schema.table``
    key, headers
        the columns of Kafka's keys and headers. Keys contain the primary key and mark tombstones; Debezium's headers mark a
        change of a key. A key is an object, or one value if the table has one key column
    topic, partition, offset
        the names of these columns, which may be missing in ``df``; None turns one off. Without a partition, all offsets of
        a topic count as those of one partition
    epoch
        which life of the log a message is from: a number, or a column. A greater epoch is later, whatever the offsets are. A
        new topic of the same name, or a database after a failover, begins a new epoch
    order
        "offset" orders changes by partition and offset, "source" by their positions in the log of the database. A snapshot's
        row comes before all changes of its epoch. Without a column of offsets, the order is "source"
    keys
        the names of the primary key's columns, if the messages do not contain them
    schemas
        for Databus: the schemas of the payloads, as for `sparkwire.avro.rows`. For Debezium in Avro: a `Registry`, or a mapping
        from ids to schemas, for values and keys. The query fetches schemas while it runs, so a stream's table may change
    columns
        names and types: a mapping, DDL text or a ``StructType``. A stream requires them. By default, ``changes`` reads
        the batch once to find the columns that the messages declare. Each has the narrowest type that holds all its versions
    wire_format
        for Debezium in Avro: how a message identifies its schema, as in `sparkwire.avro.rows`
    before
        for Debezium: "full" if ``before`` contains the complete old row (MySQL with full row images, PostgreSQL with REPLICA
        IDENTITY FULL). By default only its key is used, because connectors fill unknown values with zeros
    placeholder
        for Debezium: the connector's ``unavailable.value.placeholder``
    nulls
        "absent" if the messages leave out columns that are NULL, such as Maxwell's with ``output_nulls=false``

    Returns
    -------
    DataFrame
        the columns of ``df`` without the messages, then

        - ``_op_``: INSERT, UPDATE, UPDATE_BEFORE, UPSERT, DELETE, READ (a snapshot's row) or TRUNCATE;
        - ``_order_``, which sorts the changes of a key: STRUCT<epoch, partition, offset>. Canal's has ``row``, too, the place in
          the message. By source, it has the parts of a position instead;
        - ``_time_``, ``_table_``, ``_transaction_``; ``_keys_`` ARRAY<STRING>: names of the primary key's columns;
        - ``_before_`` STRUCT: the values before the change that the message contains;
        - the table's columns: the new row; for a DELETE, the known values of the old row, and always its key;
        - ``_unavailable_`` ARRAY<STRING>: columns whose value the message does not contain (PostgreSQL's unchanged TOAST values);
        - ``_unexpected_`` MAP<STRING, STRING>: the text of values that have no column or do not fit it exactly;
        - ``_error_``: the reason why a message cannot be read or ordered. After WRONG_FORMAT, it names the system of the message;
        - ``_event_``, of Debezium with headers: identifies a change of a key in its two rows.

        The result omits Databus events in a window without an end. The plan makes one round trip to Python.

    Raises
    ------
    ValueError
        if an argument is invalid, the columns are not known, or two columns of the result would have one name.
    TypeError
        if a column has another type than its argument needs.

    Examples
    --------
    >>> records = spark.read.format("kafka_log").load("/kafka/shop.public.orders-0")
    >>> orders = sparkwire.changes(records, format="debezium", table="public.orders", key="key", headers="headers")
    >>> sparkwire.current(orders)
    """
    from sparkwire.spark.changes.changes import changes
    from sparkwire.spark.changes.request import Request

    request = Request(
        df, column, format, table, key, headers, topic, partition, offset, epoch, order, keys, schemas, columns, wire_format,
        before, placeholder, nulls,
    )  # fmt: skip
    return changes(request)


def changes_by_table(df: DataFrame, column: str = "value", *, format: str, **options: Any) -> dict[str, DataFrame]:
    """Decode the changes of every table in the messages: one DataFrame for each table, as from `changes`.

    The function reads the batch once to find the tables. For Databus, the tables are those of ``schemas``.

    Parameters
    ----------
    df, column, format
        as for `changes`
    options
        further arguments of `changes`

    Examples
    --------
    >>> tables = sparkwire.changes_by_table(messages, format="datahub")
    >>> sparkwire.current(tables["shop.orders"])
    """
    from sparkwire.spark.changes.changes import tables
    from sparkwire.spark.changes.request import Request

    names = ("headers", "schemas", "wire_format")
    read = {name: options[name] for name in names if name in options}
    return {
        name: changes(df, column, format=format, table=name, **options)
        for name in tables(Request(df, column, format, "", **read))
    }


def current(
    changes: DataFrame,
    keys: Sequence[str] | str | None = None,
    *,
    as_of: datetime | date | str | None = None,
    until: Any = None,
) -> DataFrame:
    """Compute the current table from its changes: the newest row of every key that is not deleted.

    The result does not depend on the order of the rows, or on duplicate or late changes. A change of the key moves the row. A
    TRUNCATE deletes every earlier row. If a message does not contain a value, the previous value stays. Rows with an
    ``_error_`` do not count.

    Parameters
    ----------
    changes
        a batch from `sparkwire.changes`, for one table. For a stream, use `sparkwire.merge`
    keys
        the names of the primary key's columns; by default those in the messages
    as_of
        returns the table at a time, by ``_time_``: a ``datetime``, a ``date`` (its first moment), or an ISO text in the
        session's time zone
    until
        returns the table after a change, by ``_order_``. A number or tuple is the order from ``scn``, ``offset`` or the position
        on; a Row or dict names parts. ``current`` compares only these parts. ``until=4711`` is the table after SCN 4711 of
        Databus

    Returns
    -------
    DataFrame
        the table's columns, then ``_order_`` and ``_time_`` of each row's last change, and ``_unexpected_`` if the changes may
        have such values

    Raises
    ------
    ValueError
        if the key is unknown, or ``changes`` is a stream or lacks the columns of `sparkwire.changes`. Also if ``as_of`` is no
        time, or ``until`` no such order. The query fails if the changes are of two tables. It also fails if the last changes
        of a key have no common order: they are of one epoch, and in two partitions, topics or logs.

    Examples
    --------
    >>> orders = sparkwire.changes(events, "event", format="databus", table="com.shop.Orders", schemas="/schemas")
    >>> sparkwire.current(orders, as_of="2024-01-31").count()
    """
    from sparkwire.spark.changes.current import current

    return current(changes, keys, as_of, until)


@overload
def merge(
    changes: DataFrame,
    target: str | PathLike[str],
    keys: Sequence[str] | str | None = None,
    *,
    checkpoint: None = None,
    trigger: None = None,
    deletes: Literal["remove", "keep"] = "remove",
) -> MergeResult: ...


@overload
def merge(
    changes: DataFrame,
    target: str | PathLike[str],
    keys: Sequence[str] | str | None = None,
    *,
    checkpoint: str | PathLike[str],
    trigger: Mapping[str, Any] | str | None = None,
    deletes: Literal["remove", "keep"] = "remove",
) -> StreamingQuery: ...


def merge(
    changes: DataFrame,
    target: str | PathLike[str],
    keys: Sequence[str] | str | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
    trigger: Mapping[str, Any] | str | None = None,
    deletes: Literal["remove", "keep"] = "remove",
) -> MergeResult | StreamingQuery:
    """Keep a table up to date with changes. After each batch, it equals `current` over all changes so far.

    A change is applied only if its order is greater than that of the row's last change. So repeated batches, restarted queries,
    and late or duplicate changes give the same table. The target is one table, and a merge is one commit. Deleted rows stay in
    it with ``_deleted_`` TRUE, so that late changes do not restore them.

    The target gets new columns of the changes, and types widen: INT to BIGINT, FLOAT to DOUBLE, a DECIMAL to one with
    more digits. Rows with an ``_error_`` are left out: write ``changes.where("_error_ IS NOT NULL")`` elsewhere to see them.

    Parameters
    ----------
    changes
        a batch or a stream from `sparkwire.changes`, for one table
    target
        a Delta or Iceberg table: its name, or the path of a Delta table. Any other text with a slash is a directory for
        Parquet, in a local or mounted file system; read it with `merged`. A missing target is created
    keys
        the names of the primary key's columns; by default those in the messages
    checkpoint
        for a stream: its checkpoint directory, separate from ``target``
    trigger
        for a stream: ``"10 seconds"``, or arguments of ``DataStreamWriter.trigger`` such as ``{"availableNow": True}``
    deletes
        "keep": the target itself has all rows. "remove": the table is ``<name>__rows``, and ``<name>`` is a view of the rows that
        exist. A directory, and the path of a Delta table, have no view: `merged` returns the rows that exist

    Returns
    -------
    MergeResult | StreamingQuery
        the numbers of a batch, or the running query of a stream, which logs the numbers of each batch

    Raises
    ------
    ValueError
        if there is no key, or if the target has another key, lacks something, or was not made by ``merge``. Also if a column
        has a type that cannot widen, or if two orders that decide cannot be compared. Nothing is written then.
    sparkwire.errors.WriteConflictError
        if another job writes to the target at the same time.

    Warns
    -----
    UserWarning
        if all keys of a batch are late, and the batch is no repetition: perhaps somebody created the topic again.

    Examples
    --------
    >>> sparkwire.merge(changes, "/lake/orders", checkpoint="/lake/orders.checkpoint", trigger={"availableNow": True})
    >>> sparkwire.merge(changes, "lake.shop.orders", deletes="keep").changed
    """
    from sparkwire.spark.changes.merge import merge

    result: MergeResult | StreamingQuery = merge(changes, target, keys, checkpoint, trigger, deletes)
    return result


def merged(spark: SparkSession, target: str | PathLike[str]) -> DataFrame:
    """Read a table that `merge` writes: the rows that exist, and with ``deletes="keep"`` the deleted ones.

    For a directory, this is the newest complete version.

    Examples
    --------
    >>> sparkwire.merged(spark, "/lake/orders").where("amount > 100")
    """
    from sparkwire.spark.changes.merge import merged

    return merged(spark, target)
