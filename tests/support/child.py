"""Run Python child processes, for tests that depend on the environment at import, or that may kill the process."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def run_python(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """The output of a child process with this process's module path. Fails with the child's standard error."""
    result = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | result | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode != 0:
        raise AssertionError(f"exit {child.returncode}: {child.stderr[-2000:]}")
    return child.stdout


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """A lock between processes of this machine: only one process with this name runs the block."""
    with Path(tempfile.gettempdir(), f"sparkwire-tests-{os.getuid()}-{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
