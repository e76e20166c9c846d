"""Inject faults at any file system call of a job: failing calls, full disks, killed processes.

The module counts all of Python's calls for one directory: open, read, write, close, sync, rename, exchange, link and delete
files; create, delete and list directories; get a status. The call with the fault has no effect, or it has its effect and still
fails, as over a network.
"""

from __future__ import annotations

import builtins
import errno
import io
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn

import pytest

from sparkwire.core.sources import folder
from sparkwire.core.sources.folder import Folder

Kind = Literal["killed", "gone", "EACCES", "ENOSPC", "EIO", "full"]
"""``full``: calls that need space fail; ``gone``: like killed, but this process continues"""
KINDS: Final[tuple[Kind, ...]] = ("killed", "EACCES", "ENOSPC", "EIO", "full")
EXIT: Final = 77
CHANGES: Final = frozenset(
    {"create", "write", "close", "fsync", "replace", "exchange", "link", "unlink", "mkdir", "rmdir", "chmod"}
)
"""the calls that change something; the others only read"""
_NEED_ROOM: Final = frozenset({"create", "write", "close", "fsync", "link", "mkdir"})
_OF_OS: Final = ("replace", "link", "mkdir", "chmod", "unlink", "rmdir", "scandir", "stat", "lstat", "open")
_OF_FOLDER: Final = ("sizes", "folders", "tree")
"""functions that list with Arrow, which calls the system without Python"""
_IN_MEMORY: Final = Path("/dev/shm")


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A directory in memory if possible, because a thousand syncs of a disk are slow."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as path:
        yield Path(path)


class Gone(BaseException):
    """Simulates that a process has ended: its later calls have no effect."""


class Fault(NamedTuple):
    """The kind of a fault, and its time."""

    kind: Kind | None = None
    at: int = 0
    """the number of the call"""
    lasting: bool = False
    """whether all later calls also fail"""
    after: bool = False
    """whether the failing call has its effect"""
    exchanges: bool = True
    """whether the system can exchange two directories"""
    looks: bool = True
    """whether calls that change nothing are also counted"""


class _Calls:
    """Counts the calls below one directory, and injects the fault."""

    def __init__(self, top: Path, fault: Fault, hook: Callable[[int], None] | None) -> None:
        self.top, self.fault, self.hook = os.fspath(top), fault, hook
        self.done: list[str] = []
        self.is_off = False

    def is_here(self, path: Any) -> bool:
        """Whether a call concerns the directory."""
        return isinstance(path, int) or os.fspath(path).startswith(self.top)

    def do(self, name: str, effect: Callable[[], Any], half: Callable[[], object] | None = None) -> Any:
        """Make a call, or inject the fault; ``half``: the partial effect if the call is interrupted."""
        if self.is_off or not (self.fault.looks or name in CHANGES):
            return effect()
        self.done.append(name)
        number = len(self.done) - 1
        if self.hook:
            self.is_off = True
            try:
                self.hook(number)
            finally:
                self.is_off = False
        if not self._happens(name, number):
            return effect()
        if number == self.fault.at or self.fault.kind not in ("gone", "full"):
            self._interrupt(effect, half)
        if self.fault.kind == "killed":
            os._exit(EXIT)
        if self.fault.kind == "gone":
            raise Gone
        code = errno.ENOSPC if self.fault.kind == "full" else getattr(errno, str(self.fault.kind))
        raise OSError(code, os.strerror(code))

    def _interrupt(self, effect: Callable[[], Any], half: Callable[[], object] | None) -> None:
        if self.fault.after:
            effect()
        elif half:
            half()

    def _happens(self, name: str, number: int) -> bool:
        kind, at = self.fault.kind, self.fault.at
        if kind is None or number < at:
            return False
        if kind == "full":
            return name in _NEED_ROOM
        return number == at or kind == "gone" or self.fault.lasting


class _File:
    """An open file whose calls are counted."""

    def __init__(self, file: Any, calls: _Calls) -> None:
        self._file, self._calls = file, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, *size: int) -> Any:
        return self._calls.do("read", lambda: self._file.read(*size))

    def write(self, data: Any) -> Any:
        def half() -> None:
            self._file.write(bytes(data)[: len(data) // 2])
            self._file.flush()

        return self._calls.do("write", lambda: self._file.write(data), half)

    def close(self) -> None:
        name = "close" if self._file.writable() else "end of reading"
        self._calls.do(name, self._file.close) if not self._file.closed else None

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        except BaseException:
            self._file.close()
            raise


@contextmanager
def faulty(top: Path, fault: Fault, hook: Callable[[int], None] | None = None) -> Iterator[list[str]]:
    """Count the calls for a directory, and inject a fault.

    ``hook`` is called before each call with its number; the hook's own calls are not counted.
    """
    calls = _Calls(top, fault, hook)

    def counted(module: Any, name: str) -> Callable[..., Any]:
        original = getattr(module, name)

        def call(path: Any, *arguments: Any, **more: Any) -> Any:
            if not calls.is_here(path):
                return original(path, *arguments, **more)
            return calls.do(name, lambda: original(path, *arguments, **more))

        return call

    original_open, exchange, fsync = builtins.open, folder._exchange, os.fsync

    def opened(path: Any, mode: str = "r", *arguments: Any, **more: Any) -> Any:
        if isinstance(path, int) or not calls.is_here(path):
            return original_open(path, mode, *arguments, **more)
        name = "create" if mode[0] in "wxa" else "open"
        return _File(calls.do(name, lambda: original_open(path, mode, *arguments, **more)), calls)

    def listed(name: str) -> Callable[..., Any]:
        original = getattr(Folder, name)
        return lambda self, *folders: calls.do("list", lambda: original(self, *folders))

    # One after the other, so that the numbers of calls are deterministic.
    def sync_all(self: Folder, names: Any) -> None:
        for name in names:
            self.sync(name)

    with pytest.MonkeyPatch.context() as patch:
        for name in _OF_OS:
            patch.setattr(os, name, counted(os, name))
        patch.setattr(os, "fsync", lambda file: calls.do("fsync", lambda: fsync(file)))
        for module in (builtins, io):
            patch.setattr(module, "open", opened)
        for name in _OF_FOLDER:
            patch.setattr(Folder, name, listed(name))
        patch.setattr(
            folder,
            "_exchange",
            lambda one, other: fault.exchanges and calls.do("exchange", lambda: exchange(one, other)),
        )
        patch.setattr(Folder, "sync_all", sync_all)
        yield calls.done


class Counter:
    """A number that several processes share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8)

    @property
    def value(self) -> int:
        return int.from_bytes(self._memory[:8], "little")

    @value.setter
    def value(self, value: int) -> None:
        self._memory[:8] = value.to_bytes(8, "little")


def in_child(run: Callable[[], None]) -> int:
    """Run a function in a separate process, which may be killed. Returns the exit code: 0 for success, 1 for failure."""
    child = os.fork()
    if not child:
        _run_and_exit(run)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run_and_exit(run: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        run()
        code = 0
    except (OSError, ValueError):
        code = 1
    except BaseException as error:  # noqa: BLE001  the copy of pytest must not continue
        os.write(2, f"{error!r}\n".encode())
        code = 2
    finally:
        os._exit(code)
