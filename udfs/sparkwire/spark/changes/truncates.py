"""The TRUNCATEs of a change table, and the rows that they end.

A TRUNCATE ends the rows of smaller epochs, and those of the same epoch and partition up to its order, inclusive. A row of its
epoch in another partition is not comparable with it. So only the TRUNCATEs of the greatest epoch count: in each partition the
last one.
"""

from __future__ import annotations

from typing import NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.order_columns import epoch_of, incomparable, key_text, sentence, separate_part


def last_truncates(ends: DataFrame, order: DataType) -> DataFrame:
    """Reduce ``ends``, ARRAY<STRUCT<at, topic>>, to the TRUNCATEs that count, or NULL. Adds their ``epoch``."""
    same = f"(one.topic <=> other.topic AND NOT {incomparable('one.at', 'other.at', order)})"
    return (
        ends.withColumn("epoch", F.expr(f"array_max(transform(ends, one -> {epoch_of('one.at', order)}))"))
        .withColumn("ends", F.expr(f"filter(ends, one -> {epoch_of('one.at', order)} <=> epoch)"))
        .withColumn("ends", F.expr(f"filter(ends, one -> NOT exists(ends, other -> {same} AND other.at > one.at))"))
        .withColumn("ends", F.expr("CASE WHEN size(ends) > 0 THEN ends END"))
    )


class Ended(NamedTuple):
    """Conditions for a row: which TRUNCATEs end it. ``facts`` has the columns of `last_truncates`."""

    table: ChangedTable
    at: str
    """the row's order, as SQL; its other columns are ``topic`` and those of the key"""

    @property
    def by_epoch(self) -> str:
        """Whether a TRUNCATE of a greater epoch ends the row."""
        return f"coalesce({epoch_of(self.at, self._order)} < facts.epoch, FALSE)"

    @property
    def never(self) -> str:
        """Whether the row is of a greater epoch than all TRUNCATEs."""
        return f"(facts.ends IS NULL OR coalesce({epoch_of(self.at, self._order)} > facts.epoch, FALSE))"

    @property
    def by_order(self) -> str:
        """Whether a TRUNCATE of the row's epoch and partition ends it."""
        return f"exists(facts.ends, one -> NOT {self._incomparable} AND {self.at} <= one.at)"

    @property
    def unknown(self) -> str:
        """Whether a TRUNCATE of the row's epoch is in another partition."""
        return f"exists(facts.ends, one -> {self._incomparable})"

    @property
    def error(self) -> str:
        """The text of the error about a TRUNCATE of another partition."""
        key = key_text(self.table.keys, self.table.key_names())
        one, what = (
            f"filter(facts.ends, one -> {self._incomparable})[0]",
            f"concat('a TRUNCATE and the row of the key ', {key})",
        )
        part, epoch = separate_part(self._order), epoch_of(self.at, self._order)
        of_part = f"{one}.at.{part}", f"{self.at}.{part}"
        text = sentence(part, *of_part, epoch, what) if part else "NULL"
        if self.table.topic:
            of_topic = sentence("topic", f"{one}.topic", "topic", epoch, what)
            text = f"CASE WHEN NOT {one}.topic <=> topic THEN {of_topic} ELSE {text} END"
        return text

    @property
    def _order(self) -> DataType:
        return self.table.order.type

    @property
    def _incomparable(self) -> str:
        other_topic = "NOT one.topic <=> topic OR " if self.table.topic else ""
        return f"({other_topic}{incomparable('one.at', self.at, self._order)})"
