"""The fields that a caller passes to ``to_dbus_event``, as flat arrays. Values that an event cannot have are errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import argument_error
from sparkwire.core.column import Spans, bools_of, plain_value, spans_of, to_codes
from sparkwire.kernels import Bools, Ints

NAME: Final = "to_dbus_event"


def input_type(declared: pa.DataType) -> pa.StructType:
    """The STRUCT type that a caller may pass. Integers may have any width, because SQL has INT literals."""
    fields = cast("pa.StructType", declared)
    return pa.struct([(f.name, pa.int64() if pa.types.is_integer(f.type) else f.type) for f in fields])


class InputFields:
    """A column of STRUCTs with any of the fields of `input_type`.

    A field that is NULL in all rows counts as missing.
    """

    def __init__(self, column: pa.StructArray) -> None:
        self.rows = len(column)
        self.present = _validity(column)
        self._arrays = {f.name: a for f, a in zip(column.type, column.flatten(), strict=True) if a.null_count < len(a)}
        self._present: dict[str, Bools] = {}
        self._numbers: dict[str, Ints] = {}
        # All missing fields share these two arrays; most fields are missing.
        self._all_false, self._zeros = np.zeros(self.rows, np.bool_), np.zeros(self.rows, np.int64)
        self._all_false.flags.writeable = self._zeros.flags.writeable = False

    def array(self, field: str) -> pa.Array[Any] | None:
        """The field as passed, None if it is missing."""
        return self._arrays.get(field)

    def has(self, field: str) -> Bools:
        """Rows in which the field is not NULL."""
        if field not in self._present:
            array = self.array(field)
            self._present[field] = self._all_false if array is None else _validity(array)
        return self._present[field]

    def numbers(self, field: str, low: int, high: int) -> Ints:
        """A field that must be from ``low`` to ``high``, 0 for NULL; a TIMESTAMP in [us since epoch]."""
        if field not in self._numbers:
            self._numbers[field] = self._int64(field)
        values = self._numbers[field]
        if self.array(field) is None:
            return values
        if values.min() < low or values.max() > high:
            reject((values < low) | (values > high), f"{field} from {low} to {high}", values)
        return values

    def _int64(self, field: str) -> Ints:
        array = self.array(field)
        if array is None:
            return self._zeros
        whole = array if array.type == pa.int64() else array.cast(pa.int64())
        return np.asarray(whole.fill_null(0) if whole.null_count else whole)

    def flags(self, field: str) -> Bools:
        """A BOOLEAN, False for NULL."""
        array = self.array(field)
        return self._all_false if array is None else bools_of(array.fill_null(False))

    def codes(self, field: str, vocabulary: Sequence[str]) -> npt.NDArray[np.int8]:
        """The index of a word in its vocabulary, -1 for NULL."""
        array = self.array(field)
        if array is None:
            return np.full(self.rows, -1, np.int8)
        places = to_codes(array, vocabulary)
        reject((places < 0) & self.has(field), f"{field} {' or '.join(vocabulary)}", array)
        return places

    def spans(self, field: str) -> Spans | None:
        """A field of bytes, None if it is missing."""
        array = self.array(field)
        return None if array is None else spans_of(array)


def _validity(array: pa.Array[Any]) -> Bools:
    return bools_of(array.is_valid()) if array.null_count else np.ones(len(array), np.bool_)


def reject(rows: Bools, takes: str, got: Any) -> None:
    """Raise an error if any of ``rows`` is true. It states what the function takes, and what the first such row has.

    ``got`` is the end of the message, or a column: then the message ends with the row's value.
    """
    if not rows.any():
        return
    value = got if isinstance(got, str) else got[int(rows.argmax())]
    if isinstance(value, pa.Scalar):
        value = plain_value(value)
        value = repr(value) if isinstance(value, str) else value
    raise argument_error(NAME, takes, value)
