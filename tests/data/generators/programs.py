"""Java programs with artifacts of Maven Central beside them: those that write golden data, or say what is in them."""

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
    """What the program prints; ``given`` is its standard input, ``first`` are jars that hide Spark's.

    Fails with what it wrote to stderr.
    """
    # In UTC, and in UTF-8 whatever the machine's own are.
    settings = (*SHORT_LIVED, "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")
    command = java((str(program), *arguments), *artifacts, options=settings, first=first)
    done = subprocess.run(command, input=given.encode(), capture_output=True, check=False)
    assert done.returncode == 0, f"{program.name}: {done.stderr.decode()[-3000:]}"
    return done.stdout.decode()
