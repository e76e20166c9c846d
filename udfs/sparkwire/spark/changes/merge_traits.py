"""What a merged table may have, as its property says: a merge looks for nothing else.

A merge notes a trait before it stores the first row that has it. So a table without TRUNCATEs, older values or departures costs
nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql.types import StructType

from sparkwire.spark.changes.changed_table import ChangedTable


class Traits(NamedTuple):
    """The traits of a table."""

    truncates: bool = False
    """it may have a TRUNCATE"""
    partial: bool = False
    """it may have rows with older values"""
    departures: bool = False
    """it may have departures"""
    epoch: int | None = None
    """the greatest epoch, if an epoch ends the rows of earlier ones"""
    untold: tuple[str, ...] = ()
    """new columns whose values are unknown in rows that no merge has written since"""

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> Traits:
        found = noted.get("traits", {})
        return cls(**{**found, "untold": tuple(found.get("untold", ()))})

    def with_new_columns(self, table: ChangedTable, stored: StructType) -> Traits:
        """The traits with the columns that the stored rows do not have, if their values are unknown."""
        new = [name for name in table.columns if name not in stored.names] if table.missing_is_unknown else []
        return self._replace(untold=tuple(dict.fromkeys([*self.untold, *new])))

    def as_noted(self) -> dict[str, Any]:
        """What the property says; nothing of a table that has none of them."""
        found = {name: value for name, value in self._asdict().items() if value not in (False, None, ())}
        return {"traits": found} if found else {}
