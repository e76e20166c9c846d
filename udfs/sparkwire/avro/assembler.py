"""Assemble programs for the Avro machines, and compute the bounds and minimum sizes that programs contain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from sparkwire.avro import ops
from sparkwire.avro.column_machine import SchemaProgram
from sparkwire.avro.ops import STEP
from sparkwire.avro.readers import MAX_LENGTH
from sparkwire.avro.schema import Schema
from sparkwire.kernels import COPY_SLACK

INT_BOUNDS: Final = (-(1 << 31), (1 << 31) - 1)
LONG_BOUNDS: Final = (-(1 << 63), (1 << 63) - 1)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31 [days since epoch]
_DAY_MS: Final = 86_400_000


class NumberBounds(NamedTuple):
    """The range that a logical type allows, and the factor that converts its number to Spark's unit."""

    lowest: int
    highest: int
    factor: int = 1


def bounds_of(schema: Schema) -> NumberBounds:
    """The bounds of an int or long."""
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


def least_size(schema: Schema, sizes: dict[Schema, int] | None = None) -> int:
    """The minimum size of a datum [bytes], at most 2 GiB. A record inside itself counts as 0."""
    sizes = {} if sizes is None else sizes
    if schema.kind == "record":
        if schema not in sizes:
            sizes[schema] = 0
            sizes[schema] = min(sum(least_size(f.schema, sizes) for f in schema.fields), MAX_LENGTH)
        return sizes[schema]
    if schema.kind == "union":
        return 1 + min(least_size(branch, sizes) for branch in schema.branches)
    if schema.kind == "fixed":
        return schema.size
    return {"null": 0, "float": 4, "double": 8}.get(schema.kind, 1)


def least_text(schema: Schema, sizes: dict[Schema, int] | None = None) -> int:
    """The approximate minimum size of a datum as JSON [bytes]. A record inside itself counts as 0."""
    sizes = {} if sizes is None else sizes
    if schema.kind == "record":
        if schema not in sizes:
            sizes[schema] = 0
            sizes[schema] = sum(len(f.name) + 4 + least_text(f.schema, sizes) for f in schema.fields)
        return sizes[schema]
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
        """The index of the next instruction."""
        return len(self.code)

    def emit(self, op: int, *operands: int) -> int:
        """Add an instruction and return its index."""
        place = self.here
        self.code += [op, *operands, *[0] * (STEP - 1 - len(operands))]
        return place

    def patch(self, place: int, operand: int, value: int) -> None:
        """Set an operand that ``emit`` did not know yet. The first operand is number 1."""
        self.code[place + operand] = value

    def span(self, text: bytes | None) -> int:
        """Add a text and return its number. To read the span of None is an error."""
        self.spans += [len(self.constants), -1 if text is None else len(text)]
        self.constants += text or b""
        return len(self.spans) // 2 - 1

    def reserve(self, count: int) -> int:
        """Reserve jump targets for a union and return the index of the first."""
        self.jumps += [0] * count
        return len(self.jumps) - count

    def union(self, branches: Sequence[Callable[[], object]]) -> None:
        """Emit the code of a union. After its code, each branch jumps to the end of the union."""
        first = self.reserve(len(branches))
        self.emit(ops.UNION, first, len(branches))
        ends = []
        # In reverse order: null is usually the first branch, and the last code emitted needs no jump.
        for k in [*range(len(branches))[1:], 0][::-1] if len(branches) > 1 else [0]:
            self.jumps[first + k] = self.here
            branches[k]()
            ends.append(self.emit(ops.JUMP, 0))
        del self.code[ends.pop() :]
        for end in ends:
            self.patch(end, 1, self.here)

    def program(self) -> SchemaProgram:
        """The finished program, as the machine expects it."""
        # With padding after the constants, because kernels copy bytes near the end of a buffer one by one.
        constants = np.frombuffer(bytes(self.constants) + bytes(COPY_SLACK), np.uint8)
        code, jumps, spans = (np.array(words or [0], np.int64) for words in (self.code, self.jumps, self.spans))
        return SchemaProgram(code, jumps, spans, constants)


def deferred(function: Callable[[Schema], object], schema: Schema) -> Callable[[], object]:
    """A callable that calls ``function`` with ``schema`` later."""
    return lambda: function(schema)
