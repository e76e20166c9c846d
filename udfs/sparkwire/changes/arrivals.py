"""Find values that moved with a change of the key: they were last written under the old key, or under an even older one.

A *departure* is the last row of an old key, with the event that changed the key. An *arrival* is the same event in the row of the
new key. If a row lacks values, its arrival leads to a departure, and so on, to the row that has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def settle(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the ``wanted`` rows with their missing values filled in.

    Parameters
    ----------
    rows
        a table with ``wanted BOOLEAN``, ``departure STRING`` (the event, if the row is a departure), ``arrival STRING``,
        ``missing ARRAY<STRING>``, ``row STRUCT``, and any other columns. ``missing`` has the names of the columns whose values
        came with the arrival
    columns
        the names of the table's columns, in the order of the fields of ``row``
    """
    missing: list[set[str]] = [set(names or ()) for names in rows["missing"].to_pylist()]
    arrivals: list[Any] = rows["arrival"].to_pylist()
    departures = {event: k for k, event in enumerate(rows["departure"].to_pylist()) if event is not None}
    wanted = np.flatnonzero(rows["wanted"].to_numpy(zero_copy_only=False))
    row = rows["row"].combine_chunks()
    row = row if isinstance(row, pa.StructArray) else pa.concat_arrays(row.chunks)
    fields = []
    for name, field in zip(columns, row.flatten(), strict=True):
        places = [_written(name, int(k), missing, arrivals, departures) for k in wanted]
        fields.append(field.take(pa.array(places, pa.int64())))
    chosen = rows.take(pa.array(wanted))
    settled = pa.StructArray.from_arrays(fields, fields=list(row.type))
    return chosen.set_column(chosen.schema.get_field_index("row"), chosen.schema.field("row"), settled)


def _written(
    name: str, at: int, missing: Sequence[set[str]], arrivals: Sequence[Any], departures: dict[Any, int]
) -> int | None:
    """The index of the row that has the value of a column; None if no row has it."""
    seen = set()
    while name in missing[at]:
        seen.add(at)
        before = departures.get(arrivals[at])
        if before is None or before in seen:
            return None
        at = before
    return at
