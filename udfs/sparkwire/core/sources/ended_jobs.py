"""Remember which jobs have ended: those with an id that are done, and those that could not delete their files.

A file system may become read-only before a job deletes its files. As long as the job's process runs, they look like those of a
running job. So this process notes the end, also in the temporary directory of this machine: Spark may run each step of a writer
in another process.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from sparkwire.base.printable import printable
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import Once, id_of

_IN_THIS_PROCESS: Final[set[str]] = set()
_log: Final = logging.getLogger("sparkwire")


def note_end(job: str) -> None:
    """Note that a job has ended. ``job``: its name, as in its file."""
    _IN_THIS_PROCESS.add(job)
    try:
        _directory().mkdir(mode=0o700, exist_ok=True)
        if not _is_private(_directory()):
            raise PermissionError(printable(f"other users can write to {_directory()}"))
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


def is_done(folder: Folder, once: Once) -> bool:
    """Whether a job with this id, and with this number or a higher one, is done."""
    text = folder.read(_done_name(once))
    if text is None:
        return False
    try:
        return int(json.loads(text)["number"]) >= once[1]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            printable(
                f"{folder.shown(_done_name(once))} is corrupt ({error}) and does not show whether the job is done: check the "
                "target, and delete this file if the job is not done"
            )
        ) from None


def _done_name(once: Once) -> str:
    return f".sparkwire-{id_of(once[0])}.done"


def record_done(folder: Folder, once: Once, job: str, first: str) -> None:
    """Record that the job is done. For ``first``, see `Folder.write`."""
    folder.write_to_disk(_done_name(once), json.dumps({"number": once[1], "job": job}).encode(), first)


def recorded(folder: Folder, once: Once) -> bytes | None:
    """The record of this id."""
    return folder.read(_done_name(once))


def restore_record(folder: Folder, once: Once, was: bytes | None, first: str) -> None:
    """Restore the record from before a job that is undone."""
    if was is None:
        folder.remove(_done_name(once))
    elif recorded(folder, once) != was:
        folder.write_to_disk(_done_name(once), was, first)
