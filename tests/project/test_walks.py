"""The walks of CONTRIBUTING.md, "Where to look": every file that they name exists."""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT

_, _, SECTION = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Where to look\n")
WALKS = dict(re.findall(r"^### (.*?)\n(.*?)(?=^#|\Z)", SECTION, re.DOTALL | re.MULTILINE))


def test_there_are_seven() -> None:
    assert len(WALKS) == 7


@pytest.mark.parametrize("title", WALKS)
def test_each_step_names_files_that_exist(title: str) -> None:
    steps = re.findall(r"^\d+\. (.*)$", WALKS[title], re.MULTILINE)
    assert len(steps) >= 4
    for step in steps:
        named = re.findall(r"`((?:udfs|tests|tools)/[\w./]+)`", step)
        assert named, step
        for path in named:
            assert (ROOT / path).is_file(), path
