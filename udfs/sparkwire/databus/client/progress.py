"""The completed part of a stream, and the checkpoint that follows from it.

This differs from Databus on purpose: a checkpoint never includes the window in progress or a later window. The last completed
window may not be earlier than the window in progress: after an SCN regress, in a repeated window, or if a missing end merged
windows. Then the checkpoint is the SCN before the window's start, without a time. Databus stores the last completed window and
loses events after a restart.
"""

from __future__ import annotations

import json
from typing import Final

from sparkwire.databus.client.checkpoint import Checkpoint

_ANY: Final = 1 << 63
"""greater than every SCN"""


class Progress:
    """The last completed window, and the window in progress."""

    def __init__(self) -> None:
        self._window = -1  # the last completed window
        self._time = -1  # time of its end [ns]
        self._start = _ANY  # start of the window in progress
        self._went_back = False  # whether the stream went back since a window last began or ended

    def begin(self, scn: int) -> None:
        """Note that a window has begun with this SCN."""
        self._start, self._went_back = scn, False

    def end(self, scn: int, timestamp: int) -> None:
        """Note that a window has ended, or that an empty window was read."""
        self._window, self._time = scn, timestamp
        self._start, self._went_back = _ANY, False

    def end_empty(self, scn: int, timestamp: int) -> None:
        """Note a window without events. Its time counts only if it has one."""
        self.end(scn, timestamp if timestamp > 0 else self._time)

    def go_back(self) -> None:
        """Note that events from before the last completed window may follow."""
        self._went_back = True

    def checkpoint(self) -> Checkpoint:
        """The checkpoint after a window's end."""
        return Checkpoint.online(max(self._window, 0), self._time)

    def checkpoint_within(self) -> Checkpoint:
        """The checkpoint at a data event of the window in progress: the window before it."""
        return self._bounded(self._start - 1)

    def checkpoint_at(self, scn: int) -> Checkpoint:
        """The checkpoint at a checkpoint event with this SCN."""
        bound = min(self._start - 1, scn if self._went_back else _ANY)
        if self._window < 0 and scn <= bound:
            return Checkpoint.online(scn, self._time)
        return self._bounded(bound)

    def _bounded(self, bound: int) -> Checkpoint:
        if 0 <= self._window <= bound:
            return Checkpoint.online(self._window, self._time)
        return Checkpoint.online(max(bound, 0))


def is_online(payload: bytes | None) -> bool:
    """Whether a checkpoint event's payload is a checkpoint of online consumption, not of the bootstrap."""
    try:
        body = json.loads(payload or b"")
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("consumption_mode") == "ONLINE_CONSUMPTION"
