"""The columns and operations of a change table, in Arrow, too.

columns of the input | _op_ _order_ _time_ _table_ _transaction_ _keys_ _before_ | columns of the table | _unavailable_
_unexpected_ _error_
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.kernels import Ints

OP, ORDER, TIME, TABLE, TRANSACTION, KEYS, BEFORE = (
    "_op_", "_order_", "_time_", "_table_", "_transaction_", "_keys_", "_before_",
)  # fmt: skip
UNAVAILABLE, UNEXPECTED, ERROR = "_unavailable_", "_unexpected_", "_error_"
EVENT: Final = "_event_"
"""a column of Debezium's changes with headers: identifies a change of a key in its messages"""
DELETED: Final = "_deleted_"
"""the column of a merged table that keeps deleted rows: whether the row is deleted"""

HEAD: Final = {
    OP: "The operation: INSERT, UPDATE, UPDATE_BEFORE, UPSERT, DELETE, READ or TRUNCATE; NULL if a corrupt message does not "
    "contain it.",
    ORDER: "Sorts the changes of a key, the oldest first.",
    TIME: "The time of the change.",
    TABLE: "The table's name.",
    TRANSACTION: "The transaction's id; NULL if the system does not report it.",
    KEYS: "Names of the primary key's columns.",
    BEFORE: "The row before the change, or only its key if the system reports no more; else NULL.",
}
TAIL: Final = {
    UNAVAILABLE: "Columns with a value that the message does not contain; they are NULL in the row.",
    UNEXPECTED: "The text of each value that has no column, or does not fit its column.",
    ERROR: "The error of the message; NULL if it is valid.",
}
EVENT_DOC: Final = (
    "Identifies a change of a key that is several messages: in the DELETE of the old key, and in the new row."
)
DOCS: Final[Mapping[str, str]] = HEAD | TAIL | {EVENT: EVENT_DOC}

INSERT, UPDATE, UPDATE_BEFORE, UPSERT, DELETE, READ, TRUNCATE = (
    "INSERT", "UPDATE", "UPDATE_BEFORE", "UPSERT", "DELETE", "READ", "TRUNCATE",
)  # fmt: skip
LIVE: Final = (INSERT, UPDATE, UPSERT, READ)
"""operations after which the row exists"""
OPERATIONS: Final = (INSERT, UPDATE, UPDATE_BEFORE, UPSERT, DELETE, READ, TRUNCATE)

KEYS_KNOWN: Final = "sparkwire.keys"
"""metadata of `_keys_`: the names of the key columns, if known before reading the data"""
NEVER: Final = "sparkwire.never"
"""metadata of a column that is NULL in every row"""
MISSING_IS_UNKNOWN: Final = "sparkwire.missing_is_unknown"
"""metadata of `_unavailable_`: a column that a row does not have has an unknown value, instead of NULL"""

COLUMN: Final = "sparkwire.column"
"""metadata of a column of the table: its name in the messages. Spark keeps it if somebody renames the column"""

REPLACES_EPOCHS: Final = "sparkwire.replaces_epochs"
"""metadata of `_order_`: each epoch begins with a complete snapshot, so rows of earlier epochs that do not come again are gone"""

TOPIC: Final = "sparkwire.topic"
"""metadata of `_order_`: the name of the column with the records' topics, if the input has one"""

TWO_TABLES: Final = (
    "the changes are of two tables, %s and %s: filter them by _table_, or name the table in sparkwire.changes with its "
    "database"
)


def table_columns(names: Sequence[str], before: Iterable[str] | None) -> list[str]:
    """The columns of a change table that belong to the table itself. ``before`` has the fields of `_before_`.

    If ``before`` is None, these are all columns except a change table's fixed ones.
    """
    others = [name for name in names if name not in DOCS]
    if before is None:
        return others
    inside = set(before)
    return [name for name in others if name in inside]


def check_columns(names: Sequence[str], function: str) -> None:
    """Raise ValueError if the columns are not those of a change table."""
    missing = [name for name in (OP, ORDER) if name not in names]
    if missing:
        raise value_error(
            f"{function}() expected a DataFrame of sparkwire.changes, got one without a column {missing[0]}"
        )


def check_keys(keys: Sequence[str], columns: Sequence[str], function: str) -> None:
    """Raise ValueError if there are no keys, a key is not a column of the table, or a key occurs twice."""
    if not keys:
        raise value_error(f"{function}() expected keys to name the primary key's columns, got none")
    absent = [name for name in keys if name not in columns]
    if absent:
        raise value_error(f"{function}() expected keys among the columns {', '.join(columns)}, got {absent[0]}")
    if len(set(keys)) < len(keys):
        raise value_error(f"{function}() expected each key column once, got {', '.join(keys)}")


_TEXTS = pa.list_(pa.string())


class ChangeBatch(NamedTuple):
    """Changes, with the index of each one's message."""

    rows: Ints
    batch: pa.RecordBatch


def change_schema(order: pa.DataType, columns: Sequence[pa.Field]) -> pa.Schema:
    """The schema of a change table. Raises ValueError if a column of the table has a name of sparkwire's."""
    taken = [field.name for field in columns if is_reserved(field.name)]
    if taken:
        raise value_error(
            f"the table's column {taken[0]} begins and ends with _, as sparkwire's own columns do: leave it out with "
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
