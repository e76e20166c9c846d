"""Find the Pythons of this machine, for tools that run with each supported version."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SUPPORTED: Final = ("3.11", "3.12", "3.13")


@functools.cache
def pythons() -> dict[str, Path]:
    """The working Pythons of this machine by version, on the path or in pyenv's directory."""
    paths: dict[str, Path] = {}
    for version in SUPPORTED:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        for python in (f"python{version}", *map(str, kept)):
            said = run([python, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"])
            if said is not None and said.stdout.strip() == version:
                paths.setdefault(version, Path(python))
    return paths


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str] | None:
    """Run a command. Returns None if the program does not exist."""
    try:
        return subprocess.run(
            command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
