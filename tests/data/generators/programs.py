"""Run Java programs with artifacts of Maven Central. They write golden data, or print their contents."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.integration.broker import SHORT_LIVED, java


def output_of(
    program: Path,
    arguments: Sequence[str] = (),
    *artifacts: str,
    given: str = "",
    first: Iterable[Path] = (),
) -> str:
    """The output of a program. ``given`` is its standard input; ``first`` are jars with precedence over Spark's.

    Fails with the program's standard error.
    """
    # In UTC and UTF-8, regardless of the machine's settings.
    settings = (*SHORT_LIVED, "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")
    command = java((str(program), *arguments), *artifacts, options=settings, first=first)
    done = subprocess.run(command, input=given.encode(), capture_output=True, check=False)
    assert done.returncode == 0, f"{program.name}: {done.stderr.decode()[-3000:]}"
    return done.stdout.decode()
