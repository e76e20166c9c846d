"""The common part of all decoders: the columns of a change table in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.printable import printable
from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.changes.columns import (
    BEFORE,
    ERROR,
    KEYS,
    OP,
    ORDER,
    TABLE,
    TIME,
    TRANSACTION,
    UNAVAILABLE,
    UNEXPECTED,
)
from sparkwire.kernels import Ints

_TEXTS = pa.list_(pa.string())


class ChangeBatch(NamedTuple):
    """Changes, with the index of each one's message."""

    rows: Ints
    batch: pa.RecordBatch


def change_schema(order: pa.DataType, columns: Sequence[pa.Field]) -> pa.Schema:
    """The schema of a change table. Raises ValueError if a column of the table has a name of sparkwire's."""
    taken = [field.name for field in columns if is_reserved(field.name)]
    if taken:
        raise ValueError(
            f"the table's column {printable(taken[0])} begins and ends with _, as sparkwire's own columns do: leave it out with "
            "columns=, or rename it in the messages"
        )
    head = [
        (OP, pa.string()),
        (ORDER, order),
        (TIME, TIMESTAMP),
        (TABLE, pa.string()),
        (TRANSACTION, pa.string()),
        (KEYS, _TEXTS),
        (BEFORE, pa.struct(list(columns))),
    ]
    tail = [(UNAVAILABLE, _TEXTS), (UNEXPECTED, pa.map_(pa.string(), pa.string())), (ERROR, pa.string())]
    return pa.schema([*(pa.field(*one) for one in head), *columns, *(pa.field(*one) for one in tail)])


def is_reserved(name: str) -> bool:
    """Whether a name is one of sparkwire's columns, or may become one."""
    return len(name) > len("__") and name.startswith("_") and name.endswith("_")


def names_column(names: Sequence[str] | None, rows: int) -> pa.Array:
    """ARRAY<STRING>: the same names in every row, NULL for None."""
    if names is None:
        return pa.nulls(rows, _TEXTS)
    return pa.array([list(names)], _TEXTS).take(pa.array(np.zeros(rows, np.int32)))
