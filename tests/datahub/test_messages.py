"""The DataHub functions: the samples, generated messages of every form, corrupt ones, hostile ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.datahub.blobs import messages_of
from sparkwire.datahub.layout import MESSAGE, SLOTS
from sparkwire.json.grammar import ABSENT
from sparkwire.json.values import documents
from tests.support import datahub_cases, datahub_messages
from tests.support.arrow import ask, plain
from tests.support.guard import guarded_column
from tests.support.oracles import datahub as oracle

NAMES = [name for name in FUNCTIONS if name.startswith("datahub_")]


def test_every_function_of_the_contract() -> None:
    assert set(oracle.answers(b"{}")) == set(NAMES) - {"to_datahub_blob"}


def check(blobs: Sequence[bytes], column: pa.Array | None = None) -> None:
    """Every function over one batch of these messages, against the oracle."""
    expected = [oracle.answers(blob) for blob in blobs]
    column = pa.array(blobs, pa.binary()) if column is None else column
    for name in NAMES:
        answers = FUNCTIONS[name].decode(column)
        answers.validate(full=True)
        for blob, got, known in zip(blobs, plain(answers), expected, strict=True):
            assert got == known[name], (name, blob)


def test_cases() -> None:
    cases = datahub_cases.cases()
    for name in NAMES:
        for case, got in zip(cases, ask(name, [case.data for case in cases]), strict=True):
            assert case.answers.get(name, got) == got, (name, case.name)


@pytest.mark.parametrize("seed", range(8))
def test_generated(seed: int) -> None:
    random = Random(seed)
    check([datahub_messages.message(random) for _ in range(150)])


@pytest.mark.parametrize("seed", range(8))
def test_mutated(seed: int) -> None:
    random = Random(1000 + seed)
    check([datahub_messages.mutated(random, datahub_messages.message(random)) for _ in range(150)])


def test_cut_at_every_byte() -> None:
    blob = datahub_messages.message(Random(7))
    check([blob[:end] for end in range(len(blob))])
    sample = next(datahub_cases.samples()).data
    check([sample[:end] for end in range(len(sample))])


def test_one_message_a_batch() -> None:
    """Batches without escapes, dates or repeated names use other code paths."""
    random = Random(5)
    for _ in range(80):
        check([datahub_messages.message(random)])


@pytest.mark.parametrize("op", datahub_messages.OPS)
def test_every_op(op: str) -> None:
    random = Random(op)
    trees = [
        dict(datahub_messages.tree(random)) | {"payload": [("op", op), ("timestamp", [("eventTime", "x")])]}
        for _ in range(5)
    ]
    blobs = [datahub_messages.write(random, list(tree.items())).encode() for tree in trees]
    images: dict[str, Any] = {"before": {"dataColumn": {}}, "after": {"dataColumn": {}}}
    blobs.append(json.dumps({"payload": {"op": op, "timestamp": {"eventTime": 1}} | images}).encode())
    check(blobs)


def test_nothing_is_read_beside_the_column() -> None:
    """Guard pages are at both ends of the buffer; all rows but the last are truncated, too."""
    random = Random(3)
    for _ in range(30):
        blobs = [datahub_messages.mutated(random, datahub_messages.message(random)) for _ in range(3)]
        for at_end in (True, False):
            check(blobs, guarded_column(blobs, at_end=at_end))


def test_neighbours_do_not_matter() -> None:
    """A row that ends in the middle of a token does not continue in the next row."""
    whole = next(datahub_cases.samples()).data
    for end in range(0, len(whole), 7):
        check([whole[:end], whole[end:], whole])


def test_many_columns() -> None:
    """Names are looked up in linear time: 50,000 columns, each of them twice, all of them declared as DATE."""
    names = [f"c{i}" for i in range(50_000)]
    columns = [{"name": name, "type": "DATE"} for name in names]
    image = "{" + ",".join(f'"{name}": {i}' for i, name in enumerate(names * 2)) + "}"
    change = {"op": "INSERT", "timestamp": {"eventTime": 1}, "after": {"dataColumn": "IMAGE"}}
    blob = json.dumps({"schema": {"dataColumn": columns, "primaryKey": names}, "payload": change})
    (row,) = ask("datahub_after_map", [blob.replace('"IMAGE"', image).encode()])
    assert len(row) == 50_000
    assert row[-1] == ("c49999", "1970-01-01T00:01:39.999Z")


def test_a_batch_is_scanned_once() -> None:
    """Functions of one query share a scan; another batch has another scan."""
    blobs = [case.data for case in datahub_cases.samples()]
    batch, other = received(blobs), received(blobs[::-1])
    assert messages_of(batch.column(0)) is messages_of(batch.column(0))
    assert messages_of(batch.column(0)) is not messages_of(other.column(0))
    assert messages_of(batch.column(0)[1:]) is not messages_of(batch.column(0)[:-1])
    ops = [FUNCTIONS["datahub_op"].decode(column).to_pylist() for column in (batch.column(0), other.column(0))]
    assert ops[0] == ops[1][::-1]


def test_memory_that_may_change_is_scanned_again() -> None:
    column = pa.array([b'{"version": "1"}'], pa.binary())
    assert FUNCTIONS["datahub_version"].decode(column).to_pylist() == ["1"]
    np.frombuffer(column.buffers()[2], np.uint8)[13] = ord("2")
    assert FUNCTIONS["datahub_version"].decode(column).to_pylist() == ["2"]


def received(blobs: list[bytes]) -> pa.RecordBatch:
    """A batch from the network, in memory that Arrow calls immutable."""
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_pydict({"blob": pa.array(blobs, pa.binary())})
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return next(iter(pa.ipc.open_stream(sink.getvalue().to_pybytes())))


def test_only_whole_paths_are_found() -> None:
    blob = b'{"version": 1, "versions": 2, "versio": 3, "payload": {"version": 4}, "payload.op": 5}'
    data, begins, ends = np.frombuffer(blob, np.uint8), np.zeros(1, np.int64), np.full(1, len(blob))
    result = documents(data, begins, ends, MESSAGE)
    assert result.intact.all()
    assert [field for field, slot in SLOTS.items() if result.value(slot).kinds[0] != ABSENT] == ["version"]
    version = result.value(SLOTS["version"])
    start = version.starts[0]
    assert blob[start : start + version.sizes[0]] == b"1"
