"""JSON without objects: one pass proves that the text is JSON and notes where the wanted values stand.

A document is an object, in UTF-8; a byte-order mark before it is tolerated.  What is JSON is RFC 8259 to the letter:
NaN, trailing commas, raw control characters, overlong or surrogate UTF-8 are damage.  A scan ends at the first damage, and
what stands whole before it has been found.  Of keys that repeat within one object the last one counts.

A *span* is ``(start, size, kind)``: of a string what stands between its quotes, of every other value its whole text.
Nothing recurs and nothing limits the nesting: the brackets that are open lie in ``nest``, a byte each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sparkwire.kernels.copy import copy
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, address, i64, put_i32, put_u8, u8, u32
from sparkwire.kernels.number import int64, uint64
from sparkwire.kernels.text import utf8_step

Ints: TypeAlias = NDArray[np.int64]
Spans: TypeAlias = NDArray[np.int64]
Kinds: TypeAlias = NDArray[np.int8]

# What a value is.  JSON's null is ABSENT where one value is wanted, and NULL in a list of members.
ABSENT, NULL, STRING, ESCAPED, INTEGER, REAL, FALSE, TRUE, OBJECT, ARRAY = range(10)
"""ESCAPED: a string with a backslash in it.  INTEGER: a number without fraction and exponent."""

_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _PLUS, _DOT, _ZERO, _NINE = b'"\\,:-+.09'
_LEFT_BRACE, _RIGHT_BRACE, _LEFT_BRACKET, _RIGHT_BRACKET = b"{}[]"
_TO_RIGHT = _RIGHT_BRACE - _LEFT_BRACE  # the same for both pairs
_TRUE, _FALS, _NULL = (int.from_bytes(word, "little") for word in (b"true", b"fals", b"null"))
_REPLACEMENT = 0xFFFD
_FFFD = int.from_bytes(b"fffd", "little")
_NONE = -1


class Paths(NamedTuple):
    """Wanted values, as a tree: node 0 is the document, the children of a node stand one behind the other."""

    parent: Ints
    first: Ints
    """first child of a node"""
    last: Ints
    """behind the last child of a node"""
    key_start: Ints
    key_size: Ints
    key_word: Ints
    """the first bytes of a key as one little-endian number"""
    keys: Bytes
    slot: Ints
    """the number of the wanted value, -1 for a node on the way"""
    below_first: Ints
    below_last: Ints
    below: Ints
    """the slots at and below a node: ``below[below_first[node]:below_last[node]]``"""


def paths(*wanted: str) -> Paths:
    """The tree of such paths as ``payload.timestamp.eventTime``; slot ``i`` is ``wanted[i]``."""
    nodes: list[tuple[str, ...]] = [()]
    for node in nodes:  # breadth first: the list grows while it is walked
        steps = (tuple(path.split("."))[: len(node) + 1] for path in wanted)
        nodes += dict.fromkeys(step for step in steps if len(step) > len(node) and step[:-1] == node)
    names = [node[-1].encode() if node else b"" for node in nodes]
    children = [[i for i, other in enumerate(nodes) if other and other[:-1] == node] for node in nodes]
    below = [[s for s, path in enumerate(wanted) if tuple(path.split("."))[: len(node)] == node] for node in nodes]
    return Paths(
        parent=_ints([nodes.index(node[:-1]) for node in nodes]),
        first=_ints([group[0] if group else 0 for group in children]),
        last=_ints([group[-1] + 1 if group else 0 for group in children]),
        key_start=_ints(np.cumsum([0, *map(len, names)])[:-1]),
        key_size=_ints([len(name) for name in names]),
        key_word=_ints([int.from_bytes(name[:WORD], "little", signed=len(name) >= WORD) for name in names]),
        keys=np.frombuffer(b"".join(names), np.uint8),
        slot=_ints([wanted.index(".".join(node)) if ".".join(node) in wanted else _NONE for node in nodes]),
        below_first=_ints(np.cumsum([0, *map(len, below)])[:-1]),
        below_last=_ints(np.cumsum([*map(len, below)])),
        below=_ints([slot for group in below for slot in group]),
    )


def _ints(values: Sequence[int] | Ints) -> Ints:
    return np.array(values, np.int64)


# ---------------------------------------------------------------- one pass over documents


@kernel
def scan_documents(
    data: Bytes,
    begins: NDArray[Any],
    ends: NDArray[Any],
    tree: Paths,
    nest: Bytes,
    starts: Spans,
    sizes: Spans,
    kinds: Kinds,
    counts: Spans,
    sound: NDArray[np.bool_],
) -> None:
    """Prove each document ``data[begins[i]:ends[i]]`` and note the spans of the wanted values.

    Parameters
    ----------
    nest
        scratch, as many bytes as the longest document has
    starts, sizes, kinds, counts
        one row for each slot of ``tree``, one column for each document; ``sizes`` is -1 and ``kinds`` ABSENT where
        there is no such value; ``counts`` is the number of members of a container that has no slots below it
    sound
        whether the document is one JSON object and nothing else
    """
    for row in range(sound.size):
        for slot in range(kinds.shape[0]):
            sizes[slot, row] = -1
            kinds[slot, row] = ABSENT
        begin, end = int64(begins[row]), int64(ends[row])
        sound[row] = _scan(data, begin, end, tree, nest, row, starts, sizes, kinds, counts)


@kernel
def _scan(
    data: Bytes,
    pos: int,
    end: int,
    tree: Paths,
    nest: Bytes,
    row: int,
    starts: Spans,
    sizes: Spans,
    kinds: Kinds,
    counts: Spans,
) -> bool:
    pos = _blank(data, _behind_mark(data, pos, end), end)
    if pos >= end or u8(data, pos) != _LEFT_BRACE:
        return False
    bracket, depth = _LEFT_BRACE, 0  # innermost open bracket; those around it are nest[:depth]
    node, tracked, members = 0, 0, 0  # innermost open container of the tree, its depth, its commas
    pos = _blank(data, pos + 1, end)
    if pos < end and u8(data, pos) == _RIGHT_BRACE:
        return _blank(data, pos + 1, end) == end
    while True:
        child = _NONE
        if bracket == _LEFT_BRACE:
            if pos >= end or u8(data, pos) != _QUOTE:
                return False
            close, escaped = _string_end(data, pos + 1, end)
            if close < 0:
                return False
            if depth == tracked:
                child = _child(data, pos + 1, close, escaped, tree, node)
                if child >= 0:
                    _forget(tree, child, row, sizes, kinds)
            pos = _blank(data, close + 1, end)
            if pos >= end or u8(data, pos) != _COLON:
                return False
            pos = _blank(data, pos + 1, end)
        if pos >= end:
            return False
        c = u8(data, pos)
        begin, behind, kind = pos, pos, ABSENT
        if c == _QUOTE:
            begin = pos + 1
            behind, escaped = _string_end(data, begin, end)
            if behind < 0:
                return False
            kind = ESCAPED if escaped else STRING
            pos = behind + 1
        elif c == _LEFT_BRACE or c == _LEFT_BRACKET:
            pos = _blank(data, pos + 1, end)
            if pos >= end:
                return False
            if u8(data, pos) != c + _TO_RIGHT:
                nest[depth] = bracket
                bracket = c
                depth += 1
                if child >= 0:
                    node, tracked, members = child, depth, 0
                    if tree.slot[child] >= 0:
                        starts[tree.slot[child], row] = begin
                continue
            pos += 1
            behind = pos
            kind = OBJECT if c == _LEFT_BRACE else ARRAY
            if child >= 0 and tree.slot[child] >= 0:
                counts[tree.slot[child], row] = 0
        else:
            behind, kind = _scalar_end(data, pos, end)
            if behind < 0 or not _delimited(data, behind, end):
                return False
            pos = behind
        if child >= 0 and tree.slot[child] >= 0 and kind != NULL:
            slot = tree.slot[child]
            starts[slot, row], sizes[slot, row], kinds[slot, row] = begin, behind - begin, kind
        while True:
            pos = _blank(data, pos, end)
            if pos >= end:
                return False
            c = u8(data, pos)
            pos += 1
            if c == _COMMA:
                if depth == tracked:
                    members += 1
                pos = _blank(data, pos, end)
                break
            if c != bracket + _TO_RIGHT:
                return False
            if depth == 0:
                return _blank(data, pos, end) == end
            if depth == tracked:
                slot = tree.slot[node]
                if slot >= 0:
                    sizes[slot, row] = pos - starts[slot, row]
                    kinds[slot, row] = OBJECT if bracket == _LEFT_BRACE else ARRAY
                    counts[slot, row] = members + 1
                node, tracked = tree.parent[node], tracked - 1
            depth -= 1
            bracket = nest[depth]


@kernel
def _forget(tree: Paths, node: int, row: int, sizes: Spans, kinds: Kinds) -> None:
    # A key that comes again replaces all that stood under it.
    for i in range(tree.below_first[node], tree.below_last[node]):
        sizes[tree.below[i], row] = -1
        kinds[tree.below[i], row] = ABSENT


@kernel
def _child(data: Bytes, start: int, end: int, escaped: bool, tree: Paths, node: int) -> int:
    """The child of ``node`` that has this key, -1 if none."""
    if escaped or start + WORD > data.size:
        for child in range(tree.first[node], tree.last[node]):
            if _unescapes_to(data, start, end, tree.keys, tree.key_start[child], tree.key_size[child]):
                return child
        return _NONE
    size, word = end - start, i64(data, start, True)
    if size < WORD:
        word &= (1 << (8 * size)) - 1
    for child in range(tree.first[node], tree.last[node]):
        if tree.key_word[child] == word and tree.key_size[child] == size:
            at, same = tree.key_start[child], WORD
            while same < size and u8(data, start + same) == tree.keys[at + same]:
                same += 1
            if same >= size:
                return child
    return _NONE


WORD = 8  # [bytes] of a key that are compared at once


@kernel
def _unescapes_to(data: Bytes, pos: int, end: int, keys: Bytes, at: int, size: int) -> bool:
    """Whether a string means these ASCII bytes."""
    for i in range(size):
        if pos >= end:
            return False
        character, pos = _character(data, pos, end)
        if character != keys[at + i]:
            return False
    return pos == end


# ---------------------------------------------------------------- the grammar


@kernel
def _behind_mark(data: Bytes, pos: int, end: int) -> int:
    marked = end - pos >= 3 and u8(data, pos) == 0xEF and u8(data, pos + 1) == 0xBB and u8(data, pos + 2) == 0xBF
    return pos + 3 if marked else pos


@kernel
def _blank(data: Bytes, pos: int, end: int) -> int:
    """Behind the white space that stands at ``pos``, at most ``end``."""
    while pos < end:
        c = u8(data, pos)
        if c > 0x20 or not (c == 0x20 or c == 0x0A or c == 0x0D or c == 0x09):
            return pos
        pos += 1
    return pos


@kernel
def _scalar_end(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Where the number or literal at ``pos`` ends, and its kind; -1 for what is neither."""
    c = u8(data, pos)
    if c == _MINUS or _ZERO <= c <= _NINE:
        return _number_end(data, pos, end)
    if pos + 4 <= end:
        word = u32(data, pos, True)
        if word == _TRUE:
            return pos + 4, TRUE
        if word == _NULL:
            return pos + 4, NULL
        if word == _FALS and pos + 5 <= end and u8(data, pos + 4) == 0x65:
            return pos + 5, FALSE
    return -1, ABSENT


@kernel
def _delimited(data: Bytes, pos: int, end: int) -> bool:
    """Whether a number or literal may end here: what goes on has been cut or is not one."""
    if pos == end:
        return False
    c = u8(data, pos)
    return c == _COMMA or c == _RIGHT_BRACE or c == _RIGHT_BRACKET or _blank(data, pos, pos + 1) > pos


@kernel
def _number_end(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    if u8(data, pos) == _MINUS:
        pos += 1
    digits = _digits(data, pos, end)
    if digits == pos or (u8(data, pos) == _ZERO and digits > pos + 1):
        return -1, ABSENT
    pos, kind = digits, INTEGER
    if pos < end and u8(data, pos) == _DOT:
        digits = _digits(data, pos + 1, end)
        if digits == pos + 1:
            return -1, ABSENT
        pos, kind = digits, REAL
    if pos < end and (u8(data, pos) | 0x20) == 0x65:
        pos += 1
        if pos < end and (u8(data, pos) == _PLUS or u8(data, pos) == _MINUS):
            pos += 1
        digits = _digits(data, pos, end)
        if digits == pos:
            return -1, ABSENT
        pos, kind = digits, REAL
    return pos, kind


@kernel
def _digits(data: Bytes, pos: int, end: int) -> int:
    while pos < end and _ZERO <= u8(data, pos) <= _NINE:
        pos += 1
    return pos


@kernel
def _string_end(data: Bytes, pos: int, end: int) -> tuple[int, bool]:
    """Where the closing quote of the string stands whose first character is at ``pos``, and if it has escapes.

    -1 where there is no such quote, an escape is none, a control character stands raw, or the bytes are not UTF-8.
    """
    escaped = False
    while pos < end:
        if pos + LANES <= data.size:
            stop = _stop(data, pos)
            pos += stop
            if stop == LANES:
                continue
            if pos >= end:
                break
        c = u8(data, pos)
        if c == _QUOTE:
            return pos, escaped
        escaped |= c == _BACKSLASH
        pos = _character_end(data, pos, end)
        if pos < 0:
            break
    return -1, escaped


LANES = 16  # [bytes] looked at together
_VECTOR = ir.VectorType(ir.IntType(8), LANES)


def _every(byte: int) -> ir.Constant:
    return ir.Constant(_VECTOR, [byte] * LANES)


@intrinsic  # type: ignore[untyped-decorator]
def _stop(typing_context: Any, data: Any, pos: Any) -> Any:
    """How many of the ``LANES`` bytes at ``pos`` come before the first that is not a plain ASCII character of a string."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = address(context, builder, signature.args[0], args[0], args[1], ir.IntType(64)(LANES))
        chunk = builder.load(builder.bitcast(at, _VECTOR.as_pointer()), align=1)
        # Signed, so that bytes from 0x80 on are below a space too.
        stops = builder.or_(
            builder.icmp_signed("<", chunk, _every(0x20)),
            builder.or_(
                builder.icmp_unsigned("==", chunk, _every(_QUOTE)),
                builder.icmp_unsigned("==", chunk, _every(_BACKSLASH)),
            ),
        )
        found = builder.cttz(builder.bitcast(stops, ir.IntType(LANES)), ir.IntType(1)(0))  # LANES for none
        return builder.zext(found, ir.IntType(64))

    return types.int64(data, types.int64), emit


@kernel
def _character_end(data: Bytes, pos: int, end: int) -> int:
    """Behind the character or escape at ``pos`` of a string, -1 where none may stand."""
    c = u8(data, pos)
    if c < 0x20:
        return -1
    if c != _BACKSLASH:
        size = utf8_step(data, pos, end)
        return pos + size if size > 0 else -1
    if pos + 2 > end:
        return -1
    c = u8(data, pos + 1)
    if c == 0x75:  # u
        if pos + 6 > end or _hexadecimal(data, pos + 2) < 0:
            return -1
        return pos + 6
    plain = c == _QUOTE or c == _BACKSLASH or c == 0x2F
    control = c == 0x62 or c == 0x66 or c == 0x6E or c == 0x72 or c == 0x74  # b f n r t
    return pos + 2 if plain or control else -1


@kernel
def _hexadecimal(data: Bytes, pos: int) -> int:
    """The value of four hexadecimal digits, -1 where one is none."""
    value = 0
    for i in range(4):
        c = int64(u8(data, pos + i))
        if _ZERO <= c <= _NINE:
            value = value * 16 + c - _ZERO
        elif 0x61 <= (c | 0x20) <= 0x66:
            value = value * 16 + (c | 0x20) - 0x57
        else:
            return -1
    return value


@kernel
def _character(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """What stands at ``pos`` of a sound string: the code point of an escape or else a byte, and where the next begins.

    Half a surrogate pair is no character: U+FFFD.
    """
    c = int64(u8(data, pos))
    if c != _BACKSLASH:
        return c, pos + 1
    c = int64(u8(data, pos + 1))
    if c == 0x75:
        high = _hexadecimal(data, pos + 2)
        if high < 0xD800 or high > 0xDFFF:
            return high, pos + 6
        if high < 0xDC00 and pos + 12 <= end and u8(data, pos + 6) == _BACKSLASH and u8(data, pos + 7) == 0x75:
            low = _hexadecimal(data, pos + 8)
            if 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00, pos + 12
        return _REPLACEMENT, pos + 6
    if c == 0x62:
        return 0x08, pos + 2
    if c == 0x66:
        return 0x0C, pos + 2
    if c == 0x6E:
        return 0x0A, pos + 2
    if c == 0x72:
        return 0x0D, pos + 2
    if c == 0x74:
        return 0x09, pos + 2
    return c, pos + 2


# ---------------------------------------------------------------- the members of a container


class Members(NamedTuple):
    """What containers hold, the members of each one behind the other."""

    key_starts: Spans
    key_sizes: Spans
    key_kinds: Kinds
    """ABSENT in an array"""
    starts: Spans
    sizes: Spans
    kinds: Kinds


@kernel
def list_members(
    data: Bytes, starts: Spans, sizes: Spans, kinds: Kinds, firsts: NDArray[Any], members: Members
) -> None:
    """Note the members of sound containers: those of row ``i`` from ``firsts[i]`` on, as many as ``counts`` said."""
    for row in range(kinds.size):
        if kinds[row] >= OBJECT and firsts[row] < firsts[row + 1]:
            end = starts[row] + sizes[row]
            _list_container(data, starts[row] + 1, end, kinds[row] == OBJECT, firsts[row], members)


@kernel
def _list_container(data: Bytes, pos: int, end: int, keyed: bool, number: int, members: Members) -> None:
    while pos < end:
        pos = _blank(data, pos, end)
        members.key_kinds[number] = ABSENT
        if keyed:
            close, escaped = _string_end(data, pos + 1, end)
            members.key_starts[number] = pos + 1
            members.key_sizes[number] = close - pos - 1
            members.key_kinds[number] = ESCAPED if escaped else STRING
            pos = _blank(data, _blank(data, close + 1, end) + 1, end)
        c = u8(data, pos)
        if c == _QUOTE:
            close, escaped = _string_end(data, pos + 1, end)
            members.starts[number] = pos + 1
            members.sizes[number] = close - pos - 1
            members.kinds[number] = ESCAPED if escaped else STRING
            pos = close + 1
        else:
            if c == _LEFT_BRACE or c == _LEFT_BRACKET:
                behind, kind = _container_end(data, pos, end), OBJECT if c == _LEFT_BRACE else ARRAY
            else:
                behind, kind = _scalar_end(data, pos, end)
            members.starts[number] = pos
            members.sizes[number] = behind - pos
            members.kinds[number] = kind
            pos = behind
        pos = _blank(data, pos, end) + 1  # the comma, or the bracket that closes
        number += 1


@kernel
def _container_end(data: Bytes, pos: int, end: int) -> int:
    """Behind the sound object or array at ``pos``."""
    depth = 0
    while pos < end:
        c = u8(data, pos)
        if c == _QUOTE:
            pos, _ = _string_end(data, pos + 1, end)
        elif c == _LEFT_BRACE or c == _LEFT_BRACKET:
            depth += 1
        elif c == _RIGHT_BRACE or c == _RIGHT_BRACKET:
            depth -= 1
            if depth == 0:
                return pos + 1
        pos += 1
    return end


@kernel
def mark_repeats(data: Bytes, firsts: NDArray[Any], members: Members, marked: NDArray[np.bool_]) -> None:
    """Mark the containers whose keys may repeat: surely where plain keys do, in doubt where keys are escaped or many."""
    for row in range(marked.size):
        first, last = int64(firsts[row]), int64(firsts[row + 1])
        marked[row] = last - first > MANY
        for i in range(first, min(last, first + MANY)):
            marked[row] |= members.key_kinds[i] == ESCAPED
            for j in range(first, i):
                if members.key_sizes[i] == members.key_sizes[j]:
                    marked[row] |= _same(data, members.key_starts[i], members.key_starts[j], members.key_sizes[i])


MANY = 64  # keys that are compared each with each


@kernel
def _same(data: Bytes, a: int, b: int, size: int) -> bool:
    for i in range(size):
        if u8(data, a + i) != u8(data, b + i):
            return False
    return True


@kernel
def find_last(
    firsts: NDArray[Any],
    lasts: NDArray[Any],
    names: NDArray[np.int32],
    asked_firsts: NDArray[Any],
    asked_lasts: NDArray[Any],
    asked: NDArray[np.int32],
    stamp: Ints,
    place: Ints,
    found: Ints,
) -> None:
    """For each name asked for in a row, the last place in that row's list of names where it stands, -1 if nowhere.

    Names are small numbers; row ``i`` has ``names[firsts[i]:lasts[i]]`` and asks for
    ``asked[asked_firsts[i]:asked_lasts[i]]``, answered at the same places of ``found``. ``stamp`` (-1 everywhere) and
    ``place`` are scratch with an item for each name: the work is linear, however often names repeat.
    """
    for row in range(firsts.size):
        for i in range(int64(firsts[row]), int64(lasts[row])):
            stamp[names[i]], place[names[i]] = row, i
        for i in range(int64(asked_firsts[row]), int64(asked_lasts[row])):
            found[i] = place[asked[i]] if stamp[asked[i]] == row else _NONE


# ---------------------------------------------------------------- values as text and as numbers


@kernel
def measure_texts(data: Bytes, starts: Spans, sizes: Spans, kinds: Kinds, out: Spans) -> None:
    """Size of each value's text [bytes]: a string without its escapes, anything else as written; -1 for NULL."""
    for i in range(kinds.size):
        if kinds[i] == ESCAPED:
            out[i] = text_size(data, starts[i], sizes[i])
        else:
            out[i] = sizes[i] if kinds[i] > NULL else -1


@kernel
def write_texts(data: Bytes, starts: Spans, sizes: Spans, kinds: Kinds, offsets: NDArray[Any], out: Bytes) -> None:
    """Write what ``measure_texts`` measured."""
    for i in range(kinds.size):
        if kinds[i] == ESCAPED:
            put_text(out, int64(offsets[i]), data, starts[i], sizes[i])
        elif kinds[i] > NULL:
            copy(out, int64(offsets[i]), data, starts[i], sizes[i])
            if kinds[i] == OBJECT or kinds[i] == ARRAY:
                _mend(out, int64(offsets[i]), int64(offsets[i]) + sizes[i])


@kernel
def text_size(data: Bytes, start: int, size: int) -> int:
    """What a sound string means, in UTF-8 [bytes]."""
    pos, end, total = start, start + size, 0
    while pos < end:
        escape = u8(data, pos) == _BACKSLASH
        character, pos = _character(data, pos, end)
        total += _utf8_size(character) if escape else 1
    return total


@kernel
def put_text(out: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    """Write what a sound string means to ``out[at:]``; behind it."""
    pos, end = start, start + size
    while pos < end:
        escape = u8(data, pos) == _BACKSLASH
        character, pos = _character(data, pos, end)
        if escape:
            at = _put_utf8(out, at, character)
        else:
            put_u8(out, at, np.uint8(character))
            at += 1
    return at


@kernel
def canonical_size(data: Bytes, start: int, size: int) -> int:
    """Size of what ``put_canonical`` writes [bytes]."""
    pos, end, total = start, start + size, 2
    while pos < end:
        escape = u8(data, pos) == _BACKSLASH
        character, pos = _character(data, pos, end)
        if not escape:
            total += 1
        elif character == _QUOTE or character == _BACKSLASH or _letter_of(character) > 0:
            total += 2
        else:
            total += 6 if character < 0x20 else _utf8_size(character)
    return total


@kernel
def put_canonical(out: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    """Write a sound string as JSON, in quotes and with no escape but those that JSON needs; behind it."""
    pos, end = start, start + size
    put_u8(out, at, np.uint8(_QUOTE))
    at += 1
    while pos < end:
        escape = u8(data, pos) == _BACKSLASH
        character, pos = _character(data, pos, end)
        if not escape:
            put_u8(out, at, np.uint8(character))
            at += 1
        else:
            at = _put_escape(out, at, character)
    put_u8(out, at, np.uint8(_QUOTE))
    return at + 1


@kernel
def _put_escape(out: Bytes, at: int, character: int) -> int:
    letter = _letter_of(character)
    if character == _QUOTE or character == _BACKSLASH:
        letter = character
    if letter > 0:
        put_u8(out, at, np.uint8(_BACKSLASH))
        put_u8(out, at + 1, np.uint8(letter))
        return at + 2
    if character >= 0x20:
        return _put_utf8(out, at, character)
    put_u8(out, at, np.uint8(_BACKSLASH))
    put_u8(out, at + 1, np.uint8(0x75))
    for k in range(4):
        digit = (character >> (4 * (3 - k))) & 0xF
        put_u8(out, at + 2 + k, np.uint8(_ZERO + digit if digit < 10 else 0x37 + digit))
    return at + 6


@kernel
def _letter_of(character: int) -> int:
    """The letter of a control character's short escape, 0 if it has none."""
    if character == 0x08:
        return 0x62
    if character == 0x09:
        return 0x74
    if character == 0x0A:
        return 0x6E
    if character == 0x0C:
        return 0x66
    return 0x72 if character == 0x0D else 0


@kernel
def _utf8_size(character: int) -> int:
    if character < 0x80:
        return 1
    if character < 0x800:
        return 2
    return 3 if character < 0x10000 else 4


@kernel
def _put_utf8(out: Bytes, at: int, character: int) -> int:
    size = _utf8_size(character)
    lead = 0 if size == 1 else (0xF00 >> size) & 0xFF
    put_u8(out, at, np.uint8(lead | (character >> (6 * (size - 1)))))
    for k in range(1, size):
        put_u8(out, at + k, np.uint8(0x80 | ((character >> (6 * (size - 1 - k))) & 0x3F)))
    return at + size


@kernel
def measure_canonical(data: Bytes, starts: Spans, sizes: Spans, kinds: Kinds, out: Spans) -> None:
    """Size of each value as JSON that is the same however the value was escaped [bytes]; ABSENT is null."""
    for i in range(kinds.size):
        if kinds[i] == ESCAPED:
            out[i] = canonical_size(data, starts[i], sizes[i])
        elif kinds[i] == STRING:
            out[i] = sizes[i] + 2
        else:
            out[i] = sizes[i] if kinds[i] > NULL else 4


@kernel
def write_canonical(data: Bytes, starts: Spans, sizes: Spans, kinds: Kinds, offsets: NDArray[Any], out: Bytes) -> None:
    """Write what ``measure_canonical`` measured."""
    for i in range(kinds.size):
        at = int64(offsets[i])
        if kinds[i] == ESCAPED:
            put_canonical(out, at, data, starts[i], sizes[i])
        elif kinds[i] == STRING:
            copy(out, at, data, starts[i] - 1, sizes[i] + 2)
        elif kinds[i] > NULL:
            copy(out, at, data, starts[i], sizes[i])
        else:
            put_i32(out, at, _NULL, True)


@kernel
def read_integers(
    data: Bytes, starts: Spans, sizes: Spans, kinds: Kinds, values: Ints, valid: NDArray[np.bool_]
) -> None:
    """The values of INTEGERs that an int64 holds; 0 and not valid for anything else."""
    for i in range(kinds.size):
        values[i], valid[i] = 0, False
        if kinds[i] == INTEGER:
            values[i], valid[i] = read_integer(data, starts[i], sizes[i])


@kernel
def read_integer(data: Bytes, start: int, size: int) -> tuple[int, bool]:
    """The value of a sound INTEGER; 0 and False beyond an int64."""
    negative = u8(data, start) == _MINUS
    pos, end = start + (1 if negative else 0), start + size
    if end - pos > 19:
        return int64(0), False
    value = uint64(0)
    while pos < end:  # 19 digits cannot overflow 64 bits
        value = value * uint64(10) + uint64(u8(data, pos) - _ZERO)
        pos += 1
    if value > uint64(2**63 - 1) + uint64(1 if negative else 0):
        return int64(0), False
    return int64(uint64(0) - value if negative else value), True


@kernel
def write_objects(data: Bytes, starts: Spans, sizes: Spans, offsets: NDArray[Any], out: Bytes) -> None:
    """Copy sound objects as they are written, but for escapes that are half a surrogate pair."""
    for i in range(sizes.size):
        if sizes[i] > 0:
            copy(out, int64(offsets[i]), data, starts[i], sizes[i])
            _mend(out, int64(offsets[i]), int64(offsets[i]) + sizes[i])


@kernel
def _mend(out: Bytes, pos: int, end: int) -> None:
    """Write the escape of U+FFFD over each that is half a surrogate pair: some readers of JSON refuse those."""
    while pos < end:
        if u8(out, pos) != _BACKSLASH:
            pos += 1
        elif u8(out, pos + 1) != 0x75:
            pos += 2
        else:
            character, behind = _character(out, pos, end)
            if character == _REPLACEMENT:
                put_i32(out, pos + 2, _FFFD, True)
            pos = behind


@kernel
def join_lists(
    data: Bytes,
    starts: Spans,
    sizes: Spans,
    firsts: NDArray[Any],
    brackets: tuple[int, int],
    offsets: NDArray[Any],
    out: Bytes,
) -> None:
    """Write spans with commas between them: row ``i`` joins ``firsts[i]`` to ``firsts[i + 1]``, inside of brackets."""
    for row in range(firsts.size - 1):
        at = int64(offsets[row])
        if at == offsets[row + 1]:
            continue
        put_u8(out, at, np.uint8(brackets[0]))
        at += 1
        for i in range(firsts[row], firsts[row + 1]):
            if i > firsts[row]:
                put_u8(out, at, np.uint8(_COMMA))
                at += 1
            copy(out, at, data, starts[i], sizes[i])
            at += sizes[i]
        put_u8(out, at, np.uint8(brackets[1]))
        _mend(out, int64(offsets[row]), at)
