"""Find the valid prefix of log bytes, and the position of an offset. These functions read only as many headers as they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_MAGIC, OK
from sparkwire.core.column import binary_of, empty, primitive, struct
from sparkwire.kafka.framing import EntrySums, crc_ok, entry_end, entry_sums, find_entry, frame_error
from sparkwire.kafka.layout import BATCH, ENTRY, MAGIC
from sparkwire.kernels import Bytes, Ints, i8, i32, i64, int64, kernel
from sparkwire.kernels.checksums.range_crc import begin_row

_OFFSET = ENTRY["offset"].offset
_LAST_DELTA = BATCH["last_offset_delta"].offset


@kernel
def last_offset(data: Bytes, pos: int) -> int:
    """Offset of the last record of the well-framed entry at ``pos``."""
    offset = i64(data, pos + _OFFSET, False)
    return offset + int64(i32(data, pos + _LAST_DELTA, False)) if i8(data, pos + MAGIC) == 2 else offset


@kernel
def valid_prefixes(data: Bytes, offsets: npt.NDArray[Any], sizes: npt.NDArray[np.int32], following: Ints) -> None:
    """Size of the valid entries at the front of each row [bytes], and the offset after the last of them."""
    for row in range(sizes.size):
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        pos = start
        following[row] = 0
        while pos < end and frame_error(data, pos, end) == OK and crc_ok(data, pos):
            following[row] = last_offset(data, pos) + 1
            pos = entry_end(data, pos)
        sizes[row] = pos - start


def _prefixes(data: pa.Array) -> tuple[npt.NDArray[np.int32], Ints]:
    source = binary_of(data)
    sizes, following = empty(source.rows, np.int32), empty(source.rows, np.int64)
    valid_prefixes(source.data, source.offsets, sizes, following)
    return sizes, following


def decode_valid_bytes(data: pa.Array) -> pa.Array:
    return primitive(_prefixes(data)[0])


def decode_next_offset(data: pa.Array) -> pa.Array:
    sizes, following = _prefixes(data)
    return primitive(following, sizes > 0)


@kernel
def find_offsets(
    data: Bytes,
    offsets: npt.NDArray[Any],
    targets: Ints,
    sums: EntrySums,
    offsets_of_rows: Ints,
    positions: npt.NDArray[np.int32],
) -> None:
    """Offset and position of the first readable entry of each row whose last offset is at least the target, or -1."""
    for row in range(targets.size):
        start, end = int64(offsets[row]), int64(offsets[row + 1])
        pos, searched, damaged = start, int64(-1), False
        begin_row(start, sums.message)
        begin_row(start, sums.batch)
        positions[row] = -1
        offsets_of_rows[row] = 0
        while pos < end and positions[row] < 0:
            error, stop, whole, searched = find_entry(data, pos, end, False, searched, damaged, sums)
            damaged |= error != OK
            if whole and error != BAD_MAGIC and last_offset(data, pos) >= targets[row]:
                offsets_of_rows[row] = last_offset(data, pos)
                positions[row] = pos - start
            pos = stop


def decode_search_offset(data: pa.Array, target: pa.Array) -> pa.Array:
    source = binary_of(data)
    offsets, positions = empty(source.rows, np.int64), empty(source.rows, np.int32)
    targets = target.fill_null(0).to_numpy(zero_copy_only=False)
    sums = entry_sums(int(source.offsets[0]), source.longest)
    find_offsets(source.data, source.offsets, targets, sums, offsets, positions)
    some = positions >= 0
    return struct({"offset": primitive(offsets), "position": primitive(np.maximum(positions, 0))}, some)
