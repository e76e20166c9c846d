"""The one statement of a merge: a MERGE of SQL, or the same clauses as a join.

Delta and Iceberg run `Statement.as_merge`. A session without Delta has no MERGE, so `Statement.as_join` computes all rows that
the table has afterwards. Both read the same conditions and assignments.

In all expressions ``t`` is the row of the table, and ``s`` the row of the source, see `merge_stored`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from sparkwire.spark.frames import quoted

CHANGED = "_changed_"
"""a column of the join: whether the row is new, or another than before"""


REBASE: Final = "spark.sql.parquet.datetimeRebaseModeInWrite"
EXACT: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    REBASE: "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""settings of a session that Spark's writer of Parquet has as no options, and their exact values"""
_lock: Final = Lock()
_before: Final[dict[tuple[int, str], tuple[int, str | None]]] = {}
"""by session and setting: how many merges need it at this moment, and its own value. Streams may write at the same time"""


class Clause(NamedTuple):
    """New values of a row's columns if a condition holds."""

    condition: str
    assigned: Mapping[str, str]


class Statement(NamedTuple):
    """The clauses of a MERGE. Of each group, the first clause whose condition holds counts."""

    source: str
    """a query of SQL; ``{target}`` in it is the table"""
    condition: str
    matched: Sequence[Clause]
    not_matched: Clause
    not_matched_by_source: Sequence[Clause]

    def as_merge(self, target: str) -> str:
        lines = [f"MERGE INTO {target} t USING ({self.source.replace('{target}', target)}) s ON {self.condition}"]
        lines += [f"WHEN MATCHED AND {clause.condition} THEN {_then(clause)}" for clause in self.matched]
        columns = ", ".join(map(quoted, self.not_matched.assigned))
        values = ", ".join(self.not_matched.assigned.values())
        lines.append(f"WHEN NOT MATCHED AND {self.not_matched.condition} THEN INSERT ({columns}) VALUES ({values})")
        by_source = self.not_matched_by_source
        lines += [f"WHEN NOT MATCHED BY SOURCE AND {clause.condition} THEN {_then(clause)}" for clause in by_source]
        return "\n".join(lines)

    def as_join(self, target: str, columns: Sequence[str]) -> str:
        """A query for all rows after the MERGE: the columns, and `CHANGED`."""
        updates, inserts = len(self.matched), len(self.matched) + 1
        clauses = [*self.matched, self.not_matched, *self.not_matched_by_source]
        # Which clause counts is computed once for a row, so that an error of a condition occurs whatever the columns need.
        chosen = (
            f"CASE WHEN t._present_ AND s._present_ THEN {_first(self.matched, 0)} "
            f"WHEN s._present_ THEN {_first([self.not_matched], updates)} "
            f"ELSE {_first(self.not_matched_by_source, inserts)} END"
        )
        rows = (
            f"SELECT struct(t.*) AS t, struct(s.*) AS s, {chosen} AS chosen "
            f"FROM (SELECT *, TRUE AS _present_ FROM {target}) t "
            f"FULL OUTER JOIN (SELECT *, TRUE AS _present_ FROM ({self.source.replace('{target}', target)})) s "
            f"ON {self.condition}"
        )
        values = [f"{_value(name, clauses)} AS {quoted(name)}" for name in columns]
        return (
            f"SELECT {', '.join(values)}, chosen IS NOT NULL AS {CHANGED} FROM ({rows}) "
            "WHERE t._present_ IS NOT NULL OR chosen IS NOT NULL"
        )


def _then(clause: Clause) -> str:
    return f"UPDATE SET {', '.join(f't.{quoted(name)} = {value}' for name, value in clause.assigned.items())}"


def _first(clauses: Sequence[Clause], start: int) -> str:
    """The number of the first clause whose condition holds."""
    if not clauses:
        return "CAST(NULL AS INT)"
    return f"CASE {' '.join(f'WHEN {clause.condition} THEN {start + k}' for k, clause in enumerate(clauses))} END"


def _value(name: str, clauses: Sequence[Clause]) -> str:
    cases = [
        f"WHEN chosen = {k} THEN {clause.assigned[name]}" for k, clause in enumerate(clauses) if name in clause.assigned
    ]
    return f"CASE {' '.join(cases)} ELSE t.{quoted(name)} END" if cases else f"t.{quoted(name)}"


@contextmanager
def named_view(df: DataFrame) -> Iterator[str]:
    """A name for rows in SQL."""
    name = f"sparkwire_merge_{uuid.uuid4().hex}"
    df.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        df.sparkSession.catalog.dropTempView(name)


@contextmanager
def written_exactly(spark: SparkSession, names: Iterable[str]) -> Iterator[None]:
    """Let Spark write Parquet with the exact values of these settings, whatever the session says."""
    changed: list[tuple[int, str]] = []
    try:
        with _lock:
            for name in names:
                setting = id(spark), name
                merges, value = _before.get(setting) or (0, spark.conf.get(name, None))
                spark.conf.set(name, EXACT[name])
                _before[setting] = merges + 1, value
                changed.append(setting)
        yield
    finally:
        with _lock:
            for setting in changed:
                merges, value = _before.pop(setting)
                if merges > 1:
                    _before[setting] = merges - 1, value
                elif value is None:
                    spark.conf.unset(setting[1])
                else:
                    spark.conf.set(setting[1], value)
