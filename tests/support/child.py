"""Python children: for what depends on the environment at import, or may kill its process."""

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
    """Output of a child that finds the modules that this process finds; fails with what it wrote to stderr."""
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
    """Of all processes of this machine that come here with this name, one is inside."""
    with Path(tempfile.gettempdir(), f"sparkwire-tests-{os.getuid()}-{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
