"""A directory with complete versions of a Parquet table. A small file names the newest version.

    _latest     versions/00000007-5f2b91c4/part=rows, the folder that readers read
    _lock       locked by the writing process; contains its name
    versions/   one folder for each version: ``part=rows``, facts about deleted rows, `details.json`

A version is complete before one atomic step makes it the newest. A few older versions stay for readers that are still running.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sparkwire.core.sources.folder import Folder
from sparkwire.errors import WriteConflictError

LATEST: Final = "_latest"
ROWS, DELETED, TRUNCATED = "rows", "deleted", "truncated"
"""parts of a version: the table, the deleted rows, and the last TRUNCATE; the last two reject late changes"""
_LOCK, _VERSIONS, _DETAILS = "_lock", "versions", "details.json"
_KEPT: Final = 3


class MergeFolder(Folder):
    """The directory of a merged table."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path.rstrip("/")

    def newest(self) -> str | None:
        """The relative path of the newest version's folder; None before the first version.

        Raises ValueError if the directory contains other files.
        """
        named = self.read(LATEST)
        if named is not None:
            return named.decode().strip().rpartition("/")[0]
        strange = [name for name in self.names() if not name.startswith((_LOCK, f"{LATEST}."))]
        strange += [name for name in self.folders("") if name != _VERSIONS]
        if strange:
            raise ValueError(f"{self.path} is not a table of merge: it has {strange[0]}. Pass an empty directory")
        return None

    def shown_part(self, version: str, part: str) -> str:
        """The path of a version's part, for Spark."""
        return f"{self.path}/{version}/part={part}"

    def has_part(self, version: str, part: str) -> bool:
        return f"part={part}" in self.folders(version)

    def details(self, version: str) -> dict[str, Any]:
        """The facts that the writer of a version stored."""
        details: dict[str, Any] = json.loads(self.read(f"{version}/{_DETAILS}") or b"{}")
        return details

    def next_version(self, newest: str | None) -> str:
        """The relative path of a new folder."""
        number = 0 if newest is None else int(newest.rpartition("/")[2].partition("-")[0])
        return f"{_VERSIONS}/{number + 1:08d}-{uuid.uuid4().hex[:8]}"

    def publish(self, version: str, newest: str | None, details: Mapping[str, Any]) -> None:
        """Make a version the newest, and delete old versions.

        Raises WriteConflictError if another job has published a version after ``newest``.
        """
        if self.newest() != newest:
            raise WriteConflictError(
                f"another merge writes to {self.path}: only one merge at a time may write to a table"
            )
        self.write_to_disk(f"{version}/{_DETAILS}", json.dumps(details).encode(), f"{version}/{_DETAILS}.new")
        self.write_to_disk(LATEST, f"{version}/part={ROWS}\n".encode(), f"{LATEST}.new")
        for old in self._old(version):
            self.remove_tree(f"{_VERSIONS}/{old}")

    def _old(self, newest: str) -> list[str]:
        """The versions to delete: all except the newest few, and the leftovers of interrupted merges."""
        own = newest.rpartition("/")[2]
        before = sorted(name for name in self.folders(_VERSIONS) if name < own and self._is_whole(name))
        kept = {own, *before[-(_KEPT - 1) :]}
        return [name for name in self.folders(_VERSIONS) if name not in kept]

    def _is_whole(self, name: str) -> bool:
        return self.read(f"{_VERSIONS}/{name}/{_DETAILS}") is not None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory against other writers. The operating system releases the lock if the process dies.

        Raises WriteConflictError if another process has the lock. Only local file systems have locks; elsewhere `publish` detects
        conflicts.
        """
        self.make("")
        if not self.is_local:
            yield
            return
        with Path(self.full(_LOCK)).open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise WriteConflictError(
                    f"{holder} writes to {self.path}: only one merge at a time may write to a table"
                ) from None
            file.seek(0)
            file.truncate()
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            yield
