"""What a merged table may have, as its property says: a merge looks for nothing else.

A merge notes a trait before it stores the first row that has it. So a table without TRUNCATEs, older values or departures costs
nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    columns: tuple[str, ...] = ()
    """all columns that changes had; another one is the user's own, and no merge changes it"""

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> Traits:
        found = noted.get("traits", {})
        lists = {name: tuple(found.get(name, ())) for name in ("untold", "columns")}
        return cls(**{**found, **lists})

    def with_columns(self, table: ChangedTable, stored: StructType | None) -> Traits:
        """The traits with the columns of the changes. ``stored``: the columns of a table that exists."""
        known = table.columns if stored is None or not table.missing_is_unknown else stored.names
        new = [name for name in table.columns if name not in known]
        return self._replace(
            untold=tuple(dict.fromkeys([*self.untold, *new])),
            columns=tuple(dict.fromkeys([*self.columns, *table.columns])),
        )

    def as_noted(self) -> dict[str, Any]:
        """What the property says; nothing of a table that has none of them."""
        traits = self._asdict() | {"untold": list(self.untold), "columns": list(self.columns)}  # as JSON has them
        found = {name: value for name, value in traits.items() if value not in (False, None, [])}
        return {"traits": found} if found else {}


def noted_of(keys: Sequence[str], keep: bool, table_name: str | None, traits: Traits) -> dict[str, Any]:
    """What the property of a table says."""
    noted = {"keys": list(keys), "deletes": "keep" if keep else "remove", "table": table_name}
    return noted | traits.as_noted()
