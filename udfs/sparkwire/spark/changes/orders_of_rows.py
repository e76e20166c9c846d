"""Which orders of rows are comparable, with the topics of their messages."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql.types import DataType, StringType, StructField, StructType

from sparkwire.base.sqltype import raised
from sparkwire.spark.changes.order_columns import epoch_of, incomparable, incomparable_error, is_before_all, sentence

NO_TOPIC = "CAST(NULL AS STRING)"


class Place(NamedTuple):
    """SQL of an order, and of its topic."""

    at: str
    topic: str


def place_type(order: DataType) -> StructType:
    """The type of a STRUCT with the fields of a `Place`."""
    return StructType([StructField("at", order), StructField("topic", StringType())])


class Places(NamedTuple):
    """Compares orders of a type."""

    order: DataType
    has_topic: bool
    """whether the table knows the topics of its rows"""

    def are_apart(self, one: Place, other: Place) -> str:
        """Whether two orders are of one epoch, and cannot be compared."""
        apart = incomparable(one.at, other.at, self.order)
        return f"({apart} OR {self._topics_differ(one, other)})" if self.has_topic else apart

    def error(self, one: Place, other: Place, what: str) -> str:
        """The error about two orders that are apart. ``what`` is SQL of its subject."""
        error = incomparable_error(one.at, other.at, self.order, what)
        if not self.has_topic:
            return error
        topics = sentence("topic", one.topic, other.topic, epoch_of(one.at, self.order), what)
        return f"CASE WHEN {self._topics_differ(one, other)} THEN {raised(topics)} ELSE {error} END"

    def later_snapshot(self, at: str, time: str, other: str) -> str:
        """Whether a row of a snapshot without a position is later than another one with its order, by their times."""
        return f"({is_before_all(at, self.order) or 'FALSE'} AND {time} > {other})"

    def _topics_differ(self, one: Place, other: Place) -> str:
        epochs = (epoch_of(place.at, self.order) for place in (one, other))
        return f"({' <=> '.join(epochs)} AND coalesce({one.topic} <> {other.topic}, FALSE))"
