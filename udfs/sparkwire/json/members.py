"""List the members of JSON objects and arrays that a scan has validated."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparkwire.json.grammar import (
    ABSENT,
    ARRAY,
    COMMA,
    ESCAPED,
    LEFT_BRACE,
    LEFT_BRACKET,
    NONE,
    OBJECT,
    QUOTE,
    RIGHT_BRACE,
    RIGHT_BRACKET,
    STRING,
    WORD,
    Kinds,
    behind_mark,
    blank,
    first_word,
    quick_number_end,
    quick_string_end,
    scalar_end,
    string_end,
)
from sparkwire.kernels.blocks import BLOCK
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bools, Bytes, Ints, int64, u8, uint64

MANY = 64  # up to so many keys, each key is compared with each other


class Members(NamedTuple):
    """The members of containers, in order."""

    key_starts: Ints
    key_sizes: Ints
    key_kinds: Kinds
    """for arrays, the key arrays are empty"""
    starts: Ints
    sizes: Ints
    kinds: Kinds


@kernel
def list_members(
    data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, firsts: NDArray[Any], place: Ints, members: Members
) -> None:
    """List members of valid containers. Those of row ``i`` have the numbers ``firsts[i]`` to ``firsts[i + 1]``.

    The kernel fills ``members``, starting at ``place``: the number of a member, its row, and the start of its text if it is not
    the first of its row. Then it sets ``place`` to the next member.
    """
    begin, row = place[0], place[1]
    stop = min(begin + members.kinds.size, int64(firsts[kinds.size]))
    number = begin
    while number < stop:
        last = min(stop, int64(firsts[row + 1]))
        if number < last:
            pos = place[2] if number > firsts[row] else starts[row] + 1
            end = starts[row] + sizes[row]
            place[2] = _list_container(data, pos, end, kinds[row] == OBJECT, number - begin, last - begin, members)
            number = last
        if number == firsts[row + 1]:
            row += 1
    place[0], place[1] = number, row


@kernel
def _list_container(data: Bytes, pos: int, end: int, keyed: bool, number: int, last: int, members: Members) -> int:
    """List members up to number ``last``. Returns the start of the next one."""
    block, ahead = pos - BLOCK, uint64(0)
    while number < last:
        n = uint64(number)
        pos = blank(data, pos, end)
        if keyed:
            close, escaped, block, ahead = _string_end(data, pos, end, block, ahead)
            members.key_starts[n] = pos + 1
            members.key_sizes[n] = close - pos - 1
            members.key_kinds[n] = ESCAPED if escaped else STRING
            pos = blank(data, blank(data, close + 1, end) + 1, end)
        if u8(data, pos) == QUOTE:
            close, escaped, block, ahead = _string_end(data, pos, end, block, ahead)
            members.starts[n] = pos + 1
            members.sizes[n] = close - pos - 1
            members.kinds[n] = ESCAPED if escaped else STRING
            pos = close + 1
        else:
            after, kind, block, ahead = _other_end(data, pos, end, block, ahead)
            members.starts[n] = pos
            members.sizes[n] = after - pos
            members.kinds[n] = kind
            pos = after
        pos = blank(data, pos, end) + 1  # the comma or the closing bracket
        number += 1
    return pos


@kernel
def _string_end(data: Bytes, pos: int, end: int, block: int, ahead: int) -> tuple[int, bool, int, int]:
    """The closing quote of the string whose opening quote is at ``pos``, and whether the string has escapes."""
    close, block, ahead = quick_string_end(data, pos, end, block, ahead)
    if close >= 0:
        return close, False, block, ahead
    close, escaped = string_end(data, pos + 1, end)
    return close, escaped, close + 1 - BLOCK, uint64(0)


@kernel
def _other_end(data: Bytes, pos: int, end: int, block: int, ahead: int) -> tuple[int, int, int, int]:
    """The position after the value at ``pos``, which is not a string, and its kind."""
    after, kind = quick_number_end(data, pos, end)
    if after >= 0:
        return after, kind, block, ahead
    c = u8(data, pos)
    if c != LEFT_BRACE and c != LEFT_BRACKET:
        after, kind = scalar_end(data, pos, end)
        return after, kind, block, ahead
    after, kind = _container_end(data, pos, end), OBJECT if c == LEFT_BRACE else ARRAY
    return after, kind, after - BLOCK, uint64(0)


@kernel
def _container_end(data: Bytes, pos: int, end: int) -> int:
    """The position after the valid object or array at ``pos``."""
    depth = 0
    while pos < end:
        c = u8(data, pos)
        if c == QUOTE:
            pos, _ = string_end(data, pos + 1, end)
        elif c == LEFT_BRACE or c == LEFT_BRACKET:
            depth += 1
        elif c == RIGHT_BRACE or c == RIGHT_BRACKET:
            depth -= 1
            if depth == 0:
                return pos + 1
        pos += 1
    return end


@kernel
def list_roots(
    data: Bytes,
    begins: NDArray[Any],
    ends: NDArray[Any],
    valid: Bools,
    starts: Ints,
    sizes: Ints,
    kinds: Kinds,
    counts: Ints,
) -> None:
    """Store the span and the number of members of each valid document's object. Other documents are ABSENT."""
    for row in range(valid.size):
        starts[row], sizes[row], kinds[row], counts[row] = 0, -1, ABSENT, 0
        if valid[row]:
            end = int64(ends[row])
            start = blank(data, behind_mark(data, int64(begins[row]), end), end)
            after, count = _count_members(data, start, end, True)
            starts[row], sizes[row], kinds[row], counts[row] = start, after - start, OBJECT, count


@kernel
def count_members(data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, counts: Ints) -> None:
    """Count the members of each valid container; 0 for any other value."""
    for row in range(kinds.size):
        counts[row] = 0
        if kinds[row] == OBJECT or kinds[row] == ARRAY:
            _, counts[row] = _count_members(data, starts[row], starts[row] + sizes[row], kinds[row] == OBJECT)


@kernel
def _count_members(data: Bytes, pos: int, end: int, keyed: bool) -> tuple[int, int]:
    """The position after the valid container at ``pos``, and its number of members."""
    pos = blank(data, pos + 1, end)
    block, ahead, count = pos - BLOCK, uint64(0), 0
    while u8(data, pos) != RIGHT_BRACE and u8(data, pos) != RIGHT_BRACKET:
        count += 1
        if keyed:
            close, _, block, ahead = _string_end(data, pos, end, block, ahead)
            pos = blank(data, blank(data, close + 1, end) + 1, end)
        pos, block, ahead = _next_member(data, pos, end, block, ahead)
    return pos + 1, count


@kernel
def _next_member(data: Bytes, pos: int, end: int, block: int, ahead: int) -> tuple[int, int, int]:
    """The position after the valid value at ``pos``, and after the comma if there is one; ``block`` and ``ahead`` there."""
    if u8(data, pos) == QUOTE:
        pos, _, block, ahead = _string_end(data, pos, end, block, ahead)
        pos += 1
    else:
        pos, _, block, ahead = _other_end(data, pos, end, block, ahead)
    pos = blank(data, pos, end)
    if u8(data, pos) == COMMA:
        pos = blank(data, pos + 1, end)
    return pos, block, ahead


@kernel
def mark_repeats(data: Bytes, starts: Ints, sizes: Ints, kinds: Kinds, keys: Ints, marked: Bools) -> None:
    """Mark the valid objects that may repeat a key.

    Plain keys are compared. An object with an escaped key, or with more than ``MANY`` keys, is always marked. ``keys`` is scratch
    with 3 times ``MANY`` items.
    """
    compared = 0
    for row in range(marked.size):
        marked[row] = False
        if kinds[row] == OBJECT:
            marked[row], compared = _repeats(data, starts[row] + 1, starts[row] + sizes[row], keys, compared)


@kernel
def _repeats(data: Bytes, pos: int, end: int, keys: Ints, compared: int) -> tuple[bool, int]:
    """Whether keys may repeat, and the number of keys that are compared already. The first ``compared`` of ``keys`` are distinct.

    Objects of one table have the same keys in the same order, so these keys need not be compared again.
    """
    block, ahead, count = pos - BLOCK, uint64(0), 0
    pos = blank(data, pos, end)
    while u8(data, pos) != RIGHT_BRACE:
        close, escaped, block, ahead = _string_end(data, pos, end, block, ahead)
        if escaped or count == MANY:
            return True, compared
        if count >= compared or not _is_key(data, pos + 1, close, keys, count):
            for i in range(count):
                if _is_key(data, pos + 1, close, keys, i):
                    return True, compared
            k = uint64(count)
            keys[0, k], keys[1, k], keys[2, k] = pos + 1, close - pos - 1, first_word(data, pos + 1, close - pos - 1)
            compared = count + 1
        count += 1
        pos = blank(data, blank(data, close + 1, end) + 1, end)
        pos, block, ahead = _next_member(data, pos, end, block, ahead)
    return False, compared


@kernel
def _is_key(data: Bytes, start: int, end: int, keys: Ints, number: int) -> bool:
    k = uint64(number)
    if keys[1, k] != end - start or keys[2, k] != first_word(data, start, end - start):
        return False
    for i in range(WORD, end - start):
        if u8(data, start + i) != u8(data, keys[0, k] + i):
            return False
    return True


@kernel
def find_last(
    firsts: NDArray[Any],
    lasts: NDArray[Any],
    names: NDArray[np.int32],
    requested_firsts: NDArray[Any],
    requested_lasts: NDArray[Any],
    requested: NDArray[np.int32],
    seen: Ints,
    place: Ints,
    places: Ints,
) -> None:
    """Find the last index of each requested name in its row's list of names; -1 if the row does not have it.

    Names are small numbers. Row ``i`` has ``names[firsts[i]:lasts[i]]``, and requests
    ``requested[requested_firsts[i]:requested_lasts[i]]``. ``places`` gets the results at the same indexes as ``requested``.
    ``seen`` (-1 everywhere) and ``place`` are scratch with an item for each name, so the work is linear even if names repeat.
    """
    for row in range(firsts.size):
        for i in range(int64(firsts[row]), int64(lasts[row])):
            seen[names[i]], place[names[i]] = row, i
        for i in range(int64(requested_firsts[row]), int64(requested_lasts[row])):
            places[i] = place[requested[i]] if seen[requested[i]] == row else NONE
