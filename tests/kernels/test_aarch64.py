"""The checksums of aarch64, in an emulator."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import crc32c as castagnoli
import numpy as np
import pytest
from llvmlite import ir

from sparkwire.kernels.checksums import crc
from sparkwire.kernels.checksums.fold import checksum_function
from sparkwire.kernels.checksums.gf2 import Checksum
from sparkwire.kernels.checksums.instruction_sets import MACHINES, Isa, isa_of

ONES = 0xFFFFFFFF

aarch64 = pytest.importorskip("tests.support.aarch64", reason="needs unicorn and pyelftools", exc_type=ImportError)


@pytest.mark.parametrize(
    ("checksum", "expected"),
    [
        (crc.CRC32, zlib.crc32),
        (crc.CRC32_RAW, lambda message: zlib.crc32(message, ONES) ^ ONES),
        (crc.CRC32C, castagnoli.crc32c),
    ],
    ids=["crc32", "crc32_raw", "crc32c"],
)
def test_checksum(checksum: Checksum, expected: Callable[[bytes], int]) -> None:
    isa = isa_of(aarch64.TRIPLE, aarch64.FEATURES)
    assert isa is Isa.PMULL
    module = ir.Module()
    function = checksum_function(module, MACHINES[isa], checksum)
    function.linkage = "external"  # otherwise it would be dropped, because nothing calls it
    computed = aarch64.runnable(aarch64.compiled(module), function.name)
    random = np.random.default_rng(3)
    for n in [*range(200), *random.integers(200, 9000, 40).tolist()]:
        message = random.bytes(n)
        assert computed(message) == expected(message), n
