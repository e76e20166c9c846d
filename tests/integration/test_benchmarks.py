"""Benchmarks run to their end: what they call changes, and no other test runs them."""

from __future__ import annotations

import subprocess
import sys

from tests.integration.packages import only_whole
from tests.support import ROOT

_GROUPS = ("databus_client", "kafka", "files", "tiers", "changes")
"""those that use modules of the package beside its functions. `python -m benchmarks --trial` runs all"""


@only_whole
def test_benchmarks_run() -> None:
    command = [sys.executable, "-m", "benchmarks", "--trial", *_GROUPS]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-6000:]
