"""A directory with complete versions of a Parquet table. A small file names the newest version.

    _latest     versions/00000007-5f2b91c4/part=rows, the folder that readers read; empty before the first version
    _lock       locked by the writing process; contains its name
    versions/   one folder for each version: ``part=rows``, ``part=rest``, `details.json`

A version is complete before one atomic step makes it the newest. A few older versions stay for readers that are still running.
Missing or foreign files are errors: a table whose state is lost must not look like an empty one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sparkwire.base.json_text import parsed_json
from sparkwire.base.printable import printable
from sparkwire.core.sources.folder import Folder
from sparkwire.errors import WriteConflictError

LATEST: Final = "_latest"
ROWS, REST = "rows", "rest"
"""parts of a version: the rows that readers see, and what a merge remembers beside them"""
_LOCK, _VERSIONS, _DETAILS, _FILES = "_lock", "versions", "details.json", "files"
_KINDS: Final = {_FILES: dict, "schema": dict, "keys": list, "deletes": str}
"""what `details.json` has at least"""
_NAME: Final = re.compile(r"\d{8}-[0-9a-f]{8}")
_LATEST: Final = re.compile(rf"versions/{_NAME.pattern}/part=rows", re.ASCII)
_GLOB: Final = re.compile(r"([\[\]{}*?\\])")
_KEPT: Final = 3
_AGAIN: Final = "restore it from a backup, or write to an empty directory, and read the changes from their beginning"


class MergeFolder(Folder):
    """The directory of a merged table. Raises ValueError for an object store, which has neither locks nor an atomic rename."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path.rstrip("/")
        if not self.is_local:
            raise ValueError(
                printable(
                    f"{self.place.shown} is in an object store, and a directory of Parquet needs a local or mounted file system: "
                    "merge into a table of Delta or Iceberg"
                )
            )

    def newest(self) -> str | None:
        """The relative path of the newest version's folder; None before the first version.

        Raises ValueError if state is missing, or if the directory contains other files.
        """
        strange = [name for name in self.names() if not name.startswith((".", _LOCK, LATEST))]
        strange += [name for name in self.folders() if not name.startswith(".") and name != _VERSIONS]
        if strange:
            raise ValueError(
                printable(
                    f"merge did not write the directory {self.path}: it has {strange[0]}. Pass an empty directory"
                )
            )
        latest = self.read(LATEST)
        if latest is None:
            if self.folders(_VERSIONS):
                raise self._lost(LATEST)
            return None
        text = latest.decode("utf-8", "replace").strip()
        if text and not _LATEST.fullmatch(text):
            raise self._corrupt(LATEST)
        version = text.rpartition("/")[0]
        if not version:  # the first merge has not been completed
            if any(not name.startswith("00000001-") for name in self._versions()):
                raise self._lost(f"the content of {LATEST}")
            return None
        files = self.details(version)[_FILES]
        lost = [
            f"{version}/part={part}/{name}"
            for part in files
            for name in files[part]
            if name not in self._in(version, part)
        ]
        if lost:
            raise self._lost(lost[0])
        return version

    def details(self, version: str) -> dict[str, Any]:
        """The facts that the writer of a version stored. Raises ValueError if they are lost."""
        stored = self.read(f"{version}/{_DETAILS}")
        if stored is None:
            raise self._lost(f"{version}/{_DETAILS}")
        try:
            details: Any = parsed_json(stored)
        except ValueError:
            details = None
        if not isinstance(details, dict) or not all(
            isinstance(details.get(name), kind) for name, kind in _KINDS.items()
        ):
            raise self._corrupt(f"{version}/{_DETAILS}")
        return details

    def _in(self, version: str, part: str) -> list[str]:
        return self.names(f"{version}/part={part}")

    def _lost(self, name: str) -> ValueError:
        return ValueError(printable(f"{self.path} has lost {name}, a part of its table: {_AGAIN}"))

    def _corrupt(self, name: str) -> ValueError:
        return ValueError(printable(f"{self.path} has a corrupt {name}, which is a part of its table: {_AGAIN}"))

    def to_write(self, version: str, part: str) -> str:
        """The URI of a version's part, to which Spark writes."""
        return f"file://{self.full('')}/{version}/part={part}"

    def to_read(self, version: str, part: str) -> str:
        """The same URI for reading. Spark would read brackets, braces, stars and question marks as a glob."""
        return _GLOB.sub(r"\\\1", self.to_write(version, part))

    def next_version(self, newest: str | None) -> str:
        """The relative path of a new folder."""
        number = 0 if newest is None else int(newest.rpartition("/")[2].partition("-")[0])
        return f"{_VERSIONS}/{number + 1:08d}-{uuid.uuid4().hex[:8]}"

    def publish(self, version: str, newest: str | None, details: Mapping[str, Any]) -> None:
        """Make a version the newest, and delete old versions.

        Raises WriteConflictError if another job has published a version after ``newest``.
        """
        if self.newest() != newest:
            raise self._conflict("another merge")
        files = {part: self._in(version, part) for part in (ROWS, REST)}
        noted = json.dumps({**details, _FILES: files}).encode()
        self.write_to_disk(f"{version}/{_DETAILS}", noted, f"{version}/{_DETAILS}.new")
        self._name_newest(f"{version}/part={ROWS}\n")
        for old in self._old(version):
            self.remove_tree(f"{_VERSIONS}/{old}")

    def _name_newest(self, text: str) -> None:
        self.write_to_disk(LATEST, text.encode(), f"{LATEST}.new")

    def _old(self, newest: str) -> list[str]:
        """The versions to delete: all except the newest few, and the leftovers of interrupted merges."""
        own = newest.rpartition("/")[2]
        versions = self._versions()
        before = sorted(name for name in versions if name[:8] < own[:8] and self.has(f"{_VERSIONS}/{name}/{_DETAILS}"))
        kept = {own, *before[-(_KEPT - 1) :]}
        return [name for name in versions if name not in kept]

    def _versions(self) -> list[str]:
        return [name for name in self.folders(_VERSIONS) if _NAME.fullmatch(name)]

    @contextmanager
    def locked(self) -> Iterator[str | None]:
        """Lock the directory against other writers, and return its newest version, see `newest`.

        The operating system releases the lock if the process dies. Raises WriteConflictError if another process has the lock.
        """
        self.newest()  # before anything is written
        self.make("")
        with Path(self.full(_LOCK)).open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise self._conflict(file.read().strip() or "another process") from None
            except OSError as error:
                raise ValueError(
                    printable(
                        f"the file system of {self.path} has no locks ({error.strerror}): merge into a table of Delta or Iceberg"
                    )
                ) from error
            newest = self.newest()
            if newest is None:
                self._name_newest("\n")  # from now on, a directory without this file has lost it
            file.seek(0)
            file.truncate()
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            yield newest

    def _conflict(self, holder: str) -> WriteConflictError:
        return WriteConflictError(f"{holder} writes to {self.path}: only one merge at a time may write to a table")
