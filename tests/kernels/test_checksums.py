"""Checksums on every instruction set that this machine can use, and their constants."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import crc32c as castagnoli
import numpy as np
import pytest
from numpy.typing import NDArray

from sparkwire.kernels import Bytes, crc32, crc32_raw, crc32c, kernel
from sparkwire.kernels.checksums import gf2
from sparkwire.kernels.checksums.crc import CRC32, CRC32_RAW, CRC32C
from sparkwire.kernels.checksums.gf2 import Checksum
from sparkwire.kernels.checksums.instruction_sets import Isa, compiled_isa, isa_of
from sparkwire.kernels.checksums.range_crc import (
    STEP,
    RangeSums,
    begin_row,
    by_bits,
    modulus,
    range_crc,
    range_sums,
    times,
)
from tests.support import checksums
from tests.support.child import run_python
from tests.support.guard import guarded_bytes

X86_512 = "+pclmul,+ssse3,+avx512f,+avx512bw,+avx512vl,+vpclmulqdq"

# Published in Intel's paper and in many implementations, in this bit order.
KNOWN_FOLDS = {
    gf2.IEEE: {
        128: (0x65673B4600000000, 0x9BA54C6F00000000),
        256: (0x9570D49500000000, 0x01B5FD1D00000000),
        384: (0x69CCFC0D00000000, 0x2A28386200000000),
        512: (0x653D982200000000, 0xCAD38E8F00000000),
        2048: (0x7CC8E1E700000000, 0x03F9F86300000000),
    },
    gf2.CASTAGNOLI: {
        128: (0x3743F7BD00000000, 0x3171D43000000000),
        256: (0x33CCBBBC00000000, 0xA2158B3400000000),
        384: (0xA46EF4AA00000000, 0x6051243F00000000),
        512: (0x1C19243B00000000, 0x75BBA45B00000000),
        2048: (0xE9A5D8BE00000000, 0x1426A81500000000),
    },
}
KNOWN_REDUCTIONS = {
    gf2.IEEE: (0x0CCAA009E, 0xB4E5B025F7011641, 0x1DB710641),
    gf2.CASTAGNOLI: (0x14CD00BD6, 0x4869EC38DEA713F1, 0x105EC76F1),
}


@pytest.mark.parametrize("poly", [gf2.IEEE, gf2.CASTAGNOLI])
def test_constants(poly: int) -> None:
    for distance, constants in KNOWN_FOLDS[poly].items():
        assert gf2.fold(distance, poly) == constants
    assert (gf2.narrow(64, poly), *gf2.barrett(poly)) == KNOWN_REDUCTIONS[poly]


def test_of_this_process() -> None:
    assert checksums.wrong_answers() == 0


@pytest.mark.parametrize("n", [0, 1, 3, 4, 56, 63, 64, 65])
def test_of_a_length_known_when_compiled(n: int) -> None:
    @kernel(key=f"checksums of {n}")
    def of_constant(data: Bytes, answers: NDArray[np.uint32]) -> None:
        answers[0] = crc32(data, 0, n)
        answers[1] = crc32_raw(data, 0, n)
        answers[2] = crc32c(data, 0, n)

    content = np.random.default_rng(n).bytes(n)
    answers = np.empty(3, np.uint32)
    of_constant(guarded_bytes(content), answers)
    assert answers.tolist() == checksums.expected(content)


@pytest.mark.process
@pytest.mark.parametrize(
    ("environment", "isa", "host"),
    [
        ({"NUMBA_ENABLE_AVX": "0"}, Isa.PCLMUL, Isa.PCLMUL),
        ({"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": "+pclmul,+ssse3"}, Isa.PCLMUL, Isa.PCLMUL),
        ({"NUMBA_CPU_NAME": "x86-64-v4", "NUMBA_CPU_FEATURES": X86_512}, Isa.VPCLMUL, Isa.VPCLMUL),
        ({"NUMBA_CPU_NAME": "generic"}, Isa.PORTABLE, Isa.PORTABLE),
        ({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}, Isa.PORTABLE, Isa.PCLMUL),
    ],
    ids=["without AVX", "nehalem", "x86-64-v4", "generic", "no features named"],
)
def test_of_another_target(environment: dict[str, str], isa: Isa, host: Isa) -> None:
    if host is not Isa.PORTABLE and compiled_isa() not in (host, Isa.VPCLMUL):
        pytest.skip("this machine cannot run that code")
    assert run_python("-m", "tests.support.checksums", environment=environment) == f"{isa.name} 0\n"


@pytest.mark.parametrize(
    ("triple", "features", "isa"),
    [
        ("x86_64-unknown-linux-gnu", X86_512, Isa.VPCLMUL),
        ("x86_64-unknown-linux-gnu", X86_512.replace("+avx512vl", "-avx512vl"), Isa.PCLMUL),
        ("x86_64-apple-darwin", "+ssse3,+pclmul", Isa.PCLMUL),
        ("x86_64-unknown-linux-gnu", "+pclmul", Isa.PORTABLE),
        ("x86_64-unknown-linux-gnu", "", Isa.PORTABLE),
        ("aarch64-unknown-linux-gnu", "+neon,+aes,+crc", Isa.PMULL),
        ("arm64-apple-darwin23", "+neon,+aes", Isa.PMULL),
        ("aarch64-unknown-linux-gnu", "+neon", Isa.PORTABLE),
        ("powerpc64le-unknown-linux-gnu", "+aes,+neon,+pclmul,+ssse3", Isa.PORTABLE),
    ],
)
def test_choice(triple: str, features: str, isa: Isa) -> None:
    assert isa_of(triple, features) is isa


FLIP_ONE_BIT = """
from sparkwire.kernels.checksums import gf2
fold = gf2.fold
gf2.fold = lambda distance, p: (fold(distance, p)[0] ^ 1 << 40, fold(distance, p)[1])
from tests.support import checksums
print(checksums.wrong_answers())
"""


@pytest.mark.process
@pytest.mark.skipif(compiled_isa() is Isa.PORTABLE, reason="tables have no folding constants")
def test_detects_one_wrong_bit() -> None:
    assert int(run_python("-c", FLIP_ONE_BIT)) > 1000


@pytest.mark.parametrize("poly", [gf2.IEEE, gf2.CASTAGNOLI])
def test_products(poly: int) -> None:
    """By multiplication if available, and by bits, which works on every machine."""
    pairs = [*np.random.default_rng(5).integers(0, 1 << 32, (200, 2), np.uint32), np.array([0, 1 << 31], np.uint32)]
    for a, b in pairs:
        whole = gf2.product(gf2.reflect(int(a), 32), gf2.reflect(int(b), 32))
        expected = gf2.reflect(gf2.divide(whole, poly)[1], 32)
        assert [int(product(a, b, modulus(poly))) for product in (times, by_bits)] == [expected, expected]


@kernel
def _of_ranges(data: Bytes, ranges: NDArray[np.int64], sums: RangeSums, answers: NDArray[np.uint32]) -> None:
    for i in range(answers.size):
        answers[i] = range_crc(data, ranges[i, 0], ranges[i, 1], sums)


LIBRARIES: dict[Checksum, Callable[[bytes], int]] = {
    CRC32: zlib.crc32,
    CRC32_RAW: lambda content: zlib.crc32(content, 0xFFFFFFFF) ^ 0xFFFFFFFF,
    CRC32C: castagnoli.crc32c,
}


@pytest.mark.parametrize("checksum", LIBRARIES, ids=lambda checksum: checksum.name)
@pytest.mark.parametrize(("first", "last"), [(0, 400_000), (1, 399_999), (63, 300_000), (1000, 1100)])
def test_of_ranges(first: int, last: int, checksum: Checksum) -> None:
    """The checksum of any range, in any order, equals a direct computation; also at stored positions."""
    chance = np.random.default_rng(last)
    data = np.frombuffer(chance.bytes(400_000), np.uint8)
    ranges = np.sort(chance.integers(first, last + 1, (500, 2)), axis=1)
    borders = first + (ranges[::5] - first) // STEP * STEP
    ranges[::5] = borders
    ranges[0] = first, last
    answers = np.empty(len(ranges), np.uint32)
    _of_ranges(data, ranges, range_sums(checksum, first, last - first), answers)
    content = data.tobytes()
    assert answers.tolist() == [LIBRARIES[checksum](content[a:b]) for a, b in ranges]


def test_of_ranges_of_more_steps_than_a_table_has() -> None:
    data = np.frombuffer(np.random.default_rng(1).bytes(STEP << 13) * 3, np.uint8)
    answers = np.empty(2, np.uint32)
    ranges = np.array([[5, len(data) - 7], [3, (STEP << 13) + 3]])
    _of_ranges(data, ranges, range_sums(CRC32, 0, len(data)), answers)
    assert answers.tolist() == [zlib.crc32(data[a:b].tobytes()) for a, b in ranges]


def test_of_ranges_of_the_next_row() -> None:
    data = np.frombuffer(np.random.default_rng(2).bytes(5000), np.uint8)
    sums = range_sums(CRC32C, 0, 3000)
    answers = np.empty(1, np.uint32)
    for row in (0, 1234):
        begin_row(row, sums)
        _of_ranges(data, np.array([[row + 10, row + 2900]]), sums, answers)
        assert answers[0] == castagnoli.crc32c(data[row + 10 : row + 2900].tobytes())
