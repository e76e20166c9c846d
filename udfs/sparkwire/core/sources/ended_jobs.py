"""Remember jobs that have ended, but could not delete their files, such as on a file system that became read-only.

As long as their process runs, their files look like those of running jobs. So this process notes the end, also in the temporary
directory of this machine: Spark may run each step of a writer in another process.
"""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from sparkwire.base.printable import printable

_IN_THIS_PROCESS: Final[set[str]] = set()
_log: Final = logging.getLogger("sparkwire")


def note_end(job: str) -> None:
    """Note that a job has ended. ``job``: its name, as in its file."""
    _IN_THIS_PROCESS.add(job)
    try:
        _directory().mkdir(mode=0o700, exist_ok=True)
        if not _is_private(_directory()):
            raise PermissionError(f"other users can write to {_directory()}")
        (_directory() / job).touch()
    except OSError as error:
        _log.warning("the end of job %s is known to process %d only: %r", printable(job), os.getpid(), error)


def has_ended(job: str) -> bool:
    """Whether a process of this machine has noted the end of a job."""
    if job in _IN_THIS_PROCESS:
        return True
    try:
        return _is_private(_directory()) and (_directory() / job).exists()
    except OSError:
        return False


def forget(job: str) -> None:
    """Delete the note: the job has no files any more."""
    _IN_THIS_PROCESS.discard(job)
    with suppress(OSError):
        if not _directory().is_symlink():
            (_directory() / job).unlink(missing_ok=True)


def _directory() -> Path:
    return Path(tempfile.gettempdir()) / f"sparkwire-ended-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_private(path: Path) -> bool:
    """Whether only this user can write to a directory: a note of others would end a running job."""
    status = path.lstat()
    return not path.is_symlink() and status.st_uid == _user() and not (os.name == "posix" and status.st_mode & 0o022)
