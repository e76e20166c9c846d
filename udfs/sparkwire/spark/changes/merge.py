"""Keep a table up to date with a batch or a stream of changes.

A merge reads the batch, computes the last row of each key, and runs one statement. The statement compares the orders of the
rows with those of the table.
"""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import Any, Final, Literal, NamedTuple, overload

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import DataType

from sparkwire.base.printable import printable, value_error
from sparkwire.base.sqltype import sql_string
from sparkwire.changes.columns import ORDER
from sparkwire.changes.fold import DEPARTURE, MEMORY, TOPIC, TRUNCATE
from sparkwire.changes.orders import EPOCH
from sparkwire.errors import WriteConflictError
from sparkwire.spark.changes.changed_table import ChangedTable, with_new_names
from sparkwire.spark.changes.merge_batch import BatchFacts, batch_rows, literal, place_text
from sparkwire.spark.changes.merge_clauses import CONFLICT, NOT_READ, UNCLEAR, Clauses
from sparkwire.spark.changes.merge_names import TableName, target_of
from sparkwire.spark.changes.merge_path import PathTarget, merged_path
from sparkwire.spark.changes.merge_statement import named_view, written_exactly
from sparkwire.spark.changes.merge_stored import departed_keys, memory, plain_source, with_stored
from sparkwire.spark.changes.merge_table import TableTarget, merged_table
from sparkwire.spark.changes.merge_types import Traits, aligned, check_names
from sparkwire.spark.changes.orders import NO_TOPIC, Place, place_type
from sparkwire.spark.changes.request import is_case_sensitive
from sparkwire.spark.changes.steps import events
from sparkwire.spark.frames import checkpointed, quoted

Target = TableTarget | PathTarget
_DELETES: Final = ("remove", "keep")
_CONFLICT: Final = re.compile(
    r"DELTA_CONCURRENT|Concurrent\w+Exception|CommitFailedException|[Cc]onflicting (files|deletes)"
    rf"|\[USER_RAISED_EXCEPTION\] {CONFLICT}"
)
_RAISED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE: \w+)?(?:\n|$)")
_LOST: Final = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found")
_ATTEMPTS: Final = 3
_MOST_LOGGED: Final = 100
_CREATED_AGAIN: Final = (
    "all %d keys of %s are late: the table has later changes of each of them, and none of the batch's. If somebody "
    "created the topic again, or restored the database, pass a greater epoch to sparkwire.changes"
)
_log = logging.getLogger("sparkwire")
_logged: Final[set[tuple[str, str]]] = set()
"""the target and the name of each new column that this process has logged"""


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


class Merge(NamedTuple):
    """The target of each batch. Contains only plain data, which Spark Connect pickles."""

    target: TableName | str
    keys: tuple[str, ...] | None
    keep: bool
    marked: Mapping[str, Mapping[str, Any]]
    """metadata of the changes' columns, which batches lose"""

    def batch(self, changes: DataFrame, number: int | None = None) -> MergeResult:
        """Merge one batch, with a number if it is one of a stream. Merging it again changes nothing."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._merged(changes, number)
            except ValueError:
                raise
            except Exception as error:  # PySpark has no class for most of the connectors' exceptions
                text = str(error)
                if _CONFLICT.search(text):
                    raise self._conflict() from error
                if raised := _RAISED.search(text):
                    raise value_error(raised[1]) from error
                if attempt == _ATTEMPTS or not _LOST.search(text):
                    raise
        raise AssertionError

    def in_stream(self, changes: DataFrame, number: int) -> None:
        """Merge a batch of a stream, and log the result."""
        for name, metadata in self.marked.items():
            changes = changes.withMetadata(name, dict(metadata))
        _log.info("merged batch %d into %s: %r", number, printable(self.shown), self.batch(changes, number))

    @property
    def shown(self) -> str:
        return self.target if isinstance(self.target, str) else self.target.shown

    def _opened(self, spark: SparkSession) -> AbstractContextManager[TableTarget | PathTarget]:
        if isinstance(self.target, str):
            return PathTarget.opened(spark, self.target, self.keep)
        return TableTarget.opened(spark, self.target, self.keep)

    def _conflict(self) -> WriteConflictError:
        return WriteConflictError(
            f"another job writes to {self.shown}: only one merge at a time may write to a table. Run this merge again"
        )

    def _merged(self, changes: DataFrame, number: int | None, attempt: int = 1) -> MergeResult:
        """Read the batch, fold it, and run the statement."""
        spark = changes.sparkSession
        changes = with_new_names(changes)
        table = ChangedTable.of(changes, self.keys, "merge")
        case_sensitive = is_case_sensitive(changes)
        check_names(table, case_sensitive)
        with self._opened(spark) as target:
            if number and not target.exists:
                raise value_error(
                    f"{self.shown} does not exist, and the stream has merged batches into it: restore it, or start again "
                    "with another checkpoint"
                )
            schema = target.agree(table, case_sensitive)
            changes, table = aligned(changes, table, schema, target.traits.columns)
            departed = departed_keys(target.stored_rows(spark), table) if target.traits.departures else None
            steps = events(changes, table, unreadable="TRUE")
            rows = checkpointed(batch_rows(steps, table, keep=self.keep, departed=departed))
            facts, rows = BatchFacts.of(rows, table, target.table_name), rows.where("nth IS NOT NULL")
            with target.prepared(spark, facts.table_name) as relation:
                result = self._fold(target, relation, Clauses(table, schema, facts, self.keep), rows)
            if target.refreshed() != target.traits:
                # Another merge has begun to store what this one did not look for. Folding the batch again does.
                if attempt == _ATTEMPTS:
                    raise self._conflict()
                return self._merged(changes, number, attempt + 1)
            if number is not None and facts.unexpected:
                self._log_new_columns(rows, table)
        return MergeResult(facts.changes, *result, facts.errors)

    def _log_new_columns(self, rows: DataFrame, table: ChangedTable) -> None:
        """Log once the columns of messages that the table does not have."""
        some = rows.where("unexpected IS NOT NULL").selectExpr("explode(map_keys(unexpected)) AS name")
        names = {row["name"] for row in some.distinct().limit(_MOST_LOGGED).collect()} - set(table.columns)
        new = sorted(name for name in names if not name.startswith("before.") and (self.shown, name) not in _logged)
        if new:
            _logged.update((self.shown, name) for name in new)
            _log.warning(
                "messages have columns that %s does not have: %s. Their texts are in _unexpected_. To read them, start the "
                "stream again with these columns in columns=",
                printable(self.shown),
                printable(", ".join(new)),
            )

    def _fold(self, target: Target, relation: str, clauses: Clauses, rows: DataFrame) -> tuple[int | None, int]:
        """Run the statement, after a fold with the table's rows if it is needed. Returns changed rows and late keys."""
        spark, facts, table, traits = rows.sparkSession, clauses.facts, clauses.table, target.traits
        truncated, epoch = _truncate(table, facts, traits, spark.table(relation) if target.exists else None)
        if target.exists and not facts.keys and truncated is None and not traits.untold:
            return 0, 0
        needs_stored = bool(facts.opened) or bool(traits.untold) or (traits.partial and truncated is not None)
        clauses = replace(
            clauses,
            truncated=truncated,
            reads_truncate=traits.truncates,
            has_partial=traits.partial,
            untold=traits.untold,
        )
        for folds in (needs_stored, True):
            source, more = plain_source(rows, table, bool(facts.unknown) or truncated is not None), traits
            if folds:
                stored_rows = spark.table(relation)
                last = _last_truncate(stored_rows, clauses.order) if traits.truncates else None
                places = [literal(place, place_type(clauses.order)) for place in (last, truncated) if place is not None]
                place = f"greatest({', '.join(places)})" if len(places) > 1 else places[0] if places else None
                source = checkpointed(
                    with_stored(
                        rows if not traits.untold else rows.withColumn("is_open", F.lit(True)),
                        stored_rows,
                        table,
                        truncate=_place(place, clauses.order),
                        every=truncated is not None or bool(facts.moves) or traits.departures,
                        keep=self.keep,
                        untold=traits.untold,
                    )
                )
                has_partial, has_departures, split = source.agg(
                    F.expr("coalesce(bool_or(memory IS NOT NULL AND memory.entry IS NULL), FALSE)"),
                    F.expr(f"coalesce(bool_or(memory.entry = '{DEPARTURE}'), FALSE)"),
                    F.max("split"),
                ).collect()[0]
                if split is not None:
                    raise value_error(split)
                more = traits._replace(
                    partial=traits.partial or has_partial, departures=traits.departures or has_departures
                )
                clauses = replace(clauses, has_read=True, read_truncate=last)
            if truncated is not None:
                source = _with_truncate(source, truncated, clauses.order)
                more = more._replace(truncates=True)
            target.note(facts.table_name, more)
            clauses = replace(clauses, has_entries=more.truncates or more.departures)
            try:
                result = self._run(target, relation, rows.where("nth = 1"), source, clauses)
            except Exception as error:  # PySpark has no class for the exceptions of tasks
                if NOT_READ not in str(error) or folds:
                    raise
                continue
            if traits.untold or epoch != traits.epoch:
                # Before a statement that then fails, an epoch would end no rows, and a new column's NULL would be a value.
                target.settle(facts.table_name, more._replace(epoch=epoch, untold=()))
            return result
        raise AssertionError

    def _run(
        self, target: Target, relation: str, last: DataFrame, source: DataFrame, clauses: Clauses
    ) -> tuple[int | None, int]:
        """Run the statement. Returns the numbers of changed rows and of late keys."""
        spark, keys = last.sparkSession, clauses.facts.keys
        is_plain = not clauses.has_read and not clauses.has_entries and not clauses.untold
        columns = [*clauses.table.key_names(), f"{clauses.table.order.as_struct()} AS at", "`time`", "live"]
        with (
            named_view(last.selectExpr(*columns)) as last_view,
            named_view(source) as view,
            written_exactly(spark, target.exact_settings),
        ):
            query = clauses.lateness(last_view, relation)
            # Where each changed row is one of a key in the batch, the others are late.
            counts_changed = target.tells_changed and is_plain
            lateness = None if counts_changed else spark.sql(query).collect()[0]
            try:
                changed = target.run(spark, relation, clauses.statement(view))
            except Exception as error:  # PySpark has no class for the exceptions of tasks
                if UNCLEAR not in str(error):
                    raise
                raise value_error(clauses.explained(str(error))) from error
            if changed and not is_plain and target.counts_entries:
                changed = max(0, changed - source.where("memory.entry IS NOT NULL").count())
            if lateness is None and changed == 0:
                lateness = spark.sql(query).collect()[0]
        late = keys - (changed or 0) if lateness is None else lateness["late"]
        if lateness and keys and (late, lateness["repeated"]) == (keys, 0) and lateness["recent"]:
            text = _CREATED_AGAIN % (keys, self.shown)
            _log.warning("%s", printable(text))
            warnings.warn(printable(text), stacklevel=6)
        if changed is None and is_plain:
            changed = keys - late
        return changed, late


def _truncate(
    table: ChangedTable, facts: BatchFacts, traits: Traits, stored_rows: DataFrame | None
) -> tuple[Any, int | None]:
    """The last TRUNCATE of a batch, and the greatest epoch so far, if an epoch ends the rows of the ones before it.

    ``stored_rows`` are those of a table that exists.
    """
    if not table.replaces_epochs or facts.epochs is None:
        return facts.truncated, traits.epoch
    least, greatest = facts.epochs
    earlier = traits.epoch
    if earlier is None and stored_rows is not None:  # no epoch has ended rows yet, and the table may have several
        earlier = stored_rows.agg(F.max(f"{ORDER}.{EPOCH}")).collect()[0][0]
    newest = greatest if earlier is None else max(greatest, earlier)
    is_new = stored_rows is not None and (traits.epoch is None or greatest > traits.epoch)
    last = facts.truncated and int(facts.truncated["at"]["epoch"])
    if (not is_new and least == newest) or last == newest:
        return facts.truncated, newest
    names = table.schema[ORDER].dataType.names
    return {"at": {name: str(newest) if name == EPOCH else None for name in names}, "topic": None}, newest


def _with_truncate(source: DataFrame, truncated: Any, order: DataType) -> DataFrame:
    """The source with the entry of the last TRUNCATE."""
    last = literal(truncated, place_type(order))
    entry = {name: f"({last}).{name}" for name in ("at", "topic")}
    entry |= dict.fromkeys(("live", "has_values", "is_read"), "FALSE")
    entry["memory"] = memory(order, entry=sql_string(TRUNCATE))
    row = source.sparkSession.range(1).selectExpr(
        *(
            f"CAST({entry.get(f.name, 'NULL')} AS {f.dataType.simpleString()}) AS {quoted(f.name)}"
            for f in source.schema
        )
    )
    return source.unionByName(row)


def _place(place: str | None, order: DataType) -> Place:
    type = place_type(order).simpleString()
    value = f"CAST({place or 'NULL'} AS {type})"
    return Place(f"({value}).at", f"({value}).topic")


def _last_truncate(stored_rows: DataFrame, order: DataType) -> Any:
    """The stored TRUNCATE, see `place_type`."""
    topic = TOPIC if TOPIC in stored_rows.columns else NO_TOPIC
    text = place_text(f"max(struct({ORDER} AS at, {topic} AS topic))", order)
    row = stored_rows.where(f"{MEMORY}.entry = '{TRUNCATE}'").agg(F.expr(text)).collect()[0][0]
    return None if row is None else json.loads(row)


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
        the name of a Delta or Iceberg table. A text with a slash is the path of a Delta table: with Delta in the session, Spark
        merges into it; without it, Spark writes the files, and delta-rs commits them. A missing target is created
    keys
        the names of the primary key's columns; by default those in the messages
    checkpoint
        for a stream: its checkpoint directory, separate from ``target``
    trigger
        for a stream: ``"10 seconds"``, or arguments of ``DataStreamWriter.trigger`` such as ``{"availableNow": True}``
    deletes
        "keep": the target itself has all rows. "remove": the table is ``<name>__rows``, and ``<name>`` is a view of the rows that
        exist. A path has no view: `merged` returns the rows that exist

    Returns
    -------
    MergeResult | StreamingQuery
        the numbers of a batch, or the running query of a stream, which logs the numbers of each batch

    Raises
    ------
    ValueError
        if there is no key, or if the target has another key, lacks something, or was not made by ``merge``. Also if a column
        has a type that cannot widen, or that the table cannot have. Also if two orders that decide cannot be compared. The
        table does not change then.
    ModuleNotFoundError
        for a path, if neither the session has Delta, nor Python the package of the extra ``delta``.
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
    if deletes not in _DELETES:
        raise ValueError(f'merge() expected deletes to be "remove" or "keep", got {deletes!r}')
    if not changes.isStreaming and (checkpoint is not None or trigger is not None):
        raise ValueError("merge() expected a stream for checkpoint and trigger, got a batch")
    if changes.isStreaming and checkpoint is None:
        raise ValueError(
            "merge() of a stream expected checkpoint, a separate directory in which Spark notes its progress; got none"
        )
    key = [keys] if isinstance(keys, str) else keys
    if key is not None or changes.isStreaming:
        key = ChangedTable.of(with_new_names(changes), key, "merge").keys
    marked = {field.name: field.metadata for field in changes.schema if field.metadata}
    step = Merge(
        target_of(changes.sparkSession, target), None if key is None else tuple(key), deletes == "keep", marked
    )
    if not changes.isStreaming:
        return step.batch(changes)
    writer = changes.writeStream.foreachBatch(partial(_merge_batch, step)).option(
        "checkpointLocation", fspath(checkpoint or "")
    )
    if trigger is not None:
        writer = writer.trigger(**({"processingTime": trigger} if isinstance(trigger, str) else dict(trigger)))
    return writer.start()


def _merge_batch(step: Merge, batch: DataFrame, number: int) -> None:
    step.in_stream(batch, number)


def merged(spark: SparkSession, target: str | PathLike[str]) -> DataFrame:
    """Read a table that `merge` writes: the rows that exist, and with ``deletes="keep"`` the deleted ones.

    Without Delta in the session, it reads the files that the log of a path names.

    Raises
    ------
    ValueError
        if a path has no table of `merge`. Also if its log is corrupt, or if a file is missing or has another size than the log
        says.

    Examples
    --------
    >>> sparkwire.merged(spark, "/lake/orders").where("amount > 100")
    """
    name = target_of(spark, target)
    return merged_path(spark, name) if isinstance(name, str) else merged_table(spark, name)
