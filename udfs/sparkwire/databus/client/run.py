"""Run consumers: `dispatch` over one stream in this process, `consume_streams` and `callback_rows` over the rows of a task."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.base.printable import printable
from sparkwire.databus.client.buffer import EventBuffer
from sparkwire.databus.client.callbacks import Failure
from sparkwire.databus.client.checkpoint import Checkpoint, is_online
from sparkwire.databus.client.consumer import CALLBACKS, Consumer, Registration, Result
from sparkwire.databus.client.data_events import (
    CHECKPOINT,
    DATA,
    ERROR,
    DataEvent,
    Page,
    Source,
    UnreadableEventError,
    error_of,
    pages,
)
from sparkwire.databus.client.dispatcher import Dispatcher
from sparkwire.databus.client.state import Settings, State, Status, Window
from sparkwire.databus.scan import Events
from sparkwire.errors import ConsumerFailedError, CorruptEventError

_log = logging.getLogger("sparkwire.databus.client")


class Outcome(NamedTuple):
    """The result of a consumption."""

    state: State
    """STOP_DISPATCH_EVENTS if no error ended the consumption and ``stop`` is true"""
    status: Status
    """SUSPENDED_ON_ERROR after every stop, with or without an error, as in Databus"""
    checkpoint: Checkpoint | None
    """the last accepted and stored checkpoint"""
    windows: list[Window]
    failure: Failure | None
    """the failure that closed the dispatcher: the callback and its error"""


def dispatch(
    chunks: Iterable[bytes | memoryview | pa.Buffer],
    consumers: Consumer | Registration | Sequence[Consumer | Registration],
    sources: Mapping[int, Source] | Iterable[Source] | None = None,
    *,
    settings: Settings | None = None,
    persist: Callable[[Checkpoint], None] | None = None,
    schema_check: bool = True,
    drop_old_events: bool = False,
    stop: bool = True,
) -> Outcome:
    """Dispatch the events of one stream to consumers, exactly as Databus's client does.

    Parameters
    ----------
    chunks
        the stream's bytes; each chunk is one response of a relay and consists of whole events. Unreadable bytes end their chunk,
        with a line in the log. As in Databus, a truncated event at a chunk's end has no effect. Also as in Databus, empty windows
        that follow a window in the same chunk have no callbacks. ``consume`` has no chunks, so it reports each of these windows.
    consumers
        one or several consumers; each gets all callbacks. A `Registration` selects the sources whose data events a consumer gets,
        or joins several consumers in a group. A failure of one consumer rolls back all.
    sources
        the sources that the relay serves. Data events of other sources, or with an unknown schema id, fail. By default every
        source is known, and its id is its name.
    settings
        sizes and retries.
    persist
        function that stores a checkpoint. The log shows an OSError, which has the same effect as declining it in `on_checkpoint`.
    schema_check
        whether data events must have a known schema id.
    drop_old_events
        whether to skip events of earlier windows: relays do this, clients do not.
    stop
        whether to call `on_stop_consumption` at the end. Databus calls it only for a stop message.

    Returns
    -------
    Outcome
        the result. If the consumer failed too often, its state is CLOSED.

    Examples
    --------
    >>> dispatch([relay.read_bytes()], Orders()).windows
    """
    listed = [consumers] if isinstance(consumers, Consumer | Registration) else consumers
    registrations = [Registration.of(consumer) for consumer in listed]
    by_id = sources_of(sources)
    schemas, check = schemas_of(by_id), schema_check and by_id is not None
    dispatcher = Dispatcher(registrations, by_id, settings, persist)
    buffer = EventBuffer(drop_old_events)
    try:
        dispatcher.start()
        for chunk in chunks:
            if not dispatcher.is_open:
                break
            read = buffer.read(chunk)
            if read.error != OK or read.missing_end is not None:
                reason = "a window's end is missing" if read.error == OK else ERRORS[read.error]
                _log.error("a chunk was read up to its event %d only: %s", read.rows, printable(reason))
            for page in pages(read.events, read.columns, schemas, check=check):
                dispatcher.feed(page)
                dispatcher.run()
        if stop:
            dispatcher.stop()
    finally:
        dispatcher.callbacks.close()
    return Outcome(dispatcher.state, dispatcher.status, dispatcher.checkpoint, dispatcher.windows, dispatcher.failure)


def sources_of(sources: Mapping[int, Source] | Iterable[Source] | None) -> Mapping[int, Source] | None:
    """Sources by id."""
    if sources is None or isinstance(sources, Mapping):
        return sources
    return {source.id: source for source in sources}


def schemas_of(sources: Mapping[int, Source] | None) -> Mapping[bytes, str]:
    """The schemas of all sources. Databus looks up an event's schema without regard to its source."""
    return {id: schema for source in (sources or {}).values() for id, schema in source.schemas.items()}


SCHEMA: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("n", pa.int64()),
        ("callback", pa.string()),
        ("scn", pa.int64()),
        ("source", pa.string()),
        ("event", pa.binary()),
    ]
)
_WITH_EVENT: Final = ("on_data_event", "on_error")


class Recorder(Consumer):
    """A consumer that always succeeds and records its callbacks."""

    def __init__(self, stream: str | None, names: Mapping[int, str]) -> None:
        self._stream, self._names = stream, {str(id): name for id, name in names.items()}
        self._n = count()
        self._rows: list[tuple[int, str, int | None, str | None]] = []
        for callback in CALLBACKS:
            setattr(self, callback, partial(self._note, callback))

    def _note(self, callback: str, *args: Any) -> Result:
        scn: int | None = None
        source: str | None = None
        match args:
            case (DataEvent() as event,):
                scn, source = event.sequence, str(event.src_id)
            case (int(number),):
                scn = number
            case (str(name), _):
                source = name
        self._rows.append((next(self._n), callback, scn, source and self._names.get(source, source)))
        return Result.SUCCESS

    def batch(self, page: Page | None = None) -> pa.RecordBatch:
        """The callbacks since the last call, in order; ``page`` has their events."""
        rows, self._rows = self._rows, []
        numbers, callbacks, scns, sources = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
        at = iter([] if page is None else np.flatnonzero((page.kinds == DATA) | (page.kinds == ERROR)).tolist())
        taken = pa.array([next(at) if callback in _WITH_EVENT else None for callback in callbacks], pa.int64())
        events = pa.nulls(len(rows), pa.binary()) if page is None else page.events.take(taken).cast(pa.binary())
        columns = [[self._stream] * len(rows), numbers, callbacks, scns, sources, events]
        return pa.record_batch(columns, schema=SCHEMA)


def readable(page: Page) -> Page:
    """The page without control events at which a client fails: bootstrap checkpoints and unreadable errors."""
    control = np.flatnonzero((page.kinds == CHECKPOINT) | (page.kinds == ERROR))
    rejected = [row for row in control.tolist() if not _is_readable(page, row)]
    if not rejected:
        return page
    accepted = np.ones(page.rows, np.bool_)
    accepted[rejected] = False
    return Page(page.events.filter(pa.array(accepted)))


def _is_readable(page: Page, row: int) -> bool:
    payload = page.values("value")[row]
    if page.kinds[row] == CHECKPOINT:
        return is_online(payload)
    try:
        error_of(payload or b"")
    except UnreadableEventError:
        return False
    return True


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
