"""Which process a job belongs to, and whether that is gone: what a lock says of its holder."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """A process, as one on the same machine can find it again."""

    host: str
    machine: str
    """which machine since which start of it, and which of its containers: elsewhere the number means another process"""
    pid: int | None
    """None if unknown"""
    born: str
    """when it began, as the machine counts: process ids repeat"""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.pid is not None else f"a process on {self.host}"


def this_process() -> Process:
    return _process(os.getpid())


def process_above(name: str) -> Process:
    """The nearest process of this name among those that have started this one; without a number if none exists."""
    pid: int | None = os.getpid()
    while pid and _text(_PROC / f"{pid}" / "comm").strip() != name:
        fields = _fields(pid)
        pid = int(fields[1]) if fields else None
    return _process(pid or None)


def _process(pid: int | None) -> Process:
    fields = _fields(pid) if pid is not None else []
    return Process(socket.gethostname(), _machine(), pid, fields[19] if fields else "")


def is_gone(process: Process) -> bool:
    """Whether a process of this machine has ended; False for one elsewhere."""
    if process.pid is None or not is_here(process):
        return False
    if not _PROC.exists():
        return not _answers(process.pid)
    fields = _fields(process.pid)
    return not fields or fields[0] in "ZX" or fields[19] != process.born


def is_here(process: Process) -> bool:
    """Whether it is, or was, on this machine."""
    return process.host == socket.gethostname() and process.machine == _machine()


def _answers(pid: int) -> bool:
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
    """What Linux says of a process from its state on, none where there is no such process."""
    return _text(_PROC / f"{pid}" / "stat").rpartition(")")[2].split()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
