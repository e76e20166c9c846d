"""The kernel that runs the programs of `definitions`: a message's fields, step by step, as JSON and as columns.

The JSON is Kafka's own (its JSON converters, which its dump prints): bytes are Base64, a UUID is the text that Kafka prints,
fields are in the order of the definition, but for tags, which come last. Every pass of a loop consumes bytes, so that a count
that lies ends with the bytes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.base.errors import BAD_LENGTH, BAD_MAGIC, OK, TOO_LARGE, TRUNCATED
from sparkwire.kernels import Bytes, Ints, i8, i16, i32, i64, int64, kernel, store_i32, store_u8, u8, u16
from sparkwire.kernels.base64 import base64_size, write_base64
from sparkwire.kernels.gather import Texts, write_text
from sparkwire.kernels.json_text import write_java_text
from sparkwire.kernels.shortest import SHORTEST_SLACK, write_double
from sparkwire.kernels.text import write_number
from sparkwire.kernels.varint import VARINT_BYTES, unsigned

MOST_COPIED: Final = 1 << 26
"""what the texts of the items of one message may come to, each item having that which is above it [bytes]"""
STACK: Final = 64
"""numbers that loops and tags keep, one and three of them; the definitions nest five deep"""
SCRATCH: Final = SHORTEST_SLACK

# What a step reads or does.
(
    BOOL, I8, I16, U16, I32, I64, F64, UUID, STRING, BYTES, LOOP, NEXT, OPEN, CLOSE, TAGS, TAG, CASE, TAG_END, EMIT, END,
) = range(20)  # fmt: skip


class Step(IntEnum):
    """The columns of a program's steps."""

    WHAT = 0
    SLOT = 1
    NULLABLE = 2
    FLEXIBLE = 3
    JUMP = 4
    """where a loop goes on; where it goes on without the value"""
    TEXT = 5
    """the name before the value, -1 for none"""
    VALUE = 6
    """a tag; how many tags are known"""


_WHAT, _SLOT, _NULLABLE, _FLEXIBLE, _JUMP, _TEXT, _VALUE = (int(column) for column in Step)
_SIZES = np.array([1, 1, 2, 2, 4, 8, 8, 16], np.int64)  # [bytes], BOOL to UUID
_NULL = int.from_bytes(b"null", "little")
_TRUE = int.from_bytes(b"true", "little")
_FALSE = int.from_bytes(b"fals", "little")
_URL_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_UUID_TEXT = 22


class MessageProgram(NamedTuple):
    """Versions of messages, one after the other."""

    steps: Ints
    """(steps, `Step`)"""
    texts: Texts


class ReadMessages(NamedTuple):
    """What reading found: a row for each slot, a column for each message."""

    numbers: Ints
    there: npt.NDArray[np.bool_]
    """whether the slot has a number: the count of items, too"""
    starts: Ints
    sizes: Ints
    """of texts, -1 where there is none [bytes]"""
    errors: npt.NDArray[np.int8]
    texts: Ints
    """sizes of the JSON, -1 where there is none [bytes]"""
    ends: npt.NDArray[np.int32]
    """where the innermost items of each message end"""
    item_numbers: Ints
    item_starts: Ints
    item_sizes: Ints


@kernel
def _varint(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    value, pos = unsigned(data, pos, end, VARINT_BYTES)
    return int64(value & np.uint64(0xFFFFFFFF)), pos


@kernel
def read_frames(
    data: Bytes, starts: Ints, ends: Ints, numbers: Ints, versions: Ints, errors: npt.NDArray[np.int8]
) -> None:
    """The frame of records of metadata: three unsigned varints, its version 1, the message's number and its version.

    ``starts`` move to after it; a row that ends before it starts is passed over.
    """
    for row in range(starts.size):
        if ends[row] < starts[row]:
            continue
        frame, pos = _varint(data, starts[row], ends[row])
        if pos >= 0:
            numbers[row], pos = _varint(data, pos, ends[row])
        if pos >= 0:
            versions[row], pos = _varint(data, pos, ends[row])
        if pos < 0:
            errors[row] = TRUNCATED
        elif frame != 1:
            errors[row] = BAD_MAGIC
        else:
            starts[row] = pos


@kernel
def read_size(data: Bytes, pos: int, end: int, width: int, flexible: bool) -> tuple[int, int]:
    """The size or count at ``pos``, -1 for null, and the position after it, -1 where the bytes end before."""
    if flexible:
        raised, pos = _varint(data, pos, end)
        return raised - 1, pos
    if end - pos < width:
        return int64(0), int64(-1)
    return (int64(i16(data, pos, False)) if width == 2 else int64(i32(data, pos, False))), pos + width


@kernel
def read_messages(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    which: Ints,
    program: MessageProgram,
    emit: Ints,
    stack: Ints,
    found: ReadMessages,
    scratch: Bytes,
) -> None:
    """Read every message whose ``which`` is a step; items are written where there is room for them, counted else."""
    found.ends[0] = 0
    for row in range(starts.size):
        found.ends[row + 1] = found.ends[row]
        found.texts[row] = -1
        if which[row] >= 0:
            error, at = run(
                data, starts[row], ends[row], which[row], program, emit, stack, row, found, scratch, int64(0), False
            )
            found.errors[row] = error
            if error == OK:
                found.texts[row] = at


@kernel
def write_messages(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    which: Ints,
    program: MessageProgram,
    emit: Ints,
    stack: Ints,
    found: ReadMessages,
    offsets: npt.NDArray[np.int32],
    out: Bytes,
) -> None:
    """Write the JSON of every message that has one to ``out[offsets[row]:]``."""
    for row in range(starts.size):
        if found.texts[row] >= 0:
            at = int64(offsets[row])
            run(data, starts[row], ends[row], which[row], program, emit, stack, row, found, out, at, True)


@kernel
def run(
    data: Bytes,
    pos: int,
    end: int,
    step: int,
    program: MessageProgram,
    emit: Ints,
    stack: Ints,
    row: int,
    found: ReadMessages,
    out: Bytes,
    at: int,
    writing: bool,
) -> tuple[int, int]:
    """Read the message ``data[pos:end]``: the first thing that is wrong with it, and where its JSON ends."""
    steps, texts = program.steps, program.texts
    depth, copied = int64(0), int64(0)
    first = True  # whether what comes next has nothing before it, and so no comma
    while True:
        what, slot, nullable = steps[step, _WHAT], steps[step, _SLOT], steps[step, _NULLABLE] != 0
        flexible, jump, value = steps[step, _FLEXIBLE] != 0, steps[step, _JUMP], steps[step, _VALUE]
        text = steps[step, _TEXT]
        step += 1
        if what <= OPEN and what != NEXT:
            if not first:
                at = _put(out, at, ord(","), writing)
            first = False
            if text >= 0:
                at = write_text(out, at, texts, text, writing)
        if what <= UUID:
            if end - pos < _SIZES[what]:
                return TRUNCATED, at
            if slot >= 0:
                found.numbers[slot, row] = read_number(data, pos, what)
                found.there[slot, row] = True
            at = write_value(out, at, data, pos, what, writing)
            pos += _SIZES[what]
        elif what <= LOOP:
            size, pos = read_size(data, pos, end, 2 if what == STRING else 4, flexible)
            if pos < 0:
                return TRUNCATED, at
            if size < (-1 if nullable else 0):
                return BAD_LENGTH, at
            if what == LOOP:
                if slot >= 0 and size >= 0:
                    found.numbers[slot, row] = size
                    found.there[slot, row] = True
                if size > 0:
                    stack[depth] = size
                    depth += 1
                    at = _put(out, at, ord("["), writing)
                    first = True
                else:
                    at = _put_word(out, at, _NULL, writing) if size < 0 else _put_brackets(out, at, writing)
                    step = jump
                continue
            if size > end - pos:
                return TRUNCATED, at
            if slot >= 0:
                found.starts[slot, row] = pos
                found.sizes[slot, row] = size
            at = (
                _put_word(out, at, _NULL, writing) if size < 0 else write_bytes(out, at, data, pos, size, what, writing)
            )
            pos += max(size, 0)
        elif what == NEXT:
            stack[depth - 1] -= 1
            if stack[depth - 1] > 0:
                step = jump
            else:
                depth -= 1
                at = _put(out, at, ord("]"), writing)
        elif what == OPEN:
            if nullable:
                if pos >= end:
                    return TRUNCATED, at
                pos += 1
                if i8(data, pos - 1) <= 0:
                    at = _put_word(out, at, _NULL, writing)
                    step = jump
                    continue
            at = _put(out, at, ord("{"), writing)
            first = True
        elif what == CLOSE:
            at = _put(out, at, ord("}"), writing)
            first = False
        elif what == TAGS:
            count, pos = _varint(data, pos, end)
            if pos < 0:
                return TRUNCATED, at
            stack[depth] = count
            depth += 2
        elif what == TAG:
            if stack[depth - 2] == 0:
                depth -= 2
                step = jump
                continue
            stack[depth - 2] -= 1
            tag, pos = _varint(data, pos, end)
            size = int64(0)
            if pos >= 0:
                size, pos = _varint(data, pos, end)
            if pos < 0 or size > end - pos:
                return TRUNCATED, at
            stack[depth - 1] = pos + size
            known = int64(0)
            while known < value and steps[step + known, _VALUE] != tag:
                known += 1
            if known < value:
                step = steps[step + known, _JUMP]
            else:
                pos += size
                step -= 1
        elif what == TAG_END:
            if pos != stack[depth - 1]:
                return BAD_LENGTH, at
            step = jump
        elif what == EMIT:
            copied += found.sizes[emit[0], row]
            if copied > MOST_COPIED:
                return TOO_LARGE, at
            put_item(emit, row, found)
        else:
            return OK, at


@kernel
def read_number(data: Bytes, pos: int, what: int) -> int:
    if what <= I8:
        return int64(i8(data, pos))
    if what == I16:
        return int64(i16(data, pos, False))
    if what == U16:
        return int64(u16(data, pos, False))
    return int64(i32(data, pos, False)) if what == I32 else i64(data, pos, False)


@kernel
def write_value(out: Bytes, at: int, data: Bytes, pos: int, what: int, writing: bool) -> int:
    """A value of fixed size as JSON."""
    if what == BOOL:
        if i8(data, pos) != 0:
            return _put_word(out, at, _TRUE, writing)
        return _put(out, _put_word(out, at, _FALSE, writing), ord("e"), writing)
    if what == UUID:
        return write_uuid(out, at, data, pos, writing)
    if what == F64:
        bits = i64(data, pos, False)
        return write_double(out, at, bits) if writing else at + write_double(out, int64(0), bits)
    return write_number(out, at, read_number(data, pos, what), writing)


@kernel
def write_bytes(out: Bytes, at: int, data: Bytes, pos: int, size: int, what: int, writing: bool) -> int:
    """Text or Base64 in its quotes."""
    at = _put(out, at, ord('"'), writing)
    if what == STRING:
        at = write_java_text(out, at, data, pos, size, writing)
    elif writing:
        at = write_base64(out, at, data, pos, size)
    else:
        at += base64_size(size)
    return _put(out, at, ord('"'), writing)


@kernel
def write_uuid(out: Bytes, at: int, data: Bytes, pos: int, writing: bool) -> int:
    """Kafka's text of a UUID in quotes: Base64 for URLs, without padding."""
    at = _put(out, at, ord('"'), writing)
    if writing:
        for k in range(_UUID_TEXT):
            bit = 6 * k
            pair = int64(u8(data, pos + bit // 8)) << 8
            if bit // 8 < 15:
                pair |= int64(u8(data, pos + bit // 8 + 1))
            store_u8(out, at + k, _URL_ALPHABET[pair >> (10 - bit % 8) & 63])
    return _put(out, at + _UUID_TEXT, ord('"'), writing)


@kernel
def _put(out: Bytes, at: int, character: int, writing: bool) -> int:
    if writing:
        store_u8(out, at, np.uint8(character))
    return at + 1


@kernel
def _put_brackets(out: Bytes, at: int, writing: bool) -> int:
    return _put(out, _put(out, at, ord("["), writing), ord("]"), writing)


@kernel
def _put_word(out: Bytes, at: int, word: int, writing: bool) -> int:
    """Four characters."""
    if writing:
        store_i32(out, at, word, True)
    return at + 4


@kernel
def put_item(emit: Ints, row: int, found: ReadMessages) -> None:
    """One more item of the message: the text and the number that were read last."""
    at = int64(found.ends[row + 1])
    if at < found.item_numbers.size:
        found.item_numbers[at] = found.numbers[emit[1], row]
        found.item_starts[at] = found.starts[emit[0], row]
        found.item_sizes[at] = found.sizes[emit[0], row]
    found.ends[row + 1] = at + 1
