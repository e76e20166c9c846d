"""`_order_` in SQL: its parts as columns, and which orders are comparable (`sparkwire.changes.orders`).

The topics of messages separate orders, too: `Places` compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql.types import DataType, StringType, StructField, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import ORDER
from sparkwire.changes.orders import EPOCH, LOG, PARTITION, POSITION, SAME_POSITION, SEPARATE, incomparable_sentence
from sparkwire.spark.frames import quoted


def epoch_of(at: str, order: DataType) -> str:
    """The epoch of an order; NULL if its type has none."""
    return f"{at}.{EPOCH}" if EPOCH in _names(order) else "CAST(NULL AS INT)"


def incomparable(a: str, b: str, order: DataType) -> str:
    """Whether two orders are of one epoch, and of two partitions or logs. Then none of them is later.

    ``a`` and ``b`` are SQL expressions of orders.
    """
    part = separate_part(order)
    if part is None:
        return "FALSE"
    # A TRUNCATE of a whole epoch has no partition, and ends the rows of all.
    differ = f"coalesce({a}.{part} <> {b}.{part}, FALSE)" if part == PARTITION else f"NOT {a}.{part} <=> {b}.{part}"
    if tie := tied_parts(order):
        same = " AND ".join(f"{a}.{name} <=> {b}.{name}" for name in tie[:-1])
        differ = f"({differ} OR {same} AND NOT {a}.{tie[-1]} <=> {b}.{tie[-1]})"
    conditions = [differ]
    if EPOCH in _names(order):
        conditions.append(f"{a}.{EPOCH} <=> {b}.{EPOCH}")
    conditions += [f"NOT {first}" for at in (a, b) if (first := is_before_all(at, order))]
    return f"({a} IS NOT NULL AND {b} IS NOT NULL AND {' AND '.join(conditions)})"


def incomparable_text(a: str, b: str, order: DataType, what: str) -> str:
    """The text of the error about two `incomparable` orders, as SQL. ``what``: SQL of its subject."""
    part = separate_part(order)
    if part is None:
        return "CAST(NULL AS STRING)"
    epoch = epoch_of(a, order)
    text = sentence(part, f"{a}.{part}", f"{b}.{part}", epoch, what)
    if tie := tied_parts(order):
        of_tie = sentence(SAME_POSITION, f"{a}.{tie[-1]}", f"{b}.{tie[-1]}", epoch, what)
        text = f"CASE WHEN {a}.{part} <=> {b}.{part} THEN {of_tie} ELSE {text} END"
    return text


def sentence(part: str, one: str, other: str, epoch: str, what: str) -> str:
    """The text of an error about two orders that ``part`` separates; every argument but ``part`` is SQL."""
    texts = ", ".join(f"coalesce(CAST({value} AS STRING), 'NULL')" for value in (one, other, epoch))
    return f"format_string({sql_string(incomparable_sentence(part))}, {what}, {texts})"


def separate_part(order: DataType) -> str | None:
    """The first part of an order that separates orders of one epoch."""
    return next((name for name in _names(order) if name in SEPARATE), None)


def tied_parts(order: DataType) -> list[str]:
    """A log, the position in it, and the partition: a partition separates rows of one position, as Canal's.

    Empty for other orders.
    """
    names = _names(order)
    if LOG not in names or PARTITION not in names:
        return []
    return names[names.index(LOG) : names.index(PARTITION) + 1]


def _names(order: DataType) -> list[str]:
    return order.names if isinstance(order, StructType) else []


def is_before_all(at: str, order: DataType) -> str:
    """Whether an order is that of a snapshot's row without a position. It is before all orders of its epoch, in every log."""
    nulls = [f"{at}.{quoted(name)} IS NULL" for name in _place_in_log(order)]
    return f"({' AND '.join(nulls)})" if nulls else ""


def _place_in_log(order: DataType) -> list[str]:
    """The parts of an order from the log to the position in it."""
    names = _names(order)
    if LOG not in names:
        return []
    last = names.index(POSITION) if POSITION in names else names.index(LOG)
    return names[names.index(LOG) : last + 1]


def is_after(at: str, truncate: str, order: DataType) -> str:
    """Whether an order is later than a TRUNCATE; a comparable one. The rows of a TRUNCATE's own order end with it.

    A TRUNCATE of a whole epoch (``epochs="replace"``) has no other part, and is before every row of its epoch.
    """
    later = [name for name in _names(order) if name != EPOCH]
    if EPOCH not in _names(order) or not later:
        return f"({at} > {truncate})"
    is_whole = " AND ".join(f"{truncate}.{quoted(name)} IS NULL" for name in later)
    return f"({at} > {truncate} OR {at} = {truncate} AND {is_whole})"


class OrderColumns(NamedTuple):
    """The parts of `_order_` as columns ``at_0`` and so on, which sort faster than a STRUCT, and the column ``topic``."""

    type: DataType
    has_topic: bool

    @property
    def names(self) -> list[str]:
        return [f"at_{k}" for k in range(max(1, len(_names(self.type))))]

    def split(self, order: str = ORDER) -> list[str]:
        """The columns of an order."""
        parts = [f"{order}.{quoted(name)}" for name in _names(self.type)] or [order]
        return [f"{part} AS {name}" for part, name in zip(parts, self.names, strict=True)]

    def as_struct(self) -> str:
        """The order of the columns."""
        if not isinstance(self.type, StructType):
            return "at_0"
        parts = (f"{sql_string(field)}, {name}" for field, name in zip(self.type.names, self.names, strict=True))
        return f"named_struct({', '.join(parts)})"

    @property
    def epoch(self) -> str | None:
        """The column of the epoch."""
        names = _names(self.type)
        return f"at_{names.index(EPOCH)}" if EPOCH in names else None

    @property
    def separate(self) -> dict[str, str]:
        """The columns that separate orders of one epoch, by their part: ``topic``, ``partition`` or ``log``."""
        part = separate_part(self.type)
        topic = {"topic": "topic"} if self.has_topic else {}
        return topic | ({part: f"at_{_names(self.type).index(part)}"} if part else {})

    @property
    def sequence(self) -> list[str]:
        """The columns that sort rows of a key. Comparable orders are adjacent. Rows of snapshots sort by time."""
        first = [*([self.epoch] if self.epoch else []), *self.separate.values()]
        later = [name for name in self.names if name not in first]
        return [
            *first,
            *later,
            *([f"CASE WHEN {self._before_all} THEN `time` END"] if self._before_all else []),
            "rank",
        ]

    @property
    def _before_all(self) -> str:
        """`is_before_all` for the columns; "" if an order of the type always has a position."""
        columns = (f"at_{_names(self.type).index(place)}" for place in _place_in_log(self.type))
        return " AND ".join(f"{column} IS NULL" for column in columns)

    def separating(self) -> str:
        """Columns whose least row is of the greatest epoch, and has the least parts that separate its orders."""
        return ", ".join([f"{self._reversed_epoch} AS epoch", *self.separate.values()])

    def least(self, counted: str) -> list[str]:
        """Aggregates for `differs`, over the rows with the condition ``counted``."""
        if not self.separate:
            return []
        is_placed = f"{counted} AND NOT ({self._before_all})" if self._before_all else counted
        found = [f"min(CASE WHEN {is_placed} THEN struct({self.separating()}) END) AS least"]
        if self._tie:
            *same, partition = self._tie
            epoch = f"{self.epoch or 'NULL'} AS epoch"
            of_row = f"struct({epoch}, {', '.join(same)}, {_reversed(partition)} AS place, {partition})"
            found.append(f"max(CASE WHEN {counted} THEN {of_row} END) AS tied")
        return found

    def differs(self) -> str:
        """Whether a key's newest row and another one of its epoch are not comparable."""
        parts = [f"least.epoch = {self._reversed_epoch} AND {self._differs(part)}" for part in self.separate]
        if self._tie:
            parts.append(self._tied())
        return f"coalesce({' OR '.join(parts)}, FALSE)" if parts else "FALSE"

    def difference(self, what: str) -> str:
        """The error about a key that `differs`. ``what``: SQL of its subject."""
        epoch = self.epoch or "NULL"
        cases = [
            f"WHEN {self._differs(part)} THEN {sentence(part, f'least.{name}', name, epoch, what)}"
            for part, name in self.separate.items()
        ]
        if self._tie:
            name = self._tie[-1]
            cases.append(f"WHEN {self._tied()} THEN {sentence(SAME_POSITION, f'tied.{name}', name, epoch, what)}")
        return f"CASE {' '.join(cases)} END"

    @property
    def _reversed_epoch(self) -> str:
        return _reversed(self.epoch) if self.epoch else "0L"

    @property
    def _tie(self) -> list[str]:
        """The columns of `tied_parts`."""
        names = _names(self.type)
        return [f"at_{names.index(name)}" for name in tied_parts(self.type)]

    def _tied(self) -> str:
        """Whether another row has the position of the newest row, in another partition."""
        *same, partition = self._tie
        is_same = (f"{name} <=> tied.{name}" for name in same)
        return f"({' AND '.join(is_same)} AND NOT {partition} <=> tied.{partition})"

    def _differs(self, part: str) -> str:
        name = self.separate[part]
        # In a log, rows without a position are before all others.
        return f"{f'{name} IS NOT NULL AND ' if part == LOG else ''}NOT {name} <=> least.{name}"


def _reversed(number: str) -> str:
    """A number whose least value is that of the greatest ``number``; NULL is the least number."""
    return f"coalesce(-CAST({number} AS BIGINT), 4294967296L)"


def key_text(keys: Sequence[str], names: Sequence[str]) -> str:
    """A key as JSON text. ``keys``: the names of its columns; ``names``: the columns that have them."""
    return f"to_json(named_struct({', '.join(f'{sql_string(key)}, {name}' for key, name in zip(keys, names, strict=True))}))"


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

    def difference(self, one: Place, other: Place, what: str) -> str:
        """The text of the error about two orders that are apart, as SQL. ``what`` is SQL of its subject."""
        text = incomparable_text(one.at, other.at, self.order, what)
        if not self.has_topic:
            return text
        topics = sentence("topic", one.topic, other.topic, epoch_of(one.at, self.order), what)
        return f"CASE WHEN {self._topics_differ(one, other)} THEN {topics} ELSE {text} END"

    def later_snapshot(self, at: str, time: str, other: str) -> str:
        """Whether a row of a snapshot without a position is later than another one with its order, by their times."""
        return f"({is_before_all(at, self.order) or 'FALSE'} AND {time} > {other})"

    def _topics_differ(self, one: Place, other: Place) -> str:
        epochs = (epoch_of(place.at, self.order) for place in (one, other))
        return f"({' <=> '.join(epochs)} AND coalesce({one.topic} <> {other.topic}, FALSE))"
