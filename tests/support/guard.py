"""Bytes that end, or begin, exactly at a protected page: an access outside kills the process.

A test runs a kernel in this process, or in a child process if an invalid access is likely.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_PROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_PROTECT.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NO_ACCESS = 0


def guarded(size: int, *, at_end: bool = True) -> NDArray[np.uint8]:
    """``size`` writable bytes; an access to the byte after the last one (or before the first one) faults.

    The array, and all views of it, keep the pages alive.
    """
    page = mmap.PAGESIZE
    room = max(-(-size // page), 1) * page
    pages = np.frombuffer(mmap.mmap(-1, room + 2 * page), np.uint8)
    address = pages.ctypes.data
    for guard in (address, address + page + room):
        if _PROTECT(guard, page, _NO_ACCESS) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    start = page + room - size if at_end else page
    return pages[start : start + size]


def guarded_bytes(content: bytes, *, at_end: bool = True) -> NDArray[np.uint8]:
    """A read-only array of ``content`` beside a guard page."""
    array = guarded(len(content), at_end=at_end)
    array[:] = np.frombuffer(content, np.uint8)
    array.flags.writeable = False
    return array


def guarded_column(rows: Sequence[bytes | None], *, at_end: bool = True) -> pa.Array[Any]:
    """A binary column whose bytes are contiguous and beside a guard page."""
    data = guarded_bytes(b"".join(row or b"" for row in rows), at_end=at_end)
    ends = itertools.accumulate((len(row or b"") for row in rows), initial=0)
    offsets = np.fromiter(ends, np.int32, len(rows) + 1)
    valid = pa.array([row is not None for row in rows], pa.bool_()).buffers()[1] if None in rows else None
    return pa.BinaryArray.from_buffers(pa.binary(), len(rows), [valid, _buffer(offsets), _buffer(data)])


def _buffer(array: NDArray[Any]) -> pa.Buffer:
    return pa.foreign_buffer(array.ctypes.data, array.nbytes, array)
