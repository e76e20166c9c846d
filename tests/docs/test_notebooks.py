"""Run every notebook from top to bottom; the results must equal the saved ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from tests.support import ROOT

FORGET = """%reset -f
import pandas
pandas.reset_option("^display")
del pandas"""
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One kernel for all notebooks, because a Spark session is slow to start. Its state is reset before each notebook."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=ROOT / "notebooks", env=os.environ | {"PYTHONPATH": str(ROOT / "udfs")})
    yield manager
    manager.shutdown_kernel()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, kernel: KernelManager) -> None:
    saved = nbformat.read(path, as_version=4)
    run = nbformat.read(path, as_version=4)
    run.cells.insert(0, nbformat.v4.new_code_cell(FORGET))
    NotebookClient(run, km=kernel, timeout=300).execute()
    assert results(run) == [[], *results(saved)]


def test_the_page_lists_every_notebook_and_what_it_needs() -> None:
    page = (ROOT / "docs" / "guide" / "notebooks.md").read_text("utf-8")
    needs = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*?) ?\|$", page, re.MULTILINE))
    assert list(needs) == [path.stem for path in NOTEBOOKS]
    for path in NOTEBOOKS:
        code = path.read_text("utf-8")
        assert ("matplotlib" in needs[path.stem]) == ("import matplotlib" in code), path.stem
        assert ("`registry`" in needs[path.stem]) == ("Registry.http" in code), path.stem
        assert ("`delta`" in needs[path.stem]) == ("sparkwire.merge" in code), path.stem


def results(notebook: Any) -> list[list[str]]:
    """The text output of each code cell, without log lines; for a picture, only that it exists."""
    return [
        [output["data"]["text/plain"] for output in cell["outputs"] if "data" in output]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_opens_on_databricks(path: Path) -> None:
    """It first installs the package, uses the existing session, and needs nothing that only Databricks has."""
    cells = nbformat.read(path, as_version=4)["cells"]
    sources = "\n".join(cell["source"] for cell in cells)
    [first, *_] = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    assert "# %pip install /Volumes/" in first
    assert 'if "spark" not in globals()' in sources
    assert "dbutils" not in sources
