"""Concatenate spans of a byte buffer, or fixed texts, to the content of BINARY and STRING results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import COPY_SLACK, Bytes, Ints, Table, copy, i64, int64, slot
from sparkwire.kernels.text import same_bytes


@kernel
def gather_rows(
    data: npt.NDArray[np.uint8], starts: Ints, sizes: Ints, offsets: npt.NDArray[Any], out: npt.NDArray[np.uint8]
) -> None:
    """Copy ``data[starts[i]:starts[i] + sizes[i]]`` to ``out[offsets[i]:]``. A size of 0 or below copies nothing."""
    for i in range(sizes.size):
        if sizes[i] > 0:
            copy(out, int64(offsets[i]), data, starts[i], sizes[i])


class Texts(NamedTuple):
    """Fixed texts, with padding so that they can be copied in chunks."""

    data: npt.NDArray[np.uint8]
    starts: Ints
    sizes: Ints


def texts_of(texts: Sequence[str]) -> Texts:
    encoded = [text.encode() for text in texts]
    sizes = np.array([len(text) for text in encoded], np.int64)
    data = np.frombuffer(b"".join(encoded) + bytes(COPY_SLACK), np.uint8)
    return Texts(data, np.cumsum(sizes) - sizes, sizes)


@kernel
def write_text(out: npt.NDArray[np.uint8], at: int, texts: Texts, which: int, writing: bool) -> int:
    """Write a text to ``out[at:]``, or only measure it if ``writing`` is false. Returns its end."""
    if writing:
        copy(out, at, texts.data, texts.starts[which], texts.sizes[which])
    return at + int64(texts.sizes[which])


@kernel
def join_rows(columns: Table, between: Texts, sizes: Ints, offsets: npt.NDArray[np.int32], out: Bytes) -> None:
    """Join each row's texts, one of each column, at ``out[offsets[row]:]``. A fixed text is before each and after the last.

    ``columns`` has the bytes of each column, followed by its 64-bit offsets. Rows with a negative size are skipped.
    """
    count = between.sizes.size - 1
    for row in range(sizes.size):
        if sizes[row] < 0:
            continue
        at = int64(offsets[row])
        for k in range(count):
            copy(out, at, between.data, between.starts[k], between.sizes[k])
            at += between.sizes[k]
            ends = slot(columns, int64(2 * k + 1))
            start, end = i64(ends, row << 3, True), i64(ends, (row + 1) << 3, True)
            copy(out, at, slot(columns, int64(2 * k)), start, end - start)
            at += end - start
        copy(out, at, between.data, between.starts[count], between.sizes[count])


@kernel
def place_words(codes: npt.NDArray[np.int8], sizes: Ints, offsets: npt.NDArray[np.int32]) -> int:
    """Compute the offsets of concatenated words of ``sizes[code]`` bytes; code -1 is no word. Returns the total size [bytes]."""
    offsets[0] = 0
    end = 0
    for i in range(codes.size):
        if codes[i] >= 0:
            end += sizes[codes[i]]
        offsets[i + 1] = end
    return end


@kernel
def write_words(
    codes: npt.NDArray[np.int8], words: Texts, offsets: npt.NDArray[np.int32], out: npt.NDArray[np.uint8]
) -> None:
    """Write the word of ``codes[i]`` to ``out[offsets[i]:]``."""
    for i in range(codes.size):
        if codes[i] >= 0:
            write_text(out, int64(offsets[i]), words, int64(codes[i]), True)


@kernel
def find_words(data: Bytes, starts: Ints, sizes: Ints, words: Texts, codes: npt.NDArray[np.int8]) -> None:
    """Find the index of the word that equals each ``data[start:start + size]``; -1 if none does."""
    for i in range(codes.size):
        codes[i] = -1
        for word in range(words.sizes.size):
            size = words.sizes[word]
            if size == sizes[i] and same_bytes(data, starts[i], words.data, words.starts[word], size):
                codes[i] = word
                break
