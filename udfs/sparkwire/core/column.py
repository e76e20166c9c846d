"""Convert Arrow columns to flat numpy arrays for kernels, and the results of kernels to Arrow columns.

Data are copied only if necessary: kernels read Arrow's offsets and data directly, and fill the buffers of the result. Memory
comes from pyarrow's pool, which reuses freed pages, because new pages cost as much as the decoding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import type_error
from sparkwire.base.sqltype import TIMESTAMP
from sparkwire.errors import ColumnTooLargeError
from sparkwire.kernels.gather import find_words, gather_rows, place_words, texts_of, write_words
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import COPY_SLACK, Bools, Bytes, Ints, int64
from sparkwire.kernels.text import millis_to_micros, nanos_to_micros, same_bytes

Offsets = npt.NDArray[np.integer[Any]]

# Spark's TIMESTAMP runs from 0001-01-01 to 9999-12-31 [us since epoch].
FIRST_MICROSECOND = -62_135_596_800_000_000
LAST_MICROSECOND = 253_402_300_799_999_999
INT32_MAX = 2**31 - 1
_MAX_WIDTH = 8  # [bytes] the widest item
_FEW_KEYS = 32  # maximum number of keys in a map to compare with each other
_SMALL = 16 << 10  # [bytes] up to which malloc is faster than the pool and reuses pages


class Binary(NamedTuple):
    """A BINARY or STRING column for kernels.

    Row ``i`` is ``data[offsets[i]:offsets[i + 1]]``. Rows that are NULL may have bytes. Kernels may ignore ``valid``, because
    ``Function.decode`` makes the results of NULL rows NULL.
    """

    data: Bytes
    """the column's complete data buffer, read-only, at least one byte"""
    offsets: Offsets
    """n + 1 offsets into ``data``, int32 or int64"""
    valid: Bools | None
    """one item for each row; None if no row is NULL"""

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def longest(self) -> int:
        """The size of the longest row [bytes]."""
        return int(np.diff(self.offsets).max(initial=0))


class Spans(NamedTuple):
    """A BINARY or STRING column for encoders: each row is ``data[start:start + size]``."""

    data: Bytes
    starts: Ints
    sizes: Ints
    """[bytes]; -1 if the row is NULL"""


def spans_of(array: pa.Array) -> Spans:
    """The spans of a column, with the same numba type for any type of offsets."""
    data, column_offsets, valid = binary_of(array)
    offsets = column_offsets.astype(np.int64)
    sizes = np.diff(offsets)
    return Spans(data, offsets[:-1], sizes if valid is None else np.where(valid, sizes, -1))


Identity = tuple[pa.DataType, int, int, tuple[int, ...]]


def identity_of(array: pa.Array) -> Identity | None:
    """A key that is equal for two arrays only if they view the same memory in the same way; None if the memory is mutable."""
    buffers = [buffer for buffer in array.buffers() if buffer is not None]
    if any(buffer.is_mutable for buffer in buffers):
        return None
    return array.type, array.offset, len(array), tuple(buffer.address for buffer in buffers)


def binary_of(array: pa.Array) -> Binary:
    """View a binary, large_binary, string, large_string or null array, which may be sliced."""
    n = len(array)
    if pa.types.is_null(array.type):
        return Binary(read_only(np.zeros(1, np.uint8)), np.zeros(n + 1, np.int32), np.zeros(n, np.bool_))
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    if not (large or pa.types.is_binary(array.type) or pa.types.is_string(array.type)):
        raise type_error(f"a column of bytes is expected, got {array.type}")
    _, offsets, data = array.buffers()
    valid = bools_of(array.is_valid()) if array.null_count else None
    return Binary(_data(data), _offsets(offsets, array.offset, n, np.int64 if large else np.int32), valid)


def _data(buffer: pa.Buffer | None) -> Bytes:
    # A kernel may compute the address of row 0 even if no row has a byte.
    if buffer is None or buffer.size == 0:
        return read_only(np.zeros(1, np.uint8))
    return read_only(np.frombuffer(buffer, np.uint8))


def _offsets(buffer: pa.Buffer | None, start: int, n: int, dtype: type[np.integer[Any]]) -> Offsets:
    if buffer is None or buffer.size == 0:
        return np.zeros(n + 1, dtype)
    return read_only(np.frombuffer(buffer, dtype)[start : start + n + 1])


def read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only, so that all inputs have the same numba type; some of Arrow's buffers are writable."""
    values.flags.writeable = False
    return values


def plain_value(scalar: pa.Scalar) -> Any:
    r"""The Python value of an Arrow scalar. Spark may pass texts that are not UTF-8; their invalid bytes become ``\xNN``."""
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        return scalar.as_buffer().to_pybytes().decode("utf-8", "backslashreplace") if scalar.is_valid else None
    return scalar.as_py()


def bools_of(array: pa.BooleanArray) -> Bools:
    """The values of a BOOLEAN column without NULLs."""
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def empty(n: int, dtype: npt.DTypeLike, slack: int = 0) -> npt.NDArray[Any]:
    """``n`` uninitialised items from pyarrow's pool, with ``slack`` more after them in the same buffer."""
    if n + slack == 0:
        return np.empty(0, dtype)
    size = (n + slack) * np.dtype(dtype).itemsize
    if size <= _SMALL:
        return np.empty(n + slack, dtype)
    return np.frombuffer(pa.allocate_buffer(size), dtype)


_texts_of = functools.cache(texts_of)
Block = TypeVar("Block", bound=tuple[Any, ...])


def arrays(block: type[Block], n: int) -> Block:
    """Allocate ``n`` items in each array of a NamedTuple of arrays, with the types that it declares."""
    return block(*rooms(n, _dtypes(block)))


def rooms(n: int, dtypes: Iterable[npt.DTypeLike]) -> Iterator[npt.NDArray[Any]]:
    """Allocate ``n`` uninitialised items of each type."""
    return map(np.empty if n * _MAX_WIDTH <= _SMALL else empty, repeat(n), dtypes)


@functools.cache
def _dtypes(block: type[Any]) -> list[np.dtype[Any]]:
    # NDArray[np.int8] is ndarray[shape, dtype[int8]]. Since NumPy 2.5, it is a separate type with the argument int8.
    last = [get_args(declared)[-1] for declared in get_type_hints(block).values()]
    return [np.dtype(get_args(item)[0] if get_args(item) else item) for item in last]


def part(block: Block, start: int, stop: int) -> Block:
    """The items from ``start`` to before ``stop`` in each array. They share memory with ``block``."""
    return type(block)(*map(itemgetter(slice(start, stop)), block))


def bitmap(valid: Bools | None) -> pa.Buffer | None:
    """Arrow's validity bitmap; None if every row is valid."""
    if valid is None or np.logical_and.reduce(valid):
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def primitive(values: npt.NDArray[Any], valid: Bools | None = None, type: pa.DataType | None = None) -> pa.Array:
    """A column that uses these values without a copy. Only booleans are packed."""
    rows = len(values)
    type = type or pa.from_numpy_dtype(values.dtype)
    if values.dtype == np.bool_:
        values = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(type, rows, [bitmap(valid), pa.py_buffer(values)])


def from_codes(codes: npt.NDArray[np.int8], vocabulary: Sequence[str]) -> pa.Array:
    """STRING: ``vocabulary[code]`` for each code; NULL for a negative code."""
    words = _texts_of(tuple(vocabulary))
    offsets = empty(len(codes) + 1, np.int32)
    total = place_words(codes, words.sizes, offsets)
    checked_total(total)
    out = empty(total, np.uint8, COPY_SLACK)
    write_words(codes, words, offsets, out)
    buffers = [bitmap(codes >= 0), pa.py_buffer(offsets), pa.py_buffer(out).slice(0, total)]
    return pa.Array.from_buffers(pa.string(), len(codes), buffers)


def to_codes(array: pa.Array, vocabulary: Sequence[str]) -> npt.NDArray[np.int8]:
    """The index of each STRING in ``vocabulary``; -1 for NULL and for other texts."""
    codes = empty(len(array), np.int8)
    find_words(*spans_of(array), _texts_of(tuple(vocabulary)), codes)
    return codes


def strings(texts: Sequence[str]) -> pa.Array:
    """A STRING column of a few texts. Unlike ``pa.array`` it does not import pandas, which no worker needs."""
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])


def text_or_null(texts: pa.Array) -> pa.Array:
    """STRING: the texts, NULL for an empty one."""
    return pc.if_else(pc.equal(texts, ""), None, texts)


def timestamps(values: Ints, unit: Literal["ms", "ns"], valid: Bools | None = None) -> pa.Array:
    """TIMESTAMP from ``values`` [ms or ns since epoch], rounded toward the past; NULL outside Spark's range."""
    micros = empty(len(values), np.int64)
    if unit == "ns":
        nanos_to_micros(values, micros)
        return primitive(micros, valid, TIMESTAMP)
    first, last = FIRST_MICROSECOND // 1000, LAST_MICROSECOND // 1000
    if not millis_to_micros(values, first, last, micros):
        inside = (values >= first) & (values <= last)
        valid = inside if valid is None else valid & inside
    return primitive(micros, valid, TIMESTAMP)


def micros(values: Ints, valid: Bools | None = None) -> pa.Array:
    """TIMESTAMP from ``values`` [us since epoch]; NULL outside Spark's range."""
    inside = (values >= FIRST_MICROSECOND) & (values <= LAST_MICROSECOND)
    return primitive(values, inside if valid is None else valid & inside, TIMESTAMP)


def build(sizes: Ints, fill: Callable[[npt.NDArray[np.int32], Bytes], None], type: pa.DataType) -> pa.Array:
    """BINARY or STRING of known sizes [bytes], NULL for a negative one.

    ``fill(offsets, out)`` writes row ``i`` to ``out[offsets[i]:offsets[i + 1]]`` and may write up to ``COPY_SLACK`` bytes past
    the end. STRING rows must be UTF-8.
    """
    offsets = empty(len(sizes) + 1, np.int32)
    total = _measure(sizes, offsets)
    out = empty(total, np.uint8, COPY_SLACK)
    fill(offsets, out)
    buffers = [bitmap(sizes >= 0), pa.py_buffer(offsets), pa.py_buffer(out).slice(0, total)]
    return pa.Array.from_buffers(type, len(sizes), buffers)


def gather(data: Bytes, starts: Ints, sizes: Ints, type: pa.DataType) -> pa.Array:
    """BINARY or STRING from spans of ``data``: ``data[start:start + size]``, NULL for a negative size [bytes].

    The caller must ensure that every span is inside ``data``, and that STRING spans are UTF-8.
    """
    return build(sizes, lambda offsets, out: gather_rows(data, starts, sizes, offsets, out), type)


def _measure(sizes: Ints, offsets: npt.NDArray[np.int32]) -> int:
    ends = np.cumsum(np.maximum(sizes, 0))
    total = int(ends[-1]) if len(ends) else 0
    checked_total(total)
    offsets[0] = 0
    offsets[1:] = ends
    return total


def checked_total(total: int) -> None:
    """Raise ColumnTooLargeError if the results of one batch have more bytes or items than an Arrow column can hold."""
    if total > INT32_MAX:
        raise ColumnTooLargeError(
            f"the results of one batch come to {total} bytes, more than an Arrow column holds: "
            "lower spark.sql.execution.arrow.maxRecordsPerBatch"
        )


def struct(fields: Mapping[str, pa.Array], valid: Bools | None = None) -> pa.Array:
    """STRUCT of equally long columns. A STRUCT without columns needs ``valid``."""
    arrays = list(fields.values())
    if not arrays and valid is not None:
        return pa.Array.from_buffers(pa.struct([]), len(valid), [bitmap(valid)], children=[])
    type = pa.struct([pa.field(name, array.type) for name, array in fields.items()])
    return pa.Array.from_buffers(type, len(arrays[0]), [bitmap(valid)], children=arrays)


def lists(offsets: npt.NDArray[np.int32], values: pa.Array, valid: Bools | None = None) -> pa.Array:
    """ARRAY: row ``i`` is ``values[offsets[i]:offsets[i + 1]]``."""
    buffers = [bitmap(valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.list_(values.type), len(offsets) - 1, buffers, children=[values])


def maps(offsets: npt.NDArray[np.int32], keys: pa.Array, items: pa.Array, valid: Bools | None = None) -> pa.Array:
    """MAP: row ``i`` has ``keys[offsets[i]:offsets[i + 1]]``, unique and not NULL, and their ``items``."""
    type = pa.map_(keys.type, items.type)
    entries = pa.StructArray.from_arrays([keys, items], fields=[type.key_field, type.item_field])
    buffers = [bitmap(valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(type, len(offsets) - 1, buffers, children=[entries])


def without_repeats(
    ends: npt.NDArray[np.int32], keys: pa.Array, items: pa.Array
) -> tuple[npt.NDArray[np.int32], list[pa.Array]]:
    """The offsets, keys and items of the maps, with only the last item of each key, as in Java and Python."""
    data, offsets, _ = binary_of(keys)
    if not _may_repeat(data, offsets, ends):
        return ends, [keys, items]
    codes = np.asarray(pc.dictionary_encode(keys).indices, np.int64)
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    named = rows * (int(codes.max(initial=0)) + 1) + codes
    _, from_the_end = np.unique(named[::-1], return_index=True)
    lasts = np.sort(len(named) - 1 - from_the_end)
    counts = np.bincount(rows[lasts], minlength=len(ends) - 1)
    chosen = pa.array(lasts)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int32), [keys.take(chosen), items.take(chosen)]


@kernel
def _may_repeat(data: Bytes, offsets: npt.NDArray[np.integer[Any]], ends: npt.NDArray[np.int32]) -> bool:
    """Whether a map may have a repeated key. Always true for a large map, which is not checked."""
    for row in range(ends.size - 1):
        first, last = int64(ends[row]), int64(ends[row + 1])
        if last - first > _FEW_KEYS:
            return True
        for k in range(first + 1, last):
            for j in range(first, k):
                if offsets[k + 1] - offsets[k] == offsets[j + 1] - offsets[j] and same_bytes(
                    data, int64(offsets[k]), data, int64(offsets[j]), int64(offsets[k + 1] - offsets[k])
                ):
                    return True
    return False


def masked(result: pa.Array, columns: Sequence[pa.Array]) -> pa.Array:
    """``result``, but NULL in rows in which one of ``columns`` is NULL. It shares the values without a copy."""
    nullable = [column for column in columns if column.null_count]
    if not nullable:
        return result
    valid = bools_of(result.is_valid())
    for column in nullable:
        valid &= bools_of(column.is_valid())
    if result.offset:
        # The result shares the complete buffers, but the new bitmap starts at bit 0.
        result = pa.concat_arrays([result])
    type = result.type
    if pa.types.is_struct(type):
        children = [result.field(i) for i in range(type.num_fields)]
        return pa.Array.from_buffers(type, len(result), [bitmap(valid)], children=children)
    if pa.types.is_list(type) or pa.types.is_map(type):
        buffers = [bitmap(valid), result.buffers()[1]]
        return pa.Array.from_buffers(type, len(result), buffers, children=[result.values])
    return pa.Array.from_buffers(type, len(result), [bitmap(valid), *result.buffers()[1:]])
