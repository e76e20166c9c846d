"""Before and after images: a column of JSON objects, member by member."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import binary_of, build, empty, maps, primitive
from sparkwire.datahub import values
from sparkwire.datahub.layout import DATE
from sparkwire.datahub.values import Listed, Ranges, Values, by_row
from sparkwire.kernels import Bools, Bytes, Ints, int64, kernel
from sparkwire.kernels.json_grammar import ESCAPED, NULL, OBJECT, STRING
from sparkwire.kernels.json_members import MANY, mark_repeats
from sparkwire.kernels.json_values import join_lists, measure_texts, read_integers, write_texts
from sparkwire.kernels.times import write_timestamp

_BRACES: Final = (ord("{"), ord("}"))
_BRACKETS: Final = (ord("["), ord("]"))

# A DATE is written with four digits of the year [ms since epoch].
_FIRST_DATE: Final = -62_135_596_800_000
_LAST_DATE: Final = 253_402_300_799_999
_DATE_SIZE: Final = len("yyyy-MM-ddTHH:mm:ss.SSSZ")


class Declared:
    """What ``schema.dataColumn`` says, by row: names and types of columns."""

    def __init__(self, firsts: npt.NDArray[np.int32], lasts: npt.NDArray[np.int32], names: pa.Array, types: pa.Array):
        self.firsts, self.lasts = firsts, lasts
        self.names, self.types = names, types

    @cached_property
    def is_date(self) -> Bools:
        dates = pc.equal(self.types, DATE).fill_null(False)
        return np.asarray(dates.to_numpy(zero_copy_only=False), np.bool_)


class Images:
    """One image a row, where there is one."""

    def __init__(self, objects: Values) -> None:
        self.objects = objects

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
        """The members' names by row, ``names`` being their numbers."""
        return Ranges(*by_row(self.listed.firsts), names)

    @cached_property
    def repeats(self) -> Bools:
        """Rows in which a name may repeat."""
        marked = empty(len(self.objects.kinds), np.bool_)
        mark_repeats(*self.objects[:4], empty(3 * MANY, np.int64).reshape(3, MANY), marked)
        return marked

    @cached_property
    def superseded(self) -> Bools | None:
        """Members after which the same name comes again; None if there are none at all."""
        if not self.repeats.any():
            return None
        (names,), count = values.numbered(self.names)
        ranges = self.ranges(names)
        last = values.last_places(ranges, ranges, count)
        superseded: Bools = last != np.arange(len(last))
        return superseded if superseded.any() else None


def json_text(images: Images) -> pa.Array:
    """STRING: the image as written, but for members that a later one of the same name replaces, and half surrogate pairs.

    Spark's `parse_json` refuses either, and with it the query.
    """
    as_written = values.objects(images.objects)
    if images.superseded is None:
        return as_written
    listed, kept = images.listed, ~images.superseded
    rows_of = np.repeat(np.arange(len(images.present)), np.diff(listed.firsts))
    rewritten = np.zeros(len(images.present), np.bool_)
    rewritten[rows_of[images.superseded]] = True
    chosen = kept & rewritten[rows_of]
    firsts = np.zeros(len(rewritten) + 1, np.int32)
    np.cumsum(np.bincount(rows_of[chosen], minlength=len(rewritten)), out=firsts[1:])
    starts, ends = listed.members.key_starts - 1, listed.members.starts + listed.members.sizes
    ends += (listed.members.kinds == STRING) | (listed.members.kinds == ESCAPED)
    texts = joined(listed.data, starts[chosen], (ends - starts)[chosen], firsts, _BRACES, rewritten)
    return pc.if_else(primitive(rewritten, type=pa.bool_()), texts, as_written)


def joined(
    data: Bytes, starts: Ints, sizes: Ints, firsts: npt.NDArray[np.int32], brackets: tuple[int, int], valid: Bools
) -> pa.Array:
    """STRING: the spans of each row with commas between and brackets around them, NULL where not ``valid``."""
    ends = np.concatenate(([0], np.cumsum(sizes)))
    commas = np.maximum(np.diff(firsts) - 1, 0)
    total = ends[firsts[1:]] - ends[firsts[:-1]] + commas + len(brackets)
    return build(
        np.where(valid, total, -1),
        lambda offsets, out: join_lists(data, starts, sizes, firsts, brackets, offsets, out),
        pa.string(),
    )


def text_map(images: Images, declared: Declared) -> pa.Array:
    """MAP<STRING, STRING>: every column's value as text, a DATE in ISO 8601, null as NULL."""
    listed, names = images.listed, images.names
    dates = _dates(images, declared)
    if images.superseded is None:
        return maps(listed.firsts, names, _map_texts(listed.values, dates), images.present)
    kept = np.flatnonzero(~images.superseded)
    firsts = np.concatenate(([0], np.cumsum(~images.superseded)))[listed.firsts].astype(np.int32)
    items = _map_texts(listed.values.at(kept), None if dates is None else dates[kept])
    return maps(firsts, names.take(primitive(kept)), items, images.present)


def _dates(images: Images, declared: Declared) -> Bools | None:
    """Which members are declared as DATE; None if no message declares any."""
    if not declared.is_date.any():
        return None
    (names, asked), count = values.numbered(declared.names, images.names)
    place = values.last_places(Ranges(declared.firsts, declared.lasts, names), images.ranges(asked), count)
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
    """STRING: a JSON array of the values that the images have for the names of ``keys``, an ARRAY<STRING>.

    The same key gives the same text, however the message escapes it. NULL without an image or without names.
    """
    counts = np.asarray(keys.value_lengths().fill_null(0), np.int64)
    valid = images.present & (counts > 0)
    (names, asked), count = values.numbered(images.names, keys.flatten())
    asked_firsts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    place = values.last_places(images.ranges(names), Ranges(*by_row(asked_firsts), asked), count)
    texts = binary_of(values.canonical_texts(images.listed.values.found_at(place)))
    starts = texts.offsets.astype(np.int64)
    return joined(texts.data, starts[:-1], np.diff(starts), asked_firsts, _BRACKETS, valid)


@kernel
def write_dates(millis: Ints, dates: Bools, offsets: npt.NDArray[np.int32], out: Bytes) -> None:
    """Write ``yyyy-MM-ddTHH:mm:ss.SSSZ`` for instants of the years 1 to 9999 [ms since epoch]."""
    for i in range(millis.size):
        if dates[i]:
            write_timestamp(out, int64(offsets[i]), millis[i], 3, True)
