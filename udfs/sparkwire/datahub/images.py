"""Values of images that plain JSON does not show: dates as text, and the values of keys."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import binary_of, build, empty
from sparkwire.datahub.layout import DATE
from sparkwire.json import images as json_images
from sparkwire.json import values
from sparkwire.json.grammar import NULL
from sparkwire.json.images import Images, joined
from sparkwire.json.texts import measure_texts, read_integers, write_texts
from sparkwire.json.values import Ranges, Values, by_row
from sparkwire.kernels import Bools, Bytes, Ints, int64, kernel
from sparkwire.kernels.text import write_timestamp

_BRACKETS: Final = (ord("["), ord("]"))

# The range of a DATE that is written as text: its year has four digits [ms since epoch].
_FIRST_DATE: Final = -62_135_596_800_000
_LAST_DATE: Final = 253_402_300_799_999
_DATE_SIZE: Final = len("yyyy-MM-ddTHH:mm:ss.SSSZ")


class DeclaredTypes:
    """Names and types of columns by row, from ``schema.dataColumn``."""

    def __init__(self, firsts: npt.NDArray[np.int32], lasts: npt.NDArray[np.int32], names: pa.Array, types: pa.Array):
        self.firsts, self.lasts = firsts, lasts
        self.names, self.types = names, types

    @cached_property
    def is_date(self) -> Bools:
        dates = pc.equal(self.types, DATE).fill_null(False)
        return np.asarray(dates.to_numpy(zero_copy_only=False), np.bool_)


def text_map(images: Images, declared: DeclaredTypes) -> pa.Array:
    """MAP<STRING, STRING>: the value of every column as text, a DATE in ISO 8601, null as NULL."""
    dates = _dates(images, declared)
    return json_images.text_map(
        images, lambda items, places: _map_texts(items, None if dates is None else dates[places])
    )


def _dates(images: Images, declared: DeclaredTypes) -> Bools | None:
    """Which members are declared as DATE; None if no message declares a DATE."""
    if not declared.is_date.any():
        return None
    (names, requested), count = values.numbered(declared.names, images.names)
    place = values.last_places(Ranges(declared.firsts, declared.lasts, names), images.ranges(requested), count)
    return (place >= 0) & declared.is_date[place]


def _map_texts(items: Values, dates: Bools | None) -> pa.Array:
    if dates is None or not dates.any():
        return values.texts(items)
    millis, valid = empty(len(dates), np.int64), empty(len(dates), np.bool_)
    read_integers(*items[:4], millis, valid)
    dates = dates & valid & (millis >= _FIRST_DATE) & (millis <= _LAST_DATE)
    others = np.where(dates, np.int8(NULL), items.kinds)
    sizes = empty(len(dates), np.int64)
    measure_texts(items.data, items.starts, items.sizes, others, sizes)
    sizes[dates] = _DATE_SIZE

    def fill(offsets: npt.NDArray[np.int32], out: Bytes) -> None:
        write_texts(items.data, items.starts, items.sizes, others, offsets, out)
        write_dates(millis, dates, offsets, out)

    return build(sizes, fill, pa.string())


def keys_text(images: Images, keys: pa.Array) -> pa.Array:
    """STRING: a JSON array of the images' values for the names in ``keys``, an ARRAY<STRING>.

    Equal keys give equal texts, even if messages escape them differently. NULL without an image or without names.
    """
    counts = np.asarray(keys.value_lengths().fill_null(0), np.int64)
    valid = images.present & (counts > 0)
    (names, requested), count = values.numbered(images.names, keys.flatten())
    asked_firsts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    place = values.last_places(images.ranges(names), Ranges(*by_row(asked_firsts), requested), count)
    texts = binary_of(values.canonical_texts(images.listed.values.at_or_absent(place)))
    starts = texts.offsets.astype(np.int64)
    return joined(texts.data, starts[:-1], np.diff(starts), asked_firsts, _BRACKETS, valid)


@kernel
def write_dates(millis: Ints, dates: Bools, offsets: npt.NDArray[np.int32], out: Bytes) -> None:
    """Write instants of the years 1 to 9999 [ms since epoch] as ``yyyy-MM-ddTHH:mm:ss.SSSZ``."""
    for i in range(millis.size):
        if dates[i]:
            write_timestamp(out, int64(offsets[i]), millis[i])
