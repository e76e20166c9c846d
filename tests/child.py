"""Python children: for what depends on the environment at import, or may kill its process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping


def run_python(*arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Output of a child that finds the modules that this process finds; fails with what it wrote to stderr."""
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | found | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode != 0:
        raise AssertionError(f"exit {child.returncode}: {child.stderr[-2000:]}")
    return child.stdout
