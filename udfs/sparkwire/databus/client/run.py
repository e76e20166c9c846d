"""``dispatch``: run consumers over the chunks of one stream, without Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.base.printable import printable
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
