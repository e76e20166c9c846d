"""Every notebook runs from top to bottom and gives the answers that it was saved with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "udfs"))  # where it is not installed
    saved = nbformat.read(path, as_version=4)
    run = nbformat.read(path, as_version=4)
    NotebookClient(run, timeout=300, kernel_name="python3", resources={"metadata": {"path": path.parent}}).execute()
    assert answers(run) == answers(saved)


def answers(notebook: Any) -> list[list[str]]:
    """What each code cell shows as text; a picture by its mere presence, and no log lines."""
    return [
        [output["data"]["text/plain"] for output in cell["outputs"] if "data" in output]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_opens_on_databricks(path: Path) -> None:
    """It installs the package first, takes the session that is there, and needs nothing that is only there."""
    cells = nbformat.read(path, as_version=4)["cells"]
    sources = "\n".join(cell["source"] for cell in cells)
    [first, *_] = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    assert "# %pip install /Volumes/" in first
    assert 'if "spark" not in globals()' in sources
    assert "dbutils" not in sources
