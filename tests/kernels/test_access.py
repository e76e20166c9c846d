"""Loads, stores, copies and field readers: their values, and the positions that they read and write."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparkwire import kernels
from sparkwire.core.column import binary_of
from sparkwire.kernels import COPY_SLACK, FieldPlace, copy, field_reader, kernel, prefetch
from tests.support.child import run_python
from tests.support.guard import guarded, guarded_bytes, guarded_column

CONTENT = bytes(np.random.default_rng(1).permutation(256).astype(np.uint8))


@pytest.mark.parametrize(
    ("name", "code"),
    [("u8", "B"), ("i8", "b"), ("u16", "H"), ("i16", "h"), ("u32", "I"), ("i32", "i"), ("i64", "q")],
)
def test_loads(name: str, code: str) -> None:
    load: Any = getattr(kernels, name)
    width = struct.calcsize(code)

    @kernel(key=name)
    def read(data: NDArray[np.uint8], at: int, little: bool) -> int:
        return load(data, at, little)  # type: ignore[no-any-return]

    @kernel(key=name)
    def read_byte(data: NDArray[np.uint8], at: int, little: bool) -> int:
        return load(data, at)  # type: ignore[no-any-return]

    reading = read_byte if width == 1 else read
    for at_end in (True, False):
        data = guarded_bytes(CONTENT, at_end=at_end)
        for at in range(len(CONTENT) - width + 1):
            for little, order in ((False, ">"), (True, "<")):
                assert reading(data, at, little) == struct.unpack_from(order + code, CONTENT, at)[0]


@pytest.mark.parametrize(
    ("name", "code"), [("store_u8", "B"), ("store_i16", "h"), ("store_i32", "i"), ("store_i64", "q")]
)
def test_stores(name: str, code: str) -> None:
    store: Any = getattr(kernels, name)
    width = struct.calcsize(code)

    @kernel(key=name)
    def write(out: NDArray[np.uint8], at: int, value: int, little: bool) -> None:
        store(out, at, value, little)

    @kernel(key=name)
    def write_byte(out: NDArray[np.uint8], at: int, value: int, little: bool) -> None:
        store(out, at, value)

    writing = write_byte if width == 1 else write
    (value,) = struct.unpack(">" + code, CONTENT[:width])
    for at in (0, 1, 64 - width):
        for little, order in ((False, ">"), (True, "<")):
            out = guarded(64, at_end=at > 0)
            writing(out, at, value, little)
            assert out.tobytes() == bytes(at) + struct.pack(order + code, value) + bytes(64 - width - at)


@kernel
def _copied(dst: NDArray[np.uint8], di: int, src: NDArray[np.uint8], si: int, n: int) -> None:
    copy(dst, di, src, si, n)


def test_copies() -> None:
    content = np.random.default_rng(2).bytes(700)
    for at_end in (True, False):
        source = guarded_bytes(content, at_end=at_end)
        for n in [*range(70), 127, 128, 129, 255, 256, 257, 320, 321, 700]:
            for start in {0, min(3, 700 - n), 700 - n}:
                target = guarded(5 + n + COPY_SLACK)
                _copied(target, 5, source, start, n)
                assert target[:5].tobytes() == bytes(5)
                assert target[5 : 5 + n].tobytes() == content[start : start + n]


def test_prefetch_of_any_address() -> None:
    @kernel
    def ask(data: NDArray[np.uint8], at: int) -> None:
        prefetch(data, at)

    data = guarded_bytes(b"")
    for at in (0, -1, 1 << 40, -(1 << 62), (1 << 63) - 1):
        ask(data, at)


VARIANTS = [
    [
        FieldPlace(0, 1, True, False),
        FieldPlace(1, 4, False, False),
        FieldPlace(5, 2, True, False),
        None,
        FieldPlace(7, 16, False, False),
    ],
    [
        FieldPlace(9, 1, True, True),
        FieldPlace(2, 4, False, True),
        FieldPlace(0, 4, True, True),
        FieldPlace(30, 8, True, True),
        None,
    ],
]
DTYPES = (np.int8, np.int64, np.int32, np.int64, np.uint8)
_read = field_reader(VARIANTS)


@kernel
def _read_rows(
    data: NDArray[np.uint8], offsets: NDArray[Any], variants: NDArray[np.int8], outs: tuple[NDArray[Any], ...]
) -> None:
    for row in range(variants.size):
        _read(data, offsets[row], offsets[row + 1] - offsets[row], variants[row], outs, row)


def test_fields_of_rows_truncated_at_every_byte() -> None:
    rows = [CONTENT[k : k + k] for k in range(45)] + [CONTENT[k : k + k] for k in range(45)]
    column = guarded_column(rows)
    data, offsets, _ = binary_of(column)
    variants = np.repeat([0, 1], 45).astype(np.int8)
    outs = tuple(np.full((16 if dtype is np.uint8 else 1) * len(rows), -1).astype(dtype) for dtype in DTYPES)
    _read_rows(data, offsets, variants, outs)
    for row, (content, variant) in enumerate(zip(rows, variants, strict=True)):
        for out, place in zip(outs, VARIANTS[variant], strict=True):
            width = out.size // len(rows)
            stored = out[width * row : width * (row + 1)]
            assert (stored.tobytes() if width == 16 else stored[0]) == _expected(content, place, width)


def _expected(content: bytes, place: FieldPlace | None, width: int) -> int | bytes:
    there = place is not None and place.end <= len(content)
    if width == 16:
        return content[place.offset : place.end] if place is not None and there else bytes(16)
    if place is None or not there:
        return 0
    return int.from_bytes(content[place.offset : place.end], "little" if place.little else "big", signed=place.signed)


@pytest.mark.process
def test_checked_build_raises_outside_and_only_there() -> None:
    assert run_python("-m", "tests.support.raw_access", environment={"SPARKWIRE_CHECKED": "1"}) == ""


@pytest.mark.process
@pytest.mark.parametrize(("at_end", "inside", "outside"), [(True, 9, 10), (False, 0, -1)])
def test_guard_pages_kill(at_end: bool, inside: int, outside: int) -> None:
    touch = (
        "import ctypes; from tests.support.guard import guarded; a = guarded(10, at_end={}); "
        "ctypes.string_at(a.ctypes.data + {}, 1)"
    )
    run_python("-c", touch.format(at_end, inside))
    with pytest.raises(AssertionError, match="exit -11"):
        run_python("-c", touch.format(at_end, outside))
