"""`make matrix`: every supported Spark, with each interface that it has: all examples and the golden cases in SQL.

    make matrix                      all of them
    make matrix MATRIX=ends          the oldest, and the Spark of this environment with Arrow: what CI runs at every push
    make matrix MATRIX="4.1 4.2"     those versions

Each Spark has an environment of its own under .venv/matrix, made once. What cannot be had is said in a sentence, and the
rest goes on. Prints README's table of versions; exits with 1 where an answer is wrong, or nothing was there to ask.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import ROOT
from tests.support.child import one_at_a_time

PLACE = ROOT / ".venv" / "matrix"


class Environment(NamedTuple):
    """A Spark on a Python, and what else has to be of a certain version there."""

    spark: str
    python: str
    requirements: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return PLACE / f"spark-{self.spark}-python{self.python}"

    @property
    def title(self) -> str:
        return f"Spark {self.spark} on Python {self.python}"


# The oracles' own, which the golden cases are made with.
ORACLES = ("xxhash", "zstandard")
# With the oldest of everything that pyproject.toml allows.
OLDEST = Environment(
    "3.5.0", "3.11", ("numpy==1.24.*", "pandas==2.0.*", "pyarrow==14.*", "numba==0.62.*", "cramjam==2.11.*")
)
ENVIRONMENTS = (
    OLDEST,
    # Spark 3.5 was made for numpy 1, and pyarrow for numpy 1 ends with 18.
    Environment("3.5.9", "3.11", ("numpy<2", "pyarrow<19")),
    Environment("4.0.5", "3.12"),
    Environment("4.1.4", "3.11"),
    Environment("4.2.1", "3.11"),
    Environment("4.3.0", "3.11"),
    Environment("4.3.0", "3.12"),
    Environment("4.3.0", "3.13"),
)


@functools.cache
def pythons() -> dict[str, Path]:
    """The Pythons of this machine that run, by version: on the path, or where pyenv keeps them."""
    found: dict[str, Path] = {}
    for version in ("3.11", "3.12", "3.13"):
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        for python in (f"python{version}", *map(str, kept)):
            said = run([python, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"])
            if said is not None and said.stdout.strip() == version:
                found.setdefault(version, Path(python))
    return found


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str] | None:
    """None where there is no such program."""
    try:
        return subprocess.run(
            command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None


def install(environment: Environment) -> str | None:
    """Make the environment, once, whoever else wants it; a sentence where it cannot be had."""
    with one_at_a_time(environment.path.name):
        return _install(environment)


def _install(environment: Environment) -> str | None:
    ready = environment.path / f".ready-{hashlib.sha256((ROOT / 'pyproject.toml').read_bytes()).hexdigest()[:16]}"
    if ready.exists():
        return None
    if environment.python not in pythons():
        return f"there is no Python {environment.python} here"
    python = str(environment.path / "bin" / "python")
    wanted = [".", *ORACLES, f"pyspark[connect]=={environment.spark}", *environment.requirements]
    for step in (
        [str(pythons()[environment.python]), "-m", "venv", str(environment.path)],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted],
    ):
        done = run(step)
        if done is None or done.returncode:
            return f"it cannot be installed: {_reason(done.stderr if done else '')}"
    ready.touch()
    return None


def _reason(said: str) -> str:
    """The line of pip's that tells most."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR:" in line]
    return (errors or lines or ["no reason given"])[-1]


def check(python: str, *interfaces: str) -> Iterator[dict[str, Any]]:
    """What each interface of that Python's Spark answers, as counts; see `tests.support.matrix_check`."""
    # The sources, not what pip installed: they may be newer.
    sources = os.pathsep.join([str(ROOT / "udfs"), str(ROOT)])
    command = [python, "-m", "tests.support.matrix_check", *interfaces]
    done = run(command, PYTHONPATH=sources, PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python, TZ="UTC")
    if done is None or done.returncode:
        yield {"failed": (done.stderr if done else "no such Python")[-1500:]}
        return
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def main(arguments: Sequence[str]) -> int:
    """Print the table row by row; the exit status."""
    ends = list(arguments) == ["ends"]
    chosen = [OLDEST] if ends else [e for e in ENVIRONMENTS if not arguments or e.spark.startswith(tuple(arguments))]
    print("| Spark | Python | numpy, pandas, pyarrow | interface | examples | golden checks | what differs |")
    print("|---|---|---|---|---|---|---|", flush=True)
    right: list[bool] = []
    for environment in chosen:
        missing = install(environment)
        if missing:
            print(f"{environment.title}: not tried, {missing}.", flush=True)
            if environment == OLDEST:  # CI relies on it
                right.append(False)
            continue
        right += [row(environment.title, found) for found in check(str(environment.path / "bin" / "python"))]
    if ends:
        right += [row("The Spark of this environment", found) for found in check(sys.executable, "arrow")]
    return int(not (right and all(right)))


def row(title: str, found: dict[str, Any]) -> bool:
    """Print one; whether everything in it is right."""
    if "failed" in found:
        print(f"{title} failed:\n{found['failed']}", flush=True)
        return False
    examples, golden = found["examples"], found["golden"]
    print(
        f"| {found['spark']} | {found['python']} | {found['libraries']} | {found['interface']} "
        f"| {examples[0]} of {examples[1]} | {golden[0]} of {golden[1]} | {found['differs']} |",
        flush=True,
    )
    for example in found["wrong"]:
        print(f"  wrong: {example}", flush=True)
    return not found["wrong"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
