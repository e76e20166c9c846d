"""The dispatcher: events in, callbacks out, a state machine to be read beside the original's (`state.State`).

One module, although a long one: a state machine in pieces could not be read beside the diagram.

What differs from the original, on purpose:

- a checkpoint never claims the window in progress, nor one after it: where the last completed window is not before it (after an
  SCN regress, in a window delivered again, in windows merged by a missing end), the checkpoint says the scn before the window's
  start, without a time. The original says the last completed window, and loses events if it is started again from there;
- retries are counted by event, too (`state.Retries`);
- the class of an event follows from its full source id: the original takes the lower 16 bits of V2's.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sparkwire.client import page as kinds
from sparkwire.client.callbacks import Callbacks, Failure
from sparkwire.client.checkpoint import Checkpoint
from sparkwire.client.consumer import Registration
from sparkwire.client.errors import DispatcherRetriesExhaustedError, UnreadableEventError, error_of
from sparkwire.client.kept import Kept
from sparkwire.client.page import Page, Run, Source
from sparkwire.client.result import Result
from sparkwire.client.scn import Scn
from sparkwire.client.state import Retries, State, Status

_log = logging.getLogger("sparkwire.client")

BUFFER_SIZE: Final = 10 << 20  # [bytes] of the original's client
THRESHOLD: Final = BUFFER_SIZE * 75 // 100


class Settings(NamedTuple):
    """How a dispatcher works; the defaults are the original's."""

    threshold: int = THRESHOLD
    """[bytes] after the last checkpoint of which there is one in the middle of a window"""
    max_retries: int = -1
    """-1 for no limit; 0 for no retry; n allows n - 1 rollbacks (1 allows 1) between two completed windows"""
    first_sleep: int = 0
    """[ms] before the first retry; then each time 1.1 times as long and 1 ms more"""


class Place(NamedTuple):
    """A scn, and the physical partition that gave it."""

    scn: int
    partition: int


class Window(NamedTuple):
    """A completed window, for the report."""

    scn: int
    events: int
    """data events"""
    rollbacks: int
    """since the window before was completed"""
    retries: int
    """the count of retries when it was completed"""
    seconds: float
    """since the window before was completed"""
    checkpoint: Checkpoint | None
    """None where it was declined or could not be stored"""


class Dispatcher:
    """Dispatches the events of one stream.

    `start`, then `feed` and `run` as events come, at last `stop`. What was fed is kept until a checkpoint covers it, or the
    threshold is crossed.
    """

    def __init__(
        self,
        registrations: Sequence[Registration],
        sources: Mapping[int, Source] | None = None,
        settings: Settings | None = None,
        persist: Callable[[Checkpoint], None] | None = None,
    ) -> None:
        self.callbacks = Callbacks(registrations)
        self.sources = sources
        self.settings = settings or Settings()
        self.retries = Retries(self.settings.max_retries, self.settings.first_sleep)
        self.state = State.START_DISPATCH_EVENTS
        self.status = Status.INITIALIZING
        self.checkpoint: Checkpoint | None = None
        """the last one accepted and stored"""
        self.windows: list[Window] = []
        """completed, for whoever takes them"""
        self.failure: Failure | None = None
        """what closed it"""
        self._persist = persist
        self._names: dict[int, Source] = {}
        self._kept = Kept()
        self._size = 0  # [bytes] since the last checkpoint
        self._checkpoint_scn = Place(-1, 0)
        self._last_window = -1
        self._last_time = -1
        self._window = Place(-1, 0)  # where the window in progress starts
        self._events_seen = False
        self._regressing = False
        self._source: Source | None = None
        self._delivered = 0  # data events of the window in progress
        self._covered = 0  # of them, before the last checkpoint
        self._rollbacks = 0
        self._since = 0.0

    # -- from outside

    def start(self) -> None:
        """START_DISPATCH_EVENTS."""
        self.status = Status.RUNNING
        self._since = time.perf_counter()
        if self.callbacks.call("on_start_consumption").is_success:
            self.state = State.EXPECT_EVENT_WINDOW
        else:
            self.failure = self.callbacks.failure
            self.stop()

    def feed(self, page: Page) -> None:
        """Events that follow those before."""
        if self.is_open:
            self._kept.feed(page)

    def run(self) -> None:
        """Dispatch what was fed, until nothing is left or the dispatcher is closed."""
        while self.is_open and self._kept.has_next:
            first, page = self._kept.page()
            for run in page.runs(self._kept.at - first):
                if run.kind == kinds.DATA:
                    success = self._data_events(page, run)
                else:
                    self._kept.at += 1
                    self._size += page.size(run.first, run.last)
                    success = self._control_event(page, run)
                if not success:
                    self._roll_back()
                    break
                if self._size > self.settings.threshold:
                    # The checkpoint was declined or there was none: drop the events to make progress.
                    self._remove_events()
                if self._kept.at != first + run.last or self.state is State.CLOSED:
                    break

    def stop(self) -> None:
        """STOP_DISPATCH_EVENTS: the last callback. An open source and window are not ended."""
        if self.is_open:
            self.state = State.STOP_DISPATCH_EVENTS
            self.callbacks.call("on_stop_consumption")
            self.status = Status.SUSPENDED_ON_ERROR
            self._kept.clear()
        self.callbacks.close()

    @property
    def is_open(self) -> bool:
        """Whether it takes events."""
        return self.state not in (State.STOP_DISPATCH_EVENTS, State.CLOSED)

    @property
    def window(self) -> int:
        """The scn of the start of the window in progress, or of the last one."""
        return self._window.scn

    # -- data events

    def _data_events(self, page: Page, run: Run) -> bool:
        """A run of data events of one source, or its part up to the threshold."""
        if self._regressing:
            self._regress(Place(run.scn, run.partition))
        self._events_seen = True
        # Until the first event has been delivered it is the one that fails.
        self._kept.at += 1
        if not self._begin(run):
            return False
        source = self._source_of(run)
        if source is None:
            self._note("a data event", f"its source id {run.src_id} or its schema id is not known")
            return False
        if source is not self._source and not self._start_source(source):
            return False
        first, last, size = run.first, run.last, page.size(run.first, run.last)
        if self._size + size > self.settings.threshold:
            last = page.first_beyond(first, last, self.settings.threshold - self._size)
        done = self.callbacks.deliver(page, first, last, source.name)
        self._kept.at += min(done, last - 1) - first
        self._size += size if done == run.last else page.size(first, done)
        self._delivered += done - first
        if done < last:
            return False
        if self._size > self.settings.threshold:
            self._store(self._checkpoint_within(int(page.scns[last - 1])), self._window, ends_window=False)
            self.state = State.EXPECT_STREAM_DATA_EVENTS
            self._recovered()
        return True

    def _source_of(self, run: Run) -> Source | None:
        """The source of a data event, None where the relay has told nothing of it or of the event's schema."""
        if self.sources is not None:
            source = self.sources.get(run.src_id)
            # A source without a schema cannot be started, and a schema is known whichever source it was told for.
            return None if source is None or source.schema is None or run.unknown else source
        named = self._names.get(run.src_id)
        if named is None:
            named = self._names[run.src_id] = Source(run.src_id, str(run.src_id), {})
        return named

    def _begin(self, run: Run) -> bool:
        """Open a window, or end the source before."""
        if self.state in (State.EXPECT_EVENT_WINDOW, State.REPLAY_DATA_EVENTS):
            self.state = State.START_STREAM_EVENT_WINDOW
            self._window = Place(run.scn, run.partition)
            self._source = None
            return self._call_with("on_start_data_event_sequence", self._window)
        if self._source is not None and self._source.id != run.src_id:
            return self._end_source(self._source)
        return True

    def _start_source(self, source: Source) -> bool:
        self.state = State.START_STREAM_SOURCE
        self._source = source
        if not self._call("on_start_source", source.name, source.schema):
            return False
        self.state = State.EXPECT_STREAM_DATA_EVENTS
        return True

    def _end_source(self, source: Source) -> bool:
        self.state = State.END_STREAM_SOURCE
        if not self._call("on_end_source", source.name, source.schema):
            return False
        self._source = None
        self.state = State.EXPECT_STREAM_DATA_EVENTS
        return True

    # -- control events

    def _control_event(self, page: Page, run: Run) -> bool:
        if self._regressing:
            self._regress(Place(run.scn, run.partition))
        if run.kind == kinds.END_OF_PERIOD:
            return self._end_of_period(Place(run.scn, run.partition), run.timestamp)
        if run.kind == kinds.SCN_REGRESS:
            # A regress acts at the next event, and does whatever its payload says.
            self._regressing = True
            self.state = State.EXPECT_EVENT_WINDOW
        elif run.kind == kinds.CHECKPOINT:
            return self._checkpoint_event(Place(run.scn, run.partition), page.values("value")[run.first])
        elif run.kind == kinds.ERROR:
            return self._error_event(page.values("value")[run.first])
        else:
            _log.warning("unknown control event skipped: source id %d", run.src_id)
        return True

    def _end_of_period(self, at: Place, timestamp: int) -> bool:
        scn = at.scn
        if self._events_seen:
            if self._source is not None and not self._end_source(self._source):
                return False
            self._last_window, self._last_time = scn, timestamp
            self.state = State.END_STREAM_EVENT_WINDOW
            self._events_seen = False
            if not self._call_with("on_end_data_event_sequence", at):
                return False
            self._store(self._checkpoint_after(scn), at, ends_window=True)
        elif scn > 0:
            self._last_window = scn
            if timestamp > 0:
                self._last_time = timestamp
            self._store(self._checkpoint_after(scn), at, ends_window=True)
        self.state = State.EXPECT_EVENT_WINDOW
        if scn > 0:
            self._recovered()
        return True

    def _checkpoint_event(self, at: Place, payload: bytes | None) -> bool:
        """A checkpoint that the puller has put into the stream; one for the bootstrap fails, there is none."""
        if not is_online(payload):
            self._note("a checkpoint event", "it is not one of online consumption")
            return False
        if at.scn > 0:
            self._store(self._checkpoint_within(at.scn, is_event=True), at, ends_window=False)
        return True

    def _error_event(self, payload: bytes | None) -> bool:
        try:
            error = error_of(payload or b"")
        except UnreadableEventError as problem:
            # The original dies of it without a callback.
            self._shut_down(Failure("on_error", str(problem)))
            return True
        return self._call("on_error", error)

    def _regress(self, at: Place) -> None:
        """The stream goes back: `on_rollback` with the next event's scn, whatever that event is; nothing is replayed."""
        self._regressing = False
        self._events_seen = False
        self._delivered = self._covered = 0
        self._rollbacks += 1
        self._call_with("on_rollback", at)
        self.state = State.EXPECT_EVENT_WINDOW

    def _call(self, callback: str, *args: Any) -> bool:
        """Whether all consumers succeed."""
        return self.callbacks.is_silent(callback) or self.callbacks.call(callback, *args).is_success

    def _call_with(self, callback: str, at: Place) -> bool:
        return self.callbacks.is_silent(callback) or self.callbacks.call(callback, Scn(*at)).is_success

    # -- checkpoints

    def _checkpoint_after(self, scn: int) -> Checkpoint:
        """After a window's end."""
        return Checkpoint.online(max(scn, 0), self._last_time)

    def _checkpoint_within(self, sequence: int, *, is_event: bool = False) -> Checkpoint:
        """In the middle of a window: the one before it. ``sequence`` is the scn of the data or checkpoint event."""
        bound = self._window.scn - 1 if self._events_seen else sequence
        if 0 <= self._last_window <= bound:
            return Checkpoint.online(self._last_window, self._last_time)
        if self._last_window < 0 and is_event and sequence <= bound:
            return Checkpoint.online(max(sequence, 0), self._last_time)
        return Checkpoint.online(max(bound, 0))

    def _store(self, checkpoint: Checkpoint, at: Place, *, ends_window: bool) -> None:
        """Ask the consumers, store the checkpoint, and forget the events before it; a refusal is no error."""
        silent = self.callbacks.is_silent("on_checkpoint")
        accepted = (silent or self.callbacks.call("on_checkpoint", Scn(*at)) < Result.SKIP_CHECKPOINT) and self._stored(
            checkpoint
        )
        if accepted:
            self.checkpoint, self._checkpoint_scn = checkpoint, at
            self._kept.save()
            self._remove_events()
            self.retries.accepted()
            self._covered = 0 if ends_window else self._delivered
        if ends_window:
            self._report(at.scn, checkpoint if accepted else None)

    def _stored(self, checkpoint: Checkpoint) -> bool:
        if self._persist is not None:
            try:
                self._persist(checkpoint)
            except OSError:
                _log.exception("the checkpoint could not be stored: %s", checkpoint)
                return False
        return True

    def _report(self, scn: int, checkpoint: Checkpoint | None) -> None:
        now = time.perf_counter()
        seconds, self._since = now - self._since, now
        number = self.retries.number
        self.windows.append(Window(scn, self._delivered, self._rollbacks, number, seconds, checkpoint))
        self._delivered = self._rollbacks = 0

    def _remove_events(self) -> None:
        self._kept.remove()
        self._size = 0

    # -- failures

    def _note(self, event: str, problem: str) -> None:
        """A failure that is no consumer's."""
        self.callbacks.failure = Failure(event, problem)
        _log.error("%s failed: %s", event, problem)

    def _recovered(self) -> None:
        if self.status is not Status.RUNNING:
            self.status = Status.RUNNING
            self.retries.recovered()

    def _roll_back(self) -> None:
        self.state = State.ROLLBACK
        self._events_seen = False
        failed = self._kept.at - 1
        if self.retries.left(failed) <= 0:
            failure = self.callbacks.failure
            self.callbacks.call("on_error", DispatcherRetriesExhaustedError())
            self._close(failure)
            return
        self.status = Status.ERROR_RETRY
        self.retries.failed(failed)
        self._rollbacks += 1
        failure = self.callbacks.failure
        if self.checkpoint is not None:
            self._call_with("on_rollback", self._checkpoint_scn)
        if self._kept.saved is None:
            self._close(failure)
            return
        self.state = State.REPLAY_DATA_EVENTS
        self._kept.at = self._kept.saved
        self._size = 0
        self._source = None
        self._delivered = self._covered

    def _close(self, failure: Failure | None) -> None:
        self.state = State.CLOSED
        self.callbacks.call("on_stop_consumption")
        self._shut_down(failure)

    def _shut_down(self, failure: Failure | None) -> None:
        """CLOSED: it will not go on."""
        self.state = State.CLOSED
        self.status = Status.SHUTDOWN
        self.failure = failure
        self.callbacks.close()
        self._kept.clear()


def is_online(payload: bytes | None) -> bool:
    """Whether a checkpoint event's payload is one of online consumption, and not for the bootstrap."""
    try:
        body = json.loads(payload or b"")
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("consumption_mode") == "ONLINE_CONSUMPTION"
