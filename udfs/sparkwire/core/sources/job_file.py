"""Read and write the files of jobs, with their state and plan. A check rejects names that lead out of the directory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sparkwire.base.printable import printable
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.process import Process

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
        raise ValueError(printable(f"job {job} in {folder.shown('')} has ended, or was taken for dead: run it again"))
    return state


def state_of(folder: Folder, job: str) -> JobState | None:
    """Read the file of a job; None if it does not exist. Raises ValueError if it is corrupt or leads out of the directory."""
    name = f"{SIDE}/{job}/{JOB}"
    if not _NAME.fullmatch(job) or job == "locks":
        raise ValueError(printable(f"{folder.shown(f'{SIDE}/{job}')} is not of sparkwire: move it away"))
    folder.check_inside(name)
    text = folder.read(name)
    if text is None:
        return None
    try:
        return _parsed(folder, job, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            printable(
                f"{folder.shown(name)} is corrupt ({type(error).__name__}: {error}), so that the state of the job is unknown. "
                f"Nothing has changed: check the files in {folder.shown(f'{SIDE}/{job}')}, then move them away"
            )
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
    moves = {staged(one): checked(name, 2) for one, name in plan["moves"].items()}
    return Plan(swaps, moves, [checked(name, 2) for name in plan["dropped"]])


def jobs_in(folder: Folder) -> list[str]:
    if not folder.has(SIDE):
        return []
    folder.check_inside(SIDE)
    return [name for name in folder.folders(SIDE) if f"{SIDE}/{name}" != LOCKS]
