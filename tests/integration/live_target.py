"""A table with the process that merges into it, which tests start, kill at certain moments, and restart."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.packages import DELTA, ICEBERG, python

_PATIENCE = 300  # [s] for it to stop the query


class Target:
    """A table of one kind. ``columns`` are those of the next query."""

    def __init__(self, kind: str, place: Path, topic: str, columns: Mapping[str, str]) -> None:
        self.kind, self.place, self.columns, self.epoch = kind, place, columns, 0
        own = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "TZ": "UTC"}
        command, self.environment = {"delta": lambda: python(DELTA), "iceberg": lambda: python(ICEBERG)}.get(
            kind, lambda: ([sys.executable], own)
        )()
        self.command = [*command, "-m", "tests.integration.live_merge", kind, str(place)]
        self.kills = 0
        place.mkdir()
        (place / "topic").write_text(topic)

    def start(self) -> None:
        """Start the process, with the query of the current epoch."""
        self._set_up()
        with (self.place / "said").open("ab") as said:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=said, stderr=said, start_new_session=True
            )

    def begin_epoch(self, epoch: int) -> None:
        """Let the process, which has written its rows, continue with another epoch."""
        self.epoch = epoch
        self._set_up()

    def _set_up(self) -> None:
        self.before = self._batches("commits"), self._files()
        (self.place / "columns").write_text(json.dumps(self.columns))
        (self.place / "epoch").write_text(str(self.epoch))
        for name in ("runs", "end", "rows"):  # the process waits for the last one
            (self.place / name).unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill driver and JVM together."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def in_batch(self) -> bool:
        """Whether its query runs and is within a batch."""
        return self.runs() and self._batches("offsets") > self._batches("commits")

    def has_written(self) -> bool:
        """Whether the process has written a file of the table in the current batch."""
        return self.in_batch() and not self._files() <= self.before[1]

    def has_merged(self) -> bool:
        """Whether the process has completed a batch."""
        return self.runs() and self._batches("commits") > self.before[0]

    def runs(self) -> bool:
        """Whether its query runs. Fails if the process has ended."""
        assert self.process.poll() is None, self._said()
        return (self.place / "runs").exists()

    def end(self) -> None:
        """Let it merge the available data, and stop the query."""
        (self.place / "end").touch()

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table, after the query has stopped."""
        patience = time.monotonic() + _PATIENCE
        while not (self.place / "rows").exists():
            assert self.process.poll() is None, self._said()
            assert time.monotonic() < patience, self._said()
            time.sleep(0.05)
        result: list[dict[str, Any]] = pickle.loads((self.place / "rows").read_bytes())
        return result

    def _said(self) -> str:
        return f"{self.kind}: {(self.place / 'said').read_text('utf-8')[-3000:]}"

    def _batches(self, name: str) -> int:
        folder = self.place / f"checkpoint-{self.epoch}" / name
        return max((int(file.name) for file in folder.glob("[0-9]*")), default=-1)

    def _files(self) -> set[str]:
        """The files of the table."""
        places = (self.place / name for name in ("table", "lake"))
        return {f"{folder}/{name}" for place in places for folder, _, names in os.walk(place) for name in names}


MOMENTS: Mapping[str, Callable[[Target], bool]] = {
    "in a batch": Target.in_batch,
    "while it writes": Target.has_written,
    "after a batch": Target.has_merged,
}
"""moments at which a process may be killed"""


@contextmanager
def targets(workspace: Path, topic: str, columns: Mapping[str, str]) -> Iterator[list[Target]]:
    """Targets of all kinds with running processes, which are killed when the context ends."""
    made = [Target(kind, workspace / kind, topic, columns) for kind in ("parquet", "delta", "iceberg")]
    try:
        for target in made:
            target.start()
        yield made
    finally:
        for target in made:
            if hasattr(target, "process") and target.process.poll() is None:
                target.kill()
