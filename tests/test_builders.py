"""One scan a batch: shared where the memory cannot change, never where it may."""

from __future__ import annotations

import pyarrow as pa

from sparkwire.builders import Shared


def batch(rows: list[bytes]) -> pa.Array:
    """A column as Spark hands it over: around immutable buffers."""
    array = pa.array(rows, pa.binary())
    buffers = [None if buffer is None else pa.py_buffer(buffer.to_pybytes()) for buffer in array.buffers()]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)


def again(array: pa.Array) -> pa.Array:
    """Another Python object over the same memory."""
    return pa.Array.from_buffers(array.type, len(array), array.buffers(), offset=array.offset)


def test_the_same_batch_is_scanned_once() -> None:
    scanned: list[list[bytes]] = []

    def scan(column: pa.Array) -> int:
        scanned.append(column.to_pylist())
        return len(scanned)

    scan_of = Shared(scan)
    first = batch([b"a", b"b"])
    assert scan_of(first) == scan_of(again(first)) == 1
    assert scan_of(first[1:]) == 2
    assert scan_of(batch([b"a", b"b"])) == 3
    assert scanned == [[b"a", b"b"], [b"b"], [b"a", b"b"]]


def test_memory_that_may_change_is_scanned_anew() -> None:
    memory = bytearray(b"ab")
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0")
    column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(memory)])
    scan_of = Shared(lambda column: column.to_pylist())
    assert scan_of(column) == [b"ab"]
    memory[0] = ord("c")
    assert scan_of(column) == [b"cb"]
