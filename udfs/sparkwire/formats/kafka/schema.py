"""Kafka's own messages, as its internal topics hold them: a table for each, read in every version.

    Schema("OffsetCommitValue", range(5), flexible=4, items=(
        Item("offset", "i64", "..."),
        Item("leader_epoch", "i32", "...", since=3),
        ...
    ))

A message is i16 version and then the fields that this version has, in the order of the table:

    string   i16 size, UTF-8              flexible: unsigned varint size + 1
    bytes    i32 size, bytes              flexible: the same
    items    i32 count, item item …       flexible: unsigned varint count + 1; an item is fields again, of i32[] one number
    tags     at the end of a message and of each item with fields, if flexible: unsigned varint count,
             for each unsigned varint tag, unsigned varint size, bytes. None is known here: they are passed over

A size or count of -1 (flexible: 0) is null, where the table allows it. Bytes after the message are ignored.

`Schema` becomes a *program* for each version, a few steps that one kernel runs: a new schema compiles nothing. Every
pass of a loop consumes bytes, so that a count that lies ends with the bytes.

Source: apache/kafka, `*.json` of its messages, and KIP-482.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.column import Spans, empty
from sparkwire.errors import BAD_LENGTH, BAD_MAGIC, OK, TOO_LARGE, TRUNCATED
from sparkwire.kernels import Bytes, Ints, i8, i16, i32, i64, int64, kernel, u8

Kind = Literal["i8", "i16", "i32", "i64", "string", "bytes", "items", "i32[]"]

VERSION_SIZE: Final = 2  # [bytes]
MOST_COPIED: Final = 1 << 26
"""what the texts of the items of one message may come to, each item having that which stands above it [bytes]"""

# The steps of a program: what is read, into which slot, whether it may be null, where a loop goes on.
_I8, _I16, _I32, _I64, _STRING, _BYTES, _LOOP, _NEXT, _TAGS, _EMIT, _END = range(11)
_NUMBERS = {"i8": _I8, "i16": _I16, "i32": _I32, "i64": _I64}
_NO_SLOT = -1
_DEEPEST = 4
_LAST = 1 << 15  # beyond every version


class Item(NamedTuple):
    """A field of a message: its name, its type on the wire, its meaning, and the versions that have it."""

    name: str
    wire: Kind
    doc: str
    since: int = 0
    until: int = _LAST
    nullable: bool = False
    items: tuple[Item, ...] = ()


class Schema(NamedTuple):
    """A message: its versions, from which of them on it is flexible (KIP-482), its fields."""

    name: str
    versions: range
    flexible: int
    items: tuple[Item, ...]


class Found(NamedTuple):
    """What reading found: a row for each slot, a column for each message."""

    numbers: Ints
    there: npt.NDArray[np.bool_]
    """whether the slot has a number: the count of items, too"""
    starts: Ints
    sizes: Ints
    """of texts, -1 where there is none [bytes]"""
    errors: npt.NDArray[np.int8]
    ends: npt.NDArray[np.int32]
    """where the innermost items of each message end, see `Reader`"""
    item_numbers: Ints
    item_starts: Ints
    item_sizes: Ints


class Program(NamedTuple):
    """All versions of some schemas as steps, one after the other."""

    steps: Ints
    """(steps, 4): what, slot, nullable, where a loop goes on"""
    first: dict[tuple[str, int], int]
    """the first step of a version"""
    flexible: npt.NDArray[np.bool_]
    """by step"""


class Reader:
    """Reads messages of some schemas; the fields named by ``names`` are answered.

    ``above`` is the name of a text and of the i32[] below it: each number of that is an item, with the text above it.
    """

    def __init__(
        self, schemas: tuple[Schema, ...], names: tuple[str, ...], above: tuple[str, str] | None = None
    ) -> None:
        self.slots = {name: slot for slot, name in enumerate((*names, *(above or ())))}
        self._emits = above is not None
        self._emit = np.array([self.slots[name] for name in above or ()], np.int64)
        self._schemas = schemas
        self._program = self._compiled()

    def which(self, schema: Schema, versions: npt.NDArray[np.int16]) -> Ints:
        """The program of each message by its version: -1 where the schema has no such version."""
        table = np.full(2**16, -1, np.int64)
        for version in schema.versions:
            table[version] = self._program.first[schema.name, version]
        found: Ints = table[versions.astype(np.int64)]  # negative versions count from the table's end
        return found

    def read(self, spans: Spans, which: Ints) -> Found:
        """Read the messages ``spans`` from after their version on, each by its program.

        One whose program is -1 has BAD_MAGIC, unless its two bytes of version are not there: then TRUNCATED. A NULL has no
        error and nothing else.
        """
        rows, slots = len(which), len(self.slots)
        found = Found(
            np.zeros((slots, rows), np.int64),
            np.zeros((slots, rows), np.bool_),
            np.zeros((slots, rows), np.int64),
            np.full((slots, rows), -1, np.int64),
            empty(rows, np.int8),
            np.zeros(rows + 1, np.int32),
            *(np.empty(0, np.int64) for _ in range(3)),
        )
        program, left = self._program, np.zeros(_DEEPEST, np.int64)
        run(*spans, which, program.steps, program.flexible, self._emit, left, found)
        if self._emits:
            # Once more, now that it is known how many items there are.
            found = found._replace(**{name: empty(int(found.ends[-1]), np.int64) for name in Found._fields[-3:]})
            run(*spans, which, program.steps, program.flexible, self._emit, left, found)
        return found

    def _compiled(self) -> Program:
        steps: list[tuple[int, int, int, int]] = []
        flexible: list[bool] = []
        first: dict[tuple[str, int], int] = {}
        for schema in self._schemas:
            for version in schema.versions:
                first[schema.name, version] = len(steps)
                self._add(steps, schema.items, version, version >= schema.flexible)
                steps.append((_END, _NO_SLOT, 0, 0))
                flexible += [version >= schema.flexible] * (len(steps) - len(flexible))
        return Program(np.array(steps, np.int64), first, np.array(flexible))

    def _add(self, steps: list[tuple[int, int, int, int]], items: tuple[Item, ...], version: int, tagged: bool) -> None:
        for item in items:
            if not item.since <= version <= item.until:
                continue
            slot = self.slots.get(item.name, _NO_SLOT)
            if item.wire in ("items", "i32[]"):
                loop = len(steps)
                steps.append((_LOOP, slot, item.nullable, 0))
                if item.wire == "items":
                    self._add(steps, item.items, version, tagged)
                else:
                    steps.append((_I32, slot, 0, 0))
                    steps.append((_EMIT, _NO_SLOT, 0, 0))
                steps.append((_NEXT, _NO_SLOT, 0, loop + 1))
                steps[loop] = (_LOOP, slot, item.nullable, len(steps))
            else:
                what = _NUMBERS.get(item.wire, _STRING if item.wire == "string" else _BYTES)
                steps.append((what, slot, item.nullable, 0))
        if tagged:
            steps.append((_TAGS, _NO_SLOT, 0, 0))


@kernel
def read_versions(data: Bytes, starts: Ints, sizes: Ints, versions: npt.NDArray[np.int16]) -> None:
    """The i16 that each message begins with, 0 where it is not there."""
    for row in range(starts.size):
        versions[row] = i16(data, starts[row], False) if sizes[row] >= VERSION_SIZE else 0


@kernel
def unsigned(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """An unsigned varint of at most 5 bytes and the position after it, -1 where the bytes end before."""
    value, shift = int64(0), int64(0)
    while pos < end and shift < 35:
        byte = int64(u8(data, pos))
        value |= (byte & 127) << shift
        pos += 1
        if byte < 128:
            return value & 0xFFFFFFFF, pos
        shift += 7
    return int64(0), int64(-1)


@kernel
def read_size(data: Bytes, pos: int, end: int, width: int, flexible: bool) -> tuple[int, int]:
    """The size or count at ``pos``, -1 for null, and the position after it, -1 where the bytes end before."""
    if flexible:
        raised, pos = unsigned(data, pos, end)
        return raised - 1, pos
    if end - pos < width:
        return int64(0), int64(-1)
    return (int64(i16(data, pos, False)) if width == 2 else int64(i32(data, pos, False))), pos + width


@kernel
def skip_tags(data: Bytes, pos: int, end: int) -> int:
    """The position after tagged fields, -1 where the bytes end before."""
    count, pos = unsigned(data, pos, end)
    while pos >= 0 and count > 0:
        _, pos = unsigned(data, pos, end)
        if pos >= 0:
            size, pos = unsigned(data, pos, end)
            pos = pos + size if pos >= 0 and size <= end - pos else int64(-1)
        count -= 1
    return pos


@kernel
def run(
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    which: Ints,
    steps: Ints,
    flexible: npt.NDArray[np.bool_],
    emit: Ints,
    left: Ints,
    found: Found,
) -> None:
    """Read every message; items are written where there is room for them, counted else."""
    found.ends[0] = 0
    for row in range(starts.size):
        found.ends[row + 1] = found.ends[row]
        if sizes[row] < 0:
            found.errors[row] = OK
        elif sizes[row] < VERSION_SIZE:
            found.errors[row] = TRUNCATED
        elif which[row] < 0:
            found.errors[row] = BAD_MAGIC
        else:
            end = starts[row] + sizes[row]
            found.errors[row] = run_one(
                data, starts[row] + VERSION_SIZE, end, which[row], steps, flexible, emit, left, row, found
            )


@kernel
def run_one(
    data: Bytes,
    pos: int,
    end: int,
    step: int,
    steps: Ints,
    flexible: npt.NDArray[np.bool_],
    emit: Ints,
    left: Ints,
    row: int,
    found: Found,
) -> int:
    """Read the message ``data[pos:end]``: the first thing that is wrong with it."""
    depth, copied = int64(0), int64(0)
    while steps[step, 0] != _END:
        what, slot, nullable = steps[step, 0], steps[step, 1], steps[step, 2] != 0
        step += 1
        if what <= _I64:
            width = int64(1) << what
            if end - pos < width:
                return TRUNCATED
            if slot >= 0:
                found.numbers[slot, row] = read_number(data, pos, what)
                found.there[slot, row] = True
            pos += width
        elif what <= _LOOP:
            size, pos = read_size(data, pos, end, 2 if what == _STRING else 4, flexible[step - 1])
            if pos < 0:
                return TRUNCATED
            if size < (-1 if nullable else 0):
                return BAD_LENGTH
            if what == _LOOP:
                if slot >= 0 and size >= 0:
                    found.numbers[slot, row] = size
                    found.there[slot, row] = True
                if size > 0:
                    left[depth] = size
                    depth += 1
                else:
                    step = steps[step - 1, 3]
                continue
            if size > end - pos:
                return TRUNCATED
            if slot >= 0:
                found.starts[slot, row] = pos
                found.sizes[slot, row] = size
            pos += max(size, 0)
        elif what == _NEXT:
            left[depth - 1] -= 1
            if left[depth - 1] > 0:
                step = steps[step - 1, 3]
            else:
                depth -= 1
        elif what == _TAGS:
            pos = skip_tags(data, pos, end)
            if pos < 0:
                return TRUNCATED
        else:
            copied += found.sizes[emit[0], row]
            if copied > MOST_COPIED:
                return TOO_LARGE
            put_item(emit, row, found)
    return OK


@kernel
def read_number(data: Bytes, pos: int, what: int) -> int:
    if what == _I8:
        return int64(i8(data, pos))
    if what == _I16:
        return int64(i16(data, pos, False))
    return int64(i32(data, pos, False)) if what == _I32 else i64(data, pos, False)


@kernel
def put_item(emit: Ints, row: int, found: Found) -> None:
    """One more item of the message: the text and the number that were read last."""
    at = int64(found.ends[row + 1])
    if at < found.item_numbers.size:
        found.item_numbers[at] = found.numbers[emit[1], row]
        found.item_starts[at] = found.starts[emit[0], row]
        found.item_sizes[at] = found.sizes[emit[0], row]
    found.ends[row + 1] = at + 1
