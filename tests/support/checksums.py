"""Compare every checksum with the libraries, for messages of every length. Child processes run ``-m tests.support.checksums``.

A child prints the instruction set of its kernels, and the number of wrong results.
"""

from __future__ import annotations

import sys
import zlib

import crc32c as castagnoli
import numpy as np
from numpy.typing import NDArray

from sparkwire.kernels import crc32, crc32_raw, crc32c, kernel
from sparkwire.kernels.checksums.instruction_sets import compiled_isa
from tests.support.guard import guarded_bytes

LONGEST = 17_000  # [bytes]
ONES = 0xFFFFFFFF


def wrong_answers() -> int:
    """The number of wrong results for all lengths below 700 and some up to ``LONGEST``, at any start, beside a guard page."""
    random = np.random.default_rng(7)
    content = random.bytes(LONGEST)
    lengths = [*range(700), *random.integers(700, LONGEST, 100).tolist(), LONGEST]
    wrong = 0
    for at_end in (True, False):
        data = guarded_bytes(content, at_end=at_end)
        for n in lengths:
            start = LONGEST - n if at_end else 0
            message = content[start : start + n]
            wrong += _checksums(data, start, n) != expected(message)
        for n, start in zip(lengths, random.integers(0, LONGEST, len(lengths)).tolist(), strict=True):
            n = min(n, LONGEST - start)
            wrong += _checksums(data, start, n) != expected(content[start : start + n])
    return wrong


@kernel
def all_three(data: NDArray[np.uint8], start: int, n: int, answers: NDArray[np.uint32]) -> None:
    answers[0] = crc32(data, start, n)
    answers[1] = crc32_raw(data, start, n)
    answers[2] = crc32c(data, start, n)


def _checksums(data: NDArray[np.uint8], start: int, n: int) -> list[int]:
    answers = np.empty(3, np.uint32)
    all_three(data, start, n, answers)
    return answers.tolist()


def expected(message: bytes) -> list[int]:
    return [zlib.crc32(message), zlib.crc32(message, ONES) ^ ONES, castagnoli.crc32c(message)]


if __name__ == "__main__":
    sys.stdout.write(f"{compiled_isa().name} {wrong_answers()}\n")
