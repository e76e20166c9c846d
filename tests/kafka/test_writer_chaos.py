"""Whatever happens to writers, each partition is all of one version, and success means all rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faults import quick_path
from tests.support.writer_chaos import WriterChaos

__all__ = ["quick_path"]


@pytest.mark.process
@pytest.mark.parametrize("seed", range(3))
def test_writers(seed: int, quick_path: Path) -> None:
    assert WriterChaos(quick_path, seed).run(25)["recovered"]
