"""What README and the first page of the site can run runs, from any directory, and answers what is printed below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT

TEXT = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"```(python|sql)\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize(("page", "blocks"), [("README.md", 4), ("docs/index.md", 1)])
def test_blocks(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    page: str,
    blocks: int,
) -> None:
    """One after the other, in one session, as somebody pastes them into a notebook."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark, "sparkwire": sparkwire}
    ran = 0
    for language, code, answer in BLOCK.findall((ROOT / page).read_text("utf-8")):
        if language == "python":
            exec(compile(code, page, "exec"), names)
        else:
            spark.sql(code.strip().removesuffix(";")).show(truncate=False)
        shown = capsys.readouterr().out
        if answer:
            assert plain(shown) == plain(answer)
        ran += 1
    assert ran >= blocks


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", TEXT))))
def test_links_lead_to_files(link: str) -> None:
    assert (ROOT / link).exists()


def test_make_targets_exist() -> None:
    targets = re.findall(r"^    make (\w+)", TEXT, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
