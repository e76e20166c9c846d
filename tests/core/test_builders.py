"""Functions share one scan of each batch, if its memory cannot change. One table gives functions and their comments."""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.catalogue import SAMPLES
from sparkwire.core import builders
from sparkwire.core.builders import Column, Shared, columns_of, rows_function


def batch(rows: list[bytes]) -> pa.Array:
    """A column with immutable buffers, as Spark passes it."""
    array = pa.array(rows, pa.binary())
    buffers = [None if buffer is None else pa.py_buffer(buffer.to_pybytes()) for buffer in array.buffers()]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)


def again(array: pa.Array) -> pa.Array:
    """Another Python object with the same memory."""
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


def test_mutable_memory_is_scanned_again() -> None:
    memory = bytearray(b"ab")
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0")
    column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(memory)])
    scan_of = Shared(lambda column: column.to_pylist())
    assert scan_of(column) == [b"ab"]
    memory[0] = ord("c")
    assert scan_of(column) == [b"cb"]


class Letters:
    """Rows of single bytes; records which columns were computed."""

    def __init__(self, column: pa.Array, upper: bool) -> None:
        self.texts = [text.decode() for text in column.to_pylist()]
        self.upper = upper
        self.made: list[str] = []

    def letter(self) -> pa.Array:
        self.made.append("letter")
        result = "".join(self.texts)
        return pa.array(list(result.upper() if self.upper else result))

    def place(self) -> pa.Array:
        self.made.append("place")
        return pa.array([place for text in self.texts for place in range(len(text))], pa.int32())

    def lists(self, result: pa.Array) -> pa.Array:
        ends = [0, *itertools.accumulate(map(len, self.texts))]
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), result)


LETTERS = (
    Column("letter", "STRING", "The letter.", Letters.letter),
    Column("place", "INT", "Where it is.", Letters.place),
)


def test_a_table_is_a_function() -> None:
    function = rows_function("letters(text BINARY, upper BOOLEAN = false)", LETTERS, Letters, "Letters.", "... -> ...")
    assert function.returns == "ARRAY<STRUCT<letter STRING, place INT>>"
    assert function.field_docs == {"letter": "The letter.", "place": "Where it is."}
    decoded = function.decode(pa.array([b"ab", b"", None], pa.binary()).fill_null(b"x"), upper=True)
    assert decoded.type == function.return_type
    assert decoded.to_pylist() == [
        [{"letter": "A", "place": 0}, {"letter": "B", "place": 1}],
        [],
        [{"letter": "X", "place": 0}],
    ]


def test_columns_that_are_not_selected_are_not_computed() -> None:
    letters = Letters(pa.array([b"ab"]), False)
    assert columns_of(letters, LETTERS[1:])["place"].to_pylist() == [0, 1]
    assert letters.made == ["place"]


def test_fields_of_a_struct_are_documented_by_its_functions() -> None:
    struct = FUNCTIONS["kafka_message"]
    assert list(struct.field_docs) == [field.name for field in struct.return_type]
    assert struct.field_docs["key"] == FUNCTIONS["kafka_key"].doc


def test_a_thread_in_between_uses_its_own_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call between the check and the result gets the result of its own batch, and so does the first call."""
    first, second = batch([b"a"]), batch([b"b"])
    scan_of = Shared(lambda column: column.to_pylist())
    assert scan_of(first) == [b"a"]

    class Identity:
        def __init__(self, of: pa.Array) -> None:
            self.of = of

        def __ne__(self, other: object) -> bool:
            if between:
                between.pop()
                assert scan_of(second) == [b"b"]
            return isinstance(other, Identity) and self.of is not other.of

    between = [True]
    monkeypatch.setattr(builders, "identity_of", Identity)
    scan_of._latest = (Identity(first), first, [b"a"])  # type: ignore[assignment]
    assert scan_of(first) == [b"a"]


def test_threads_return_results_of_their_own_batches() -> None:
    """Databus, Kafka and DataHub in four threads with separate batches, and the shortest switch interval."""
    columns = {"dbus_sequence": "event", "kafka_value": "message", "datahub_table": "blob"}
    batches = [(name, batch([SAMPLES[sample]] * n)) for name, sample in columns.items() for n in range(1, 9)]
    expected = [FUNCTIONS[name].decode(column).to_pylist() for name, column in batches]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            work = [threads.submit(FUNCTIONS[name].decode, again(column)) for name, column in batches * 40]
            got = [future.result().to_pylist() for future in work]
    finally:
        sys.setswitchinterval(interval)
    assert got == expected * 40


def test_large_batches_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[pa.Array] = []
    scan_of = Shared(lambda column: scans.append(column))
    for most, scanned in ((1 << 20, 1), (10, 3)):
        monkeypatch.setattr(builders, "_KEPT", most)
        scans.clear()
        value = batch([bytes(1000)])
        for _ in range(3):
            scan_of(value)
        assert len(scans) == scanned
