"""The code of README and of the site's first page runs in any directory, and prints the output below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support.pages import blocks_of, lines_of

TEXT = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(("page", "blocks"), [("README.md", 2), ("docs/index.md", 1)])
def test_blocks(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    page: str,
    blocks: int,
) -> None:
    """Run the blocks in order in one session, as in a notebook."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark, "sparkwire": sparkwire}
    ran = 0
    for block in blocks_of(ROOT / page):
        if block.language == "python":
            exec(compile(block.code, page, "exec"), names)
        else:
            spark.sql(block.code.strip().removesuffix(";")).show(truncate=False)
        shown = capsys.readouterr().out
        if block.printed:
            assert lines_of(shown) == lines_of(block.printed)
        ran += 1
    assert ran >= blocks


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", TEXT))))
def test_links_lead_to_files(link: str) -> None:
    assert (ROOT / link).exists()


def test_make_targets_exist() -> None:
    targets = re.findall(r"(?m)(?:^    |`)make (\w+)", TEXT)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
