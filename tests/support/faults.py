"""File systems that refuse, disks that are full, processes that are killed: at any change of a file system that a job makes."""

from __future__ import annotations

import builtins
import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest

from sparkwire.core.sources import folder
from sparkwire.core.sources.folder import Folder

CALLS = ("replace", "link", "mkdir", "makedirs", "chmod", "fsync", "unlink", "rmdir")
Kind = Literal["killed", "EACCES", "ENOSPC", "EIO"]
EXIT = 77
_IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A directory in memory, where there is such a thing: on a disk a thousand syncs take their time."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as path:
        yield Path(path)


class _Counted:
    """Python's ``os``, or an open file, of which some calls are counted."""

    def __init__(self, of: Any, names: tuple[str, ...], step: Callable[[str], None]) -> None:
        self._of, self._names, self._step = of, names, step

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if name not in self._names:
            return found

        def counted(*arguments: Any, **more: Any) -> Any:
            self._step(name)
            return found(*arguments, **more)

        return counted

    def __enter__(self) -> _Counted:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        except BaseException:
            self._of.close()
            raise


@contextmanager
def fault(kind: Kind | None, at: int, lasting: bool = False, exchanges: bool = True) -> Iterator[list[str]]:
    """The calls that are made, of which the one numbered ``at`` fails; ``lasting``: and all that follow.

    ``killed``: the process ends there. ``exchanges``: whether the system can exchange two directories.
    """
    done: list[str] = []

    def step(name: str) -> None:
        done.append(name)
        if kind is not None and (len(done) == at + 1 or (lasting and len(done) > at)):
            if kind == "killed":
                os._exit(EXIT)
            raise OSError(getattr(errno, kind), os.strerror(getattr(errno, kind)))

    def opened(path: str, mode: str = "r") -> Any:
        if "w" not in mode:
            return builtins.open(path, mode)  # noqa: PTH123  as the module does it
        step("open")
        return _Counted(builtins.open(path, mode), ("write", "close"), step)  # noqa: PTH123

    exchange = folder._exchange

    def counted_exchange(one: str, other: str) -> bool:
        if not exchanges:
            return False
        step("exchange")
        return exchange(one, other)

    # One after the other, so that the number of a call says which it is.
    def sync_all(self: Folder, names: Any) -> None:
        for name in names:
            self.sync(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "os", _Counted(os, CALLS, step))
        patch.setattr(folder, "open", opened, raising=False)
        patch.setattr(folder, "_exchange", counted_exchange)
        patch.setattr(Folder, "sync_all", sync_all)
        yield done


def in_child(run: Callable[[], None]) -> int:
    """Run something in a process of its own, which may be killed: its exit code, 0 where all went well, 1 where it failed."""
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
    except BaseException as error:  # noqa: BLE001  nothing may go on in a copy of pytest
        os.write(2, f"{error!r}\n".encode())
        code = 2
    finally:
        os._exit(code)
