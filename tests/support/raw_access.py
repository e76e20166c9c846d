"""Raw accesses just inside and just outside their arrays, in a child process with the checked build.

``-m tests.support.raw_access`` prints the name of every access that is not checked correctly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparkwire import kernels
from sparkwire.kernels import CHECKED, FieldPlace, copy, crc32, crc32_raw, crc32c, field_reader, kernel
from sparkwire.kernels.load import CHUNK, WORD

SIZE = 400  # [bytes]

LOADS = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "i64": 8}
STORES = {"store_u8": 1, "store_i16": 2, "store_i32": 4, "store_i64": 8}
CHECKSUMS = {"crc32": crc32, "crc32_raw": crc32_raw, "crc32c": crc32c}

_read_fields = field_reader(
    [[FieldPlace(0, 8, True, False), FieldPlace(8, 16, False, False)], [None, FieldPlace(0, 16, False, True)]]
)


def accesses() -> dict[str, tuple[Callable[[int], object], range]]:
    """Functions that access an array at a position, by name, with the valid positions."""
    data = np.zeros(SIZE, np.uint8)
    out = np.zeros(SIZE, np.uint8)
    result: dict[str, tuple[Callable[[int], object], range]] = {}
    for name, width in LOADS.items():
        result[name] = _loading(name, width, data), range(SIZE - width + 1)
    for name, width in STORES.items():
        result[name] = _storing(name, width, out), range(SIZE - width + 1)
    for name, checksum in CHECKSUMS.items():
        result[name] = _checksumming(checksum, data), range(SIZE - 100 + 1)
    for n, written in ((1, WORD), (WORD, WORD), (WORD + 1, CHUNK), (CHUNK, CHUNK), (CHUNK + 1, 2 * CHUNK), (300, 300)):
        result[f"copy of {n} from"] = partial(_copy_from, out, data, n), range(SIZE - n + 1)
        result[f"copy of {n} to"] = partial(_copy_to, out, data, n), range(SIZE - written + 1)
    numbers, blobs = np.zeros(10, np.int64), np.zeros(160, np.uint8)
    result["fields of a row at"] = (lambda at: _fields(data, at, 24, (numbers, blobs), 9)), range(SIZE - 24 + 1)
    result["fields to row"] = (lambda row: _fields(data, 0, 24, (numbers, blobs), row)), range(10)
    return result


@kernel
def _copy_from(dst: Any, src: Any, n: int, at: int) -> None:
    copy(dst, 0, src, at, n)


@kernel
def _copy_to(dst: Any, src: Any, n: int, at: int) -> None:
    copy(dst, at, src, 0, n)


@kernel
def _fields(data: Any, at: int, size: int, outs: Any, row: int) -> None:
    _read_fields(data, at, size, 0, outs, row)


def _loading(name: str, width: int, data: Any) -> Callable[[int], object]:
    load: Any = getattr(kernels, name)

    @kernel(key=name)
    def read(data: Any, at: int) -> int:
        return load(data, at)  # type: ignore[no-any-return]

    @kernel(key=name)
    def read_little(data: Any, at: int) -> int:
        return load(data, at, True)  # type: ignore[no-any-return]

    reading = read if width == 1 else read_little
    return lambda at: reading(data, at)


def _storing(name: str, width: int, out: Any) -> Callable[[int], object]:
    store: Any = getattr(kernels, name)

    @kernel(key=name)
    def write(out: Any, at: int) -> None:
        store(out, at, 1)

    @kernel(key=name)
    def write_little(out: Any, at: int) -> None:
        store(out, at, 1, True)

    writing = write if width == 1 else write_little
    return lambda at: writing(out, at)


def _checksumming(checksum: Any, data: Any) -> Callable[[int], object]:
    @kernel(key="checksum")
    def compute(data: Any, at: int) -> int:
        return checksum(data, at, 100)  # type: ignore[no-any-return]

    return lambda at: compute(data, at)


def broken_words() -> list[str]:
    """The accesses that raise inside their array, or do not raise outside."""
    broken = []
    for name, (access, inside) in accesses().items():
        for at in (-1, 0, inside[-1], inside[-1] + 1, 1 << 58, -(1 << 58)):
            try:
                access(at)
                raised = False
            except IndexError:
                raised = True
            if raised == (at in inside):
                broken.append(f"{name} {at}")
    return broken


if __name__ == "__main__":
    assert CHECKED
    sys.stdout.write("\n".join(broken_words()))
