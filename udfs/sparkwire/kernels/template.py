"""Rows of text out of templates.

    <opcode>"sequence":<sequence>,"value":"<value>"

A name in angle brackets is a value of the row: a number in decimal, a word out of a list, bytes in one of
several spellings. A row takes one of several templates. Templates are read once, into flat tables that one pair of
kernels walks: the first measures, the second writes, and both are the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels.base64 import write_base64_lines
from sparkwire.kernels.gather import Texts, texts_of, write_text
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.json_text import write_hexadecimal, write_java_text
from sparkwire.kernels.load import Bytes, Ints
from sparkwire.kernels.number import int64
from sparkwire.kernels.text import write_number

# What a value is.
NUMBER: Final = 0
WORD: Final = 1
BASE64: Final = 2
TEXT: Final = 3
HEXADECIMAL: Final = 4
_END: Final = 5

_VALUE = re.compile(r"<(\w+)>")


class TemplateValue(NamedTuple):
    """What a name in a template is."""

    kind: int
    source: int
    """row of ``numbers`` for a NUMBER or a WORD, of ``starts`` and ``sizes`` for bytes"""
    words: tuple[str, ...] = ()
    """of a WORD, by its number"""


class Templates(NamedTuple):
    """Templates as the kernels see them: steps, each a fixed text and the value after it."""

    firsts: Ints
    """template ``t`` is the steps ``firsts[t]:firsts[t + 1]``"""
    kinds: Ints
    sources: Ints
    numbers: Ints
    """by step: which of ``texts`` is its fixed text; after it come the words of its value"""
    texts: Texts


def templates(texts: Sequence[str], values: Mapping[str, TemplateValue]) -> Templates:
    """Read templates; a row names its own by the place in ``texts``."""
    firsts, kinds, sources, numbers = [0], [], [], []
    fixed: list[str] = []
    for text in texts:
        parts = _VALUE.split(text)
        for before, name in zip(parts[::2], [*parts[1::2], None], strict=True):
            value = values[name] if name else TemplateValue(_END, 0)
            kinds.append(value.kind)
            sources.append(value.source)
            numbers.append(len(fixed))
            fixed += [before, *value.words]
        firsts.append(len(kinds))
    return Templates(_ints(firsts), _ints(kinds), _ints(sources), _ints(numbers), texts_of(fixed))


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


@kernel
def measure_rows(
    table: Templates,
    chosen: NDArray[np.int8],
    data: Bytes,
    numbers: Ints,
    starts: Ints,
    sizes: Ints,
    measured: Ints,
    untouched: Bytes,
) -> None:
    """Size of every row's text [bytes], -1 where ``chosen`` is negative.

    Parameters
    ----------
    chosen
        the template of each row
    numbers
        (numbers, rows), what the NUMBERs and WORDs are
    starts, sizes
        (spans, rows), where in ``data`` the bytes lie; only those that the row's template names have to lie inside
    untouched
        any writable bytes
    """
    for row in range(chosen.size):
        measured[row] = -1
        if chosen[row] >= 0:
            measured[row] = _row(
                table, int64(chosen[row]), data, numbers, starts, sizes, row, untouched, int64(0), False
            )


@kernel
def write_rows(
    table: Templates,
    chosen: NDArray[np.int8],
    data: Bytes,
    numbers: Ints,
    starts: Ints,
    sizes: Ints,
    offsets: NDArray[Any],
    out: Bytes,
) -> None:
    """Write every row's text to ``out[offsets[row]:]``, where ``measure_rows`` has made room."""
    for row in range(chosen.size):
        if chosen[row] >= 0:
            _row(table, int64(chosen[row]), data, numbers, starts, sizes, row, out, int64(offsets[row]), True)


@kernel
def _row(
    table: Templates,
    template: int,
    data: Bytes,
    numbers: Ints,
    starts: Ints,
    sizes: Ints,
    row: int,
    out: Bytes,
    at: int,
    writing: bool,
) -> int:
    for step in range(table.firsts[template], table.firsts[template + 1]):
        kind, source, text = table.kinds[step], table.sources[step], table.numbers[step]
        at = write_text(out, at, table.texts, text, writing)
        if kind == NUMBER:
            at = write_number(out, at, numbers[source, row], writing)
        elif kind == WORD:
            at = write_text(out, at, table.texts, text + 1 + numbers[source, row], writing)
        elif kind == BASE64:
            at = write_base64_lines(out, at, data, starts[source, row], sizes[source, row], writing)
        elif kind == TEXT:
            at = write_java_text(out, at, data, starts[source, row], sizes[source, row], writing)
        elif kind == HEXADECIMAL:
            at = write_hexadecimal(out, at, data, starts[source, row], sizes[source, row], writing)
    return at
