"""The dispatcher: the state machine that turns events into callbacks, as in Databus (`state.State` has the diagram).

It differs from Databus on purpose in three points: the content of checkpoints (`checkpoint.Progress`), the counting of retries
(`state.Retries`), and the kind of an event. The kind follows from the full source id; Databus uses the lower 16 bits of V2's.

The module is long because nobody could compare a state machine in pieces with the diagram.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sparkwire.base.printable import printable
from sparkwire.databus.client import data_events as kinds
from sparkwire.databus.client.callbacks import Callbacks, Failure
from sparkwire.databus.client.checkpoint import Checkpoint, Progress, is_online
from sparkwire.databus.client.consumer import Registration, Result, Scn
from sparkwire.databus.client.data_events import Page, Run, Source, UnreadableEventError, error_of
from sparkwire.databus.client.state import Retries, Settings, State, Status, Window, WindowReport
from sparkwire.errors import DispatcherRetriesExhaustedError


class PageQueue:
    """Pages of events with two positions: the next event and the last checkpoint. It is Databus's buffer with its two iterators.

    Numbers of events count from the first event. It releases a page when both positions are after it.
    """

    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._firsts: list[int] = []  # the number of each page's first event
        self._fed = 0
        self.at = 0
        """the number of the next event"""
        self.saved: int | None = 0
        """number of the event to which a rollback returns, None if that event is no longer available"""

    def feed(self, page: Page) -> None:
        self._pages.append(page)
        self._firsts.append(self._fed)
        self._fed += page.rows

    @property
    def has_next(self) -> bool:
        return self.at < self._fed

    def page(self) -> tuple[int, Page]:
        """The page of the next event, and the number of the page's first event."""
        done = bisect_right(self._firsts, self.at if self.saved is None else min(self.saved, self.at)) - 1
        if done:
            del self._pages[:done], self._firsts[:done]
        k = bisect_right(self._firsts, self.at) - 1
        return self._firsts[k], self._pages[k]

    def save(self) -> None:
        """Note that a checkpoint covers everything before the next event."""
        self.saved = self.at

    def remove(self) -> None:
        """Release the events before the next event. A rollback to them is no longer possible."""
        if self.saved != self.at:
            self.saved = None

    def clear(self) -> None:
        self._pages.clear()
        self._firsts.clear()
        self._fed = self.at


_log = logging.getLogger("sparkwire.databus.client")

_OPENING: Final = (State.EXPECT_EVENT_WINDOW, State.REPLAY_DATA_EVENTS)
"""states in which a data event opens a window"""


class Dispatcher:
    """Dispatches the events of one stream.

    Call `start`, then `feed` and `run` for each page of events, and `stop` at the end. It keeps events until a checkpoint covers
    them, or until they exceed the threshold.
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
        """the last accepted and stored checkpoint"""
        self.failure: Failure | None = None
        """the failure that closed the dispatcher"""
        self._persist = persist
        self._names: dict[int, Source] = {}
        self._pages = PageQueue()
        self._size = 0  # bytes delivered since the last checkpoint
        self._progress = Progress()
        self._report = WindowReport()
        self._window: Run | None = None  # the first event of the window in progress
        self._checkpoint_scn: Run | None = None  # the event of the last accepted checkpoint
        self._events_seen = False
        self._regressing = False
        self._source: Source | None = None

    # -- public methods

    def start(self) -> None:
        """START_DISPATCH_EVENTS."""
        self.status = Status.RUNNING
        if self.callbacks.call("on_start_consumption").is_success:
            self.state = State.EXPECT_EVENT_WINDOW
        else:
            self.failure = self.callbacks.failure
            self.stop()

    def feed(self, page: Page) -> None:
        """Append a page of events."""
        if self.is_open:
            self._pages.feed(page)

    def run(self) -> None:
        """Dispatch all pending events, or until the dispatcher closes."""
        pages, threshold = self._pages, self.settings.threshold
        while self.is_open and pages.has_next:
            first, page = pages.page()
            for run in page.runs(pages.at - first):
                success = self._data_events(page, run) if run.kind == kinds.DATA else self._control_event(page, run)
                if not success:
                    self._roll_back()
                    break
                if self._size > threshold:
                    # There is no accepted checkpoint: drop the events to make progress.
                    pages.remove()
                    self._size = 0
                if pages.at != first + run.last or self.state is State.CLOSED:
                    break

    def stop(self) -> None:
        """Enter STOP_DISPATCH_EVENTS and call `on_stop_consumption`. Open sources and windows are not closed first."""
        if self.is_open:
            self.state = State.STOP_DISPATCH_EVENTS
            self.callbacks.call("on_stop_consumption")
            self.status = Status.SUSPENDED_ON_ERROR
            self._pages.clear()
        self.callbacks.close()

    @property
    def is_open(self) -> bool:
        """Whether the dispatcher accepts events."""
        return self.state not in (State.STOP_DISPATCH_EVENTS, State.CLOSED)

    @property
    def window(self) -> int:
        """The SCN of the start of the window in progress, else of the last window; -1 before the first window."""
        return -1 if self._window is None else self._window.scn

    @property
    def windows(self) -> list[Window]:
        """The completed windows, which the caller removes."""
        return self._report.windows

    # -- data events

    def _data_events(self, page: Page, run: Run) -> bool:
        """Dispatch a run of data events of one source, or its part up to the threshold."""
        if self._regressing:
            self._regress(run)
        self._events_seen = True
        # Before the delivery of the first event, a failure counts as a failure of that event.
        self._pages.at += 1
        if self.state in _OPENING:
            if not self._begin_window(run):
                return False
        elif self._source is not None and self._source.id != run.src_id and not self._end_source(self._source):
            return False
        source = self._source_of(run)
        if source is None:
            self._note("a data event", f"its source id {run.src_id} or its schema id is not known")
            return False
        if source is not self._source and not self._start_source(source):
            return False
        return self._deliver(page, run, source)

    def _deliver(self, page: Page, run: Run, source: Source) -> bool:
        first, last, size = run.first, run.last, run.size
        if self._size + size > self.settings.threshold:
            last = page.first_beyond(first, last, self.settings.threshold - self._size)
        done = self.callbacks.deliver(page, first, last, source.name)
        self._pages.at += min(done, last - 1) - first
        self._size += size if done == run.last else page.size(first, done)
        self._report.delivered += done - first
        if done < last:
            return False
        if self._size > self.settings.threshold:
            self._store(self._progress.checkpoint_within(), self._window or run)
            self.state = State.EXPECT_STREAM_DATA_EVENTS
            self._recovered()
        return True

    def _source_of(self, run: Run) -> Source | None:
        """The source of a data event, None if the source or the event's schema is unknown."""
        if self.sources is not None:
            source = self.sources.get(run.src_id)
            # A source without a schema cannot start. An event may use the schema of another source.
            return None if source is None or source.schema is None or run.unknown else source
        named = self._names.get(run.src_id)
        if named is None:
            named = self._names[run.src_id] = Source(run.src_id, str(run.src_id), {})
        return named

    def _begin_window(self, run: Run) -> bool:
        self.state = State.START_STREAM_EVENT_WINDOW
        self._window, self._source = run, None
        self._progress.begin(run.scn)
        return self._call_at("on_start_data_event_sequence", run)

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
        self._pages.at += 1
        self._size += run.size
        if self._regressing:
            self._regress(run)
        if run.kind == kinds.END_OF_PERIOD:
            return self._end_of_period(run)
        if run.kind == kinds.SCN_REGRESS:
            # A regress takes effect at the next event, regardless of its payload.
            self._regressing = True
            self.state = State.EXPECT_EVENT_WINDOW
        elif run.kind == kinds.CHECKPOINT:
            return self._checkpoint_event(run, page.values("value")[run.first])
        elif run.kind == kinds.ERROR:
            return self._error_event(page.values("value")[run.first])
        else:
            _log.warning("unknown control event skipped: source id %d", run.src_id)
        return True

    def _end_of_period(self, run: Run) -> bool:
        if self._events_seen:
            if self._source is not None and not self._end_source(self._source):
                return False
            self._progress.end(run.scn, run.timestamp)
            self.state = State.END_STREAM_EVENT_WINDOW
            self._events_seen = False
            if not self._call_at("on_end_data_event_sequence", run):
                return False
            self._complete(run)
        elif run.scn > 0:
            self._progress.end_empty(run.scn, run.timestamp)
            self._complete(run)
        self.state = State.EXPECT_EVENT_WINDOW
        if run.scn > 0:
            self._recovered()
        return True

    def _complete(self, run: Run) -> None:
        checkpoint = self._progress.checkpoint()
        self._report.completed(run.scn, checkpoint if self._store(checkpoint, run) else None)

    def _checkpoint_event(self, run: Run, payload: bytes | None) -> bool:
        """Store a checkpoint that the puller put into the stream. A bootstrap checkpoint fails, because there is no bootstrap."""
        if not is_online(payload):
            self._note("a checkpoint event", "it is not one of online consumption")
            return False
        if run.scn > 0:
            self._store(self._progress.checkpoint_at(run.scn), run)
        return True

    def _error_event(self, payload: bytes | None) -> bool:
        try:
            error = error_of(payload or b"")
        except UnreadableEventError as problem:
            # Databus stops here without a callback.
            self._shut_down(Failure("on_error", str(problem)))
            return True
        return self._call("on_error", error)

    def _regress(self, run: Run) -> None:
        """Handle an SCN regress: call `on_rollback` with the SCN of the next event of any kind, without a replay."""
        self._regressing = self._events_seen = False
        self._progress.go_back()
        self._report.regressed()
        self._call_at("on_rollback", run)
        self.state = State.EXPECT_EVENT_WINDOW

    def _call(self, callback: str, *args: Any) -> bool:
        """Call all consumers; return whether all succeed."""
        return not self.callbacks.listeners[callback] or self.callbacks.call(callback, *args).is_success

    def _call_at(self, callback: str, run: Run) -> bool:
        """Call all consumers with the SCN of the run's first event; return whether all succeed."""
        listeners = self.callbacks.listeners[callback]
        return not listeners or self.callbacks.call(callback, Scn(run.scn, run.partition)).is_success

    # -- checkpoints

    def _store(self, checkpoint: Checkpoint, run: Run) -> bool:
        """Call `on_checkpoint`, store the checkpoint, and release the events before it. A declined checkpoint is not an error."""
        if self.callbacks.listeners["on_checkpoint"]:
            result = self.callbacks.call("on_checkpoint", Scn(run.scn, run.partition))
            if result >= Result.SKIP_CHECKPOINT:
                return False
        if self._persist is not None:
            try:
                self._persist(checkpoint)
            except OSError:
                _log.exception("the checkpoint could not be stored: %s", printable(str(checkpoint)))
                return False
        self.checkpoint, self._checkpoint_scn = checkpoint, run
        self._pages.save()
        self._size = 0
        self._report.accepted()
        self.retries.accepted()
        return True

    # -- failures

    def _note(self, event: str, problem: str) -> None:
        """Record a failure that no consumer caused."""
        self.callbacks.failure = Failure(event, problem)
        _log.error("%s", printable(f"{event} failed: {problem}"))

    def _recovered(self) -> None:
        if self.status is not Status.RUNNING:
            self.status = Status.RUNNING
            self.retries.recovered()

    def _roll_back(self) -> None:
        self.state = State.ROLLBACK
        self._events_seen = False
        failure, failed = self.callbacks.failure, self._pages.at - 1
        if self.retries.left(failed) <= 0:
            self.callbacks.call("on_error", DispatcherRetriesExhaustedError())
            self._close(failure)
            return
        self.status = Status.ERROR_RETRY
        self.retries.failed(failed)
        self._progress.go_back()
        self._report.rolled_back()
        if self._checkpoint_scn is not None:
            self._call_at("on_rollback", self._checkpoint_scn)
        if self._pages.saved is None:
            self._close(failure)
            return
        self.state = State.REPLAY_DATA_EVENTS
        self._pages.at = self._pages.saved
        self._size = 0
        self._source = None

    def _close(self, failure: Failure | None) -> None:
        self.state = State.CLOSED
        self.callbacks.call("on_stop_consumption")
        self._shut_down(failure)

    def _shut_down(self, failure: Failure | None) -> None:
        """Enter CLOSED, which is final."""
        self.state = State.CLOSED
        self.status = Status.SHUTDOWN
        self.failure = failure
        self.callbacks.close()
        self._pages.clear()
