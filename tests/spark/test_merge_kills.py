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


def driver(folder: Path, earlier: Any, later: Any) -> tuple[int, str, str]:
    """Run a driver in a process group of its own. Returns its exit code, and what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.killed_merge", str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    out, err = process.communicate(f"{json.dumps(earlier)}\n{json.dumps(later)}\n")
    return process.returncode, out, err


@pytest.mark.process
def test_twenty_kills(tmp_path: Path) -> None:
    """Each driver finds what the one before it left, repeats its merge, and is killed in another table."""
    assert len(KILLS) == 20
    kills: list[Any] = [
        {"name": f"table {number}", "step": step, "moment": moment, "exists": exists}
        for number, (step, moment, exists) in enumerate(KILLS)
    ]
    for earlier, later in zip([None, *kills], [*kills, None], strict=True):
        code, out, err = driver(tmp_path, earlier, later)
        assert code == (0 if later is None else -signal.SIGKILL), err
        if earlier is not None:
            facts = json.loads(out)
            place = (earlier["step"], earlier["moment"])
            is_committed = place == ("commit", "after")
            has_property = place not in (("create", "before"), ("create", "after"), ("property", "before"))
            before = BEFORE if earlier["exists"] else [] if has_property else None
            assert facts["found"] == (AFTER if is_committed else before), earlier
            assert (facts["again"], facts["folders"]) == (AFTER, 1), earlier
    assert (tmp_path / "done").exists()
