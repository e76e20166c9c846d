"""Search records by key, or by bytes within the value. Records that do not match become no row."""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import read_only
from sparkwire.kernels import Bytes, Ints, i64, int64, kernel, u8
from sparkwire.kernels.text import same_bytes

_ONES: Final = int64(0x0101010101010101)


class SearchPattern(NamedTuple):
    """A search in the form for kernels."""

    active: bool
    keys: Bytes
    """the concatenated keys"""
    key_ends: Ints
    """end of each key in ``keys``; item 0 is 0"""
    prefixes: bool
    within: Bytes
    within_size: int


class Search(NamedTuple):
    """The search of a query. A null key or value does not match."""

    keys: tuple[bytes, ...] | None = None
    """keys that match; None for all keys"""
    prefixes: bool = False
    """whether ``keys`` are prefixes"""
    within: bytes = b""
    """bytes that a value must contain"""

    @property
    def active(self) -> bool:
        return self.keys is not None or bool(self.within)

    def pattern(self) -> SearchPattern:
        keys = self.keys or ()
        ends = np.cumsum([0, *map(len, keys)], dtype=np.int64)
        # Without any key, as for two contradicting filters, it uses a key that no record has.
        ends = np.array([0, 2**62]) if self.keys == () else ends
        return SearchPattern(
            self.active, _bytes(b"".join(keys)), read_only(ends), self.prefixes, _bytes(self.within), len(self.within)
        )

    def mask(self, key: pa.Array, value: pa.Array) -> pa.Array:
        """Which records match."""
        matches = pa.repeat(True, len(key))
        if self.keys is not None and self.prefixes:
            matches = functools.reduce(pc.or_, (pc.starts_with(key, prefix) for prefix in self.keys))
        elif self.keys is not None:
            matches = pc.is_in(key, pa.array(self.keys, pa.binary()))
        if self.within:
            matches = pc.and_(matches, pc.match_substring(value, self.within))
        return pc.fill_null(matches, False)


def _bytes(content: bytes) -> Bytes:
    return read_only(np.frombuffer(content or b"\0", np.uint8))


ANYTHING: Final = Search().pattern()


@kernel
def matches_pattern(data: Bytes, key: int, key_size: int, value: int, value_size: int, pattern: SearchPattern) -> bool:
    """Whether a record matches; sizes are negative for null."""
    count = pattern.key_ends.size - 1
    matches = count == 0
    for k in range(count):
        first = pattern.key_ends[k]
        size = pattern.key_ends[k + 1] - first
        if key_size == size or (pattern.prefixes and key_size > size):
            matches |= same_bytes(data, key, pattern.keys, first, size)
    return bool(
        matches and (pattern.within_size == 0 or _holds(data, value, value_size, pattern.within, pattern.within_size))
    )


@kernel
def _holds(data: Bytes, start: int, size: int, within: Bytes, within_size: int) -> bool:
    """Whether ``data[start : start + size]`` contains ``within``."""
    pos, last = int64(start), int64(start + size - within_size)
    lead = int64(u8(within, 0)) * _ONES
    while pos <= last:
        if last - pos >= 8:
            # A zero byte borrows from its high bit. A false positive only costs the comparison below.
            differs = i64(data, pos, True) ^ lead
            if (differs - _ONES) & ~differs & (_ONES << 7) == 0:
                pos += 8
                continue
        if u8(data, pos) == u8(within, 0) and same_bytes(data, pos, within, 0, within_size):
            return True
        pos += 1
    return False
