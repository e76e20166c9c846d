"""The examples of the pages about formats, and the recipes of the guide, print the output below them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support.pages import blocks_of, lines_of

DOCS = ROOT / "docs"
PAGES = sorted(
    str(page.relative_to(DOCS))
    for page in [*DOCS.glob("formats/*.md"), DOCS / "guide" / "recipes.md"]
    if any(block.language == "python" for block in blocks_of(page))
)


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks(spark: SparkSession, capsys: pytest.CaptureFixture[str], page: str) -> None:
    names: dict[str, Any] = {"spark": spark, "sparkwire": sparkwire}
    blocks = [block for block in blocks_of(DOCS / page) if block.language == "python"]
    assert blocks
    for block in blocks:
        exec(compile(block.code, page, "exec"), names)
        assert lines_of(capsys.readouterr().out) == lines_of(block.printed)
    spark.catalog.dropTempView("events")
