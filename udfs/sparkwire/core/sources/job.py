"""Write to partitions in a job. If the job is interrupted, each partition still has all its old or all its new data.

path/orders-0/…                                   a partition, as readers and brokers see it
path/__cluster_metadata-0.sparkwire-future/       the files of jobs, under a name that a broker ignores
    locks/orders-0/<job>                          the lock of a job on a partition
    <job>/job.json                                the job's owner and plan; without it, the other files are garbage
    <job>/<attempt>-….log                         the files that its tasks have written
        <job>/new/orders-0/                           the new version; after the exchange the old one
        <job>/old/orders-0/                           the old version, if the system cannot exchange directories
        path/.sparkwire-<id>.done                         a job with an id that is done

A job locks each partition before it writes to it. At its end, it builds a new version of each partition: links to the files that
stay, and its own files. When all versions are on disk, the job writes this decision to its file. If it dies after that, a later
job finishes it. Each version replaces its partition in one step, and has a mark that identifies it. Then the job deletes its
file, and is done.

In object stores, and for event files directly in the path, a partition is not a directory. Then a job moves files one by one,
after the files that they replace. Readers wait or fail until it has moved all files.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from sparkwire.base.printable import printable
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import (
    JOB,
    LOCKS,
    SIDE,
    WHOLE,
    JobState,
    Once,
    Process,
    forget,
    has_ended,
    id_of,
    is_dead,
    is_done,
    is_here,
    jobs_in,
    note_end,
    opened,
    save,
    state_of,
    this_process,
)
from sparkwire.core.sources.options import Option
from sparkwire.core.sources.partition_versions import Change, Unfinished, carry_out, data_files, finish, mark, prepared
from sparkwire.errors import UnfinishedWriteError, WriteConflictError

JOB_ID: Final = Option(
    "jobId",
    id_of,
    None,
    "a job with an id writes only once, even if it runs several times",
)

_PATIENCE: Final = 30.0
"""how long to wait for a running job [s]"""
_PAUSE: Final = 0.05  # [s]
_log: Final = logging.getLogger("sparkwire")


# -- the steps of a job


def begin(folder: Folder, job: str, data: str, replaces: bool, owner: Process | None = None) -> None:
    """Begin a job, after finishing or undoing jobs that have died.

    ``data``: the suffix of data files. ``replaces``: whether the job replaces partitions, which it may have read.

    Raises ValueError if the file of another job is corrupt, or if a partition of it has changed since it was interrupted.
    """
    folder.make("")
    with folder.exclusive_lock() as has_lock:
        for line in _recover(folder, (), has_lock, keeps_changed=False):
            _log.warning("%s", printable(line))
        seen = None
        if replaces and folder.is_local:
            seen = {name: version for name in folder.folders() if name != SIDE and (version := folder.version(name))}
        save(
            folder, JobState(job, owner or this_process(), datetime.now(UTC).isoformat(timespec="seconds"), data, seen)
        )


def lock(folder: Folder, job: str, partition: str) -> None:
    """Lock a partition for a job, if it does not have the lock yet. Raises ValueError if another job has it, or data have
    changed.
    """
    name = partition or WHOLE
    lock_file = f"{LOCKS}/{name}/{job}"
    if folder.has(lock_file):
        return
    folder.check_inside(name)
    with folder.exclusive_lock():
        state = opened(folder, job)
        if folder.has(lock_file):
            return
        if state.seen is not None and partition and folder.version(partition) != state.seen.get(partition):
            raise WriteConflictError(
                f"{folder.shown(partition)} has changed since this job began: run it again, so that it reads the current data"
            )
        folder.make(f"{LOCKS}/{name}")
        was = json.dumps(data_files(folder, state.data, partition)).encode()
        folder.write(lock_file, was, f"{SIDE}/{job}/lock-{name}")
        for other in folder.names(f"{LOCKS}/{name}"):
            holder = None if other == job else state_of(folder, other)
            if holder is not None and not (has_ended(holder.job) and holder.plan is None):
                folder.remove(lock_file)
                raise WriteConflictError(
                    f"{holder} writes to {folder.shown(partition)}: only one job at a time may write to a partition. "
                    f"{_what_to_do(folder, holder)}"
                )


def _what_to_do(folder: Folder, holder: JobState) -> str:
    if _has_ended(holder):
        return "Its process has ended: run this job again, which first removes the files of the other"
    recover = f"python -m sparkwire recover {folder.shown('')} --job {holder.job}"
    return f"Wait for it or, if you know that its process has ended, run: {recover}"


def commit(folder: Folder, job: str, changes: Callable[[], Sequence[Change]], once: Once | None = None) -> None:
    """Commit a job: make all of its changes or none.

    ``once``: an id and a number. Nothing is done if a job with this id, and this number or a higher one, is already done.

    Raises ValueError or OSError if the commit fails. Then nothing has changed, or the message explains how to continue.
    """
    try:
        state = opened(folder, job)
        if once and is_done(folder, once):
            abort(folder, job)
            return
        decided = state._replace(plan=prepared(folder, state, changes()), once=once)
        with folder.exclusive_lock():
            opened(folder, job)
            carry_out(folder, decided)
            with _leaving(folder, job):
                _close(folder, job)
    except Unfinished:
        raise
    except BaseException:
        abort(folder, job)
        raise


def abort(folder: Folder, job: str) -> None:
    """Delete a job and all its files, unless it has decided: then `recover` continues it."""
    with _leaving(folder, job), folder.exclusive_lock():
        state = state_of(folder, job)
        if state is None or state.plan is None:
            _close(folder, job)


@contextmanager
def _leaving(folder: Folder, job: str) -> Iterator[None]:
    """Delete the files of a job afterwards. A failure leaves garbage and is not an error: the job has ended."""
    try:
        yield
    except OSError as error:
        note_end(job)
        _log.warning("%s", printable(f"{folder.shown(f'{SIDE}/{job}')} remains, and you may delete it: {error}"))


def _close(folder: Folder, job: str) -> None:
    state = state_of(folder, job)
    folder.remove(f"{SIDE}/{job}/{JOB}")
    names = {name for which in ("new", "old") for name in folder.folders(f"{SIDE}/{job}/{which}")}
    for name in names.union(state.plan.swaps if state and state.plan else ()):
        folder.check_inside(name)
        folder.remove(f"{name}/{mark(job)}")
    for name in folder.folders(LOCKS):
        folder.check_inside(f"{LOCKS}/{name}")
        folder.remove(f"{LOCKS}/{name}/{job}")
        folder.remove_empty(f"{LOCKS}/{name}")
    folder.remove_tree(f"{SIDE}/{job}")
    for name in (LOCKS, SIDE):
        folder.remove_empty(name)
    forget(job)


# -- the files of a task


class Staging:
    """The files of one attempt of a task, in partitions that the job has locked.

    They are outside the partitions until the commit, and deleted if the task fails. Readers do not see them.
    """

    def __init__(self, folder: Folder, job: str, attempt: str) -> None:
        self.folder = folder
        self._job = job
        self._attempt = attempt
        self._names: list[str] = []
        self._locked: set[str] = set()

    def lock(self, partition: str) -> None:
        """Lock a partition. Raises ValueError if another job has the lock."""
        if partition not in self._locked:
            lock(self.folder, self._job, partition)
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


# -- recovery


def recover(path: str, dead: Collection[str] = ()) -> list[str]:
    """Finish or undo interrupted jobs in a directory. Returns a line for each job.

    ``dead``: jobs of other machines that you know to be dead.
    """
    folder = Folder(path)
    if not folder.has(""):
        raise FileNotFoundError(printable(f"path {path} does not exist: name the directory of the write"))
    with folder.exclusive_lock() as has_lock:
        return list(_recover(folder, dead, has_lock, keeps_changed=True))


def _recover(folder: Folder, dead: Collection[str], has_lock: bool, keeps_changed: bool) -> Iterator[str]:
    for job in jobs_in(folder):
        state = state_of(folder, job)
        if state is None:
            _close(folder, job)
        elif not (_has_ended(state) or job in dead or (has_lock and state.plan and is_here(state.owner))):
            if keeps_changed:
                yield f"{state} is unchanged, because it may still run. If its process has ended, add --job {job}"
        elif state.plan is None:
            _close(folder, job)
            yield f"{state} had changed nothing: its files are deleted"
        else:
            changed = finish(folder, state, keeps_changed)
            _close(folder, job)
            but = f", but for {', '.join(changed)}, which changed meanwhile and stay as they are" if changed else ""
            yield f"{state} is finished{but}"
    for name in folder.folders(LOCKS):
        folder.check_inside(f"{LOCKS}/{name}")
        for job in folder.names(f"{LOCKS}/{name}"):
            if state_of(folder, job) is None:
                folder.remove(f"{LOCKS}/{name}/{job}")
        folder.remove_empty(f"{LOCKS}/{name}")
    for name in (LOCKS, SIDE):
        folder.remove_empty(name)


def unfinished(folder: Folder) -> list[str]:
    """A message with advice for each job that is replacing partitions, or was interrupted while it did."""
    with folder.shared_lock() as has_lock:
        return [_described(folder, state, _is_idle(state, has_lock)) for state in _deciding(folder)]


def check_unfinished(folder: Folder) -> None:
    """Raise UnfinishedWriteError if an interrupted job has replaced some partitions. Waits for a running job."""
    deadline = time.monotonic() + _PATIENCE
    while unfinished := _deciding(folder):
        with folder.shared_lock() as has_lock:
            idle = [state for state in _deciding(folder) if _is_idle(state, has_lock)]
        if idle or time.monotonic() > deadline:
            raise UnfinishedWriteError(_described(folder, (idle or unfinished)[0], bool(idle)))
        time.sleep(_PAUSE)


def _has_ended(state: JobState) -> bool:
    """Whether a job has ended, or its process has."""
    return is_dead(state.owner) or has_ended(state.job)


def _is_idle(state: JobState, has_lock: bool) -> bool:
    """Whether no process works on the job. Such a process would hold the directory's lock."""
    return _has_ended(state) or (has_lock and is_here(state.owner))


def _deciding(folder: Folder) -> list[JobState]:
    states = [state_of(folder, job) for job in jobs_in(folder)]
    return [state for state in states if state is not None and state.plan is not None]


def _described(folder: Folder, state: JobState, is_idle: bool) -> str:
    plan = state.decided
    names = sorted({*plan.swaps, *(name.partition("/")[0] for name in plan.moves.values())})
    how = "was interrupted" if is_idle else "runs, or was interrupted,"
    return (
        f"{folder.shown('')}: {state} {how} while it replaced {', '.join(names[:5])}{', …' * (len(names) > 5)}. Run: "
        f"python -m sparkwire recover {folder.shown('')}"
    )
