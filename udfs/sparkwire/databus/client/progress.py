"""What of a stream is complete, and so what a checkpoint may say.

This differs from Databus on purpose: a checkpoint never includes the window in progress or a later one. After an SCN regress,
in a repeated window, or if a missing end merged windows, the last completed window is not an earlier one. The checkpoint is
then the SCN before the window's start, without a time. Databus stores the last completed window, and loses events after a
restart.
"""

from __future__ import annotations

import json
from typing import Final

from sparkwire.databus.client.checkpoint import Checkpoint

_ANY: Final = 1 << 63
"""Above every scn."""


class Progress:
    """The last completed window, and the one in progress."""

    def __init__(self) -> None:
        self._window = -1  # the last completed
        self._time = -1  # of its end [ns]
        self._start = _ANY  # of the window in progress
        self._went_back = False  # since the last window that has begun or ended

    def begin(self, scn: int) -> None:
        """A window has begun with this scn."""
        self._start, self._went_back = scn, False

    def end(self, scn: int, timestamp: int) -> None:
        """A window has ended, or an empty one has come."""
        self._window, self._time = scn, timestamp
        self._start, self._went_back = _ANY, False

    def end_empty(self, scn: int, timestamp: int) -> None:
        """A window without events: its time counts only if it has one."""
        self.end(scn, timestamp if timestamp > 0 else self._time)

    def go_back(self) -> None:
        """Events from before the last completed window may follow."""
        self._went_back = True

    def checkpoint(self) -> Checkpoint:
        """After a window's end."""
        return Checkpoint.online(max(self._window, 0), self._time)

    def checkpoint_within(self) -> Checkpoint:
        """At a data event of the window in progress: the window before it."""
        return self._bounded(self._start - 1)

    def checkpoint_at(self, scn: int) -> Checkpoint:
        """At a checkpoint event with this scn."""
        bound = min(self._start - 1, scn if self._went_back else _ANY)
        if self._window < 0 and scn <= bound:
            return Checkpoint.online(scn, self._time)
        return self._bounded(bound)

    def _bounded(self, bound: int) -> Checkpoint:
        if 0 <= self._window <= bound:
            return Checkpoint.online(self._window, self._time)
        return Checkpoint.online(max(bound, 0))


def is_online(payload: bytes | None) -> bool:
    """Whether a checkpoint event's payload is one of online consumption, and not for the bootstrap."""
    try:
        body = json.loads(payload or b"")
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("consumption_mode") == "ONLINE_CONSUMPTION"
