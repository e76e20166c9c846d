"""Drivers that are killed at each step of a merge into a path: the next one finds the table before it, or after it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.killed_merge import AFTER, BEFORE, STEPS

NEW = [(step, moment, False) for step in STEPS for moment in ("before", "after")]
OLD = [(step, moment, True) for step in ("write", "footers", "commit") for moment in ("before", "after")]
KILLS = [*NEW, *OLD, ("write", "amid", False), ("write", "amid", True)]


def driver(folder: Path, *arguments: str, lines: str = "") -> tuple[int, str, str]:
    """Run a driver in a process group of its own. Returns its exit code, and what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.killed_merge", str(folder), *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    out, err = process.communicate(lines)
    return process.returncode, out, err


@pytest.mark.process
def test_twenty_kills(tmp_path: Path) -> None:
    """Each driver is killed in a merge into a table of its own. Another one finds what they left, and repeats the merges."""
    assert len(KILLS) == 20
    kills: list[Any] = [
        {"name": f"table {number}", "step": step, "moment": moment, "exists": exists}
        for number, (step, moment, exists) in enumerate(KILLS)
    ]
    for kill in kills:
        code, _, err = driver(tmp_path, json.dumps(kill))
        assert code == -signal.SIGKILL, (kill, err)
    code, out, err = driver(tmp_path, lines="".join(f"{json.dumps(kill)}\n" for kill in kills))
    assert code == 0, err
    for kill, facts in zip(kills, map(json.loads, out.splitlines()), strict=True):
        place = (kill["step"], kill["moment"])
        is_committed = place == ("commit", "after")
        has_property = place not in (("create", "before"), ("create", "after"), ("property", "before"))
        before = BEFORE if kill["exists"] else [] if has_property else None
        assert facts["found"] == (AFTER if is_committed else before), kill
        assert (facts["again"], facts["folders"]) == (AFTER, 1), kill
