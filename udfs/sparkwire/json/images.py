"""Row images: a column of JSON objects with access to their members."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import build, empty, maps, primitive
from sparkwire.json import values
from sparkwire.json.grammar import ESCAPED, OBJECT, STRING
from sparkwire.json.members import MANY, mark_repeats
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
    kept = np.flatnonzero(~images.hidden)
    firsts = np.concatenate(([0], np.cumsum(~images.hidden)))[listed.firsts].astype(np.int32)
    return maps(firsts, names.take(primitive(kept)), texts(listed.values.at(kept), kept), images.present)
