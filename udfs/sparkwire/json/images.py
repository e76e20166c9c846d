"""Row images: a column of JSON objects with access to their members.

A row may also be an array of items with a name and a value: ``[{"name": "id", "value": 1}]`` becomes ``{"id": 1}``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import binary_of, build, empty, gather, maps, primitive
from sparkwire.json import values
from sparkwire.json.columns import items_of
from sparkwire.json.grammar import ABSENT, ARRAY, ESCAPED, OBJECT, STRING
from sparkwire.json.members import MANY, mark_repeats
from sparkwire.json.scan import Paths, tree_of
from sparkwire.json.texts import join_lists
from sparkwire.json.values import Listed, Ranges, Values, by_row
from sparkwire.kernels import Bools, Bytes, Ints

_BRACES: Final = (ord("{"), ord("}"))


class Images:
    """A column with at most one image in each row."""

    def __init__(self, objects: Values, dropped: Callable[[Images], Bools] | None = None) -> None:
        """``dropped`` returns which members do not belong to the row."""
        self.objects = objects
        self._dropped = dropped

    @property
    def present(self) -> Bools:
        present: Bools = self.objects.kinds == OBJECT
        return present

    @cached_property
    def listed(self) -> Listed:
        return values.members(self.objects)

    @cached_property
    def names(self) -> pa.Array:
        """The name of each member."""
        return values.texts(self.listed.keys)

    def ranges(self, names: values.Codes) -> Ranges:
        """The members' names by row; ``names`` has their numbers."""
        return Ranges(*by_row(self.listed.firsts), names)

    @cached_property
    def repeats(self) -> Bools:
        """Rows in which a name may repeat."""
        marked = empty(len(self.objects.kinds), np.bool_)
        mark_repeats(*self.objects[:4], empty(3 * MANY, np.int64).reshape(3, MANY), marked)
        return marked

    @cached_property
    def superseded(self) -> Bools | None:
        """Members whose name occurs again later in the row; None if there are none."""
        if not self.repeats.any():
            return None
        (names,), count = values.numbered(self.names)
        ranges = self.ranges(names)
        last = values.last_places(ranges, ranges, count)
        superseded: Bools = last != np.arange(len(last))
        return superseded if superseded.any() else None

    @cached_property
    def rows(self) -> Ints:
        """The row of each member."""
        return np.repeat(np.arange(len(self.present)), np.diff(self.listed.firsts))

    @cached_property
    def hidden(self) -> Bools | None:
        """Members that are dropped or superseded; None if there are none."""
        if self._dropped is None:
            return self.superseded
        dropped = self._dropped(self)
        hidden = dropped if self.superseded is None else dropped | self.superseded
        return hidden if hidden.any() else None


def json_text(images: Images) -> pa.Array:
    """STRING: the image as written, without hidden members and half surrogate pairs.

    Spark's `parse_json` fails the query for both.
    """
    as_written = values.objects(images.objects)
    if images.hidden is None:
        return as_written
    listed, rewritten = images.listed, np.zeros(len(images.present), np.bool_)
    rewritten[images.rows[images.hidden]] = True
    chosen = ~images.hidden & rewritten[images.rows]
    firsts = np.zeros(len(rewritten) + 1, np.int32)
    np.cumsum(np.bincount(images.rows[chosen], minlength=len(rewritten)), out=firsts[1:])
    starts, ends = listed.members.key_starts - 1, listed.members.starts + listed.members.sizes
    ends += (listed.members.kinds == STRING) | (listed.members.kinds == ESCAPED)
    texts = joined(listed.data, starts[chosen], (ends - starts)[chosen], firsts, _BRACES, rewritten)
    return pc.if_else(primitive(rewritten, type=pa.bool_()), texts, as_written)


def joined(
    data: Bytes, starts: Ints, sizes: Ints, firsts: npt.NDArray[np.int32], brackets: tuple[int, int], valid: Bools
) -> pa.Array:
    """STRING: the spans of each row, joined with commas and in brackets; NULL if not ``valid``."""
    ends = np.concatenate(([0], np.cumsum(sizes)))
    commas = np.maximum(np.diff(firsts) - 1, 0)
    total = ends[firsts[1:]] - ends[firsts[:-1]] + commas + len(brackets)
    return build(
        np.where(valid, total, -1),
        lambda offsets, out: join_lists(data, starts, sizes, firsts, brackets, offsets, out),
        pa.string(),
    )


def text_map(images: Images, texts: Callable[[Values, Ints | slice], pa.Array]) -> pa.Array:
    """MAP<STRING, STRING>: the name and value of every member; of a repeated name, the last value.

    ``texts`` converts values to STRING; it gets the values, and their indexes among all members.
    """
    listed, names = images.listed, images.names
    if images.hidden is None:
        return maps(listed.firsts, names, texts(listed.values, slice(None)), images.present)
    visible = np.flatnonzero(~images.hidden)
    firsts = np.concatenate(([0], np.cumsum(~images.hidden)))[listed.firsts].astype(np.int32)
    return maps(firsts, names.take(primitive(visible)), texts(listed.values.at(visible), visible), images.present)


# -- arrays of items with a name and a value, as objects


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
    return _in_one_column([_objects(arrays, item.name, item.value) for arrays in rows])


def as_types(rows: Sequence[Values], item: Item) -> Values:
    """The types of each row's columns as an object, from the first of ``rows`` that has them."""
    first, *others = _in_one_column([_objects(arrays, item.name, item.type) for arrays in rows])
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


def _in_one_column(columns: Sequence[tuple[Values, pa.Array]]) -> list[Values]:
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
