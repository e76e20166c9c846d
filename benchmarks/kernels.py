"""Checksums, against reading the bytes at all, against the libraries, and against the multiplier itself.

All candidates of a table read the same memory, since the size of its pages decides how fast that is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import crc32c as castagnoli
import numpy as np
from isal import isal_zlib
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from benchmarks.report import Row, below, faster, no_slower
from benchmarks.timing import Timing, amount, interleave
from sparkwire.kernels import Bytes, crc32, crc32_raw, crc32c, kernel
from sparkwire.kernels.checksums.instruction_sets import MACHINES, Isa, compiled_isa

LARGE = amount(64 << 20, trial=1 << 20)  # [bytes] more than the caches hold
SMALL = amount(1 << 20, trial=1 << 16)  # [bytes] what a second-level cache holds
NO_AVX = {"NUMBA_ENABLE_AVX": "0"}
GENERIC = {"NUMBA_CPU_NAME": "generic"}


@kernel
def crc32_of(data: Bytes) -> np.uint32:
    return crc32(data, 0, data.size)


@kernel
def crc32c_of(data: Bytes) -> np.uint32:
    return crc32c(data, 0, data.size)


@kernel
def crc32_of_each(data: Bytes, offsets: NDArray[np.int32], answers: NDArray[np.uint32]) -> None:
    """Databus's checksum of every row of a column."""
    for row in range(answers.size):
        answers[row] = crc32_raw(data, offsets[row], offsets[row + 1] - offsets[row])


def rows() -> list[Row]:
    """The claims about checksums and about the first result of a process."""
    return [*large_rows(), *small_rows(), *path_rows(), *message_rows(), *start_rows()]


def large_rows() -> list[Row]:
    data = _random(LARGE)
    timed = interleave(_candidates(data), 15)
    return [
        _row("CRC-32 of 64 MB", timed, "CRC-32", "np.sum", 0.9, LARGE),
        _row("the same", timed, "CRC-32", "isal", 1.0, LARGE),
        _row("the same", timed, "CRC-32", "zlib-ng", 1.0, LARGE),
        _row("CRC-32C of 64 MB", timed, "CRC-32C", "np.sum", 0.9, LARGE),
        _row("the same", timed, "CRC-32C", "crc32c", 1.1, LARGE),
    ]


def small_rows() -> list[Row]:
    data = _random(SMALL)
    candidates = _candidates(data) | {"zlib": lambda: zlib.crc32(data)}
    if compiled_isa() is not Isa.PORTABLE:
        multiply = _multiplications(compiled_isa())
        candidates["the multiplications alone"] = lambda: multiply(data.size)
    timed = interleave(candidates, 300, warm=4)
    result = [
        _row("CRC-32 of 1 MB, in cache", timed, "CRC-32", "isal", 0.85, SMALL),
        _row("the same", timed, "CRC-32", "zlib", 5, SMALL),
        _row("CRC-32C of 1 MB, in cache", timed, "CRC-32C", "crc32c", 2.5, SMALL),
    ]
    if "the multiplications alone" in timed:
        result.append(_row("the same", timed, "CRC-32C", "the multiplications alone", 0.9, SMALL))
    return result


def path_rows() -> list[Row]:
    """The other ways, in children that compile for other targets."""
    narrow, portable = _timed_for(NO_AVX), _timed_for(GENERIC)
    result = [
        _row("CRC-32 of 1 MB by tables", portable, "CRC-32", "zlib", 0.9, SMALL),
        _row("CRC-32 of 1 MB by 128-bit multiplication", narrow, "CRC-32", "zlib", 2, SMALL),
        # What 22 GB/s were on the machine that set the bound.
        _row("the same", narrow, "CRC-32", "np.sum", 0.35, SMALL),
    ]
    if "the multiplications alone" in narrow:
        result.append(_row("the same", narrow, "CRC-32", "the multiplications alone", 0.9, SMALL))
    return result


def measure_paths() -> dict[str, Timing]:
    """In a child."""
    data = _random(SMALL)
    words = data.view(np.uint64)
    candidates: dict[str, Callable[[], object]] = {
        "CRC-32": lambda: crc32_of(data),
        "np.sum": words.sum,
        "zlib": lambda: zlib.crc32(data),
    }
    if compiled_isa() is not Isa.PORTABLE:
        multiply = _multiplications(compiled_isa())
        candidates["the multiplications alone"] = lambda: multiply(data.size)
    return interleave(candidates, 100, warm=4)


def message_rows() -> list[Row]:
    """Messages whose lengths nobody can predict, one after the other in memory."""
    middle, short = message_times(259), message_times(60)
    work = "CRC-32 of every message of about {} B, 64 MB of them"
    return [
        no_slower(work.format(259), middle["ours"], "np.sum", middle["np.sum"], 1.6),
        below(work.format(60), Timing(tuple(taken * 1e9 for taken in short["ours"].samples)), "ns", 12),
    ]


def message_times(length: int) -> dict[str, Timing]:
    """For one message, their lengths between half and one and a half times ``length`` [bytes]."""
    lengths = np.random.default_rng(11).integers(length // 2, length * 3 // 2, LARGE // length)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    data = _random(int(offsets[-1]))
    words = data[: data.size // 8 * 8].view(np.uint64)
    answers = np.empty(lengths.size, np.uint32)
    timed = interleave({"ours": lambda: crc32_of_each(data, offsets, answers), "np.sum": words.sum}, 15)
    return {name: timing.per(lengths.size) for name, timing in timed.items()}


def start_rows() -> list[Row]:
    """From nothing to a result: in a forked worker, and in a fresh process with a warm cache."""
    forked, summed = (_in_children(work) for work in (EVENT, SUM))
    times = interleave({"fresh": lambda: _output(FRESH), "imports": lambda: _output(IMPORTS)}, 5)
    child = "first result of a forked child of a process that has its kernels"
    process = "a fresh process with a warm cache, from its start to its end"
    return [
        below(child, forked.per(1e-3), "ms", 1),
        no_slower("the same", forked, "numpy's first sum in such a child", summed, 2.5),
        below(process, times["fresh"], "s", 0.4),
        no_slower("the same", times["fresh"], "one that readies numpy, pyarrow and numba", times["imports"], 1),
    ]


FRESH = """
import numpy as np
import pyarrow as pa
from sparkwire.databus.functions import SAMPLES
from sparkwire.databus.scan import Events

event = SAMPLES["event"]
offsets = pa.py_buffer(np.array([0, len(event)], np.int32))
column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(event)])
Events(column, check=True).header
"""
"""Fixed fields and both checksums of an event. No list becomes an Arrow array: that would import pandas."""

FORKED = f"""
{FRESH}
import os, time
began = os.pipe()
if (child := os.fork()) == 0:
    start = time.perf_counter()
    {{work}}
    os.write(began[1], str(time.perf_counter() - start).encode())
    os._exit(0)
os.waitpid(child, 0)
print(os.read(began[0], 100).decode())
"""
EVENT = "Events(column, check=True).header"
SUM = "np.arange(1000).sum()"

IMPORTS = """
import numpy, pyarrow, numba
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
"""
"""What a process needs before any kernel of Numba can be loaded."""


def _in_children(work: str) -> Timing:
    return Timing(tuple(float(_output(FORKED.format(work=work))) for _ in range(9)))


def _output(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def _random(size: int) -> Any:
    return np.random.default_rng(5).integers(0, 256, size, np.uint8)


def _candidates(data: Any) -> dict[str, Callable[[], object]]:
    words = data.view(np.uint64)
    return {
        "CRC-32": lambda: crc32_of(data),
        "CRC-32C": lambda: crc32c_of(data),
        "np.sum": words.sum,
        "isal": lambda: isal_zlib.crc32(data),
        "zlib-ng": lambda: zlib_ng.crc32(data),
        "crc32c": lambda: castagnoli.crc32c(data),
    }


def _row(work: str, timed: Mapping[str, Timing], ours: str, peer: str, at_least: float, size: int) -> Row:
    return faster(work, timed[ours], peer, timed[peer], at_least, size, "B")


def _timed_for(environment: dict[str, str]) -> dict[str, Timing]:
    """What ``measure_paths`` finds in a child that compiles for another target."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.kernels"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: Timing(tuple(samples)) for name, samples in json.loads(run.stdout).items()}


def _multiplications(isa: Isa) -> Callable[[int], int]:
    """``f(n)``: as many multiplications as a checksum of n bytes takes, and nothing else: what the hardware allows."""
    machine = MACHINES[isa]
    block = 16 * machine.lanes
    chains = 8

    @intrinsic  # type: ignore[untyped-decorator]
    def multiply_chains(typing_context: Any, seed: Any, rounds: Any) -> Any:
        def emit(context: Any, b: Any, signature: Any, args: Any) -> Any:
            long = ir.IntType(64)
            register = ir.VectorType(long, 2 * machine.lanes)
            seed = b.insert_element(ir.Constant(register, [3] * register.count), args[0], ir.IntType(32)(0))
            before, loop, after = b.block, b.append_basic_block("loop"), b.append_basic_block("after")
            b.branch(loop)
            b.position_at_end(loop)
            count = b.phi(long)
            count.add_incoming(long(0), before)
            states = [b.phi(register) for _ in range(chains)]
            for state in states:
                state.add_incoming(seed, before)
                product = b.xor(machine.multiply(b, state, seed, 0, 0), machine.multiply(b, state, seed, 1, 1))
                state.add_incoming(product, loop)
            count.add_incoming(b.add(count, long(1)), loop)
            b.cbranch(b.icmp_signed("<", b.add(count, long(1)), args[1]), loop, after)
            b.position_at_end(after)
            result = states[0]
            for state in states[1:]:
                result = b.xor(result, state)
            return b.extract_element(result, ir.IntType(32)(0))

        return types.int64(types.int64, types.int64), emit

    @kernel(key=f"multiplications {isa.name}")
    def multiply(n: int) -> int:
        return multiply_chains(n, n // (block * chains))  # type: ignore[no-any-return]

    return multiply


if __name__ == "__main__":
    print(json.dumps({name: timing.samples for name, timing in measure_paths().items()}))
