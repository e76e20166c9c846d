"""Files that the tasks of a job write before the commit. Readers do not see them, and the job has locked their partitions."""

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
    "a job with an id writes only once, even if it runs several times",
)


class Staging:
    """The files of one attempt of a task. They are outside the partitions until the commit, and deleted if the task fails."""

    def __init__(self, folder: Folder, job: str, attempt: str) -> None:
        self.folder = folder
        self._job = job
        self._attempt = attempt
        self._names: list[str] = []
        self._locked: set[str] = set()

    def lock(self, partition: str) -> None:
        """Lock a partition. Raises ValueError if another job has the lock."""
        if partition not in self._locked:
            jobs.lock(self.folder, self._job, partition)
            self._locked.add(partition)

    def create(self, name: str) -> tuple[str, Any]:
        """Create a file that will get the name ``name``. Returns its temporary name and a stream for writing."""
        staged = f"{SIDE}/{self._job}/{self._attempt}-{len(self._names)}.{name}"
        self._names.append(staged)
        return staged, self.folder.create(staged)

    def finish(self) -> None:
        """Sync all files to disk."""
        self.folder.sync_all(self._names)

    def discard(self) -> None:
        """Delete all files."""
        for name in self._names:
            self.folder.remove(name)


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
