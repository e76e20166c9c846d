"""The report of a completed window."""

from __future__ import annotations

import time
from typing import NamedTuple

from sparkwire.databus.client.checkpoint import Checkpoint


class Window(NamedTuple):
    """A completed window, for the report."""

    scn: int
    events: int
    """data events"""
    rollbacks: int
    """since the previous window: after failures and SCN regresses"""
    retries: int
    """of these rollbacks, those after failures: how often it was tried again"""
    seconds: float
    """since the previous window"""
    checkpoint: Checkpoint | None
    """None if a consumer declined it, or it could not be stored"""


class WindowReport:
    """Counts what happens between two completed windows."""

    def __init__(self) -> None:
        self.windows: list[Window] = []
        """completed, for whoever takes them"""
        self.delivered = 0
        """data events of the window in progress"""
        self._covered = 0  # of them, before the last checkpoint
        self._rollbacks = self._retries = 0
        self._since = time.perf_counter()

    def completed(self, scn: int, checkpoint: Checkpoint | None) -> None:
        """The end of a window, or an empty one."""
        now = time.perf_counter()
        window = Window(scn, self.delivered, self._rollbacks, self._retries, now - self._since, checkpoint)
        self.windows.append(window)
        self._since = now
        self.delivered = self._rollbacks = self._retries = 0
        if checkpoint is not None:
            self._covered = 0

    def accepted(self) -> None:
        """A checkpoint in the middle of a window: a rollback goes no further back."""
        self._covered = self.delivered

    def rolled_back(self) -> None:
        """After a failure."""
        self.delivered = self._covered
        self._rollbacks += 1
        self._retries += 1

    def regressed(self) -> None:
        """After an SCN regress."""
        self.delivered = self._covered = 0
        self._rollbacks += 1
