"""``dispatch``: a consumer over the chunks of one stream, without Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.databus.client.buffer import EventBuffer
from sparkwire.databus.client.callbacks import Failure
from sparkwire.databus.client.checkpoint import Checkpoint
from sparkwire.databus.client.consumer import Consumer, Registration
from sparkwire.databus.client.dispatcher import Dispatcher
from sparkwire.databus.client.page import Source, pages
from sparkwire.databus.client.report import Window
from sparkwire.databus.client.settings import Settings
from sparkwire.databus.client.state import State, Status

_log = logging.getLogger("sparkwire.databus.client")


class Outcome(NamedTuple):
    """How a consumption ended."""

    state: State
    """STOP_DISPATCH_EVENTS where all is well and ``stop`` was requested"""
    status: Status
    """then SUSPENDED_ON_ERROR: so Databus calls every stop, and says by it nothing of an error"""
    checkpoint: Checkpoint | None
    """the last one accepted and stored"""
    windows: list[Window]
    failure: Failure | None
    """what closed it: the callback and its error"""


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
        the stream's bytes; each chunk is one response of a relay, whole events. Unreadable bytes end their chunk, with a line
        in the log. As in Databus, a torn event at a chunk's end is dropped. As in Databus, consumers get no callbacks for empty
        windows that follow a window in the same chunk. ``consume``, whose rows are no responses, reports each of them.
    consumers
        one consumer, or several; each gets everything. A `Registration` selects the sources whose data events it gets, or makes
        a group of several consumers. A failure of one rolls back all.
    sources
        what the relay serves: data events of other sources, or with a schema id that none of the sources has, fail. By
        default any source is known, by its id as its name.
    settings
        sizes and retries.
    persist
        stores a checkpoint; an OSError is logged and has the effect of declining it in `on_checkpoint`.
    schema_check
        whether data events must have a known schema id.
    drop_old_events
        whether to skip events of earlier windows: relays do this, clients do not.
    stop
        whether `on_stop_consumption` ends it. Databus calls it for a stop message alone.

    Returns
    -------
    Outcome
        also where the consumer failed for good: then its state is CLOSED.

    Examples
    --------
    >>> dispatch([relay.read_bytes()], Orders()).windows
    """
    given = [consumers] if isinstance(consumers, Consumer | Registration) else consumers
    registrations = [Registration.of(consumer) for consumer in given]
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
                _log.error("a chunk was read up to its event %d only: %s", read.rows, reason)
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
    """All sources' schemas: Databus looks an event's up without its source."""
    return {id: schema for source in (sources or {}).values() for id, schema in source.schemas.items()}
