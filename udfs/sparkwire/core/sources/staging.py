"""What the tasks of a job write before it ends: files that no reader sees, of partitions that the job has taken."""

from __future__ import annotations

from typing import Any, Final

from sparkwire.core.sources import job as jobs
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import SIDE, id_of
from sparkwire.core.sources.options import Option

JOB_ID: Final = Option(
    "jobId",
    id_of,
    None,
    "a job with an id is done once, however often it is run: what it would write again is left out",
)


class Staging:
    """The files of one try of a task: beside the partitions until the job ends, and deleted where the task fails."""

    def __init__(self, folder: Folder, job: str, attempt: str) -> None:
        self.folder = folder
        self._job = job
        self._attempt = attempt
        self._names: list[str] = []
        self._locked: set[str] = set()

    def lock(self, partition: str) -> None:
        """Take a partition; ValueError where another job has it."""
        if partition not in self._locked:
            jobs.lock(self.folder, self._job, partition)
            self._locked.add(partition)

    def create(self, name: str) -> tuple[str, Any]:
        """A new file that gets the name ``name`` later: its current name, and a stream into it."""
        staged = f"{SIDE}/{self._job}/{self._attempt}-{len(self._names)}.{name}"
        self._names.append(staged)
        return staged, self.folder.create(staged)

    def finish(self) -> None:
        """See to it that all of them are on disk."""
        self.folder.sync_all(self._names)

    def discard(self) -> None:
        """Delete them all."""
        for name in self._names:
            self.folder.remove(name)


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
