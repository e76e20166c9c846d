"""A Delta table kept up to date by the recipe's streaming MERGE: the one true table, whatever comes twice and in which order."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.delta_table import histories
from tests.integration.packages import DELTA, run_python


def test_the_streaming_merge_comes_to_the_one_true_table(tmp_path: Path) -> None:
    """Streams that are cut, go back and send windows twice: in order, begun again, and each event twice in any order."""
    said = run_python(DELTA, "-m", "tests.integration.delta_table", str(tmp_path))
    truth = [
        [name, source, key, value.hex().upper()]
        for name, history in histories().items()
        for (source, key), value in history.table.items()
    ]
    assert [json.loads(line) for line in said.splitlines() if line.startswith("[")] == [sorted(truth)] * 2
