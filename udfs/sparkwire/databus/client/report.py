"""The report of a completed window."""

from __future__ import annotations

import time
from typing import NamedTuple

from sparkwire.databus.client.checkpoint import Checkpoint


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
