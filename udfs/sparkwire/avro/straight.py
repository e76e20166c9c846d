"""The machine for programs that run straight through: each instruction over a block of rows, before the next one.

In one row a field begins where the one before it ends, so the processor waits for each length; the same field of many rows
it reads at once. What a block needs beyond that (a row that is damaged, a buffer that has to grow) is left to `machine`,
which reads the block again, row by row: only there is it said what is wrong with a row.

A row's place is negative where it has no value for the next instruction: the complement of its place after a union's null,
``ABSENT`` in a row that is NULL.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparkwire.avro import ops
from sparkwire.avro.block_fields import (
    fill,
    read_varints,
    skip,
    store_booleans,
    store_decimals,
    store_numbers,
    store_symbols,
    store_texts,
    store_words,
    take_branches,
)
from sparkwire.avro.machine import Ints, Memory, Program
from sparkwire.avro.ops import LAST_VARINT, STEP
from sparkwire.base.errors import OK
from sparkwire.kernels import Bytes, kernel, prefetch, store_i32
from sparkwire.kernels.copy import CHUNK
from sparkwire.kernels.slots import slot

ROWS: Final = 256
"""rows of a block: their data and what is made of them are to stay in the nearest cache"""
ABSENT: Final = -(1 << 63)
_AHEAD: Final = 1 << 14  # [bytes] about a block of short rows: so early are they asked for
_OPS: Final = {
    *(ops.INT, ops.LONG, ops.TEXT, ops.BYTES, ops.ENUM, ops.DECIMAL, ops.OPTION, ops.SKIP_VARINT, ops.SKIP_BYTES),
    *(ops.BOOLEAN, ops.FLOAT, ops.DOUBLE, ops.SKIP, ops.SET, ops.EMPTY),
}


def is_straight(code: Ints, entry: int) -> bool:
    """Whether a program has nothing else than what `run_straight` does."""
    words: list[int] = code.tolist()
    while words[entry] in _OPS:
        # A null goes on after the one instruction that it leaves out.
        if words[entry] == ops.OPTION and (words[entry + 3] != entry + 2 * STEP or words[entry + 4] < 0):
            return False
        entry += STEP
    return words[entry] == ops.END


@kernel
def run_straight(
    program: Program,
    memory: Memory,
    data: Bytes,
    starts: Ints,
    sizes: Ints,
    entry: int,
    first: int,
    errors: NDArray[np.int8],
) -> int:
    """Read the rows from ``first`` on, all by the program at ``entry``; where the block begins that `machine` has to read."""
    while first < starts.size:
        rows = min(ROWS, starts.size - first)
        if not _run_block(program, memory, data, starts, sizes, entry, first, rows):
            break
        errors[first : first + rows] = OK
        first += rows
    return first


@kernel
def _run_block(
    program: Program, memory: Memory, data: Bytes, starts: Ints, sizes: Ints, pc: int, first: int, rows: int
) -> bool:
    """Read ``rows`` rows from ``first`` on by the program at ``pc``; False, and nothing done, where `machine` has to."""
    code, used = program.code, memory.used
    places, ends, values, words = memory.block
    for k in range(rows):
        size = sizes[first + k]
        prefetch(data, starts[first + k] + _AHEAD)
        prefetch(data, starts[first + k] + _AHEAD + CHUNK)
        places[k] = starts[first + k] if size >= 0 else ABSENT
        ends[k] = starts[first + k] + size
    for k in range(memory.counters.size):
        memory.saved[k] = used[memory.counters[k]]
    done, optional = True, False
    while done and code[pc] != ops.END:
        op = code[pc]
        done = op > LAST_VARINT or read_varints(data, places, ends, values, words, rows)
        if not done:
            pass
        elif op == ops.LONG or op == ops.INT:
            done = store_numbers(code, pc, slot(memory.table, code[pc + 1]), values, first, rows)
        elif op == ops.TEXT or op == ops.BYTES:
            done = store_texts(memory, code[pc + 1], op == ops.TEXT, data, places, ends, values, first, rows)
        elif op == ops.OPTION:
            done = take_branches(slot(memory.table, code[pc + 1]), code[pc + 2], places, values, first, rows)
        elif op == ops.ENUM:
            done = store_symbols(program, memory, pc, places, values, first, rows)
        elif op == ops.DECIMAL:
            done = store_decimals(
                slot(memory.table, code[pc + 1]), code[pc + 2], data, places, ends, values, first, rows
            )
        elif op == ops.BOOLEAN:
            done = store_booleans(slot(memory.table, code[pc + 1]), data, places, ends, first, rows)
        elif op == ops.FLOAT or op == ops.DOUBLE:
            done = store_words(slot(memory.table, code[pc + 1]), op == ops.DOUBLE, data, places, ends, first, rows)
        elif op == ops.SKIP or op == ops.SKIP_BYTES:
            done = skip(-1 if op == ops.SKIP_BYTES else code[pc + 1], places, ends, values, rows)
        elif op == ops.SET:
            fill(code, pc, slot(memory.table, code[pc + 1]), places, first, rows)
        elif op == ops.EMPTY:
            for k in range(first, first + rows):
                store_i32(slot(memory.table, code[pc + 1]), (k + 1) << 2, used[code[pc + 2]], True)
        if optional:
            for k in range(rows):
                places[k] = ~places[k] if ABSENT < places[k] < 0 else places[k]
        optional = op == ops.OPTION
        pc += STEP
    if not done:
        for k in range(memory.counters.size):
            used[memory.counters[k]] = memory.saved[k]
    return done
