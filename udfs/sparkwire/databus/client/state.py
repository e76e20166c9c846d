"""The state of a dispatcher, with Databus's names: its settings, status and retries, and the report of completed windows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, NamedTuple

from sparkwire.databus.client.checkpoint import Checkpoint

BUFFER_SIZE: Final = 10 << 20  # size of the buffer of Databus's client [bytes]
THRESHOLD: Final = BUFFER_SIZE * 75 // 100


class Settings(NamedTuple):
    """The settings of a dispatcher; the defaults are those of Databus."""

    threshold: int = THRESHOLD
    """size after the last checkpoint from which on a window gets a checkpoint in its middle [bytes]"""
    max_retries: int = -1
    """-1 for no limit; 0 for no retry; n allows n - 1 rollbacks (1 allows 1) between two completed windows"""
    first_sleep: int = 0
    """wait before the first retry [ms]; each later wait is 1.1 times as long, plus 1 ms"""


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


class Window(NamedTuple):
    """A completed window, for the report."""

    scn: int
    events: int
    """number of data events"""
    rollbacks: int
    """number of rollbacks since the previous window, after failures and SCN regresses"""
    retries: int
    """number of those rollbacks after failures"""
    seconds: float
    """time since the previous window"""
    checkpoint: Checkpoint | None
    """None if a consumer declined it, or it could not be stored"""


class WindowReport:
    """Counts events, rollbacks and retries between two completed windows."""

    def __init__(self) -> None:
        self.windows: list[Window] = []
        """completed windows, which the caller removes"""
        self.delivered = 0
        """number of data events of the window in progress"""
        self._covered = 0  # number of them before the last checkpoint
        self._rollbacks = self._retries = 0
        self._since = time.perf_counter()

    def completed(self, scn: int, checkpoint: Checkpoint | None) -> None:
        """Note the end of a window, or an empty window."""
        now = time.perf_counter()
        window = Window(scn, self.delivered, self._rollbacks, self._retries, now - self._since, checkpoint)
        self.windows.append(window)
        self._since = now
        self.delivered = self._rollbacks = self._retries = 0
        if checkpoint is not None:
            self._covered = 0

    def accepted(self) -> None:
        """Note a checkpoint in the middle of a window. A rollback does not go back further."""
        self._covered = self.delivered

    def rolled_back(self) -> None:
        """Note a rollback after a failure."""
        self.delivered = self._covered
        self._rollbacks += 1
        self._retries += 1

    def regressed(self) -> None:
        """Note an SCN regress."""
        self.delivered = self._covered = 0
        self._rollbacks += 1
