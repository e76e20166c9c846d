"""For any failure of writers, each partition has exactly one version, and success means all rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faults import quick_path
from tests.support.writer_chaos import FORMATS, WriterChaos

__all__ = ["quick_path"]


@pytest.mark.process
@pytest.mark.parametrize("form", FORMATS)
def test_writers(form: str, quick_path: Path) -> None:
    assert WriterChaos(quick_path, 0, form).run(15)["recovered"]
