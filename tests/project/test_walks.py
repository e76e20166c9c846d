"""The walks of CONTRIBUTING.md, "Where to look": every file that they name exists, and they list all files."""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT
from tools import walks

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


def test_a_walk_lists_what_its_files_import() -> None:
    others = walks.others_of({"sparkwire/kafka/codecs", "sparkwire/kafka/inflate"})
    assert {"sparkwire/kafka/framings", "sparkwire/kafka/entry_payloads"} <= others  # which the two import
    assert "sparkwire/kafka/layout" in others  # which they import only through other files
    assert "sparkwire/kafka/files/plan" not in others
    assert "sparkwire/base/printable" not in others


def test_the_lists_are_current() -> None:
    assert walks.PAGE.read_text("utf-8") == walks.page()
    assert SECTION.count("\nOther files: ") == len(WALKS)
