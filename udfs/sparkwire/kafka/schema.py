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

`Schema` becomes a *program* for each version, a few steps that one kernel runs (`schema_machine`): a new schema compiles nothing.

Source: apache/kafka, `*.json` of its messages, and KIP-482.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from sparkwire.core.column import Spans, empty
from sparkwire.kafka.schema_machine import (
    BYTES,
    EMIT,
    END,
    I8,
    I16,
    I32,
    I64,
    LOOP,
    NEXT,
    STRING,
    TAGS,
    Found,
    run,
)
from sparkwire.kernels import Ints

Kind = Literal["i8", "i16", "i32", "i64", "string", "bytes", "items", "i32[]"]

_NUMBERS = {"i8": I8, "i16": I16, "i32": I32, "i64": I64}
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
                steps.append((END, _NO_SLOT, 0, 0))
                flexible += [version >= schema.flexible] * (len(steps) - len(flexible))
        return Program(np.array(steps, np.int64), first, np.array(flexible))

    def _add(self, steps: list[tuple[int, int, int, int]], items: tuple[Item, ...], version: int, tagged: bool) -> None:
        for item in items:
            if not item.since <= version <= item.until:
                continue
            slot = self.slots.get(item.name, _NO_SLOT)
            if item.wire in ("items", "i32[]"):
                loop = len(steps)
                steps.append((LOOP, slot, item.nullable, 0))
                if item.wire == "items":
                    self._add(steps, item.items, version, tagged)
                else:
                    steps.append((I32, slot, 0, 0))
                    steps.append((EMIT, _NO_SLOT, 0, 0))
                steps.append((NEXT, _NO_SLOT, 0, loop + 1))
                steps[loop] = (LOOP, slot, item.nullable, len(steps))
            else:
                what = _NUMBERS.get(item.wire, STRING if item.wire == "string" else BYTES)
                steps.append((what, slot, item.nullable, 0))
        if tagged:
            steps.append((TAGS, _NO_SLOT, 0, 0))
