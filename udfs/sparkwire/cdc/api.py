"""Change data as tables: the table now, and the table kept up to date."""

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
    """The changes of one table, whatever captured them: one row a change, in the same columns for every format.

    Parameters
    ----------
    df
        a DataFrame with a column of messages or events, a batch or a stream. Where it has the columns ``file`` (or ``stream``)
        and ``position`` of the data source `databus`, or Kafka's ``offset``, they order the changes.
    column
        the name of the column of messages
    format
        "databus" (events), "datahub" or "debezium" (JSON, or Avro by ``schemas``)
    table
        of Databus the name of the source's schema; else ``table``, ``database.table`` or ``database.schema.table``
    key, headers
        of Debezium: the columns of Kafka's keys and headers. Keys show the primary key and tombstones, headers a change of a key.
    keys
        names of the primary key's columns, if the messages do not contain them
    schemas
        of Databus: the schemas of the payloads, as `sparkwire.avro.rows` takes them. Of Debezium in Avro: a `Registry`, or a
        mapping from ids to schemas, for values and keys. It is queried as the data come, so a table of a stream may change.
    columns
        name to type, as `datahub.rows` and `debezium.rows` take them. Needed for a stream; by default what the messages declare,
        for which a batch is read once more now.
    wire_format
        of Debezium in Avro: what names the schema of a message, as in `sparkwire.avro.rows`
    before
        of Debezium: "full" where the old row in ``before`` is whole (MySQL with full row images, PostgreSQL with REPLICA IDENTITY
        FULL). By default only its key counts, since connectors fill unknown values with zeros.
    placeholder
        of Debezium: the connector's ``unavailable.value.placeholder``

    Returns
    -------
    DataFrame
        the columns of ``df`` but the messages, then

        - ``_op_``: INSERT, UPDATE, UPDATE_BEFORE, UPSERT, DELETE, READ (a snapshot's row) or TRUNCATE;
        - ``_order_``, which sorts the changes of a key. Databus: STRUCT<scn, file, position>; DataHub: STRUCT<digits, number>,
          the sequence id as a number of any length; Debezium: the offset of the record, or without it the position in the source;
        - ``_time_``, ``_table_``, ``_transaction_``; ``_keys_`` ARRAY<STRING>: names of the primary key's columns;
        - ``_before_`` STRUCT: the row before the change, as far as the message has it;
        - the table's columns: the new row, of a DELETE the old one, as far as known;
        - ``_unavailable_`` ARRAY<STRING>: columns whose value the message does not have (PostgreSQL's unchanged TOAST values);
        - ``_unexpected_`` MAP<STRING, STRING>: the text of values that have no column or do not fit it;
        - ``_error_``: why a message cannot be read or placed.

        Events of Databus whose window has no end yet do not count. The plan makes one round trip to Python.

    Raises
    ------
    ValueError
        where an argument is wrong, or a column of ``df`` or of the table has the name of a column of the result.
    TypeError
        where the column is not BINARY.

    Examples
    --------
    >>> records = spark.read.format("kafka_log").load("/kafka/shop.public.orders-0")
    >>> orders = sparkwire.changes(records, format="debezium", table="public.orders", key="key", headers="headers")
    >>> sparkwire.current(orders)
    """
    from sparkwire.spark import changes as spark_changes

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
    """The changes of every table that the messages are of: a DataFrame for each, as `changes` gives it.

    A batch is read once more now for the names of its tables; the tables of Databus are the schemas.

    Parameters
    ----------
    df, column, format
        as for `changes`
    options
        what else `changes` takes

    Examples
    --------
    >>> tables = sparkwire.changes_by_table(messages, format="datahub")
    >>> sparkwire.current(tables["shop.orders"])
    """
    from sparkwire.spark import changes as spark_changes

    names = ("headers", "schemas", "wire_format")
    read = {name: options[name] for name in names if name in options}
    request = spark_changes.Request(df, column, "", **read)
    return {
        name: changes(df, column, format=format, table=name, **options)
        for name in spark_changes.tables(request, format)
    }


def current(changes: DataFrame, keys: Sequence[str] | str | None = None, *, as_of: Any = None) -> DataFrame:
    """The table that changes come to: the newest row of every key that is not deleted.

    The order of the rows does not matter, nor do changes that come twice or late. A change of the key moves the row. A TRUNCATE
    deletes every earlier row. A value that a message does not have stays as it was. Rows with an ``_error_`` do not count.

    Parameters
    ----------
    changes
        a batch of `sparkwire.changes`, of one table. Over a stream take `sparkwire.merge`.
    keys
        names of the primary key's columns; by default those in the messages
    as_of
        the table as it was: a ``datetime`` or its text, compared with ``_time_``, or an order, compared with ``_order_``. Of an
        order with parts the first will do: ``as_of=4711`` is the table after SCN 4711 of Databus.

    Returns
    -------
    DataFrame
        the table's columns, then ``_order_`` and ``_time_`` of each row's last change

    Raises
    ------
    ValueError
        where the key is unknown, ``changes`` is a stream or has not the columns of `sparkwire.changes`. A
        query over changes of two tables fails.

    Examples
    --------
    >>> orders = sparkwire.changes(events, "event", format="databus", table="com.shop.Orders", schemas="/schemas")
    >>> sparkwire.current(orders, as_of=datetime(2024, 1, 31)).count()
    """
    from sparkwire.spark.current import current

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
    """Keep a table up to date with changes: after each batch it is what `current` gives of all changes so far.

    A change counts only if its order is greater than that of the row's last change. So a repeated batch, a restarted query, and
    late or duplicate changes leave the same table. It keeps a note of deleted rows, which do not come back.

    The target gets new columns of the changes, and types widen: INT to BIGINT, FLOAT to DOUBLE, a DECIMAL to one with
    more digits. Rows with an ``_error_`` are left out: write ``changes.where("_error_ IS NOT NULL")`` elsewhere to see them.

    Parameters
    ----------
    changes
        of `sparkwire.changes`, of one table, a batch or a stream
    target
        a table of Delta or Iceberg: its name, or the path of a Delta table; or a directory, any other text
        with a slash, for Parquet. Read a directory with `merged`. A missing target is created.
    keys
        names of the primary key's columns; by default those in the messages
    checkpoint
        of a stream: the directory of its own where it notes how far it has come
    trigger
        of a stream: ``"10 seconds"``, or what ``DataStreamWriter.trigger`` takes, as in ``{"availableNow": True}``
    deletes
        "remove", or "keep": a deleted row stays with ``_deleted_`` TRUE

    Returns
    -------
    StreamingQuery | None
        the query that runs, of a stream

    Raises
    ------
    ValueError
        if there is no key, or if the target has another key or lacks the columns of a merged table. Also if a column has a type
        that cannot widen.
    sparkwire.errors.WriteConflictError
        where somebody else writes to the directory, or to the table.

    Examples
    --------
    >>> sparkwire.merge(changes, "/lake/orders", checkpoint="/lake/orders.checkpoint", trigger={"availableNow": True})
    >>> sparkwire.merge(changes, "lake.shop.orders", deletes="keep")
    """
    from sparkwire.spark.merge import merge

    query: StreamingQuery | None = merge(changes, target, keys, checkpoint, trigger, deletes)
    return query


def merged(spark: SparkSession, target: str | PathLike[str]) -> DataFrame:
    """A table that `merge` keeps, as it is now: of a directory the newest whole version.

    Examples
    --------
    >>> sparkwire.merged(spark, "/lake/orders").where("amount > 100")
    """
    from sparkwire.spark.merge import merged

    return merged(spark, target)
