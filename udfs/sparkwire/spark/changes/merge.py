"""Keep a table up to date with a batch or a stream of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from sparkwire.changes.columns import BEFORE, UNAVAILABLE
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.storage import place_of
from sparkwire.spark.changes.current import ChangedTable
from sparkwire.spark.changes.merge_directory import merge_into_directory, merged_directory
from sparkwire.spark.changes.merge_table import TableTarget, merge_into_table

_DELETES: Final = ("remove", "keep")


class Merge(NamedTuple):
    """The target of each batch. Contains only plain data, which Spark Connect pickles."""

    target: str
    keys: tuple[str, ...] | None
    keep: bool
    marked: Mapping[str, Mapping[str, Any]]
    """metadata of the changes' columns, which batches lose"""

    def __call__(self, changes: DataFrame, number: int | None = None) -> None:
        """Merge one batch. Merging it again changes nothing."""
        for name, metadata in self.marked.items():
            changes = changes.withMetadata(name, dict(metadata))
        table = ChangedTable.of(changes, self.keys, "merge")
        if _is_directory(self.target):
            merge_into_directory(changes, table, self.target, self.keep)
        else:
            merge_into_table(changes, table, _table(self.target), self.keep)


def merge(
    changes: DataFrame,
    target: str | PathLike[str],
    keys: Sequence[str] | str | None,
    checkpoint: str | PathLike[str] | None,
    trigger: Mapping[str, Any] | str | None,
    deletes: str,
) -> Any:
    """See ``sparkwire.merge``."""
    if deletes not in _DELETES:
        raise ValueError(f'merge() expected deletes to be "remove" or "keep", got {deletes!r}')
    if not changes.isStreaming and (checkpoint is not None or trigger is not None):
        raise ValueError("merge() expected a stream for checkpoint and trigger, got a batch")
    if changes.isStreaming and checkpoint is None:
        raise ValueError(
            "merge() of a stream expected checkpoint, a separate directory in which Spark notes its progress; got none"
        )
    given = [keys] if isinstance(keys, str) else keys
    if given is not None or changes.isStreaming:
        given = ChangedTable.of(changes, given, "merge").keys
    schema = changes.schema
    marked = {name: schema[name].metadata for name in (BEFORE, UNAVAILABLE) if name in schema.names}
    step = Merge(
        _named(target),
        None if given is None else tuple(given),
        deletes == "keep",
        {name: metadata for name, metadata in marked.items() if metadata},
    )
    if not changes.isStreaming:
        return step(changes)
    writer = changes.writeStream.foreachBatch(partial(_merge_batch, step)).option(
        "checkpointLocation", fspath(checkpoint or "")
    )
    if trigger is not None:
        writer = writer.trigger(**({"processingTime": trigger} if isinstance(trigger, str) else dict(trigger)))
    return writer.start()


def _merge_batch(step: Merge, batch: DataFrame, number: int) -> None:
    step(batch, number)


def _named(target: str | PathLike[str]) -> str:
    """The target's name for Spark. A relative path is relative to Python's working directory, which may differ from Spark's."""
    name = fspath(target)
    has_scheme = ":" in name.partition("/")[0]
    return name if has_scheme or "`" in name or "/" not in name else place_of(name).path


def _is_directory(target: str) -> bool:
    """Whether a target is a directory for Parquet: its name has a slash, and it is not a Delta table."""
    return "/" in target and "`" not in target and not _is_delta(target)


def _is_delta(path: str) -> bool:
    return "/" in path and bool(Folder(f"{path.rstrip('/')}/_delta_log").names())


def _table(target: str) -> TableTarget:
    return TableTarget(f"delta.`{target.rstrip('/')}`" if "`" not in target and _is_delta(target) else target)


def merged(spark: SparkSession, target: str | PathLike[str]) -> DataFrame:
    """See ``sparkwire.merged``."""
    name = _named(target)
    return merged_directory(spark, name) if _is_directory(name) else spark.table(_table(name).name)
