"""Follow README like a new user: a fresh clone in a new virtual environment that is not activated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.packages import only_whole
from tests.support import ROOT
from tests.support.pages import Block, blocks_of, lines_of

_MARK = "-- block"
_FEW_TASKS = "--conf spark.sql.shuffle.partitions=2 --conf spark.ui.enabled=false pyspark-shell"
"""settings with which README's small tables take seconds; with 200 partitions they would take minutes"""


def program(blocks: list[Block]) -> str:
    """All blocks of the page in one program."""
    parts = []
    for block in blocks:
        code = block.code
        if block.language == "sql":
            code = f"spark.sql({code.strip().removesuffix(';')!r}).show(truncate=False)\n"
        parts.append(f"print({_MARK!r}, flush=True)\n{code}")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment's Python."""
    folder = tmp_path_factory.mktemp("first-hour")
    clone, environment = folder / "sparkwire", folder / "venv"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", ".[spark]"], cwd=clone, check=True)
    return python


def test_the_commands_run(installed: Path, tmp_path: Path) -> None:
    """Commands that inspect a file without Spark."""
    samples = output(installed, "-c", "import sparkwire; print(sparkwire.samples())", folder=tmp_path).strip()
    dump = output(installed, "-m", "sparkwire", "dump", f"{samples}/kafka/orders-0", "--head", "3", folder=tmp_path)
    assert len(dump.splitlines()) == 4


@only_whole
def test_readme_runs_in_an_environment_that_is_not_activated(installed: Path, tmp_path: Path) -> None:
    blocks = blocks_of(ROOT / "README.md")
    names = ("PYSPARK", "SPARK_", "PYTHON", "NUMBA", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment["PYSPARK_SUBMIT_ARGS"] = _FEW_TASKS
    run = subprocess.run(
        [installed, "-c", program(blocks)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "Traceback" not in run.stderr, run.stderr[-3000:]
    before, *printed = run.stdout.split(f"{_MARK}\n")
    assert not before
    for block, text in zip(blocks, printed, strict=True):
        if block.printed:
            assert lines_of(text) == lines_of(block.printed)


def output(*command: str | Path, folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
