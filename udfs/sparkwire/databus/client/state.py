"""The dispatcher's states, its status and its retries, with Databus's names."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final


class State(Enum):
    """The state of the dispatcher, as in Databus's state diagram.

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
    """The status of the dispatcher."""

    INITIALIZING = auto()
    RUNNING = auto()
    ERROR_RETRY = auto()
    """a callback failed after the last window or threshold checkpoint"""
    SUSPENDED_ON_ERROR = auto()
    """stopped"""
    SHUTDOWN = auto()
    """closed, which is final"""


_MAX_SLEEP: Final = 60_000  # [ms]


class Retries:
    """Counts the dispatcher's retries and limits them.

    Databus counts retries since the last completed window, and counts the first failure twice. If consumers decline checkpoints,
    its rollbacks repeat completed windows, and each of these resets the count. Then it retries an event that always fails without
    limit. So this class also counts the failures of each event, and neither count may reach the limit.
    """

    def __init__(self, limit: int, first_sleep: int = 0, sleep: Callable[[float], object] = time.sleep) -> None:
        self.limit = limit
        """-1 for no limit"""
        self.number = 0
        """Databus's count"""
        self._first_sleep = first_sleep  # [ms]
        self._next_sleep = first_sleep
        self._sleep = sleep
        self._of_event: dict[int, int] = {}

    def left(self, event: int) -> float:
        """The number of retries left after ``event``, a position in the stream, has failed."""
        if self.limit < 0:
            return math.inf
        return self.limit - max(self.number, self._of_event.get(event, 0))

    def failed(self, event: int) -> None:
        """Count a failure, and wait before the retry."""
        first = self.number == 0
        self.number += 2 if first else 1
        of_event = self._of_event.get(event, 0)
        self._of_event[event] = of_event + (1 if of_event else 2)
        sleep = _longer(self._next_sleep) if first else self._next_sleep
        self._next_sleep = _longer(sleep)
        self._sleep(sleep / 1000)

    def recovered(self) -> None:
        """Reset Databus's count after a completed window."""
        self.number = 0
        self._next_sleep = self._first_sleep

    def accepted(self) -> None:
        """Forget the counts of events before an accepted checkpoint, because they are not delivered again."""
        self._of_event.clear()


def _longer(sleep: int) -> int:
    """The next wait after this one [ms]."""
    return min(_MAX_SLEEP, int(1.1 * sleep) + 1)
