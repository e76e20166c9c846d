"""Create change tables for every capture system: one ``mapInArrow`` over the columns that its format needs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.base.printable import printable
from sparkwire.changes.columns import (
    ERROR,
)
from sparkwire.changes.survey import MisfitError
from sparkwire.spark.changes import databus_changes, json_changes
from sparkwire.spark.changes.reading import with_rows
from sparkwire.spark.changes.request import Request

_log = logging.getLogger("sparkwire")


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
    renamed: Mapping[str, str] | None = None,
    epochs: Literal["continue", "replace"] = "continue",
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
        "databus" (events), "datahub", "debezium" (JSON, or Avro by ``schemas``), "canal" (flat messages), "maxwell", "dms" (AWS
        DMS), "wal2json" (format version 2), or "ogg" (Oracle GoldenGate)
    table
        for Databus, the name of the source's schema; otherwise ``table``, ``database.table`` or ``database.schema.table``
    key, headers
        the columns of Kafka's keys and headers. Keys contain the primary key and mark tombstones; Debezium's headers mark a
        change of a key. A key is an object, or one value if the table has one key column
    topic, partition, offset
        the names of these columns, which may be missing in ``df``; None turns one off. Without a partition, all offsets of
        a topic count as those of one partition. An offset is an integer, or a text of digits of any length, as in Kinesis
    epoch
        which life of the log a message is from: a number, or a column. A greater epoch is later, whatever the offsets are. A
        new topic of the same name, or a database after a failover, begins a new epoch
    order
        "offset" orders changes by partition and offset, "source" by their positions in the log of the database. A row of the
        first snapshot may have no position, and then comes before all changes of its epoch. Without a column of offsets, the
        order is "source"
    keys
        the names of the primary key's columns, if the messages do not contain them, or contain more columns in their keys
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
        "absent" if the messages leave out columns that are NULL, such as Maxwell's with ``output_nulls=false``. "written", the
        default, if the value of a column that they leave out is unknown
    renamed
        the names of members that a setting of the system renames, by their usual names. AWS DMS has ``before-image``
    epochs
        "replace" if each epoch begins with a complete snapshot: rows of earlier epochs that do not come again are gone. By
        default they stay

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
        - ``_unavailable_`` ARRAY<STRING>: columns whose value is not in the message, such as PostgreSQL's unchanged TOAST values;
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
    >>> committed = spark.read.format("kafka_log").option("isolationLevel", "read_committed")
    >>> records = committed.load("/kafka/shop.public.orders-0")
    >>> orders = sparkwire.changes(records, format="debezium", table="public.orders", key="key", headers="headers")
    >>> sparkwire.current(orders)
    """
    request = Request(**locals()).checked()  # all the parameters, by their names
    request.epoch_column()
    if request.format != "databus":
        return with_rows(request, json_changes.reading(request))
    return with_rows(request._replace(df=databus_changes.in_ended_windows(request)), databus_changes.reading(request))


def changes_by_table(df: DataFrame, column: str = "value", *, format: str, **options: Any) -> dict[str, DataFrame]:
    """Decode the changes of every table in the messages: one DataFrame for each table, as from `changes`.

    The function reads the batch once to find the tables. For Databus, the tables are those of ``schemas``. If a table's messages
    declare types of a column that do not fit together, each of its changes has an error that says so.

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
    arguments = {name: options[name] for name in ("headers", "schemas", "wire_format") if name in options}
    tables = _tables(Request(df, column, format, "", **arguments).checked())
    return {name: _changes_of_table(df, column, format, name, options) for name in tables}


def _changes_of_table(df: DataFrame, column: str, format: str, table: str, options: Mapping[str, Any]) -> DataFrame:
    """The changes of one of several tables. If its columns have types that do not fit together, each change has an error."""
    try:
        return changes(df, column, format=format, table=table, **options)
    except MisfitError as error:
        _log.warning("the changes of %s are errors: %s", printable(table), printable(str(error)))
        texts = dict.fromkeys(error.columns, "STRING")
        found = changes(df, column, format=format, table=table, **{**options, "columns": texts})
        reason = F.lit(f"{ERRORS[BAD_FIELD]}: {error}")
        return found.withColumn(ERROR, F.coalesce(ERROR, reason))


def _tables(request: Request) -> list[str]:
    """The sorted names of the tables in messages."""
    if request.format == "databus":
        return databus_changes.tables(request)
    if request.df.isStreaming:
        raise ValueError(
            "changes_by_table() expected a batch, got a stream, whose tables are not known: call changes for each table"
        )
    return json_changes.tables(request)
