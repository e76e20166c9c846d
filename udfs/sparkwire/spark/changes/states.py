"""Fold the steps of a table in Spark: the newest step of each key, and the states of keys whose newest step lacks values.

Nearly all keys need their newest step alone. Only the others are *open*: Spark sorts their steps, and `sparkwire.changes.fold`
folds them in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StringType, StructField, StructType

from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import ORDER
from sparkwire.changes.fold import folded, resolved
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.orders import NO_TOPIC, Place, Places, is_after, key_text, sentence
from sparkwire.spark.changes.steps import IS_LIVE, IS_OF_KEY, IS_READABLE, IS_TRUNCATE, LACKS_VALUES, completed
from sparkwire.spark.frames import quoted

TWO_TRUNCATES: Final = "'two TRUNCATEs'"
"""the subject of an error about TRUNCATEs without a common order, as SQL"""
TABLE_NAME: Final = f"CASE WHEN {IS_READABLE} THEN `table` END"
_STEPS_AT_ONCE: Final = 100_000
"""the number of steps that Python folds at once, at least"""


def exchanged(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of an exchange by key, so that all branches of a query read the same exchange."""
    return unpruned(rows.repartition(*keys))


def unpruned(rows: DataFrame) -> DataFrame:
    """The rows with all columns, whatever a branch of a query needs: so Spark computes them once.

    Spark would push a branch's conditions and its selection of columns below an exchange. Then each branch would have its own
    exchange, and decode the changes again. Spark does not push a condition that is not deterministic and uses every column.
    """
    always = F.monotonically_increasing_id() >= 0
    return rows.where(always | (F.to_json(F.struct(*rows.columns)) != ""))


class Opening(NamedTuple):
    """Which keys are open: their state depends on more than the newest step."""

    newest: Mapping[str, str]
    """conditions for the newest step, by their names"""
    any: Mapping[str, str]
    """conditions for any step of the key"""
    is_open: str
    """a condition over the names"""

    @property
    def may_be_open(self) -> str:
        """A condition for steps. If no step fulfils it, no key is open."""
        return " OR ".join([*self.newest.values(), *self.any.values()])

    @classmethod
    def of(cls, table: ChangedTable, *, keep: bool = False, departed: bool = False) -> Opening:
        """A key is open if its newest step lacks values, or a step departs.

        ``keep``: also if the row is deleted and had values, which the target shows. ``departed``: also if the target has a
        departure of the key.
        """
        newest, of_any, conditions = dict[str, str](), dict[str, str](), []
        if table.may_lack_values:
            newest["lacks"], of_any["departs"] = LACKS_VALUES, "departure IS NOT NULL"
            conditions += ["lacks", "departs"]
        if keep:
            newest["is_gone"], of_any["has_told"] = f"NOT {IS_LIVE}", "has_values"
            conditions.append("is_gone AND has_told")
        if departed:
            of_any["is_remembered"] = "coalesce(has_left, FALSE)"
            conditions.append("is_remembered")
        return cls(newest, of_any, " OR ".join(conditions))


def by_key(table: ChangedTable) -> str:
    """The window over the steps of a key, the newest first."""
    order = ", ".join(f"{name} DESC" for name in table.order.sequence)
    return f"PARTITION BY {', '.join(table.key_names())} ORDER BY {order}"


def hash_of(text: str) -> str:
    """The hash of a text, as SQL, or NULL: Spark aggregates numbers faster than texts."""
    return f"CASE WHEN {text} IS NOT NULL THEN xxhash64({text}) END"


def newest_of(table: ChangedTable, columns: Sequence[str], counted: str) -> str:
    """An aggregate over the steps with the condition ``counted``, as SQL: a STRUCT of ``step``, the newest one, for `spread`."""
    step, order = f"struct({', '.join(map(quoted, columns))})", f"struct({', '.join(table.order.sequence)})"
    newest = f"max_by({step}, CASE WHEN {counted} THEN {order} END) AS step"
    return f"struct({', '.join([newest, *table.order.least(counted)])})"


def last_truncate(table: ChangedTable) -> str:
    """The last TRUNCATE, see `newest_of`."""
    return newest_of(table, ["rank", *table.order.names, *(["topic"] if table.topic else [])], IS_TRUNCATE)


def spread(rows: DataFrame, name: str, table: ChangedTable, what: str) -> DataFrame:
    """The columns of a newest step in place of `newest_of`, and ``split``: the error about steps without a common order.

    ``what`` is SQL of its subject.
    """
    order = table.order
    split = (
        f"CASE WHEN {order.differs()} THEN {order.difference(what)} END" if order.separate else "CAST(NULL AS STRING)"
    )
    rows = rows.select("*", f"{name}.*", f"{name}.step.*")
    return rows.withColumn("split", F.expr(split)).drop(name, "step", "least", "tied")


def place_of_step(table: ChangedTable) -> str:
    """The `Place` of a step as a STRUCT."""
    return f"struct({table.order.as_struct()} AS at, {'topic' if table.topic else NO_TOPIC} AS topic)"


def newest_steps(
    steps: DataFrame, table: ChangedTable, opening: Opening | None = None, also: Sequence[str] = ()
) -> DataFrame:
    """The newest step of each key. It is NULL if a key has none: of TRUNCATEs alone, or of rows with an error.

    New columns: ``split``, see `spread`; ``is_open``; and the aggregates ``also``. An aggregate takes less time than a window,
    most of all for one key column.
    """
    keys, opening = table.key_names(), opening or Opening.of(table)
    columns = [name for name in steps.columns if name not in keys]
    any_step = (f"bool_or({condition}) AS {name}" for name, condition in opening.any.items())
    aggregates = [f"{newest_of(table, columns, IS_OF_KEY)} AS newest", *also, *any_step]
    found = steps.groupBy(*keys).agg(*map(F.expr, aggregates))
    found = completed(spread(found, "newest", table, of_key(table)), table)
    conditions = (f"{condition} AS {name}" for name, condition in opening.newest.items())
    found = found.selectExpr("*", *conditions).withColumn(
        "is_open", F.expr(f"coalesce({opening.is_open or 'FALSE'}, FALSE)")
    )
    return found.drop(*opening.newest, *opening.any)


def of_key(table: ChangedTable) -> str:
    """The subject of an error about the steps of a key, as SQL."""
    return f"concat('the changes of the key ', {key_text(table.keys, table.key_names())})"


def open_steps(steps: DataFrame, table: ChangedTable, opening: Opening, some: DataFrame) -> DataFrame:
    """All steps of open keys. Spark skips the work if ``some`` has no row, which shows that no key is open."""
    is_some = some.limit(1).select(F.lit(True).alias("is_some"))
    now = f"({by_key(table)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    ever = f"(PARTITION BY {', '.join(table.key_names())})"
    noted = steps.where(IS_OF_KEY).crossJoin(F.broadcast(is_some))
    noted = noted.selectExpr(
        *map(quoted, steps.columns),
        *(f"first_value({condition}) OVER {now} AS {name}" for name, condition in opening.newest.items()),
        *(f"max({condition}) OVER {ever} AS {name}" for name, condition in opening.any.items()),
    )
    return completed(noted.where(opening.is_open).select(*map(quoted, steps.columns)), table)


def counts(table: ChangedTable, truncate: Place, has_topic: bool) -> str:
    """Whether a step is later than a TRUNCATE, and comparable with it."""
    step = Place(table.order.as_struct(), "topic")
    apart = Places(table.order.type, has_topic).are_apart(step, truncate)
    return f"({truncate.at} IS NULL OR NOT {apart} AND {is_after(step.at, truncate.at, table.order.type)})"


def fold(steps: DataFrame, table: ChangedTable, *, keep: bool = False) -> DataFrame:
    """The states of keys, and of rows that departed: see `sparkwire.changes.fold.folded`.

    ``steps`` are those of open keys, and have ``counts``, too. ``moved``, ``is_stored``, ``is_entry`` and ``read_…`` are there
    if some are of stored rows.
    """
    window, order = by_key(table), table.order
    epoch = order.epoch or "0"
    identity = f"struct({', '.join([*order.names, 'departure'])})"
    dated = f"lead(CASE WHEN live OR `time` IS NOT NULL THEN struct(live, `time`) END) IGNORE NULLS OVER ({window})"
    extra = [
        "moved",
        "is_stored",
        "is_entry",
        "of_entry",
        *(name for name in steps.columns if name.startswith("read_")),
    ]
    if "is_stored" not in steps.columns:
        none = f"CAST(NULL AS {_orders_type(order.type).simpleString()}) AS moved"
        extra = [none, *(f"FALSE AS {name}" for name in ("is_stored", "is_entry", "of_entry"))]
    ready = steps.selectExpr(
        *table.key_names(),
        f"{order.as_struct()} AS at",
        "topic",
        # A tombstone deletes, and has no time: the deleted row shows the time of the DELETE before it.
        f"CASE WHEN live OR `time` IS NOT NULL THEN `time` WHEN NOT {dated}.live THEN {dated}.`time` END AS `time`",
        *("counts", "live", "has_values", "bounds", "arrival"),
        # Of a message that comes twice, the first copy counts.
        f"CASE WHEN NOT {identity} <=> lead({identity}) OVER ({window}) THEN departure END AS departure",
        "unavailable",
        *table.value_places().values(),
        "unexpected",
        f"row_number() OVER ({window}) AS nth",
        f"coalesce(lag({epoch}) OVER ({window}) <> {epoch}, FALSE) AS new_epoch",
        f"{_split(table, window)} AS split",
        *extra,
    )
    schema = states_schema(table, [field for field in ready.schema if field.name.startswith("read_")])
    return ready.mapInArrow(partial(_folded, table.value_places(), keep, schema.names), schema)


def with_moved_values(states: DataFrame, table: ChangedTable) -> DataFrame:
    """Fill in values along changes of keys. Adds ``is_needed`` of departures.

    There are few such changes, so one task has all of them. The other states pass: in a separate branch, Spark would compute
    all of this twice.
    """
    schema = StructType([*states.schema, StructField("is_needed", BooleanType())])
    together = F.expr(f"CASE WHEN event IS NULL AND ref IS NULL THEN hash({', '.join(table.key_names())}) END")
    return states.repartition(together).mapInArrow(partial(_resolved, table.value_places(), schema.names), schema)


def states_schema(table: ChangedTable, more: Sequence[StructField] = ()) -> StructType:
    """The columns of states."""
    keys = [
        StructField(name, table.schema[key].dataType) for name, key in zip(table.key_names(), table.keys, strict=True)
    ]
    values = [StructField(place, table.schema[name].dataType) for name, place in table.value_places().items()]
    order, names = table.schema[ORDER].dataType, ArrayType(StringType())
    orders = _orders_type(order)
    fixed: Mapping[str, DataType] = {
        "unexpected": MapType(StringType(), StringType()), "event": StringType(), "born": order, "ref": StringType(),
        "unavailable": names, "older": orders, "moved": orders, "split": StringType(), "is_entry": BooleanType(),
    }  # fmt: skip
    return StructType(
        [
            *keys,
            StructField("at", order),
            StructField("topic", StringType()),
            StructField("time", table.time_type),
            StructField("live", BooleanType()),
            *values,
            *(StructField(name, type) for name, type in fixed.items()),
            *more,
        ]
    )


def _orders_type(order: DataType) -> ArrayType:
    return ArrayType(StructType([StructField("name", StringType()), StructField("at", order)]))


def _split(table: ChangedTable, window: str) -> str:
    """The error about a step and the next later one if they are of one epoch, and not comparable."""
    order = table.order
    later = {
        name: f"lag({name}) OVER ({window})"
        for name in (*order.separate.values(), *([order.epoch] if order.epoch else []))
    }
    if not order.separate:
        return "CAST(NULL AS STRING)"
    same_epoch = f"{later[order.epoch]} <=> {order.epoch}" if order.epoch else "TRUE"
    cases = [
        f"WHEN {later[name]} <> {name} THEN {sentence(part, name, later[name], order.epoch or 'NULL', of_key(table))}"
        for part, name in order.separate.items()
    ]
    is_first = f"row_number() OVER ({window}) = 1"
    return f"CASE WHEN {is_first} OR NOT {same_epoch} THEN NULL {' '.join(cases)} END"


def _folded(
    places: Mapping[str, str], keep: bool, names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Fold whole keys, many at once."""
    for steps in _whole_keys(batches):
        yield from folded(steps, places, keep=keep).select(names).combine_chunks().to_batches()


def _whole_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(batch.num_rows for batch in waiting) < _STEPS_AT_ONCE:
            continue
        steps = pa.Table.from_batches(waiting)
        starts = pc.indices_nonzero(pc.equal(steps["nth"], 1))
        last = starts[-1].as_py() if len(starts) else 0
        if last:
            yield steps.slice(0, last)
            waiting = steps.slice(last).to_batches()
    if waiting and (steps := pa.Table.from_batches(waiting)).num_rows:
        yield steps


def _resolved(
    places: Mapping[str, str], names: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    moving: list[pa.RecordBatch] = []
    for batch in batches:
        moves = pc.or_(pc.is_valid(batch["event"]), pc.is_valid(batch["ref"]))
        others = pa.Table.from_batches([batch.filter(pc.invert(moves))])
        yield from others.append_column("is_needed", pa.repeat(False, len(others))).select(names).to_batches()
        moving.append(batch.filter(moves))
    if sum(map(len, moving)):
        yield from resolved(pa.Table.from_batches(moving), places).select(names).combine_chunks().to_batches()


def epoch_start(epoch: str, order: DataType) -> str:
    """The order before every row of an epoch, as SQL."""
    if not isinstance(order, StructType):
        return f"CAST(NULL AS {order.simpleString()})"
    parts = (
        f"{sql_string(f.name)}, {epoch if f.name == 'epoch' else f'CAST(NULL AS {f.dataType.simpleString()})'}"
        for f in order
    )
    return f"named_struct({', '.join(parts)})"
