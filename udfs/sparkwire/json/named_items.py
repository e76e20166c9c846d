"""Rows that are arrays of items with a name and a value, as objects: ``[{"name": "id", "value": 1}]`` becomes ``{"id": 1}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import binary_of, gather
from sparkwire.json import values
from sparkwire.json.columns import items_of
from sparkwire.json.grammar import ABSENT, ARRAY, ESCAPED, OBJECT, STRING
from sparkwire.json.scan import Paths, tree_of
from sparkwire.json.values import Values
from sparkwire.kernels import Bools


class Item(NamedTuple):
    """The names of the members of an item."""

    name: str = "name"
    value: str = "value"
    type: str = "type"


def as_objects(rows: Sequence[Values], item: Item) -> list[Values]:
    """Columns of arrays as columns of objects, all with the same data.

    A value that is no such array is no object: it keeps its kind, and an object has the kind ARRAY. Each item has the name and
    the value.
    """
    return _joined([_objects(arrays, item.name, item.value) for arrays in rows])


def as_types(rows: Sequence[Values], item: Item) -> Values:
    """The types of each row's columns as an object, from the first of ``rows`` that has them."""
    first, *others = _joined([_objects(arrays, item.name, item.type) for arrays in rows])
    for other in others:
        first = first.unless(first.kinds != OBJECT, other)
    return first


def names_of(items: Values, item: Item) -> Values:
    """The names of items; ABSENT if an item is no object."""
    return _member(items, item.name)


def _objects(arrays: Values, name: str, value: str) -> tuple[Values, pa.Array]:
    """The arrays, with the kind OBJECT if they are rows, and the text of each row; without one it is ``{}``."""
    listed = values.items(arrays)
    items = listed.together()
    names, members = _member(items, name), _member(items, value)
    are_pairs = ((names.kinds == STRING) | (names.kinds == ESCAPED)) & (members.kinds != ABSENT)
    faults = np.concatenate(([0], np.cumsum(~are_pairs)))[listed.firsts]
    is_row = (arrays.kinds == ARRAY) & (faults[1:] == faults[:-1])
    pairs = pc.binary_join_element_wise(_written(names, are_pairs), _written(members, are_pairs), ":")
    texts = items_of(pa.array(listed.firsts), pairs, "{}")
    others = np.where(arrays.kinds == OBJECT, np.int8(ARRAY), arrays.kinds)
    return arrays._replace(kinds=np.where(is_row, np.int8(OBJECT), others)), texts


def _member(items: Values, name: str) -> Values:
    begins = np.where(items.kinds == OBJECT, items.starts, 0)
    ends = begins + np.where(items.kinds == OBJECT, items.sizes, 0)
    return values.documents(items.data, begins, ends, _tree(name), nulls=True).value(0)


@text_cache(16)
def _tree(name: str) -> Paths:
    return tree_of([(name,)])


def _written(members: Values, chosen: Bools) -> pa.Array:
    """The JSON of the chosen values as written, and an empty text for the others."""
    quote = (members.kinds == STRING) | (members.kinds == ESCAPED)
    sizes = np.where(chosen, members.sizes + 2 * quote, 0)
    return gather(members.data, np.where(chosen, members.starts - quote, 0), sizes, pa.string())


def _joined(columns: Sequence[tuple[Values, pa.Array]]) -> list[Values]:
    """Columns of objects whose texts are in one column of bytes."""
    data, offsets, _ = binary_of(pa.concat_arrays([texts for _, texts in columns]))
    result, place = [], 0
    for arrays, texts in columns:
        ends = offsets[place : place + len(texts) + 1].astype(np.int64)
        place += len(texts)
        is_row = arrays.kinds == OBJECT
        starts, sizes = np.where(is_row, ends[:-1], 0), np.where(is_row, np.diff(ends), -1)
        result.append(Values(data, starts, sizes, arrays.kinds, np.where(is_row, arrays.counts, 0)))
    return result
