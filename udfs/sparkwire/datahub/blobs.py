"""The scan of a column of messages: one pass, each step on first use."""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_FIELD, BAD_JSON, MISSING_FIELD, OK, UNKNOWN_OPCODE
from sparkwire.core.builders import Shared
from sparkwire.core.column import Binary, binary_of, lists, primitive, struct, to_codes
from sparkwire.datahub.images import DeclaredTypes
from sparkwire.datahub.layout import COLUMN, MESSAGE, OPERATIONS, SLOTS
from sparkwire.json import values
from sparkwire.json.grammar import ABSENT, OBJECT
from sparkwire.json.images import Images
from sparkwire.json.values import Distinct, Documents, Values
from sparkwire.kernels import Bools, Ints

_OPS: Final = tuple(operation.op for operation in OPERATIONS)
_NEEDS: Final = {
    image: np.array([*(operation.image == image for operation in OPERATIONS), False]) for image in ("before", "after")
}
"""whether an operation needs each image, by the operation's code; the last item is for no operation, -1"""


class DeclaredColumns(NamedTuple):
    """``schema.dataColumn`` of a batch: the distinct lists of columns, and which row has which list."""

    distinct: Distinct
    offsets: npt.NDArray[np.int32]
    names: pa.Array
    types: pa.Array
    objects: Bools
    """whether each item is a JSON object; other items are invalid"""


class BlobColumn:
    """A column of messages; each step runs once, on first use."""

    def __init__(self, column: pa.Array) -> None:
        self.source: Binary = binary_of(column)

    @cached_property
    def documents(self) -> Documents:
        offsets = self.source.offsets
        return values.documents(self.source.data, offsets[:-1], offsets[1:], MESSAGE)

    def value(self, field: str) -> Values:
        return self.documents.value(SLOTS[field])

    @cached_property
    def ops(self) -> pa.Array:
        return values.texts(self.value("op"))

    @cached_property
    def operations(self) -> npt.NDArray[np.int8]:
        """Index into ``OPERATIONS``, -1 for none of them."""
        return to_codes(self.ops, _OPS)

    @cached_property
    def event_time(self) -> tuple[Ints, Bools]:
        return self.time("event_time")

    def time(self, field: str) -> tuple[Ints, Bools]:
        """A time field [ms since epoch], and which rows have it."""
        return values.integers(self.value(field))

    @cached_property
    def before(self) -> Images:
        return Images(self.value("before_image"))

    @cached_property
    def after(self) -> Images:
        return Images(self.value("after_image"))

    @cached_property
    def errors(self) -> npt.NDArray[np.int8]:
        """The first error of each message, in the order of the contract, not of the keys."""
        op, time = self.value("op").kinds, self.value("event_time").kinds
        missing, bad = self._image_faults()
        reasons = (
            (~self.documents.intact, BAD_JSON),
            (op == ABSENT, MISSING_FIELD),
            (self.operations < 0, UNKNOWN_OPCODE),
            (time == ABSENT, MISSING_FIELD),
            (~self.event_time[1], BAD_FIELD),
            (missing, MISSING_FIELD),
            (bad, BAD_FIELD),
        )
        return np.select([fault for fault, _ in reasons], [np.int8(code) for _, code in reasons], np.int8(OK))

    def _image_faults(self) -> tuple[Bools, Bools]:
        """Rows in which the image that the operation needs is missing, and rows in which it is not an object."""
        missing, bad = np.zeros((2, self.source.rows), np.bool_)
        for image, needs in _NEEDS.items():
            needed = needs[self.operations]
            outer, inner = self.value(image).kinds, self.value(f"{image}_image").kinds
            missing |= needed & ((outer == ABSENT) | ((outer == OBJECT) & (inner == ABSENT)))
            bad |= needed & (inner != OBJECT)
        return missing, bad

    @cached_property
    def columns(self) -> DeclaredColumns:
        distinct = values.distinct(self.value("columns"))
        items = values.items(self.value("columns").at(distinct.rows))
        names, types, objects = map(list, zip(*map(_columns, items.pieces()), strict=True))
        return DeclaredColumns(distinct, items.firsts, _whole(names), _whole(types), np.concatenate(objects))

    @cached_property
    def declared(self) -> DeclaredTypes:
        """The columns' names and types by row; NULL for items without a name."""
        columns = self.columns
        codes = np.maximum(columns.distinct.codes, 0)
        none = columns.distinct.codes < 0
        offsets = columns.offsets if len(columns.offsets) > 1 else np.zeros(2, np.int32)
        firsts = np.where(none, 0, offsets[:-1][codes]).astype(np.int32)
        lasts = np.where(none, 0, offsets[1:][codes]).astype(np.int32)
        return DeclaredTypes(firsts, lasts, columns.names, columns.types)

    @cached_property
    def keys(self) -> tuple[Distinct, npt.NDArray[np.int32], pa.Array]:
        """``schema.primaryKey`` of a batch: which row has which list, where the lists begin, and their names."""
        distinct = values.distinct(self.value("primary_key"))
        items = values.items(self.value("primary_key").at(distinct.rows))
        return distinct, items.firsts, pa.concat_arrays([values.texts(piece) for piece in items.pieces()])

    @cached_property
    def primary_keys(self) -> pa.Array:
        """ARRAY<STRING>"""
        distinct, firsts, names = self.keys
        return distinct.spread(lists(firsts, names))

    @property
    def key_names(self) -> pa.Array:
        """ARRAY<STRING>: each name of the primary key once, however often the message repeats it."""
        distinct, firsts, names = self.keys
        rows = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        (codes,), count = values.numbered(names)
        _, places = np.unique(rows * count + codes, return_index=True)
        if len(places) == len(names):
            return self.primary_keys
        places.sort()
        kept = np.searchsorted(places, firsts).astype(np.int32)
        return distinct.spread(lists(kept, names.take(primitive(places))))

    @cached_property
    def column_lists(self) -> pa.Array:
        """ARRAY<STRUCT<name STRING, type STRING>>"""
        columns = self.columns
        items = struct({"name": columns.names, "type": columns.types}, columns.objects)
        return columns.distinct.spread(lists(columns.offsets, items))


def _columns(items: Values) -> tuple[pa.Array, pa.Array, Bools]:
    """Names and types of items, NULL if an item is not an object; and which items are objects."""
    objects = items.kinds == OBJECT
    if not objects.all():
        names, types, _ = _columns(items.at(np.flatnonzero(objects)))
        places = primitive(np.cumsum(objects) - 1, objects)
        return names.take(places), types.take(places), objects
    documents = values.documents(items.data, items.starts, items.starts + items.sizes, COLUMN)
    return values.texts(documents.value(0)), values.texts(documents.value(1)), objects


def _whole(pieces: list[pa.Array]) -> pa.Array:
    """The pieces as one array. It empties the list, to free the pieces."""
    if len(pieces) == 1:
        return pieces[0]
    whole = pa.concat_arrays(pieces)
    pieces.clear()
    pa.default_memory_pool().release_unused()  # the next array cannot use these small free blocks
    return whole


messages_of = Shared(BlobColumn)
