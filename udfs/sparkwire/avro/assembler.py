"""What every program is put together from, and the numbers of a schema that programs hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from sparkwire.avro import ops
from sparkwire.avro.column_machine import SchemaProgram
from sparkwire.avro.ops import STEP
from sparkwire.avro.readers import LONGEST
from sparkwire.avro.schema import Schema
from sparkwire.kernels import COPY_SLACK

INT_BOUNDS: Final = (-(1 << 31), (1 << 31) - 1)
LONG_BOUNDS: Final = (-(1 << 63), (1 << 63) - 1)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31 [days since epoch]
_DAY_MS: Final = 86_400_000


class NumberBounds(NamedTuple):
    """What a logical type allows of its number, and what it is multiplied by to have Spark's unit."""

    lowest: int
    highest: int
    factor: int = 1


def bounds_of(schema: Schema) -> NumberBounds:
    """Of an int or long."""
    logical = schema.logical.removeprefix("local-")
    if logical == "date":
        return NumberBounds(_FIRST_DAY, _LAST_DAY)
    if logical == "time-millis":
        return NumberBounds(0, _DAY_MS - 1)
    if logical == "time-micros":
        return NumberBounds(0, _DAY_MS * 1000 - 1)
    if logical in ("timestamp-millis", "timestamp-micros"):
        unit = 1 if logical == "timestamp-millis" else 1000
        return NumberBounds(_FIRST_DAY * _DAY_MS * unit, (_LAST_DAY + 1) * _DAY_MS * unit - 1, 1000 // unit)
    return NumberBounds(*(INT_BOUNDS if schema.kind == "int" else LONG_BOUNDS))


def least_size(schema: Schema, known: dict[Schema, int] | None = None) -> int:
    """Bytes that a datum has at least, 2 GiB if it is more; a record inside of itself counts as none."""
    known = {} if known is None else known
    if schema.kind == "record":
        if schema not in known:
            known[schema] = 0
            known[schema] = min(sum(least_size(f.schema, known) for f in schema.fields), LONGEST)
        return known[schema]
    if schema.kind == "union":
        return 1 + min(least_size(branch, known) for branch in schema.branches)
    if schema.kind == "fixed":
        return schema.size
    return {"null": 0, "float": 4, "double": 8}.get(schema.kind, 1)


def least_text(schema: Schema, known: dict[Schema, int] | None = None) -> int:
    """Bytes of JSON, roughly, that a datum becomes whatever its bytes are; a record inside of itself counts as none."""
    known = {} if known is None else known
    if schema.kind == "record":
        if schema not in known:
            known[schema] = 0
            known[schema] = sum(len(f.name) + 4 + least_text(f.schema, known) for f in schema.fields)
        return known[schema]
    return 4 if schema.kind == "null" else 1


class Assembler:
    """Collects instructions, jumps and texts."""

    def __init__(self) -> None:
        self.code: list[int] = []
        self.jumps: list[int] = []
        self.spans: list[int] = []
        self.constants: bytearray = bytearray()

    @property
    def here(self) -> int:
        """The place of the next instruction."""
        return len(self.code)

    def emit(self, op: int, *operands: int) -> int:
        """Add an instruction; its place."""
        place = self.here
        self.code += [op, *operands, *[0] * (STEP - 1 - len(operands))]
        return place

    def patch(self, place: int, operand: int, value: int) -> None:
        """Fill in what was unknown when the instruction was added; the first operand is 1."""
        self.code[place + operand] = value

    def span(self, text: bytes | None) -> int:
        """The number of a text; of None, an error to read."""
        self.spans += [len(self.constants), -1 if text is None else len(text)]
        self.constants += text or b""
        return len(self.spans) // 2 - 1

    def reserve(self, count: int) -> int:
        """Room for the targets of a union."""
        self.jumps += [0] * count
        return len(self.jumps) - count

    def union(self, branches: Sequence[Callable[[], object]]) -> None:
        """Code of a union: that of its branches, each of which goes on after all of them."""
        first = self.reserve(len(branches))
        self.emit(ops.UNION, first, len(branches))
        ends = []
        # From the last to the first: null comes first as a rule, and what comes last here needs no jump.
        for k in [*range(len(branches))[1:], 0][::-1] if len(branches) > 1 else [0]:
            self.jumps[first + k] = self.here
            branches[k]()
            ends.append(self.emit(ops.JUMP, 0))
        del self.code[ends.pop() :]
        for end in ends:
            self.patch(end, 1, self.here)

    def program(self) -> SchemaProgram:
        """What the machine takes."""
        # With some bytes after the constants: what is near the end of its buffer is copied byte by byte.
        constants = np.frombuffer(bytes(self.constants) + bytes(COPY_SLACK), np.uint8)
        code, jumps, spans = (np.array(words or [0], np.int64) for words in (self.code, self.jumps, self.spans))
        return SchemaProgram(code, jumps, spans, constants)


def deferred(function: Callable[[Schema], object], schema: Schema) -> Callable[[], object]:
    """The call, to be made later."""
    return lambda: function(schema)
