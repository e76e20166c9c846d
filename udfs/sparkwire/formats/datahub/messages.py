"""What one pass over a column of messages finds."""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.builders import Shared
from sparkwire.column import binary_of, lists, strings, struct
from sparkwire.errors import BAD_FIELD, BAD_JSON, MISSING_FIELD, OK, UNKNOWN_OPCODE
from sparkwire.formats.datahub import values
from sparkwire.formats.datahub.images import Declared, Images
from sparkwire.formats.datahub.layout import COLUMN, MESSAGE, OPERATIONS, SLOTS
from sparkwire.formats.datahub.values import Distinct, Documents, Values
from sparkwire.kernels import Bools, Ints
from sparkwire.kernels.json import ABSENT, ARRAY, OBJECT

_OPS: Final = strings([operation.op for operation in OPERATIONS])
_NEEDS: Final = {
    image: np.array([*(operation.image == image for operation in OPERATIONS), False]) for image in ("before", "after")
}
"""by code of the operation; the last is of no operation, -1"""


class Columns(NamedTuple):
    """``schema.dataColumn`` of a batch: each list of columns once, and which row has which."""

    distinct: Distinct
    offsets: npt.NDArray[np.int32]
    names: pa.Array
    types: pa.Array
    objects: Bools
    """whether an item is an object, as it should be"""


class Messages:
    """A column of messages; each step is taken once, when it is first asked for."""

    def __init__(self, column: pa.Array) -> None:
        self.source = binary_of(column)

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
        """Which of ``OPERATIONS``, -1 for none of them."""
        return np.asarray(pc.index_in(self.ops, _OPS).fill_null(-1), np.int8)

    @cached_property
    def event_time(self) -> tuple[Ints, Bools]:
        return self.time("event_time")

    def time(self, field: str) -> tuple[Ints, Bools]:
        """[ms since epoch], and which rows have one."""
        return values.integers(self.value(field))

    @cached_property
    def before(self) -> Images:
        return Images(self.value("before_image"))

    @cached_property
    def after(self) -> Images:
        return Images(self.value("after_image"))

    @cached_property
    def errors(self) -> npt.NDArray[np.int8]:
        """Why a message is unsound; the reasons in the order of the contract, whatever the order of the keys."""
        op, time = self.value("op").kinds, self.value("event_time").kinds
        missing, bad = self._image_faults()
        reasons = (
            (~self.documents.sound, BAD_JSON),
            (op == ABSENT, MISSING_FIELD),
            (self.operations < 0, UNKNOWN_OPCODE),
            (time == ABSENT, MISSING_FIELD),
            (~self.event_time[1], BAD_FIELD),
            (missing, MISSING_FIELD),
            (bad, BAD_FIELD),
        )
        return np.select([fault for fault, _ in reasons], [np.int8(code) for _, code in reasons], np.int8(OK))

    def _image_faults(self) -> tuple[Bools, Bools]:
        """Where the image that the operation needs is missing, and where it is not an object."""
        missing, bad = np.zeros((2, self.source.rows), np.bool_)
        for image, needs in _NEEDS.items():
            needed = needs[self.operations]
            outer, inner = self.value(image).kinds, self.value(f"{image}_image").kinds
            missing |= needed & ((outer == ABSENT) | ((outer == OBJECT) & (inner == ABSENT)))
            bad |= needed & (inner != OBJECT)
        return missing, bad

    @cached_property
    def columns(self) -> Columns:
        found = values.distinct(self.value("columns"))
        items = values.members(self.value("columns").at(found.rows), ARRAY)
        spans = items.values
        inner = values.documents(spans.data, spans.starts, spans.starts + spans.sizes, COLUMN)
        names, types = (values.texts(inner.value(slot)) for slot in (0, 1))
        return Columns(found, items.firsts, names, types, inner.sound)

    @cached_property
    def declared(self) -> Declared:
        """The columns' names and types by row, items without a name left as NULL."""
        columns = self.columns
        codes = np.maximum(columns.distinct.codes, 0)
        none = columns.distinct.codes < 0
        offsets = columns.offsets if len(columns.offsets) > 1 else np.zeros(2, np.int32)
        firsts = np.where(none, 0, offsets[:-1][codes]).astype(np.int32)
        lasts = np.where(none, 0, offsets[1:][codes]).astype(np.int32)
        return Declared(firsts, lasts, columns.names, columns.types)

    @cached_property
    def primary_keys(self) -> pa.Array:
        """ARRAY<STRING>"""
        found = values.distinct(self.value("primary_key"))
        items = values.members(self.value("primary_key").at(found.rows), ARRAY)
        return found.spread(lists(items.firsts, values.texts(items.values)))

    @cached_property
    def column_lists(self) -> pa.Array:
        """ARRAY<STRUCT<name STRING, type STRING>>"""
        columns = self.columns
        items = struct({"name": columns.names, "type": columns.types}, columns.objects)
        return columns.distinct.spread(lists(columns.offsets, items))


messages_of = Shared(Messages)
