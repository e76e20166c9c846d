"""How much of the public face a type checker of its users knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LEAST = 0.95


@pytest.mark.process
def test_the_public_face_is_typed() -> None:
    bin = Path(sys.executable).parent
    command: list[str | Path] = [bin / "basedpyright", "--ignoreexternal", "--verifytypes", "sparkwire", "--outputjson"]
    # Its exit status says whether everything is known; it takes the packages of the first Python on the path.
    run = subprocess.run(command, env={"PATH": str(bin)}, stdout=subprocess.PIPE, check=False)
    found = json.loads(run.stdout)["typeCompleteness"]
    assert found["exportedSymbolCounts"]["withKnownType"] > 1000
    assert found["completenessScore"] >= LEAST
