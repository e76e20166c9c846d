"""Files that are written whole or not at all, local or by URI, by tasks that may be killed and tried again.

A task writes files under names that no reader takes, of its own. The job that ends gives all of them their names, by a
journal: what is interrupted there is undone by the next job that comes to the same directories. Each file so has its name only
when it is whole, and a job that is tried again finds what it found at first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple

from pyarrow import fs

from sparkwire.core.sources.storage import PathParts, filesystem, place_of

_JOURNAL: Final = re.compile(r"^\.sparkwire-[\w-]+\.journal$")


class Folder:
    """A directory that is written to; paths are relative to it."""

    def __init__(self, path: str) -> None:
        self.place: PathParts = place_of(path)

    def __getstate__(self) -> dict[str, Any]:
        return {"place": self.place}

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        return filesystem(self.place.root, self.place.path or "/", self.place.query)

    @property
    def is_local(self) -> bool:
        return not self.place.root

    def full(self, name: str) -> str:
        """The path in its filesystem."""
        return f"{self._opened[1].rstrip('/')}/{name}" if name else self._opened[1]

    def shown(self, name: str) -> str:
        """The path as users see it."""
        return f"{self.place.root}{self.place.path}/{name}".rstrip("/")

    def make(self, name: str) -> None:
        """A directory in it, with those above; where paths are mere keys there is nothing to make."""
        if isinstance(self._opened[0], fs.LocalFileSystem | fs.HadoopFileSystem):
            self._opened[0].create_dir(self.full(name))

    def create(self, name: str) -> Any:
        """A stream into a new file; an object is there once the stream is closed."""
        return self._opened[0].open_output_stream(self.full(name))

    def write(self, name: str, data: bytes) -> None:
        """A small file, whole or not at all."""
        with self.create(f"{name}.tmp") as stream:
            stream.write(data)
        self.move(f"{name}.tmp", name)

    def read(self, name: str) -> bytes | None:
        """A file, None where there is none."""
        try:
            with self._opened[0].open_input_stream(self.full(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def move(self, name: str, to: str) -> None:
        self._opened[0].move(self.full(name), self.full(to))

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        with suppress(FileNotFoundError):
            self._opened[0].delete_file(self.full(name))

    def names(self, name: str = "") -> list[str]:
        """The files in a directory, none where it is not there."""
        found = self._opened[0].get_file_info(fs.FileSelector(self.full(name), allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def tree(self) -> list[str]:
        """The files in it and below."""
        top = self.full("").rstrip("/") + "/"
        found = self._opened[0].get_file_info(fs.FileSelector(self.full(""), recursive=True, allow_not_found=True))
        return sorted(info.path.removeprefix(top) for info in found if info.type == fs.FileType.File)


class Staging:
    """The files of one try of a task: hidden until the job ends, and deleted where the task fails."""

    def __init__(self, folder: Folder, attempt: str) -> None:
        self.folder = folder
        self._attempt = attempt
        self._names: list[str] = []

    def create(self, folder: str, name: str, hidden: Callable[[str, str], str]) -> tuple[str, Any]:
        """A new file that will be called ``name``, and for now ``hidden(name, mark)``: its name, and a stream into it."""
        if not self._names:
            self.folder.make("")
        self.folder.make(folder)
        staged = joined(folder, hidden(name, f"{self._attempt}-{len(self._names)}"))
        self._names.append(staged)
        return staged, self.folder.create(staged)

    def discard(self) -> None:
        """Delete them all."""
        for name in self._names:
            self.folder.remove(name)


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


class JobChange(NamedTuple):
    """What a job does when it ends."""

    named: Mapping[str, str]
    """the name that each staged file gets"""
    replaced: Mapping[str, str]
    """files that go, each with the name under which it waits until all is done"""


def finish(
    folder: Folder, job: str, stream: tuple[str, int] | None, folders: Collection[str], change: Callable[[], JobChange]
) -> None:
    """End a job that has written to ``folders``: all of its change or, where that is refused or interrupted, nothing.

    ``stream``: a streaming query's id and its batch. A batch that has been carried out is not carried out again.
    """
    journal = f".sparkwire-{stream[0] if stream else job}.journal"
    try:
        if stream and _parsed(folder, journal).get("batch", -1) >= stream[1]:
            return
        undo_interrupted(folder, folders)
        its = change()
        if its.named:
            carry_out(folder, journal, its, {"batch": stream[1]} if stream else None)
    finally:
        for name in folders:
            _sweep(folder, [joined(name, file) for file in folder.names(name)], job)


def discard_job(folder: Folder, job: str) -> None:
    """Delete all that a job's tasks have written."""
    _sweep(folder, folder.tree(), job)


def carry_out(folder: Folder, journal: str, change: JobChange, done: Mapping[str, Any] | None) -> None:
    """All of a change or, once `undo_interrupted` has been there, nothing; ``done`` is what its journal says from then on."""
    folder.write(journal, json.dumps({"named": change.named, "replaced": change.replaced}).encode())
    for old, aside in change.replaced.items():
        folder.move(old, aside)
    for staged, final in change.named.items():
        folder.move(staged, final)
    if done is None:
        folder.remove(journal)
    else:
        folder.write(journal, json.dumps(done).encode())
    for aside in change.replaced.values():
        folder.remove(aside)


def _parsed(folder: Folder, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(folder.read(name) or b"{}")
    return found


def undo_interrupted(folder: Folder, folders: Collection[str]) -> None:
    """Undo the changes that were interrupted and have to do with these directories."""
    for name in filter(_JOURNAL.match, folder.names()):
        found = _parsed(folder, name)
        change = JobChange(found.get("named", {}), found.get("replaced", {}))
        if _folders(change).intersection(folders):
            _undo(folder, change)
            folder.remove(name)


def _undo(folder: Folder, change: JobChange) -> None:
    there = {joined(at, name) for at in _folders(change) for name in folder.names(at)}
    for staged, final in change.named.items():
        # A file of that name which has not been put aside yet is the one from before.
        if final not in change.replaced or change.replaced[final] in there:
            folder.remove(final)
        folder.remove(staged)
    for old, aside in change.replaced.items():
        if aside in there:
            folder.move(aside, old)


def _folders(change: JobChange) -> set[str]:
    return {path.rpartition("/")[0] for path in (*change.named.values(), *change.replaced)}


def _sweep(folder: Folder, names: Sequence[str], job: str) -> None:
    """Delete what tries of a job's tasks have left among these files."""
    for name in names:
        if f".{job}-" in name:
            folder.remove(name)
