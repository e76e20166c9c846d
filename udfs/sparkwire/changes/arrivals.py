"""Find values that moved with a change of the key: they were last written under the old key, or under an even older one.

A *departure* is the last row of an old key, with the event that changed the key. An *arrival* is the same event in the row of the
new key. If a row lacks values, its arrival leads to a departure, and so on, to the row that has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def with_moved_values(rows: pa.Table) -> pa.Table:
    """Return the ``wanted`` rows that lack values of an old key, with these values filled in.

    ``rows`` is a table with ``wanted BOOLEAN``, ``departed STRING`` (the event, if the row is a departure), ``arrived STRING``,
    ``moved ARRAY<STRING>``, ``row STRUCT``, and any other columns. ``moved`` has the names of the fields of ``row`` whose values
    came with the arrival. A value is NULL if its departure is not in ``rows``.
    """
    moved: list[list[str]] = rows["moved"].to_pylist()
    arrivals: list[Any] = rows["arrived"].to_pylist()
    departures = {event: k for k, event in enumerate(rows["departed"].to_pylist()) if event is not None}
    lacks = pc.greater(pc.list_value_length(rows["moved"]), 0)
    wanted = np.flatnonzero(pc.and_(rows["wanted"], lacks).to_numpy(zero_copy_only=False))
    row = rows["row"].combine_chunks()
    row = row if isinstance(row, pa.StructArray) else pa.concat_arrays(row.chunks)
    fields, unknown = [], [list[str]() for _ in wanted]
    for field, values in zip(row.type, row.flatten(), strict=True):
        places = [_written(field.name, int(k), moved, arrivals, departures) for k in wanted]
        fields.append(values.take(pa.array(places, pa.int64())))
        for names, place in zip(unknown, places, strict=True):
            if place is None:
                names.append(field.name)
    chosen = rows.take(pa.array(wanted))
    filled = {
        "moved": pa.array(unknown, rows.schema.field("moved").type),
        "row": pa.StructArray.from_arrays(fields, fields=list(row.type)),
    }
    for name, column in filled.items():
        chosen = chosen.set_column(chosen.schema.get_field_index(name), chosen.schema.field(name), column)
    return chosen


def _written(
    name: str, at: int, moved: Sequence[Sequence[str]], arrivals: Sequence[Any], departures: dict[Any, int]
) -> int | None:
    """The index of the row that has the value of a field; None if no row has it."""
    seen = set()
    while name in moved[at]:
        seen.add(at)
        before = departures.get(arrivals[at])
        if before is None or before in seen:
            return None
        at = before
    return at
