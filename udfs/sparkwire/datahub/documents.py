"""JSON objects of which any member may be missing: the kernel that writes messages.

What a message looks like is read once into a program of steps, objects opened and closed and members between them. Each
row walks it, over the members that it has not and the objects that would be empty. Measuring and writing are the same lines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from sparkwire.core.column import Spans
from sparkwire.kernels import Bools, Bytes, Ints, copy, int64, kernel, store_i32, store_i64, store_u8
from sparkwire.kernels.gather import Texts, texts_of, write_text
from sparkwire.kernels.json_text import write_java_text
from sparkwire.kernels.text import write_number

# What a step writes after its fixed text.
_OPEN, _CLOSE, TEXT, JSON, NUMBER, TEXTS, COLUMNS = range(7)
"""TEXT is quoted and escaped, JSON goes in as it is, a NUMBER is an integer; arrays of TEXT, and of columns"""

ALWAYS = 1 << 62
"""the bit of what every row has"""

_COMMA, _QUOTE, _LEFT_BRACE, _RIGHT_BRACE, _LEFT_BRACKET, _RIGHT_BRACKET = b',"{}[]'
_NULL = int.from_bytes(b"null", "little")
_NAME, _TYPE = (int.from_bytes(key, "little") for key in (b'"name":', b'"type":'))
_KEY_SIZE = len(b'"name":')

Tree: TypeAlias = "Mapping[str, Tree | int]"
"""members by key: an object, or the number of a field"""


class DocumentSteps(NamedTuple):
    """Steps, an item each."""

    kind: Ints
    field: Ints
    needs: Ints
    """of these bits a row has to have one, or goes on at ``otherwise``"""
    otherwise: Ints
    texts: Texts
    """what is written before its value"""


class DocumentFields(NamedTuple):
    """What rows have for the fields, which are numbered."""

    there: Ints
    """by row: ``ALWAYS`` and a bit for each field, ``1 << number``"""
    data: Bytes
    """every TEXT and JSON"""
    places: Ints
    """(fields, rows + 1): the NUMBERs; else where rows begin in the data [bytes] or among the items, and where the last ends"""
    texts: Spans
    """of TEXTS"""
    names: Spans
    types: Spans
    objects: Bools
    """of COLUMNS, and which of them are not null"""


def program(tree: Tree, kinds: Mapping[int, int], always: Collection[str]) -> DocumentSteps:
    """The steps that write ``tree``; fields have ``kinds``, the objects under the keys ``always`` are never left out."""
    steps: list[list[int]] = []
    texts: list[str] = []

    def add(kind: int, field: int, needs: int, text: str) -> None:
        steps.append([kind, field, needs, len(steps) + 1])
        texts.append(text)

    def write(key: str, node: Tree | int) -> int:
        name = f'"{key}":' if key else ""
        if isinstance(node, int):
            add(kinds[node], node, 1 << node, name)
            return 1 << node
        begin = len(steps)
        add(_OPEN, 0, ALWAYS, name + "{")
        inside = [write(*member) for member in node.items()]
        add(_CLOSE, 0, ALWAYS, "}")
        needs = ALWAYS if key in always else int(np.bitwise_or.reduce(inside))
        steps[begin][2:] = [needs, len(steps)]
        return needs

    write("", tree)
    kind, field, needs, otherwise = np.array(steps, np.int64).T.copy()
    return DocumentSteps(kind, field, needs, otherwise, texts_of(texts))


@kernel
def measure_documents(steps: DocumentSteps, fields: DocumentFields, untouched: Bytes, sizes: Ints) -> None:
    """Size of each row's document [bytes]; ``untouched`` is any writable memory."""
    for row in range(sizes.size):
        sizes[row] = _document(steps, fields, row, untouched, int64(0), False)


@kernel
def write_documents(steps: DocumentSteps, fields: DocumentFields, offsets: npt.NDArray[np.int32], out: Bytes) -> None:
    """Write each row's document to ``out[offsets[row]:]``."""
    for row in range(offsets.size - 1):
        _document(steps, fields, row, out, int64(offsets[row]), True)


@kernel
def _document(steps: DocumentSteps, fields: DocumentFields, row: int, out: Bytes, at: int, writing: bool) -> int:
    step, first = 0, True
    while step < steps.kind.size:
        if fields.there[row] & steps.needs[step] == 0:
            step = steps.otherwise[step]
            continue
        kind = steps.kind[step]
        if not first and kind != _CLOSE:
            at = _write_byte(out, at, _COMMA, writing)
        at = write_text(out, at, steps.texts, step, writing)
        if kind > _CLOSE:
            at = _write_value(fields, kind, steps.field[step], row, out, at, writing)
        first = kind == _OPEN
        step += 1
    return at


@kernel
def _write_value(fields: DocumentFields, kind: int, field: int, row: int, out: Bytes, at: int, writing: bool) -> int:
    start, end = int64(fields.places[field, row]), int64(fields.places[field, row + 1])
    if kind == NUMBER:
        return write_number(out, at, start, writing)
    if kind == TEXT:
        return _write_quoted(out, at, fields.data, start, end - start, writing)
    if kind == TEXTS:
        return _write_texts(fields.texts, start, end, out, at, writing)
    if kind == COLUMNS:
        return _write_columns(fields, start, end, out, at, writing)
    if writing:
        copy(out, at, fields.data, start, end - start)
    return at + end - start


@kernel
def _write_texts(items: Spans, first: int, last: int, out: Bytes, at: int, writing: bool) -> int:
    at = _write_byte(out, at, _LEFT_BRACKET, writing)
    for i in range(first, last):
        if i > first:
            at = _write_byte(out, at, _COMMA, writing)
        at = _write_item(items, i, out, at, writing)
    return _write_byte(out, at, _RIGHT_BRACKET, writing)


@kernel
def _write_columns(fields: DocumentFields, first: int, last: int, out: Bytes, at: int, writing: bool) -> int:
    at = _write_byte(out, at, _LEFT_BRACKET, writing)
    for i in range(first, last):
        if i > first:
            at = _write_byte(out, at, _COMMA, writing)
        at = _write_column(fields, i, out, at, writing) if fields.objects[i] else _write_null(out, at, writing)
    return _write_byte(out, at, _RIGHT_BRACKET, writing)


@kernel
def _write_column(fields: DocumentFields, i: int, out: Bytes, at: int, writing: bool) -> int:
    """A name, a type, both or none, in braces."""
    named, typed = fields.names.sizes[i] >= 0, fields.types.sizes[i] >= 0
    at = _write_byte(out, at, _LEFT_BRACE, writing)
    if named:
        at = _write_item(fields.names, i, out, _write_key(out, at, _NAME, writing), writing)
    if named and typed:
        at = _write_byte(out, at, _COMMA, writing)
    if typed:
        at = _write_item(fields.types, i, out, _write_key(out, at, _TYPE, writing), writing)
    return _write_byte(out, at, _RIGHT_BRACE, writing)


@kernel
def _write_key(out: Bytes, at: int, key: int, writing: bool) -> int:
    if writing:
        store_i64(out, at, key, True)  # a byte more than counts
    return at + _KEY_SIZE


@kernel
def _write_item(items: Spans, i: int, out: Bytes, at: int, writing: bool) -> int:
    if items.sizes[i] < 0:
        return _write_null(out, at, writing)
    return _write_quoted(out, at, items.data, int64(items.starts[i]), int64(items.sizes[i]), writing)


@kernel
def _write_null(out: Bytes, at: int, writing: bool) -> int:
    if writing:
        store_i32(out, at, _NULL, True)
    return at + 4


@kernel
def _write_quoted(out: Bytes, at: int, data: Bytes, start: int, size: int, writing: bool) -> int:
    at = _write_byte(out, at, _QUOTE, writing)
    at = write_java_text(out, at, data, start, size, writing)
    return _write_byte(out, at, _QUOTE, writing)


@kernel
def _write_byte(out: Bytes, at: int, byte: int, writing: bool) -> int:
    if writing:
        store_u8(out, at, np.uint8(byte))
    return at + 1


@kernel
def measure_quoted(data: Bytes, offsets: npt.NDArray[Any], untouched: Bytes, sizes: Ints) -> None:
    """Size of each row as a JSON string [bytes]."""
    for row in range(sizes.size):
        start = int64(offsets[row])
        sizes[row] = _write_quoted(untouched, int64(0), data, start, int64(offsets[row + 1]) - start, False)


@kernel
def write_quoted(data: Bytes, offsets: npt.NDArray[Any], sizes: Ints, at: npt.NDArray[np.int32], out: Bytes) -> None:
    """Write the rows that have a size to ``out[at[row]:]``."""
    for row in range(sizes.size):
        if sizes[row] > 0:
            start = int64(offsets[row])
            _write_quoted(out, int64(at[row]), data, start, int64(offsets[row + 1]) - start, True)
