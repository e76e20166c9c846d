"""Convert columns to JSON: first each value to a JSON text, then these texts to objects and arrays.

Texts are STRING columns. For a NULL text, an object has no member and an array has a null. Strings are escaped as in Jackson 1,
and bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import Binary, Spans, binary_of, build, checked_total, empty, spans_of
from sparkwire.json.escapes import write_java_text
from sparkwire.kernels import Bytes, Ints, int64, kernel, store_u8
from sparkwire.kernels.base64 import write_base64, write_base64_lines
from sparkwire.kernels.gather import join_rows, texts_of
from sparkwire.kernels.load import table_of

NULL = "null"

# How bytes are written as a JSON string: as text, as Base64 in Databus's lines, or as Base64 in one line.
TEXT: Final = 0
BASE64_LINES: Final = 1
BASE64: Final = 2

_QUOTE = ord('"')


def joined(*parts: pa.Array | str) -> pa.Array:
    """Concatenate the texts of each row; NULL if one of them is NULL."""
    between, columns = [""], list[Binary]()
    for part in parts:
        if isinstance(part, str):
            between[-1] += part
        else:
            columns.append(binary_of(part))
            between.append("")
    sizes = np.full(columns[0].rows, sum(len(text.encode()) for text in between), np.int64)
    for column in columns:
        sizes += np.diff(column.offsets)
    for column in columns:
        if column.valid is not None:
            sizes[~column.valid] = -1
    buffers = [buffer for column in columns for buffer in (column.data, column.offsets.astype(np.int64))]
    table, texts = table_of(buffers), texts_of(between)
    return build(sizes, lambda offsets, out: join_rows(table, texts, sizes, offsets, out), pa.string())


def string_of(texts: pa.Array) -> pa.Array:
    """STRING or BINARY values as JSON strings."""
    return string_of_spans(spans_of(texts))


def base64_of(values: pa.Array) -> pa.Array:
    """BINARY values as JSON strings of Base64, without line breaks."""
    return string_of_spans(spans_of(values), BASE64)


def number_of(numbers: pa.Array) -> pa.Array:
    """Numbers as JSON. Floating-point numbers have the fewest digits that identify them; NaN and infinities are JSON strings."""
    texts = numbers.cast(pa.string())
    if not pa.types.is_floating(numbers.type):
        return texts
    whole = pc.utf8_is_decimal(pc.ascii_ltrim(texts, "-"))  # Arrow writes 1.0 as 1
    texts = joined(texts, pc.if_else(whole, ".0", ""))
    finite = pc.is_finite(numbers)
    if pc.all(finite).as_py() is not False:
        return texts
    infinite = pc.if_else(pc.greater(numbers, 0), '"Infinity"', '"-Infinity"')
    return pc.if_else(finite, texts, pc.if_else(pc.is_nan(numbers), '"NaN"', infinite))


def string_of_spans(spans: Spans, spelling: int = TEXT) -> pa.Array:
    """Spans of bytes as JSON strings: as text, as Base64 in one line, or as Base64 in Databus's lines."""
    sizes = empty(len(spans.sizes), np.int64)
    measure_strings(spelling, *spans, empty(0, np.uint8), sizes)
    return build(sizes, lambda offsets, out: write_strings(spelling, *spans, offsets, out), pa.string())


@kernel
def measure_strings(spelling: int, data: Bytes, starts: Ints, sizes: Ints, untouched: Bytes, measured: Ints) -> None:
    """Measure each span as a JSON string [bytes]; -1 for a negative size. ``untouched`` is any writable memory."""
    for row in range(sizes.size):
        measured[row] = -1
        if sizes[row] >= 0:
            measured[row] = _string(spelling, data, starts[row], sizes[row], untouched, int64(0), False)


@kernel
def write_strings(
    spelling: int, data: Bytes, starts: Ints, sizes: Ints, offsets: npt.NDArray[np.int32], out: Bytes
) -> None:
    """Write each span as a JSON string to ``out[offsets[row]:]``."""
    for row in range(sizes.size):
        if sizes[row] >= 0:
            _string(spelling, data, starts[row], sizes[row], out, int64(offsets[row]), True)


@kernel
def _string(spelling: int, data: Bytes, start: int, size: int, out: Bytes, at: int, writing: bool) -> int:
    if writing:
        store_u8(out, at, _QUOTE)
    if spelling == TEXT:
        at = write_java_text(out, at + 1, data, start, size, writing)
    elif spelling == BASE64:
        at = write_base64(out, at + 1, data, start, size, writing)
    else:
        at = write_base64_lines(out, at + 1, data, start, size, writing)
    if writing:
        store_u8(out, at, _QUOTE)
    return at + 1


def object_of(members: Mapping[str, pa.Array | str], rows: int, end: str = "}") -> pa.Array:
    """Objects with the members of each row, ``{}`` if all are NULL. A Python text is the same member value in every row."""
    present = {name: text for name, text in members.items() if isinstance(text, str) or text.null_count < len(text)}
    first = next(iter(present.values()), "")
    first_may_be_missing = not isinstance(first, str) and first.null_count > 0
    parts: list[Any] = []
    for name, text in present.items():
        before = f'{"," if parts or first_may_be_missing else ""}"{name}":'
        if isinstance(text, str) or not text.null_count:
            parts += [before, text]
        else:
            parts.append(pc.coalesce(joined(before, text), ""))
    if first_may_be_missing:
        parts = [pc.ascii_ltrim(joined(*parts), ",")]
    if all(isinstance(part, str) for part in parts):
        return pa.array(["{" + "".join(parts) + end] * rows, pa.string())
    return joined("{", *parts, end)


def array_of(lists: pa.Array, items: pa.Array) -> pa.Array:
    """Arrays of the items' texts. ``lists`` defines the rows; a NULL row stays NULL."""
    return pc.if_else(lists.is_valid(), items_of(pa.array(item_offsets(lists)), or_null(items)), None)


def items_of(offsets: pa.Array, items: pa.Array, ends: str = "[]") -> pa.Array:
    """Arrays of ``items[offsets[row]:offsets[row + 1]]``; no item may be NULL. Other ``ends`` make objects of members."""
    places = binary_of(items).offsets
    checked_total(int(places[-1]) - int(places[0]) + len(items))
    return joined(ends[0], pc.binary_join(pa.ListArray.from_arrays(offsets, items), ","), ends[1])


def or_null(texts: pa.Array) -> pa.Array:
    """The texts, with ``null`` for NULL."""
    if not texts.null_count:
        return texts
    places = binary_of(texts).offsets
    checked_total(int(places[-1]) - int(places[0]) + len(NULL) * texts.null_count)
    return pc.coalesce(texts, NULL)


def item_offsets(lists: pa.Array) -> npt.NDArray[np.int32]:
    """The offsets of the rows of ``lists`` in ``lists.flatten()``, with the end of the last row."""
    return np.concatenate([[0], np.cumsum(lists.value_lengths().fill_null(0))]).astype(np.int32)
