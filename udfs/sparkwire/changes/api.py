"""Change data as tables: compute the current table, or keep a stored table up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def changes(
    df: DataFrame,
    column: str = "value",
    *,
    format: Literal["databus", "datahub", "debezium"],
    table: str,
    key: str | None = None,
    headers: str | None = None,
    keys: Sequence[str] | str | None = None,
    schemas: Any = None,
    columns: Mapping[str, str] | None = None,
    wire_format: str = "confluent",
    before: Literal["key", "full"] = "key",
    placeholder: str = "__debezium_unavailable_value",
) -> DataFrame:
    """Decode the changes of one table: one row for each change, with the same columns for every format.

    Parameters
    ----------
    df
        a DataFrame with a column of messages or events, a batch or a stream. If it has the columns ``file`` (or ``stream``) and
        ``position`` of the data source `databus`, or Kafka's ``offset``, they order the changes.
    column
        the name of the column of messages
    format
        "databus" (events), "datahub" or "debezium" (JSON, or Avro by ``schemas``)
    table
        for Databus, the name of the source's schema; otherwise ``table``, ``database.table`` or ``database.schema.table``
    key, headers
        for Debezium: the columns of Kafka's keys and headers. Keys contain the primary key and mark tombstones; headers mark a
        change of a key
    keys
        the names of the primary key's columns, if the messages do not contain them
    schemas
        for Databus: the schemas of the payloads, as for `sparkwire.avro.rows`. For Debezium in Avro: a `Registry`, or a mapping
        from ids to schemas, for values and keys. The query fetches schemas while it runs, so a stream's table may change
    columns
        names and types, as for `datahub.rows` and `debezium.rows`. A stream requires them. By default, ``changes`` reads
        the batch once to find the columns that the messages declare
    wire_format
        for Debezium in Avro: how a message identifies its schema, as in `sparkwire.avro.rows`
    before
        for Debezium: "full" if ``before`` contains the complete old row (MySQL with full row images, PostgreSQL with REPLICA
        IDENTITY FULL). By default only its key is used, because connectors fill unknown values with zeros
    placeholder
        for Debezium: the connector's ``unavailable.value.placeholder``

    Returns
    -------
    DataFrame
        the columns of ``df`` without the messages, then

        - ``_op_``: INSERT, UPDATE, UPDATE_BEFORE, UPSERT, DELETE, READ (a snapshot's row) or TRUNCATE;
        - ``_order_``, which sorts the changes of a key. Databus: STRUCT<scn, file, position>; DataHub: STRUCT<digits, number>,
          the sequence id as a number of any length; Debezium: the offset of the record, or without it the position in the source;
        - ``_time_``, ``_table_``, ``_transaction_``; ``_keys_`` ARRAY<STRING>: names of the primary key's columns;
        - ``_before_`` STRUCT: the values before the change that the message contains;
        - the table's columns: the new row; for a DELETE, the known values of the old row;
        - ``_unavailable_`` ARRAY<STRING>: columns whose value the message does not contain (PostgreSQL's unchanged TOAST values);
        - ``_unexpected_`` MAP<STRING, STRING>: the text of values that have no column or do not fit it;
        - ``_error_``: the reason why a message cannot be read or ordered.

        The result omits Databus events in a window without an end. The plan makes one round trip to Python.

    Raises
    ------
    ValueError
        if an argument is invalid, or a column of ``df`` or of the table has the name of a column of the result.
    TypeError
        if the column is not BINARY.

    Examples
    --------
    >>> records = spark.read.format("kafka_log").load("/kafka/shop.public.orders-0")
    >>> orders = sparkwire.changes(records, format="debezium", table="public.orders", key="key", headers="headers")
    >>> sparkwire.current(orders)
    """
    from sparkwire.spark.changes import changes as spark_changes

    given = (keys,) if isinstance(keys, str) else None if keys is None else tuple(keys)
    request = spark_changes.Request(
        df, column, table, key, headers, given, schemas, columns, wire_format, before, placeholder
    )
    return spark_changes.changes(request, format)


def changes_by_table(
    df: DataFrame,
    column: str = "value",
    *,
    format: Literal["databus", "datahub", "debezium"],
    **options: Any,
) -> dict[str, DataFrame]:
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
    from sparkwire.spark.changes import changes as spark_changes

    names = ("headers", "schemas", "wire_format")
    read = {name: options[name] for name in names if name in options}
    request = spark_changes.Request(df, column, "", **read)
    return {
        name: changes(df, column, format=format, table=name, **options)
        for name in spark_changes.tables(request, format)
    }


def current(changes: DataFrame, keys: Sequence[str] | str | None = None, *, as_of: Any = None) -> DataFrame:
    """Compute the current table from its changes: the newest row of every key that is not deleted.

    The result does not depend on the order of the rows, or on duplicate or late changes. A change of the key moves the row. A
    TRUNCATE deletes every earlier row. If a message does not contain a value, the previous value stays. Rows with an
    ``_error_`` are ignored.

    Parameters
    ----------
    changes
        a batch from `sparkwire.changes`, for one table. For a stream, use `sparkwire.merge`
    keys
        the names of the primary key's columns; by default those in the messages
    as_of
        returns an earlier state of the table: a ``datetime`` or its text is compared with ``_time_``, an order with ``_order_``.
        The first part of an order is enough: ``as_of=4711`` is the table after SCN 4711 of Databus

    Returns
    -------
    DataFrame
        the table's columns, then ``_order_`` and ``_time_`` of each row's last change

    Raises
    ------
    ValueError
        if the key is unknown, or if ``changes`` is a stream or lacks the columns of `sparkwire.changes`. A query over changes of
        two tables fails.

    Examples
    --------
    >>> orders = sparkwire.changes(events, "event", format="databus", table="com.shop.Orders", schemas="/schemas")
    >>> sparkwire.current(orders, as_of=datetime(2024, 1, 31)).count()
    """
    from sparkwire.spark.changes.current import current

    return current(changes, keys, as_of)


def merge(
    changes: DataFrame,
    target: str | PathLike[str],
    keys: Sequence[str] | str | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
    trigger: Mapping[str, Any] | str | None = None,
    deletes: Literal["remove", "keep"] = "remove",
) -> StreamingQuery | None:
    """Keep a table up to date with changes. After each batch, it equals `current` over all changes so far.

    A change is applied only if its order is greater than that of the row's last change. So repeated batches, restarted queries,
    and late or duplicate changes give the same table. ``merge`` also remembers deleted rows, so that late changes do not restore
    them.

    The target gets new columns of the changes, and types widen: INT to BIGINT, FLOAT to DOUBLE, a DECIMAL to one with
    more digits. Rows with an ``_error_`` are left out: write ``changes.where("_error_ IS NOT NULL")`` elsewhere to see them.

    Parameters
    ----------
    changes
        a batch or a stream from `sparkwire.changes`, for one table
    target
        a Delta or Iceberg table: its name, or the path of a Delta table. Any other text with a slash is a directory for Parquet;
        read it with `merged`. A missing target is created
    keys
        the names of the primary key's columns; by default those in the messages
    checkpoint
        for a stream: its checkpoint directory, separate from ``target``
    trigger
        for a stream: ``"10 seconds"``, or arguments of ``DataStreamWriter.trigger`` such as ``{"availableNow": True}``
    deletes
        "remove" deletes rows; "keep" keeps a deleted row with ``_deleted_`` TRUE

    Returns
    -------
    StreamingQuery | None
        the running query for a stream; None for a batch

    Raises
    ------
    ValueError
        if there is no key, or if the target has another key or lacks the columns of a merged table. Also if a column has a type
        that cannot widen.
    sparkwire.errors.WriteConflictError
        if another job writes to the target at the same time.

    Examples
    --------
    >>> sparkwire.merge(changes, "/lake/orders", checkpoint="/lake/orders.checkpoint", trigger={"availableNow": True})
    >>> sparkwire.merge(changes, "lake.shop.orders", deletes="keep")
    """
    from sparkwire.spark.changes.merge import merge

    query: StreamingQuery | None = merge(changes, target, keys, checkpoint, trigger, deletes)
    return query


def merged(spark: SparkSession, target: str | PathLike[str]) -> DataFrame:
    """Read a table that `merge` writes. For a directory, this is the newest complete version.

    Examples
    --------
    >>> sparkwire.merged(spark, "/lake/orders").where("amount > 100")
    """
    from sparkwire.spark.changes.merge import merged

    return merged(spark, target)
