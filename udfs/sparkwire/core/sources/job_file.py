"""The files of jobs: their state and plan, the process that owns a job, and which jobs have ended.

A check rejects names that lead out of the directory.

A file system may become read-only before a job deletes its files. As long as the job's process runs, they look like those of a
running job. So this process notes the end, also in the temporary directory of this machine: Spark may run each step of a writer
in another process.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from sparkwire.base.printable import printable, value_error
from sparkwire.core.sources.folder import Folder

# -- processes

_PROC = Path("/proc")


class Process(NamedTuple):
    """The identity of a process, which other processes on the same machine can check."""

    host: str
    machine: str
    """the boot id and the PID namespace of the machine; elsewhere, the pid is that of another process"""
    pid: int | None
    """None if unknown"""
    born: str
    """its start time in the machine's clock, because process ids are reused"""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.pid is not None else f"a process on {self.host}"


def this_process() -> Process:
    return _process(os.getpid())


def process_above(name: str) -> Process:
    """The nearest ancestor of this process with this name; without a pid if none exists."""
    pid: int | None = os.getpid()
    while pid and _text(_PROC / f"{pid}" / "comm").strip() != name:
        fields = _fields(pid)
        pid = int(fields[1]) if fields else None
    return _process(pid or None)


def _process(pid: int | None) -> Process:
    fields = _fields(pid) if pid is not None else []
    return Process(socket.gethostname(), _machine(), pid, fields[19] if fields else "")


def is_dead(process: Process) -> bool:
    """Whether a process of this machine has ended; false for other machines."""
    if process.pid is None or not is_here(process):
        return False
    if not _PROC.exists():
        return not _exists(process.pid)
    fields = _fields(process.pid)
    return not fields or fields[0] in "ZX" or fields[19] != process.born


def is_here(process: Process) -> bool:
    """Whether the process is, or was, on this machine."""
    return process.host == socket.gethostname() and process.machine == _machine()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _machine() -> str:
    try:
        container = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        container = ""
    return f"{_text(_PROC / 'sys/kernel/random/boot_id').strip()} {container}".strip()


def _fields(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` from the state on; empty if the process does not exist."""
    return _text(_PROC / f"{pid}" / "stat").rpartition(")")[2].split()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


# -- state and plan

SIDE: Final = "__cluster_metadata-0.sparkwire-future"
"""the directory for the files of jobs; a broker ignores it, because it can parse the name as that of a metadata partition"""
LOCKS: Final = f"{SIDE}/locks"
WHOLE: Final = "_"
"""the name of the lock for files directly in the path"""
JOB: Final = "job.json"
_NAME: Final = re.compile(r"[\w-]{1,64}")
_ID: Final = re.compile(r"[\w.-]{1,128}")

Once = tuple[str, int]
"""identifies a job that must be done only once: an id, and an increasing number"""


class Plan(NamedTuple):
    """The changes of a job that has decided."""

    swaps: Mapping[str, Mapping[str, int] | None]
    """partitions to replace, each with its data files and their sizes; None for a new partition"""
    moves: Mapping[str, str]
    """staged files to move, each with its new name in the path"""
    dropped: Sequence[str]
    """files to delete"""


class JobState(NamedTuple):
    """The content of a job's file."""

    job: str
    owner: Process
    since: str
    data: str
    """the suffix of data files"""
    seen: Mapping[str, list[int]] | None = None
    """the versions of all partitions when the job began, if it replaces data that it may have read"""
    plan: Plan | None = None
    """the plan; None before the job has decided"""
    once: Once | None = None

    @property
    def decided(self) -> Plan:
        """The plan; empty before the job has decided."""
        return self.plan or Plan({}, {}, ())

    def __str__(self) -> str:
        return f"job {self.job} (since {self.since}, {self.owner})"


def id_of(text: str) -> str:
    """Check the id of a job. Raises ValueError if it is invalid."""
    if not _ID.fullmatch(text):
        raise ValueError("up to 128 letters, digits, dots, underscores and hyphens")
    return text


def save(folder: Folder, state: JobState, to_disk: bool = False) -> None:
    folder.make(f"{SIDE}/{state.job}")
    content = {
        **state._asdict(),
        "owner": state.owner._asdict(),
        "plan": state.plan and state.plan._asdict(),
    }
    write = folder.write_to_disk if to_disk else folder.write
    write(f"{SIDE}/{state.job}/{JOB}", json.dumps(content).encode(), f"{SIDE}/{state.job}/next")


def opened(folder: Folder, job: str) -> JobState:
    state = state_of(folder, job)
    if state is None:
        raise value_error(f"job {job} in {folder.shown('')} has ended, or was taken for dead: run it again")
    return state


def state_of(folder: Folder, job: str) -> JobState | None:
    """Read the file of a job; None if it does not exist. Raises ValueError if it is corrupt or leads out of the directory."""
    name = f"{SIDE}/{job}/{JOB}"
    if not _NAME.fullmatch(job) or job == "locks":
        raise value_error(f"{folder.shown(f'{SIDE}/{job}')} is not of sparkwire: move it away")
    folder.check_inside(name)
    text = folder.read(name)
    if text is None:
        return None
    try:
        return _parsed(folder, job, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise value_error(
            f"{folder.shown(name)} is corrupt ({type(error).__name__}: {error}), so that the state of the job is unknown. "
            f"Nothing has changed: check the files in {folder.shown(f'{SIDE}/{job}')}, then move them away"
        ) from None


def _parsed(folder: Folder, job: str, content: Any) -> JobState:
    owner, plan, once = content["owner"], content["plan"], content["once"]
    if content["job"] != job or not all(isinstance(owner[field], str) for field in ("host", "machine", "born")):
        raise ValueError("it is of another job")
    return JobState(
        job,
        Process(owner["host"], owner["machine"], None if owner["pid"] is None else int(owner["pid"]), owner["born"]),
        str(content["since"]),
        str(content["data"]),
        None if content["seen"] is None else dict(content["seen"]),
        None if plan is None else _parsed_plan(folder, job, plan),
        None if once is None else (id_of(once[0]), int(once[1])),
    )


def _parsed_plan(folder: Folder, job: str, plan: Any) -> Plan:
    def checked(name: str, most: int) -> str:
        folder.check_inside(name)
        if name.count("/") >= most or name.startswith(f"{SIDE}/") or name == SIDE:
            raise ValueError(f"{name!r} is no name of a partition, or of a file in one")
        return name

    def staged(name: str) -> str:
        folder.check_inside(name)
        if not name.startswith(f"{SIDE}/{job}/") or name.count("/") != 2:
            raise ValueError(f"{name!r} is not what the job has written")
        return name

    swaps = {
        checked(name, 1): None if was is None else {str(file): int(size) for file, size in was.items()}
        for name, was in plan["swaps"].items()
    }
    if not isinstance(plan["dropped"], list):
        raise ValueError(f"{plan['dropped']!r} is no list of files")
    moves = {staged(file): checked(name, 2) for file, name in plan["moves"].items()}
    return Plan(swaps, moves, [checked(name, 2) for name in plan["dropped"]])


def jobs_in(folder: Folder) -> list[str]:
    if not folder.has(SIDE):
        return []
    folder.check_inside(SIDE)
    return [name for name in folder.folders(SIDE) if f"{SIDE}/{name}" != LOCKS]


# -- jobs that have ended: with an id and done, or without a way to delete their files

_IN_THIS_PROCESS: Final[set[str]] = set()
_log: Final = logging.getLogger("sparkwire")


def note_end(job: str) -> None:
    """Note that a job has ended. ``job``: its name, as in its file."""
    _IN_THIS_PROCESS.add(job)
    try:
        _notes().mkdir(mode=0o700, exist_ok=True)
        if not _is_private(_notes()):
            raise PermissionError(printable(f"other users can write to {_notes()}"))
        (_notes() / job).touch()
    except OSError as error:
        _log.warning("the end of job %s is known to process %d only: %r", printable(job), os.getpid(), error)


def has_ended(job: str) -> bool:
    """Whether a process of this machine has noted the end of a job."""
    if job in _IN_THIS_PROCESS:
        return True
    try:
        return _is_private(_notes()) and (_notes() / job).exists()
    except OSError:
        return False


def forget(job: str) -> None:
    """Delete the note: the job has no files any more."""
    _IN_THIS_PROCESS.discard(job)
    with suppress(OSError):
        if not _notes().is_symlink():
            (_notes() / job).unlink(missing_ok=True)


def _notes() -> Path:
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
        raise value_error(
            f"{folder.shown(_done_name(once))} is corrupt ({error}) and does not show whether the job is done: check the "
            "target, and delete this file if the job is not done"
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
