"""A simple copy of Databus's dispatcher, including its bugs: one event at a time, with a list as the buffer.

Source: `GenericDispatcher.doDispatchEvents` and `RelayDispatcher.processSysEvent` of linkedin/databus, with an executor that
runs every callback immediately. It shares no code with the package: `struct` reads events, and callbacks are plain functions.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_HEADER = struct.Struct(">bIihqhhqh16sI")


class Event(NamedTuple):
    """A V1 event, big-endian."""

    scn: int
    partition: int
    timestamp: int
    source: int
    schema: bytes
    key: int
    size: int
    value: bytes


def read(chunk: bytes) -> list[Event]:
    events, at = [], 0
    while at < len(chunk):
        _, _, length, _, scn, partition, _, timestamp, source, schema, _ = _HEADER.unpack_from(chunk, at)
        (key,) = struct.unpack_from(">q", chunk, at + _HEADER.size)
        events.append(Event(scn, partition, timestamp, source, schema, key, length, chunk[at + 61 : at + length]))
        at += length
    return events


class Buffer:
    """The buffered part of the chunks: `DbusEventBuffer.readEvents`, `ReadEventsReadPosition` of linkedin/databus."""

    def __init__(self, drop_old_events: bool) -> None:
        self.drop_old_events = drop_old_events
        self.last_written, self.seen_end, self.regress = -1, -1, False

    def read(self, chunk: bytes) -> list[Event]:
        """Read a chunk up to the last complete window."""
        kept: list[Event] = []
        end_before, processed, window = False, self.last_written, self.seen_end
        for event in read(chunk):
            self.regress |= event.source == -51
            if self.drop_old_events and not self.regress:
                if event.scn > 0 and processed > 0 and (event.scn < processed or event.scn == window):
                    continue
                if 0 < processed < event.scn and window < processed:
                    break
            if event.source == -2:
                if end_before:
                    continue
                self.regress = False
            end_before = event.source == -2
            processed = max(processed, event.scn)
            if end_before:
                window = max(window, processed)
            kept.append(event)
            self.last_written, self.seen_end = event.scn, max(self.seen_end, window)
        return kept


class Dispatcher:
    """Dispatches events. ``call(consumer, callback, *args)`` returns a level; ``persist(scn, time)`` whether it stored it."""

    def __init__(
        self,
        call: Callable[..., int],
        persist: Callable[[int, int], bool],
        consumers: int,
        subscriptions: Sequence[set[int]] | None,
        sources: set[int],
        schemas: set[bytes],
        threshold: int,
        max_retries: int,
    ) -> None:
        self.call_one, self.persist = call, persist
        self.consumers, self.subscriptions = consumers, subscriptions
        self.sources, self.schemas = sources, schemas
        self.threshold, self.max_retries = threshold, max_retries
        self.buffer: list[Event] = []
        self.at = 0
        self.saved_at: int | None = 0  # the target of a rollback
        self.state, self.status, self.retries = "START_DISPATCH_EVENTS", "INITIALIZING", 0
        self.size = 0
        self.checkpoint: tuple[int, int] | None = None
        self.checkpoint_scn = 0
        self.last_window, self.last_time = -1, -1
        self.start_scn = -1
        self.seen = self.regress = False
        self.source: int | None = None

    def all(self, callback: str, *args: Any) -> bool:
        levels = [self.call_one(consumer, callback, *args) for consumer in range(self.consumers)]
        return max(levels) < 200

    def start(self) -> None:
        self.status = "RUNNING"
        if self.all("onStartConsumption"):
            self.state = "EXPECT_EVENT_WINDOW"
        else:
            self.stop()

    def stop(self) -> None:
        if self.state not in ("CLOSED", "STOP_DISPATCH_EVENTS"):
            self.state, self.status = "STOP_DISPATCH_EVENTS", "SUSPENDED_ON_ERROR"
            self.all("onStopConsumption")

    def run(self) -> None:
        while self.state not in ("CLOSED", "STOP_DISPATCH_EVENTS") and self.at < len(self.buffer):
            event = self.buffer[self.at]
            self.at += 1
            self.size += event.size
            if self.regress:
                self.seen, self.regress = False, False
                self.all("onRollback", event.scn)
                self.state = "EXPECT_EVENT_WINDOW"
            success = self.control(event) if event.source < 0 else self.data(event)
            if self.state == "CLOSED":
                return
            if success and self.size > self.threshold:
                self.remove()
            if not success:
                self.rollback()

    def remove(self) -> None:
        if self.saved_at != self.at:
            self.saved_at = None
        self.size = 0

    def store(self, checkpoint: tuple[int, int], scn: int) -> None:
        levels = [self.call_one(consumer, "onCheckpoint", scn) for consumer in range(self.consumers)]
        if max(levels) < 150 and self.persist(*checkpoint):
            self.checkpoint, self.checkpoint_scn, self.saved_at = checkpoint, scn, self.at
            self.remove()

    def made(self, event: Event) -> tuple[int, int]:
        scn = self.last_window
        if scn < 0:
            scn = event.scn if event.source == -3 else max(event.scn - 1, 0)
        return scn, self.last_time

    def resume(self) -> None:
        if self.status != "RUNNING":
            self.status, self.retries = "RUNNING", 0

    def control(self, event: Event) -> bool:
        if event.source == -2:
            return self.end_of_period(event)
        if -50 < event.source < -4:
            if not event.value:  # an exception ends the dispatcher's thread
                self.state, self.status = "CLOSED", "SHUTDOWN"
                return True
            number = json.loads(event.value)["errorId"]
            return self.all("onError", {-5: "ScnNotFound", -6: "PullerRetriesExhausted"}.get(number))
        if event.source == -3:
            if not event.value or json.loads(event.value)["consumption_mode"] != "ONLINE_CONSUMPTION":
                return False
            if event.scn > 0:
                self.store(self.made(event), event.scn)
        elif event.source == -51:
            self.regress, self.state = True, "EXPECT_EVENT_WINDOW"
        return True

    def end_of_period(self, event: Event) -> bool:
        if self.seen:
            if self.source is not None and not self.end_source():
                return False
            self.last_window, self.last_time = event.scn, event.timestamp
            self.state, self.seen = "END_STREAM_EVENT_WINDOW", False
            if not self.all("onEndDataEventSequence", event.scn):
                return False
            self.store(self.made(event), event.scn)
        elif event.scn > 0:
            self.last_window = event.scn
            if event.timestamp > 0:
                self.last_time = event.timestamp
            self.store(self.made(event), event.scn)
        self.state = "EXPECT_EVENT_WINDOW"
        if event.scn > 0:
            self.resume()
        return True

    def end_source(self) -> bool:
        self.state = "END_STREAM_SOURCE"
        if not self.all("onEndSource", self.source):
            return False
        self.source, self.state = None, "EXPECT_STREAM_DATA_EVENTS"
        return True

    def data(self, event: Event) -> bool:
        self.seen = True
        if self.state in ("EXPECT_EVENT_WINDOW", "REPLAY_DATA_EVENTS"):
            self.state, self.start_scn, self.source = "START_STREAM_EVENT_WINDOW", event.scn, None
            if not self.all("onStartDataEventSequence", event.scn):
                return False
        elif self.source is not None and self.source != event.source and not self.end_source():
            return False
        if event.source not in self.sources or event.schema not in self.schemas:
            return False
        if self.source is None:
            self.state, self.source = "START_STREAM_SOURCE", event.source
            if not self.all("onStartSource", event.source):
                return False
            self.state = "EXPECT_STREAM_DATA_EVENTS"
        subscribed = [
            c for c in range(self.consumers) if self.subscriptions is None or event.source in self.subscriptions[c]
        ]
        levels = [self.call_one(c, "onDataEvent", event.scn, event.source, event.key) for c in subscribed]
        if max(levels, default=0) >= 200:
            return False
        if self.size > self.threshold:
            self.store(self.made(event), self.start_scn)
            self.state = "EXPECT_STREAM_DATA_EVENTS"
            self.resume()
        return True

    def rollback(self) -> None:
        self.state, self.seen = "ROLLBACK", False
        if self.max_retries >= 0 and self.max_retries - self.retries <= 0:
            self.all("onError", "DispatcherRetriesExhausted")
            self.close()
            return
        self.retries += 1 if self.retries else 2
        self.status = "ERROR_RETRY"
        if self.checkpoint is not None:
            self.all("onRollback", self.checkpoint_scn)
        if self.saved_at is None:
            self.close()
            return
        self.size, self.state, self.source, self.at = 0, "REPLAY_DATA_EVENTS", None, self.saved_at

    def close(self) -> None:
        self.state, self.status = "CLOSED", "SHUTDOWN"
        self.all("onStopConsumption")
