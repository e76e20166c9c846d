"""Identify the process that owns a job or a lock, and check whether it has ended."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple

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
