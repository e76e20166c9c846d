"""`make matrix`: run all examples and the golden cases in SQL on every supported Spark, with each of its interfaces.

    make matrix                      all of them
    make matrix MATRIX=3.5.0         the oldest Spark, as CI does at every push
    make matrix MATRIX="4.1 4.2"     only these versions
    make matrix MATRIX=numba         every minor version of Numba

Each Spark has a separate environment in .venv/matrix, which is created once. If an environment cannot be created, the command
prints the reason and continues. It prints the table of docs/versions.md, and exits with 1 if a result is wrong or nothing ran.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import ROOT
from tests.support.child import one_at_a_time
from tools.pythons import pythons, run

PLACE = ROOT / ".venv" / "matrix"
UV = ROOT / "build" / "uv" / "bin" / "uv"


class Environment(NamedTuple):
    """A Spark on a Python, with fixed versions of other packages."""

    spark: str
    python: str
    requirements: tuple[str, ...] = ()
    numba: str = ""
    """a minor version of Numba, if it differs from uv's choice"""

    @property
    def path(self) -> Path:
        return PLACE / f"spark-{self.spark}-python{self.python}{self.numba and f'-numba{self.numba}'}"

    @property
    def title(self) -> str:
        return f"Spark {self.spark} on Python {self.python}{self.numba and f' with Numba {self.numba}'}"

    def chosen_by(self, arguments: Sequence[str]) -> bool:
        return not arguments or self.spark.startswith(tuple(arguments)) or ("numba" in arguments and bool(self.numba))

    @property
    def packages(self) -> tuple[str, ...]:
        """The requirements for uv."""
        numba = (f"numba=={self.numba}.*",) if self.numba else ()
        return (".", *ORACLES, f"pyspark[connect]=={self.spark}", *self.requirements, *numba)


# What the program imports beside sparkwire and Spark: the packages of the oracles, which create the golden cases.
ORACLES = ("crc32c", "xxhash", "zstandard")
# With the oldest versions that pyproject.toml allows.
OLDEST = Environment(
    "3.5.0", "3.11", ("numpy==1.24.*", "pandas==2.0.*", "pyarrow==14.*", "cramjam==2.11.*"), numba="0.62"
)
ENVIRONMENTS = (
    OLDEST,
    # Spark 3.5 needs numpy 1; pyarrow 18 is the last release for numpy 1.
    Environment("3.5.9", "3.11", ("numpy<2", "pyarrow<19")),
    Environment("4.0.5", "3.12"),
    Environment("4.1.4", "3.11"),
    Environment("4.2.1", "3.11"),
    Environment("4.3.0", "3.11"),
    Environment("4.3.0", "3.12"),
    Environment("4.3.0", "3.13"),
    # The compile cache uses Numba's internals. The oldest environment has 0.62; the others have uv's choice.
    *(Environment("4.3.0", "3.11", numba=minor) for minor in ("0.63", "0.64", "0.65", "0.66", "0.67")),
)


def install(environment: Environment) -> str | None:
    """Create the environment once, also with concurrent processes. Returns a message if that fails."""
    with one_at_a_time(environment.path.name):
        return _install(environment)


def _install(environment: Environment) -> str | None:
    needs = (ROOT / "pyproject.toml").read_bytes() + " ".join(environment.packages).encode()
    ready = environment.path / f".ready-{hashlib.sha256(needs).hexdigest()[:16]}"
    if ready.exists():
        return None
    if environment.python not in pythons():
        return f"there is no Python {environment.python} here"
    if not UV.exists():
        return f"there is no {UV}: run make build/uv"
    python = str(environment.path / "bin" / "python")
    for step in (
        [str(pythons()[environment.python]), "-m", "venv", "--without-pip", str(environment.path)],
        [str(UV), "pip", "install", "--quiet", "--python", python, *environment.packages],
    ):
        done = run(step)
        if done is None or done.returncode:
            return f"it cannot be installed: {' '.join(done.stderr.split()) if done else 'no such program'}"
    ready.touch()
    return None


def check(python: str) -> Iterator[dict[str, Any]]:
    """The counts of each interface of that Python's Spark; see `tests.support.matrix_check`."""
    # Use the sources instead of the installed package, because they may be newer.
    sources = os.pathsep.join([str(ROOT / "udfs"), str(ROOT)])
    command = [python, "-m", "tests.support.matrix_check"]
    done = run(command, PYTHONPATH=sources, PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python, TZ="UTC")
    if done is None or done.returncode:
        yield {"failed": (done.stderr if done else "no such Python")[-1500:]}
        return
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def main(arguments: Sequence[str]) -> int:
    """Print the table row by row. Returns the exit status."""
    chosen = [environment for environment in ENVIRONMENTS if environment.chosen_by(arguments)]
    print("| Spark | Python | numpy, pandas, pyarrow, numba | interface | examples | golden checks | what differs |")
    print("|---|---|---|---|---|---|---|", flush=True)
    right: list[bool] = []
    for environment in chosen:
        missing = install(environment)
        if missing:
            print(f"{environment.title}: not tried, {missing}.", flush=True)
            if environment == OLDEST:  # CI needs it
                right.append(False)
            continue
        right += [row(environment.title, one) for one in check(str(environment.path / "bin" / "python"))]
    return int(not (right and all(right)))


def row(title: str, by_name: dict[str, Any]) -> bool:
    """Print a row. Returns whether all its results are correct."""
    if "failed" in by_name:
        print(f"{title} failed:\n{by_name['failed']}", flush=True)
        return False
    examples, golden = by_name["examples"], by_name["golden"]
    print(
        f"| {by_name['spark']} | {by_name['python']} | {by_name['libraries']} | {by_name['interface']} "
        f"| {examples[0]} of {examples[1]} | {golden[0]} of {golden[1]} | {by_name['differs']} |",
        flush=True,
    )
    for example in by_name["wrong"]:
        print(f"  wrong: {example}", flush=True)
    return not by_name["wrong"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
