"""The scan of a column of events: one pass over the headers, and the results that follow from it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import OK
from sparkwire.core.column import Offsets, binary_of, empty, rooms
from sparkwire.databus import event_kernels, layout, parts
from sparkwire.databus.event_kernels import UNKNOWN, find_opcodes, key_kinds
from sparkwire.databus.layout import FIELDS, LONG_KEY, NO_KEY, NO_VARIANT, V2_BIG
from sparkwire.databus.parts import KEY, NUMBERS, SPANS, PartSpans, one_row
from sparkwire.kernels import (
    Bools,
    Bytes,
    FieldPlace,
    Ints,
    crc32_raw,
    field_reader,
    int64,
    kernel,
    prefetch,
    variant_of,
)

_AHEAD: Final = 16  # [rows] distance of the prefetch of headers


# The fixed fields of each variant, for one pass over all of them. A version without a field has None there.
_VARIANTS: Final = (
    # For an unknown version, only the version byte itself can be read.
    tuple(FieldPlace(0, 1, True, False) if name == "version" else None for name in FIELDS),
    *(variant_of(table, FIELDS, little) for table in (layout.V1, layout.V2) for little in (False, True)),
)
# src_id has two bytes in V1 and four in V2: the wider type holds both.
_DTYPES: Final = {name: (layout.V2.get(name) or layout.V1[name]).field.dtype for name in FIELDS}
_NEVER: Final = np.iinfo(np.int64).max
_ENDS: Final = np.array([[_NEVER if p is None else p.end for p in variant] for variant in _VARIANTS], np.int64)
_WHOLE: Final = int(_ENDS[1:][_ENDS[1:] < _NEVER].max())

_read_fields = field_reader(_VARIANTS)


@kernel
def read_headers(
    data: Bytes,
    offsets: npt.NDArray[Any],
    check: bool,
    variants: npt.NDArray[np.int8],
    fields: tuple[npt.NDArray[Any], ...],
    crcs: Ints,
    checks: npt.NDArray[np.int8],
) -> int:
    """Read variant and fixed fields of every event; with ``check``, also compute and compare both checksums.

    Returns the number of events that lack bytes of a checksum's range. ``check_truncated`` handles these events. Its code would
    slow down every row if it were in this loop.
    """
    rows, torn = variants.size, 0
    for row in range(rows):
        start = int64(offsets[row])
        size = int64(offsets[row + 1]) - start
        ahead = int64(offsets[min(row + _AHEAD, rows - 1)])
        prefetch(data, ahead)
        prefetch(data, ahead + 64)
        variant = event_kernels.event_variant(data, start, size)
        variants[row] = variant
        _read_fields(data, start, size, variant, fields, row)
        if not check:
            continue
        # Inline code: a call would pass the arrays again for every row.
        end = event_kernels.header_end(data, start, size, variant)
        length = event_kernels.total_length(data, start, size, variant)
        if not event_kernels.is_whole(size, variant, end, length):
            torn += 1
            continue
        first = event_kernels.header_first(variant)
        header = int64(crc32_raw(data, start + first, end - first))
        value = int64(crc32_raw(data, start + end, length - end))
        crcs[0, row], crcs[1, row] = header, value
        checks[0, row] = header == event_kernels.stored_header_crc(data, start, variant)
        checks[1, row] = value == event_kernels.stored_value_crc(data, start, variant)
    return torn


@kernel
def check_truncated(
    data: Bytes, offsets: npt.NDArray[Any], variants: npt.NDArray[np.int8], crcs: Ints, checks: npt.NDArray[np.int8]
) -> None:
    """The checksums of the events that ``read_headers`` leaves out, over the bytes that exist."""
    for row in range(variants.size):
        start = int64(offsets[row])
        size = int64(offsets[row + 1]) - start
        variant = int64(variants[row])
        if variant == NO_VARIANT:
            crcs[0, row] = crcs[1, row] = UNKNOWN
            checks[0, row] = checks[1, row] = UNKNOWN
            continue
        end = event_kernels.header_end(data, start, size, variant)
        length = event_kernels.total_length(data, start, size, variant)
        if not event_kernels.is_whole(size, variant, end, length):
            crcs[0, row] = event_kernels.header_crc(data, start, size, variant, end)
            crcs[1, row] = event_kernels.value_crc(data, start, size, variant, end, length)
            checks[0, row] = event_kernels.header_checks(data, start, size, variant, end, crcs[0, row])
            checks[1, row] = event_kernels.value_checks(data, start, size, variant, end, length, crcs[1, row])


@kernel
def read_spans(
    data: Bytes, offsets: npt.NDArray[Any], variants: npt.NDArray[np.int8], spans: PartSpans, bounded: Bools
) -> None:
    """Locate key, value, metadata and digests of every event, and note whether they are within their bounds."""
    for row in range(variants.size):
        parts.clear_row(spans, row)
        start = int64(offsets[row])
        size = int64(offsets[row + 1]) - start
        variant = int64(variants[row])
        bounded[row] = variant != NO_VARIANT and parts.read_parts(data, start, size, variant, row, spans)


@kernel
def read_keys(
    data: Bytes,
    offsets: npt.NDArray[Any],
    variants: npt.NDArray[np.int8],
    starts: Ints,
    sizes: Ints,
    scratch: PartSpans,
) -> None:
    """Locate the key's bytes of every event; ``scratch`` has room for one row."""
    for row in range(variants.size):
        scratch.starts[KEY, 0] = 0
        scratch.sizes[KEY, 0] = UNKNOWN
        start = int64(offsets[row])
        size = int64(offsets[row + 1]) - start
        variant = int64(variants[row])
        if variant != NO_VARIANT:
            parts.read_key(data, start, size, variant, 0, scratch)
        starts[row] = scratch.starts[KEY, 0]
        sizes[row] = scratch.sizes[KEY, 0]


@kernel
def find_errors(
    data: Bytes,
    offsets: npt.NDArray[Any],
    variants: npt.NDArray[np.int8],
    checks: npt.NDArray[np.int8],
    bounded: Bools,
    errors: npt.NDArray[np.int8],
) -> None:
    """The first error of every event."""
    for row in range(variants.size):
        start = int64(offsets[row])
        size = int64(offsets[row + 1]) - start
        variant = int64(variants[row])
        error = event_kernels.header_error(data, start, size, variant, int64(checks[0, row]))
        if error == OK:
            length = event_kernels.total_length(data, start, size, variant)
            error = event_kernels.body_error(size, length, bounded[row], int64(checks[1, row]))
        errors[row] = error


class Header(NamedTuple):
    """The result of ``read_headers``."""

    variants: npt.NDArray[np.int8]
    fields: dict[str, npt.NDArray[Any]]
    """the fixed fields by name, 0 in rows without the field"""
    crcs: Ints
    """both computed checksums over the bytes that exist, (2, rows); ``UNKNOWN`` if their range is unknown"""
    checks: npt.NDArray[np.int8]
    """whether they equal the stored ones, (2, rows): 1 right, 0 wrong, ``UNKNOWN``"""


class Events:
    """A column of events. It runs each kernel on first use and keeps the results.

    With ``check``, the pass over the headers computes the checksums as well.
    """

    data: Bytes
    offsets: Offsets

    def __init__(self, column: pa.Array, check: bool = False) -> None:
        self.data, self.offsets, _ = binary_of(column)
        self.rows: int = len(column)
        self.check = check

    @cached_property
    def header(self) -> Header:
        return self._read(self.check)

    @cached_property
    def checked(self) -> Header:
        """The header with its checksums."""
        return self.header if self.check else self._read(True)

    def _read(self, check: bool) -> Header:
        fields = dict(zip(_DTYPES, rooms(self.rows, _DTYPES.values()), strict=True))
        fields["schema_id"] = empty(layout.MD5_SIZE * self.rows, np.uint8)
        crcs = empty(2 * self.rows if check else 0, np.int64).reshape(2, -1)
        checks = empty(2 * self.rows if check else 0, np.int8).reshape(2, -1)
        variants = empty(self.rows, np.int8)
        if read_headers(self.data, self.offsets, check, variants, tuple(fields.values()), crcs, checks):
            check_truncated(self.data, self.offsets, variants, crcs, checks)
        return Header(variants, fields, crcs, checks)

    @cached_property
    def _parts(self) -> tuple[PartSpans, Bools]:
        starts, sizes = (empty(SPANS * self.rows, np.int64).reshape(SPANS, -1) for _ in range(2))
        numbers = empty(NUMBERS * self.rows, np.int64).reshape(NUMBERS, -1)
        bounded = empty(self.rows, np.bool_)
        spans = PartSpans(starts, sizes, numbers)
        read_spans(self.data, self.offsets, self.header.variants, spans, bounded)
        return spans, bounded

    @cached_property
    def keys(self) -> tuple[Ints, Ints]:
        """Starts and sizes of the keys' bytes, as in `spans`. Queries need keys more often than any other part."""
        starts, sizes = empty(self.rows, np.int64), empty(self.rows, np.int64)
        read_keys(self.data, self.offsets, self.header.variants, starts, sizes, one_row())
        return starts, sizes

    @property
    def spans(self) -> PartSpans:
        """The spans of key, value, metadata and digests."""
        return self._parts[0]

    @property
    def bounded(self) -> Bools:
        """Whether key and parts are within their bounds."""
        return self._parts[1]

    @cached_property
    def errors(self) -> npt.NDArray[np.int8]:
        """The first error of every event, ``OK`` for none."""
        errors = empty(self.rows, np.int8)
        find_errors(self.data, self.offsets, self.header.variants, self.checked.checks, self.bounded, errors)
        return errors

    @cached_property
    def is_v2(self) -> Bools:
        return np.asarray(self.header.variants >= V2_BIG)

    def attribute(self, v1_bit: int, v2_bit: int) -> Bools:
        """Whether an attribute bit is set, by version; False if the attributes are missing."""
        bits = self.header.fields["attributes"]
        return np.asarray(np.where(self.is_v2, bits & v2_bit, bits & v1_bit) != 0)

    @cached_property
    def opcodes(self) -> npt.NDArray[np.int8]:
        """Index into ``OPCODES``, -1 for none."""
        opcodes = empty(self.rows, np.int8)
        find_opcodes(self.header.fields["attributes"], self.header.variants, opcodes)
        return opcodes

    @cached_property
    def key_types(self) -> npt.NDArray[np.int8]:
        """The kind of every key, ``NO_KEY`` if the attributes are missing or name none."""
        kinds = key_kinds(self.header.fields["attributes"], self.is_v2)
        present = self.has("attributes")
        return kinds if present is None else np.where(present, kinds, np.int8(NO_KEY))

    @cached_property
    def long_keys(self) -> Bools:
        """Rows that have a LONG key with all its bytes."""
        present = self.has("key_long")
        long: Bools = self.key_types == LONG_KEY
        return long if present is None else long & present

    @cached_property
    def _sizes(self) -> npt.NDArray[np.integer[Any]]:
        return np.diff(self.offsets)

    @cached_property
    def _complete(self) -> bool:
        """Whether every row has a known version and is long enough for every fixed field."""
        return bool(self.rows) and int(self._sizes.min()) >= _WHOLE and bool(self.header.variants.min() > NO_VARIANT)

    def has(self, field: str) -> Bools | None:
        """Rows that have the bytes of the field, None if all rows have them."""
        k = FIELDS.index(field)
        if self._complete and bool((_ENDS[1:, k] < _NEVER).all()):
            return None
        return np.asarray(_ENDS[self.header.variants, k] <= self._sizes)
