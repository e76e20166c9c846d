"""The callbacks as rows, and the work of a task, on Arrow: compared with the dispatcher's calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.databus.client.buffer import split
from sparkwire.databus.client.consumer import CALLBACKS, Consumer, Registration, Result
from sparkwire.databus.client.data_events import DataEvent, pages
from sparkwire.databus.client.dispatcher import Dispatcher
from sparkwire.databus.client.run import REPORT, Consumption, callback_rows, consume_streams, source_ids
from sparkwire.databus.client.state import Settings
from sparkwire.errors import ConsumerFailedError, CorruptEventError
from tests.support.arrow import with_column
from tests.support.client_streams import checkpoint_json, end, event, random_stream, regress, window
from tests.support.dispatch_replay import golden_sources

Row = tuple[int, str, int | None, str | None, bytes | None]


class Listening(Consumer):
    """Records every callback as the row that `callbacks` returns."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        for name in CALLBACKS:
            setattr(self, name, partial(self.note, name))

    def note(self, callback: str, *args: Any) -> Result:
        scn = source = event = None
        if callback == "on_data_event":
            scn, source, event = args[0].sequence, str(args[0].src_id), bytes(args[0])
        elif callback.endswith("_source"):
            source = args[0]
        elif callback != "on_error" and args:
            scn = int(args[0])
        self.rows.append((len(self.rows), callback, scn, source, event))
        return Result.SUCCESS


def listened(events: pa.Array, threshold: int) -> list[Row]:
    consumer = Listening()
    dispatcher = Dispatcher([Registration.of(consumer)], settings=Settings(threshold))
    dispatcher.start()
    for page in pages(events):
        dispatcher.feed(page)
        dispatcher.run()
    return consumer.rows


def shown(rows: Iterator[pa.RecordBatch]) -> list[Row]:
    result = []
    for batch in rows:
        for row in batch.to_pylist():
            event = None if row["callback"] == "on_error" else row["event"]
            result.append((row["n"], row["callback"], row["scn"], row["source"], event))
    return result


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_the_callbacks_of_a_consumer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr("sparkwire.databus.client.data_events.ROWS", random.choice((1, 2, 7, 1 << 14)))
    events = split(b"".join(random_stream(random, random.randrange(0, 40)))).events
    threshold = random.choice((70, 200, 500, 1 << 30))
    nulls = pa.nulls(len(events), pa.int32())
    table = pa.table([pa.repeat("s", len(events)), nulls, events], names=["stream", "partition", "event"])
    batches = table.to_batches(max_chunksize=random.choice((1, 5, 100)))
    rows = list(callback_rows(batches, {}, threshold))
    assert shown(iter(rows)) == (listened(events, threshold) if len(events) else [])
    failed = [split(row["event"])[0] for batch in rows for row in batch.to_pylist() if row["callback"] == "on_error"]
    assert [len(event) for event in failed] == [1] * len(failed)


def sorted_batches(streams: dict[str | None, bytes], size: int) -> list[pa.RecordBatch]:
    columns: list[list[Any]] = [[], [], []]
    for stream, data in streams.items():
        for one in split(data)[0]:
            for column, value in zip(columns, (stream, None, one.as_py()), strict=True):
                column.append(value)
    arrays = [pa.array(columns[0], pa.string()), pa.array(columns[1], pa.int32()), pa.array(columns[2], pa.binary())]
    table = pa.table(arrays, names=["stream", "partition", "event"])
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=size)
    return batches


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_task_dispatches_streams_in_order_for_any_batch_size(size: int) -> None:
    streams = {"a": window(1, 40, 41) + window(2, 40), "b": window(7, 42), None: window(3), "c": b""}
    report = consumed(streams, Consumer(), size)
    assert [(r["stream"], r["scn"], r["events"]) for r in report] == [
        ("a", 1, 2),
        ("a", 2, 1),
        ("b", 7, 1),
        (None, 3, 0),
    ]
    rows = [
        row
        for batch in callback_rows(sorted_batches(streams, size), {40: "Person"}, 1 << 30)
        for row in batch.to_pylist()
    ]
    assert [row["stream"] for row in rows if row["callback"] == "on_start_consumption"] == ["a", "b", None]
    assert {row["source"] for row in rows} == {"Person", "41", "42", None}


def plan(consumer: Any, **changes: Any) -> Consumption:
    return Consumption(consumer, 1, None, Settings(max_retries=3))._replace(**changes)


def consumed(streams: dict[str | None, bytes], consumer: Any, size: int = 1000, **changes: Any) -> list[dict[str, Any]]:
    batches = list(consume_streams(sorted_batches(streams, size), plan(consumer, **changes)))
    assert all(batch.schema == REPORT for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


class FailsAt(Consumer):
    """Fails at a key, ``times`` times."""

    def __init__(self, key: int, times: int) -> None:
        self.key, self.times = key, times

    def on_data_event(self, event: DataEvent) -> Result:
        if event.key_long == self.key and self.times:
            self.times -= 1
            raise ValueError("boom")
        return Result.SUCCESS


def test_the_report_counts_rollbacks_and_retries() -> None:
    streams: dict[str | None, bytes] = {
        "a": window(1, 40) + window(2, 40, 41, first_key=5),
        "b": window(1, 40, first_key=5),
        "c": window(3, 40) + event(4, 40, 9) + regress(3) + window(4, 40),
    }
    report = consumed(streams, FailsAt(5, 1))
    reported = [(r["stream"], r["scn"], r["events"], r["rollbacks"], r["retries"]) for r in report]
    assert reported == [
        ("a", 1, 1, 0, 0),
        ("a", 2, 2, 1, 1),
        ("b", 1, 1, 1, 1),  # each stream has a separate consumer
        ("c", 3, 1, 0, 0),
        ("c", 4, 1, 1, 0),  # a regress rolls back, but is not a failure
    ]
    assert '"windowScn":2}' in report[1]["checkpoint"]


def test_a_consumer_that_fails_too_often_is_a_clear_error() -> None:
    streams: dict[str | None, bytes] = {"orders": window(1, 40) + window(2, 40, first_key=5)}
    sentence = r"^the consumer of stream orders failed too often in window 2: on_data_event ValueError: boom$"
    with pytest.raises(ConsumerFailedError, match=sentence):
        consumed(streams, FailsAt(5, 99))


def test_a_corrupt_event_is_never_skipped() -> None:
    data = window(1, 40)
    [batch] = sorted_batches({"a": data}, 1000)
    broken = bytearray(data[:61])
    broken[20] ^= 1
    bad = with_column(batch, "event", pa.array([bytes(broken), data[61:]]))
    with pytest.raises(CorruptEventError, match=r"^stream a has an event that cannot be read \(HEADER_CRC_MISMATCH\)"):
        list(consume_streams([bad], plan(Consumer())))
    [_, rows] = callback_rows([bad], {}, 1 << 30)
    assert rows.column("callback").to_pylist() == ["on_checkpoint"]


def test_a_consumer_factory_is_called_for_every_member_of_every_stream() -> None:
    made: list[Consumer] = []

    def make() -> Consumer:
        made.append(Consumer())
        return made[-1]

    consumed({"a": window(1, 40), "b": window(1, 40)}, make, group_size=3)
    assert len(made) == 6


def test_control_events_at_which_a_client_fails_have_no_row() -> None:
    stream = event(5, -3, 0, checkpoint_json(5, "BOOTSTRAP_SNAPSHOT")) + event(6, -3, 0, checkpoint_json(6)) + end(7)
    stream = event(4, -5, 0, b"no JSON") + stream
    [_, rows] = callback_rows(sorted_batches({"a": stream}, 1000), {}, 1 << 30)
    assert rows.column("scn").to_pylist() == [6, 7]


def test_sources_are_ordered_by_id_or_by_name() -> None:
    sources = {source.id: source for source in golden_sources()}
    assert source_ids([42, "com.example.events.Person"], sources) == [42, 40]
    with pytest.raises(ValueError, match=r"^source_order takes ids, or names in sources, got 'Nobody'$"):
        source_ids(["Nobody"], sources)
