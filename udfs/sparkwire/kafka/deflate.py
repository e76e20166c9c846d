"""Deflate: the blocks of one gzip member, bit by bit; what is refused is what zlib refuses.

Source: RFC 1951.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.kafka.codecs import FAILED, NO_ROOM
from sparkwire.kernels import Bytes, int64, kernel, store_u8, u8, u16

_LENGTHS, _DISTANCES = 288, 32  # codes there can be
_LONGEST = 15  # code [bits]
_END = 256  # of a block
_MOST_LENGTHS, _MOST_DISTANCES = 286, 30
_ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int32)


def _bases(first: int, extra: list[int]) -> npt.NDArray[np.int32]:
    return np.array([first + sum(1 << bits for bits in extra[:i]) for i in range(len(extra))], np.int32)


_LENGTH_BITS_LIST = [0] * 8 + [bits for bits in range(1, 6) for _ in range(4)]
_DISTANCE_BITS_LIST = [0, 0] + [bits for bits in range(14) for _ in range(2)]
_LENGTH_BASE = np.append(_bases(3, _LENGTH_BITS_LIST), 258).astype(np.int32)
_LENGTH_BITS = np.array([*_LENGTH_BITS_LIST, 0], np.int32)
_DISTANCE_BASE = _bases(1, _DISTANCE_BITS_LIST)
_DISTANCE_BITS = np.array(_DISTANCE_BITS_LIST, np.int32)


# The codes of literals and lengths, and of distances: a block's own, and those that are fixed.
_OWN, _OWN_DISTANCES, _FIXED, _FIXED_DISTANCES = range(4)


class Codes(NamedTuple):
    """The codes of a block, and the fixed ones: how many of each length, and the symbols in order of their codes."""

    sizes: npt.NDArray[np.int32]
    """length of each symbol's code [bits]"""
    counts: npt.NDArray[np.int32]
    """(4, 16)"""
    symbols: npt.NDArray[np.int32]
    """(4, 288)"""
    next: npt.NDArray[np.int32]
    """where the next symbol of each length goes"""


def codes() -> Codes:
    """The fixed codes, and room for a block's own."""
    work = Codes(
        sizes=np.empty(_LENGTHS + _DISTANCES, np.int32),
        counts=np.empty((4, _LONGEST + 1), np.int32),
        symbols=np.empty((4, _LENGTHS), np.int32),
        next=np.empty(_LONGEST + 2, np.int32),
    )
    work.sizes[:_LENGTHS] = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8
    work.sizes[_LENGTHS:] = 5
    construct(work, _FIXED, 0, _LENGTHS)
    construct(work, _FIXED_DISTANCES, _LENGTHS, _DISTANCES)
    return work


class Bits(NamedTuple):
    """Where reading has come to: bits that are not used yet, how many, and the position of the byte after them."""

    held: np.uint64
    number: int
    pos: int


@kernel
def _bits(source: Bytes, end: int, bits: Bits, need: int) -> tuple[int, Bits]:
    """The next ``need`` bits, at most 25, or -1 at the end."""
    held, count, pos = bits
    while count < need:
        if pos >= end:
            return int64(-1), bits
        held |= np.uint64(u8(source, pos)) << np.uint64(count)
        pos += 1
        count += 8
    value = int64(held & ((np.uint64(1) << np.uint64(need)) - np.uint64(1)))
    return value, Bits(held >> np.uint64(need), count - need, pos)


@kernel
def _symbol(source: Bytes, end: int, bits: Bits, work: Codes, which: int) -> tuple[int, Bits]:
    """The next symbol, or -1 where no code fits."""
    held, count, pos = bits
    while count <= _LONGEST and pos < end:
        held |= np.uint64(u8(source, pos)) << np.uint64(count)
        pos += 1
        count += 8
    code = first = index = int64(0)
    for size in range(1, _LONGEST + 1):
        if size > count:
            break
        code |= int64(held & np.uint64(1))
        held >>= np.uint64(1)
        of_size = int64(work.counts[which, size])
        if code - of_size < first:
            return int64(work.symbols[which, index + code - first]), Bits(held, count - size, pos)
        index += of_size
        first = (first + of_size) << 1
        code <<= 1
    return int64(-1), bits


@kernel
def construct(work: Codes, which: int, begin: int, number: int) -> int:
    """Build a code from the lengths of ``number`` symbols; how many codes are left over, negative for too many."""
    for size in range(_LONGEST + 1):
        work.counts[which, size] = 0
    for symbol in range(number):
        work.counts[which, work.sizes[begin + symbol]] += 1
    left = int64(1)
    for size in range(1, _LONGEST + 1):
        left = (left << 1) - work.counts[which, size]
        if left < 0:
            return int64(left)
    work.next[1] = 0
    for size in range(1, _LONGEST + 1):
        work.next[size + 1] = work.next[size] + work.counts[which, size]
    for symbol in range(number):
        size = work.sizes[begin + symbol]
        if size:
            work.symbols[which, work.next[size]] = symbol
            work.next[size] += 1
    return int64(0 if work.counts[which, 0] == number else left)


@kernel
def _read_codes(source: Bytes, end: int, bits: Bits, work: Codes) -> tuple[bool, Bits]:
    """The codes that a block brings with it."""
    lengths, bits = _bits(source, end, bits, 5)
    distances, bits = _bits(source, end, bits, 5)
    number, bits = _bits(source, end, bits, 4)
    lengths, distances = lengths + 257, distances + 1
    if number < 0 or lengths > _MOST_LENGTHS or distances > _MOST_DISTANCES:
        return False, bits
    for i in range(19):
        work.sizes[i] = 0
    for i in range(number + 4):
        size, bits = _bits(source, end, bits, 3)
        if size < 0:
            return False, bits
        work.sizes[_ORDER[i]] = size
    if construct(work, _OWN, 0, 19) != 0:
        return False, bits
    index = int64(0)
    while index < lengths + distances:
        symbol, bits = _symbol(source, end, bits, work, _OWN)
        if symbol < 0:
            return False, bits
        value, times = symbol, int64(1)
        if symbol >= 16:
            extra = int64(2) if symbol == 16 else int64(3) if symbol == 17 else int64(7)
            more, bits = _bits(source, end, bits, extra)
            if more < 0 or (symbol == 16 and index == 0):
                return False, bits
            value = int64(work.sizes[index - 1]) if symbol == 16 else int64(0)
            times = more + (11 if symbol == 18 else 3)
        if index + times > lengths + distances:
            return False, bits
        for _ in range(times):
            work.sizes[index] = value
            index += 1
    if work.sizes[_END] == 0:
        return False, bits
    left = construct(work, _OWN, 0, lengths)
    if left < 0 or (left > 0 and lengths != work.counts[0, 0] + work.counts[0, 1]):
        return False, bits
    left = construct(work, _OWN_DISTANCES, lengths, distances)
    return not (left < 0 or (left > 0 and distances != work.counts[1, 0] + work.counts[1, 1])), bits


@kernel
def inflate_blocks(source: Bytes, pos: int, end: int, out: Bytes, at: int, limit: int, work: Codes) -> tuple[int, int]:
    """Decompress the blocks of a member: where they end in ``out`` or what is wrong, and where in ``source``."""
    start = at
    bits = Bits(np.uint64(0), int64(0), int64(pos))
    last = int64(0)
    while last == 0:
        last, bits = _bits(source, end, bits, 1)
        kind, bits = _bits(source, end, bits, 2)
        if last < 0 or kind < 0 or kind == 3:
            return FAILED, pos
        if kind == 0:
            # What is held of whole bytes has not been read.
            here = bits.pos - bits.number // 8
            if end - here < 4:
                return FAILED, pos
            size = int64(u16(source, here, True))
            if size ^ 0xFFFF != int64(u16(source, here + 2, True)) or size > end - here - 4:
                return FAILED, pos
            if size > limit - at:
                return NO_ROOM, pos
            for i in range(size):
                store_u8(out, at + i, u8(source, here + 4 + i))
            at += size
            bits = Bits(np.uint64(0), int64(0), here + 4 + size)
            continue
        if kind == 2:
            ok, bits = _read_codes(source, end, bits, work)
            if not ok:
                return FAILED, pos
        literals = _OWN if kind == 2 else _FIXED
        while True:
            symbol, bits = _symbol(source, end, bits, work, literals)
            if symbol == _END:
                break
            if symbol < 0 or symbol >= _MOST_LENGTHS:
                return FAILED, pos
            if symbol < _END:
                if at >= limit:
                    return NO_ROOM, pos
                store_u8(out, at, np.uint8(symbol))
                at += 1
                continue
            extra, bits = _bits(source, end, bits, int64(_LENGTH_BITS[symbol - 257]))
            distance, bits = _symbol(source, end, bits, work, literals + 1)
            if extra < 0 or distance < 0 or distance >= _MOST_DISTANCES:
                return FAILED, pos
            size = int64(_LENGTH_BASE[symbol - 257]) + extra
            extra, bits = _bits(source, end, bits, int64(_DISTANCE_BITS[distance]))
            offset = int64(_DISTANCE_BASE[distance]) + extra
            if extra < 0 or offset > at - start:
                return FAILED, pos
            if size > limit - at:
                return NO_ROOM, pos
            for i in range(size):
                store_u8(out, at + i, u8(out, at + i - offset))
            at += size
    return at, bits.pos - bits.number // 8
