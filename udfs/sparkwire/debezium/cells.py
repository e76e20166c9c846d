"""Rows whose columns are objects: {value, deletion_ts, set} of Cassandra's connector, and smaller ones of others.

A column that a change does not set has no value. `without_cells` reads those of Cassandra.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import binary_of, gather, lists
from sparkwire.json import values
from sparkwire.json.grammar import ABSENT, FALSE, NULL, OBJECT
from sparkwire.json.scan import paths
from sparkwire.json.types import Type
from sparkwire.json.values import Values
from sparkwire.kernels import Bools

_CELL: Final = {"value", "deletion_ts", "set"}
_PARTS: Final = paths("value", "set")
_OTHERS: Final = ({"value"}, {"value", "set"})
"""the members of such an object of ScyllaDB, and of YugabyteDB"""


def of_cell(type: Type) -> Type:
    """The type of the value in a column of Cassandra; any other type unchanged."""
    if type.kind == "struct" and set(type.names) == _CELL:
        return type.inner[type.names.index("value")]
    return type


def is_cell_of_others(type: Type) -> bool:
    """Whether a column has such objects of other connectors than Cassandra's."""
    return type.kind == "struct" and set(type.names) in _OTHERS


def are_cells_of_others(columns: Values) -> Bools:
    """The same of values."""
    is_object = columns.kinds == OBJECT
    begins = np.where(is_object, columns.starts, 0)
    parts = values.documents(columns.data, begins, begins + np.where(is_object, columns.sizes, 0), _PARTS, nulls=True)
    has_value, has_mark = (parts.value(k).kinds != ABSENT for k in range(2))
    are_cells: Bools = is_object & has_value & (columns.counts == has_value.astype(np.int64) + has_mark)
    return are_cells


def without_cells(images: Values, chosen: Bools, of_delete: Bools) -> Values:
    """The ``chosen`` images as {column: value}, without the columns that are not set. Those of a delete are without NULL, too.

    A column of the key is never NULL. One that is NULL in a delete is unknown: the delete is of several rows.
    """
    places = np.flatnonzero(chosen)
    if not len(places):
        return images
    rows = binary_of(_rows(images.at(places), of_delete[places]))
    data = np.concatenate([images.data, rows.data])
    begins = rows.offsets[:-1].astype(np.int64) + len(images.data)
    roots = values.roots(data, begins, begins + np.diff(rows.offsets), np.ones(len(places), np.bool_))
    index = np.full(len(chosen), -1)
    index[places] = np.arange(len(places))
    return images._replace(data=data).unless(chosen, roots.at_or_absent(index))


def _rows(images: Values, of_delete: Bools) -> pa.Array:
    """STRING: the JSON objects {column: value}, with the values as written."""
    listed = values.members(images)
    cells, rows = listed.counted_values, np.repeat(np.arange(len(images.kinds)), np.diff(listed.firsts))
    is_cell = cells.kinds == OBJECT
    begins = np.where(is_cell, cells.starts, 0)
    parts = values.documents(cells.data, begins, begins + np.where(is_cell, cells.sizes, 0), _PARTS, nulls=True)
    value, mark = (parts.value(k) for k in range(2))
    is_set = is_cell & (value.kinds != ABSENT) & (mark.kinds != FALSE) & (mark.kinds != NULL)
    is_set &= ~of_delete[rows] | (value.kinds > NULL)
    places = np.flatnonzero(is_set)
    members = pc.binary_join_element_wise(_as_written(listed.keys.at(places)), _as_written(value.at(places)), ":")
    firsts = np.searchsorted(rows[places], np.arange(len(images.kinds) + 1)).astype(np.int32)
    return pc.binary_join_element_wise("{", pc.binary_join(lists(firsts, members), ","), "}", "")


def _as_written(written: Values) -> pa.Array:
    """STRING: the JSON texts, strings with their quotes."""
    quote = written.are_texts.astype(np.int64)
    return gather(written.data, written.starts - quote, written.sizes + 2 * quote, pa.string())
