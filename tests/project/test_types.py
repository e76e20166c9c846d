"""Type checking of the public API, from a user's view."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LEAST = 0.95


@pytest.mark.process
def test_the_public_api_is_typed() -> None:
    bin = Path(sys.executable).parent
    command: list[str | Path] = [bin / "basedpyright", "--ignoreexternal", "--verifytypes", "sparkwire", "--outputjson"]
    # The exit status reports whether everything is typed. It uses the packages of the first Python on the path.
    run = subprocess.run(command, env={"PATH": str(bin)}, stdout=subprocess.PIPE, check=False)
    completeness = json.loads(run.stdout)["typeCompleteness"]
    assert completeness["exportedSymbolCounts"]["withKnownType"] > 1000
    assert completeness["completenessScore"] >= LEAST


@pytest.mark.process
def test_a_misspelt_option_is_detected(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sparkwire\n"
        "from pyspark.sql import DataFrame\n"
        "def restore(df: DataFrame) -> None:\n"
        '    sparkwire.kafka.write(df, "/a", compression="zstd", endOffset={"orders": {0: 18}})\n'
        '    sparkwire.kafka.write(df, "/a", compressions="zstd")\n'
    )
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "mypy",
        "--follow-imports=silent",
        "--ignore-missing-imports",
        program,
    ]
    run = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False)
    assert [line.partition(":")[2] for line in run.stdout.splitlines() if ": error: " in line] == [
        '5: error: Unexpected keyword argument "compressions" for "write"; did you mean "compression"?  [call-arg]'
    ]
