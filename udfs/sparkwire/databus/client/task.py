"""The tasks of `consume` and `callbacks`: they read the sorted events of whole streams and return report or callback rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.databus.client.consumer import Consumer, Registration
from sparkwire.databus.client.dispatcher import Dispatcher
from sparkwire.databus.client.page import Source, pages
from sparkwire.databus.client.report import Window
from sparkwire.databus.client.rows import Recorder, readable
from sparkwire.databus.client.run import schemas_of
from sparkwire.databus.client.settings import Settings
from sparkwire.databus.client.state import Status
from sparkwire.databus.scan import Events
from sparkwire.errors import ConsumerFailedError, CorruptEventError

REPORT: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("partition", pa.int32()),
        ("scn", pa.int64()),
        ("events", pa.int64()),
        ("rollbacks", pa.int32()),
        ("retries", pa.int32()),
        ("seconds", pa.float64()),
        ("checkpoint", pa.string()),
    ]
)
KEYS: Final = ("stream", "partition")
_REPORTED: Final = 1 << 14  # rows in a batch of the report


class Consumption(NamedTuple):
    """The arguments for a task's streams; Spark pickles them."""

    consumer: Consumer | Callable[[], Consumer]
    group_size: int
    sources: Mapping[int, Source] | None
    settings: Settings

    def registration(self) -> Registration:
        """New consumers for one stream."""
        return Registration([self._member() for _ in range(self.group_size)])

    def _member(self) -> Consumer:
        return copy.deepcopy(self.consumer) if isinstance(self.consumer, Consumer) else self.consumer()


def consume_streams(batches: Iterable[pa.RecordBatch], plan: Consumption) -> Iterator[pa.RecordBatch]:
    """Run the consumer over the streams of a task, one after another; return a row for each completed window."""
    for (stream, partition), slices in _streams(batches):
        dispatcher = Dispatcher([plan.registration()], plan.sources, plan.settings)
        try:
            yield from _consumed(dispatcher, slices, plan, stream, partition)
        finally:
            dispatcher.callbacks.close()


def _consumed(
    dispatcher: Dispatcher, slices: Iterable[pa.Array], plan: Consumption, stream: str | None, partition: int | None
) -> Iterator[pa.RecordBatch]:
    schemas, check = schemas_of(plan.sources), plan.sources is not None
    dispatcher.start()
    for events in slices:
        if not dispatcher.is_open:
            break
        _check(events, stream)
        for page in pages(events, schemas=schemas, check=check):
            dispatcher.feed(page)
            dispatcher.run()
            if len(dispatcher.windows) >= _REPORTED:
                yield _report(dispatcher, stream, partition)
    failure = dispatcher.failure
    if failure is not None or dispatcher.status is Status.SHUTDOWN:
        callback, error = failure or ("the dispatcher", "closed")
        raise ConsumerFailedError(
            f"the consumer of stream {stream} failed too often in window {dispatcher.window}: {callback} {error}"
        )
    dispatcher.stop()
    yield _report(dispatcher, stream, partition)


def _report(dispatcher: Dispatcher, stream: str | None, partition: int | None) -> pa.RecordBatch:
    windows: list[Window] = dispatcher.windows
    columns = [list(column) for column in zip(*windows, strict=True)] or [[] for _ in Window._fields]
    columns[-1] = [None if checkpoint is None else str(checkpoint) for checkpoint in columns[-1]]
    names = [[stream] * len(windows), [partition] * len(windows)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(names + columns, REPORT, strict=True)], schema=REPORT
    )
    dispatcher.windows.clear()
    return batch


def callback_rows(
    batches: Iterable[pa.RecordBatch], names: Mapping[int, str], threshold: int
) -> Iterator[pa.RecordBatch]:
    """The callbacks of the streams of a task as rows."""
    for (stream, _), slices in _streams(batches):
        recorder = Recorder(stream, names)
        dispatcher = Dispatcher([Registration.of(recorder)], settings=Settings(threshold))
        dispatcher.start()
        yield recorder.batch()
        for page in (readable(page) for events in slices for page in pages(_valid_events(events))):
            dispatcher.feed(page)
            dispatcher.run()
            dispatcher.windows.clear()  # they are not reported
            yield recorder.batch(page)


def _streams(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[Any, ...], Iterator[pa.Array]]]:
    """Each stream with its events, as slices of batches. Read the slices of a stream before you take the next stream."""
    parts = (
        (key, batch.column("event").slice(first, last - first))
        for batch in batches
        for key, first, last in _key_spans(batch, KEYS)
    )
    pending = next(parts, None)

    def slices(key: tuple[Any, ...]) -> Iterator[pa.Array]:
        nonlocal pending
        while pending is not None and pending[0] == key:
            events = pending[1]
            pending = next(parts, None)
            yield events

    while pending is not None:
        key = pending[0]
        slices_of_key = slices(key)
        yield key, slices_of_key
        for _ in slices_of_key:  # skip the slices that the caller has not read
            pass


def _key_spans(batch: pa.RecordBatch, keys: Sequence[str]) -> Iterator[tuple[tuple[object, ...], int, int]]:
    """Keys, first row and end of each group of rows with equal keys, in rows sorted by these keys."""
    if not batch.num_rows:
        return
    bounds = {0, batch.num_rows}
    for key in keys:
        runs = pc.run_end_encode(batch.column(key))
        bounds.update(runs.run_ends.to_pylist())
    for first, last in pairwise(sorted(bounds)):
        yield tuple(batch.column(key)[first].as_py() for key in keys), first, last


def _check(events: pa.Array, stream: str | None) -> None:
    errors = Events(events, check=True).errors
    bad = np.flatnonzero(errors != OK)
    if len(bad):
        raise CorruptEventError(
            f"stream {stream} has an event that cannot be read ({ERRORS[errors[bad[0]]]}): to continue without such events, "
            "filter them out with dbus_is_valid(event)"
        )


def _valid_events(events: pa.Array) -> pa.Array:
    valid = Events(events, check=True).errors == OK
    return events if valid.all() else events.filter(pa.array(valid))


def source_ids(order: Sequence[int | str], sources: Mapping[int, Source] | None) -> list[int]:
    """The ids of sources given by id or by name."""
    by_name = {source.name: source.id for source in (sources or {}).values()}
    unknown = [source for source in order if not isinstance(source, int) and source not in by_name]
    if unknown:
        raise ValueError(f"source_order takes ids, or names in sources, got {unknown[0]!r}")
    return [source if isinstance(source, int) else by_name[source] for source in order]
