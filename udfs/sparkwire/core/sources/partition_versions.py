"""Build new versions of partitions, exchange them with the old ones, and exchange them back after a failure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sparkwire.base.printable import value_error
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import (
    JOB,
    LOCKS,
    SIDE,
    WHOLE,
    JobState,
    Plan,
    is_done,
    record_done,
    recorded,
    restore_record,
    save,
)
from sparkwire.errors import UnfinishedWriteError, WriteConflictError


class Change(NamedTuple):
    """The changes to a partition."""

    name: str
    """its directory; empty if its files are directly in the path"""
    placed: Mapping[str, str]
    """staged files, each with its new name in the partition"""
    dropped: Collection[str]
    """files of the partition to delete"""


class Unfinished(UnfinishedWriteError):
    """A partition whose job stopped while it replaced versions."""


def prepared(folder: Folder, state: JobState, changes: Sequence[Change]) -> Plan:
    """Build the new versions on disk. Returns the plan of the next steps. Raises ValueError if a partition has changed."""
    swaps, moves, dropped = dict[str, Any](), dict[str, str](), list[str]()
    for change in changes:
        was = json.loads(folder.read(f"{LOCKS}/{change.name or WHOLE}/{state.job}") or b"false")
        if was is False or was != data_files(folder, state.data, change.name):
            raise WriteConflictError(
                f"{folder.shown(change.name)} has changed since this job locked it: a broker or another program wrote to it. "
                "Run the job again"
            )
        if folder.is_local and change.name:
            _build(folder, state.job, change)
            swaps[change.name] = was
        else:
            prefix = f"{change.name}/" if change.name else ""
            _check_free(folder, change)
            moves |= {staged: prefix + name for staged, name in change.placed.items()}
            dropped += [prefix + name for name in sorted(change.dropped)]
    if folder.is_local:
        for name in ("new", ""):
            if folder.has(f"{SIDE}/{state.job}/{name}".rstrip("/")):
                folder.sync(f"{SIDE}/{state.job}/{name}".rstrip("/"))
    return Plan(swaps, moves, dropped)


def _build(folder: Folder, job: str, change: Change) -> None:
    """Build a version of a partition: links to the files that stay, and the new files."""
    new = f"{SIDE}/{job}/new/{change.name}"
    folder.check_inside(change.name)
    folder.make(new)
    if folder.has(change.name):
        folder.create(f"{new}/{mark(job)}").close()
        folder.as_mode_of(new, change.name)
        for name in folder.names(change.name):
            if name not in change.dropped and not name.startswith(".sparkwire-"):
                folder.link(f"{change.name}/{name}", f"{new}/{name}")
        for name in folder.folders(change.name):
            folder.link_tree(f"{change.name}/{name}", f"{new}/{name}")
    _check_free(folder, change)
    for staged, name in change.placed.items():
        folder.move(staged, f"{new}/{name}")
    folder.sync(new)


def _check_free(folder: Folder, change: Change) -> None:
    stay = set(folder.names(change.name)).difference(change.dropped)
    for name in change.placed.values():
        if name in stay:
            raise value_error(f"{folder.shown(change.name)} has {name} already: overwrite it, or write elsewhere")


def mark(job: str) -> str:
    """The name of the file that marks a version as new until its job is done."""
    return f".sparkwire-{job}"


def data_files(folder: Folder, data: str, partition: str) -> dict[str, int] | None:
    """The data files of a partition with their sizes [bytes]; None if it does not exist."""
    if partition and not folder.has(partition):
        return None
    sizes = folder.sizes(partition).items()
    return {name: size for name, size in sizes if size and name.endswith(data) and not name.startswith(".")}


def carry_out(folder: Folder, state: JobState) -> None:
    """Write the decision, then carry out the whole plan or undo it. Raises `Unfinished` if both fail."""
    was_recorded = recorded(folder, state.once) if state.once else None
    try:
        save(folder, state, to_disk=True)
        finish(folder, state, keeps_changed=False)
        _end(folder, state.job)
    except BaseException as error:
        try:
            if state.once:
                restore_record(folder, state.once, was_recorded, f"{SIDE}/{state.job}/done")
            _undo(folder, state)
            folder.remove(f"{SIDE}/{state.job}/{JOB}")
        except BaseException as failure:  # noqa: BLE001  after any failure, another process can continue the job
            raise Unfinished(
                f"{folder.shown('')}: {state} cannot be finished ({error}) nor undone ({failure}). No data are lost. "
                f"Remove the cause, then run: python -m sparkwire recover {folder.shown('')}"
            ) from error
        raise


def _end(folder: Folder, job: str) -> None:
    """Delete the decision: the job is done."""
    try:
        folder.remove(f"{SIDE}/{job}/{JOB}")
    except OSError:
        if folder.has(f"{SIDE}/{job}/{JOB}"):
            raise


def finish(folder: Folder, state: JobState, keeps_changed: bool) -> list[str]:
    """Carry out the rest of a plan. Returns the partitions that it does not replace because they have changed meanwhile."""
    plan = state.decided
    changed = [name for name in plan.swaps if not _swap(folder, state, name, keeps_changed)]
    _move(folder, state)
    folder.sync("")
    if state.once and not is_done(folder, state.once) and not changed:
        record_done(folder, state.once, state.job, f"{SIDE}/{state.job}/done")
    return changed


def _swap(folder: Folder, state: JobState, name: str, keeps_changed: bool) -> bool:
    """Replace a partition by its new version. Returns false if it has changed meanwhile and stays unchanged."""
    new, old = (f"{SIDE}/{state.job}/{which}/{name}" for which in ("new", "old"))
    was = state.decided.swaps[name]
    for path in (name, new, old):
        folder.check_inside(path)
    if _is_swapped(folder, state, name):
        return True
    if was is not None and not folder.has(f"{new}/{mark(state.job)}"):
        raise value_error(
            f"{folder.shown(new)} does not exist, although {state} was about to put it in place: {folder.shown(name)} stays "
            f"unchanged. Delete {folder.shown(f'{SIDE}/{state.job}')} if you do not need it"
        )
    if folder.has(old):  # between two renames
        if folder.has(name):
            if data_files(folder, state.data, name):
                raise value_error(
                    f"{folder.shown(name)} got records while {state} was interrupted. Its old version is "
                    f"{folder.shown(old)}, its new version {folder.shown(new)}: move one of them away"
                )
            folder.move(name, f"{SIDE}/{state.job}/empty-{name}")
        folder.move(new, name)
        return True
    if data_files(folder, state.data, name) != was:
        if keeps_changed:
            return False
        raise WriteConflictError(
            f"{folder.shown(name)} has changed since {state} was interrupted: run python -m sparkwire recover {folder.shown('')}"
            ", which keeps the current files, and then that job again"
        )
    if was is not None and not folder.exchange(new, name):
        folder.make(f"{SIDE}/{state.job}/old")
        folder.move(name, old)
        folder.move(new, name)
    elif was is None:
        folder.move(new, name)
    return True


def _is_swapped(folder: Folder, state: JobState, name: str) -> bool:
    """Whether a partition has its new version, according to its mark. A first version is in only one of the two places."""
    if state.decided.swaps[name] is None:
        return not folder.has(f"{SIDE}/{state.job}/new/{name}")
    return folder.has(f"{name}/{mark(state.job)}")


def _undo(folder: Folder, state: JobState) -> None:
    """Restore the old version of each partition."""
    undone = [_swap_back(folder, state, name) for name in state.decided.swaps]
    if _move_back(folder, state) or any(undone):
        folder.sync("")


def _swap_back(folder: Folder, state: JobState, name: str) -> bool:
    """Restore the old version of a partition. Returns whether there was anything to do."""
    new, old = (f"{SIDE}/{state.job}/{which}/{name}" for which in ("new", "old"))
    for path in (name, new, old):
        folder.check_inside(path)
    is_swapped, has_old = _is_swapped(folder, state, name), folder.has(old)
    if is_swapped and state.decided.swaps[name] is not None and not has_old:
        folder.exchange(new, name)
    elif is_swapped:
        folder.move(name, new)
    if has_old:
        folder.move(old, name)
    return is_swapped or has_old


def _move(folder: Folder, state: JobState) -> None:
    """Move the files to delete aside, and give staged files their names."""
    plan = state.decided
    folder.check_inside(f"{SIDE}/{state.job}/old")
    paths, staged_of = _paths(folder, state), {name: staged for staged, name in plan.moves.items()}
    for name in plan.dropped:
        if (aside := _aside(state, name)) not in paths:
            if name in paths:
                folder.make(aside.rpartition("/")[0])
                folder.move(name, aside)
        elif name in paths and (name not in staged_of or staged_of[name] in paths):
            folder.remove(name)  # an interrupted copy
    for staged, name in plan.moves.items():
        if staged in paths:
            folder.make(name.rpartition("/")[0])
            folder.move(staged, name)


def _move_back(folder: Folder, state: JobState) -> bool:
    """Undo `_move`. Returns whether there was anything to do."""
    plan, is_moved = state.decided, False
    paths = _paths(folder, state)
    for staged, name in plan.moves.items():
        if name in paths and (name not in plan.dropped or _aside(state, name) in paths):
            if staged in paths:
                folder.remove(name)
            else:
                folder.move(name, staged)
            is_moved = True
    for name in plan.dropped:
        if _aside(state, name) in paths:
            folder.move(_aside(state, name), name)
            is_moved = True
    return is_moved


def _aside(state: JobState, name: str) -> str:
    """The temporary name of a file to delete, until the job is done."""
    return f"{SIDE}/{state.job}/old/{name}"


def _paths(folder: Folder, state: JobState) -> set[str]:
    """The existing files that a plan moves."""
    plan = state.decided
    if not plan.moves and not plan.dropped:
        return set()
    folders = {name.rpartition("/")[0] for name in (*plan.moves.values(), *plan.dropped)}
    direct = {f"{at}/{name}" if at else name for at in folders for name in folder.names(at)}
    return direct | set(folder.tree(f"{SIDE}/{state.job}"))
