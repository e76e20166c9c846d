"""``kafka_offset_index`` and ``kafka_time_index``: the two indexes that lie beside a segment.

Neither has a header nor a checksum. A broker allocates the file of its active segment in advance and fills it with zeros:
entries of zeros at the end are not entries. Bytes behind the last whole entry are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.column import binary_of, empty, lists, primitive, struct
from sparkwire.formats.kafka.layout import OFFSET_INDEX, TIME_INDEX
from sparkwire.kernels import Bytes, i32, i64, int64, kernel, u8

Ints = npt.NDArray[np.int64]


@kernel
def count_entries(data: Bytes, offsets: npt.NDArray[Any], width: int, ends: npt.NDArray[np.int32]) -> None:
    """``ends[row + 1]``: how many entries of ``width`` bytes this and all rows before have."""
    ends[0] = 0
    for row in range(ends.size - 1):
        start = int64(offsets[row])
        last = start + (int64(offsets[row + 1]) - start) // width * width
        while last > start and u8(data, last - 1) == 0:
            last -= 1
        ends[row + 1] = ends[row] + (last - start + width - 1) // width


@kernel
def read_offset_index(
    data: Bytes, offsets: npt.NDArray[Any], bases: Ints, ends: npt.NDArray[np.int32], offset: Ints, position: Any
) -> None:
    for row in range(bases.size):
        pos = int64(offsets[row])
        for entry in range(ends[row], ends[row + 1]):
            offset[entry] = bases[row] + int64(i32(data, pos, False))
            position[entry] = i32(data, pos + 4, False)
            pos += 8


@kernel
def read_time_index(
    data: Bytes, offsets: npt.NDArray[Any], bases: Ints, ends: npt.NDArray[np.int32], timestamp: Ints, offset: Ints
) -> None:
    for row in range(bases.size):
        pos = int64(offsets[row])
        for entry in range(ends[row], ends[row + 1]):
            timestamp[entry] = i64(data, pos, False)
            offset[entry] = bases[row] + int64(i32(data, pos + 8, False))
            pos += 12


def decode_offset_index(data: pa.Array, base_offset: pa.Array) -> pa.Array:
    source = binary_of(data)
    ends = empty(source.rows + 1, np.int32)
    count_entries(source.data, source.offsets, OFFSET_INDEX.size, ends)
    offset, position = empty(int(ends[-1]), np.int64), empty(int(ends[-1]), np.int32)
    read_offset_index(source.data, source.offsets, _bases(base_offset), ends, offset, position)
    return lists(ends, struct({"offset": primitive(offset), "position": primitive(position)}))


def decode_time_index(data: pa.Array, base_offset: pa.Array) -> pa.Array:
    source = binary_of(data)
    ends = empty(source.rows + 1, np.int32)
    count_entries(source.data, source.offsets, TIME_INDEX.size, ends)
    timestamp, offset = empty(int(ends[-1]), np.int64), empty(int(ends[-1]), np.int64)
    read_time_index(source.data, source.offsets, _bases(base_offset), ends, timestamp, offset)
    return lists(ends, struct({"timestamp_ms": primitive(timestamp), "offset": primitive(offset)}))


def _bases(base_offset: pa.Array) -> Ints:
    bases: Ints = base_offset.fill_null(0).to_numpy(zero_copy_only=False)
    return bases
