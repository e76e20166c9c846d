"""The states of the dispatcher, its status, and how often it may retry: Databus's words."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final


class State(Enum):
    """Where the dispatcher is: Databus's state diagram.

    ::

        START_DISPATCH_EVENTS -> EXPECT_EVENT_WINDOW
        EXPECT_EVENT_WINDOW        -> START_STREAM_EVENT_WINDOW      the first data event of a window
        START_STREAM_EVENT_WINDOW  -> START_STREAM_SOURCE
        START_STREAM_SOURCE        -> EXPECT_STREAM_DATA_EVENTS
        EXPECT_STREAM_DATA_EVENTS  -> END_STREAM_SOURCE              another source, or the window's end
        END_STREAM_SOURCE          -> START_STREAM_SOURCE | END_STREAM_EVENT_WINDOW
        END_STREAM_EVENT_WINDOW    -> EXPECT_EVENT_WINDOW
        any of them                -> ROLLBACK                       a callback failed
        ROLLBACK                   -> REPLAY_DATA_EVENTS | CLOSED    REPLAY acts like EXPECT_EVENT_WINDOW
        any of them                -> STOP_DISPATCH_EVENTS           a stop message
    """

    START_DISPATCH_EVENTS = auto()
    EXPECT_EVENT_WINDOW = auto()
    START_STREAM_EVENT_WINDOW = auto()
    START_STREAM_SOURCE = auto()
    EXPECT_STREAM_DATA_EVENTS = auto()
    END_STREAM_SOURCE = auto()
    END_STREAM_EVENT_WINDOW = auto()
    ROLLBACK = auto()
    REPLAY_DATA_EVENTS = auto()
    STOP_DISPATCH_EVENTS = auto()
    CLOSED = auto()


class Status(Enum):
    """How the dispatcher is."""

    INITIALIZING = auto()
    RUNNING = auto()
    ERROR_RETRY = auto()
    """a callback failed after the last window or threshold checkpoint"""
    SUSPENDED_ON_ERROR = auto()
    """stopped"""
    SHUTDOWN = auto()
    """closed: it will not continue"""


_MAX_SLEEP: Final = 60_000  # [ms]


class Retries:
    """How often the dispatcher has tried again, and how often it may.

    Databus counts from the last completed window, and the first failure twice. If consumers decline checkpoints, its rollbacks
    repeat completed windows, each of which resets that count: it tries an event that always fails forever. So this counts the
    failures of each event, too, and neither count may reach the limit.
    """

    def __init__(self, limit: int, first_sleep: int = 0, sleep: Callable[[float], object] = time.sleep) -> None:
        self.limit = limit
        """-1 for none"""
        self.number = 0
        """Databus's count"""
        self._first_sleep = first_sleep  # [ms]
        self._next_sleep = first_sleep
        self._sleep = sleep
        self._of_event: dict[int, int] = {}

    def left(self, event: int) -> float:
        """How many more there are after ``event``, a position in the stream, has failed."""
        if self.limit < 0:
            return math.inf
        return self.limit - max(self.number, self._of_event.get(event, 0))

    def failed(self, event: int) -> None:
        """Count a failure, and wait before the next try."""
        first = self.number == 0
        self.number += 2 if first else 1
        of_event = self._of_event.get(event, 0)
        self._of_event[event] = of_event + (1 if of_event else 2)
        sleep = _longer(self._next_sleep) if first else self._next_sleep
        self._next_sleep = _longer(sleep)
        self._sleep(sleep / 1000)

    def recovered(self) -> None:
        """A window is complete: Databus's count starts again."""
        self.number = 0
        self._next_sleep = self._first_sleep

    def accepted(self) -> None:
        """After an accepted checkpoint: events before it do not come again."""
        self._of_event.clear()


def _longer(sleep: int) -> int:
    """The sleep after this one [ms]."""
    return min(_MAX_SLEEP, int(1.1 * sleep) + 1)
