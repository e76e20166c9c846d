"""Rows of Cassandra's connector: a column is {value, deletion_ts, set}, and one that is not set has no value."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sparkwire.core.column import binary_of
from sparkwire.json import values
from sparkwire.json.types import Type
from sparkwire.json.values import Values
from sparkwire.kernels import Bools

_CELL: Final = {"value", "deletion_ts", "set"}


def of_cell(type: Type) -> Type:
    """The type of the value in a column of Cassandra; any other type unchanged."""
    if type.kind == "struct" and set(type.names) == _CELL:
        return type.inner[type.names.index("value")]
    return type


def without_cells(images: Values, chosen: Bools) -> Values:
    """The ``chosen`` images as {column: value}, without the columns that are not set."""
    places = np.flatnonzero(chosen)
    if not len(places):
        return images
    texts = [json.dumps(_row(json.loads(text))) for text in values.objects(images.at(places)).to_pylist()]
    own = binary_of(pa.array(texts, pa.string()))
    data = np.concatenate([images.data, own.data])
    begins = own.offsets[:-1].astype(np.int64) + len(images.data)
    roots = values.roots(data, begins, begins + np.diff(own.offsets), np.ones(len(places), np.bool_))
    index = np.full(len(chosen), -1)
    index[places] = np.arange(len(places))
    return images._replace(data=data).unless(chosen, roots.at_or_absent(index))


def _row(cells: dict[str, Any]) -> dict[str, Any]:
    return {
        name: cell["value"]
        for name, cell in cells.items()
        if isinstance(cell, dict) and "value" in cell and cell.get("set", True)
    }
