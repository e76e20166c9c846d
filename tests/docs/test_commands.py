"""Check the commands on the pages: make has the targets, and the command line accepts the arguments."""

from __future__ import annotations

import re
import shlex

import pytest

from sparkwire.__main__ import arguments
from tests.support import ROOT

PAGES = {str(path.relative_to(ROOT)): path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))}
TEXTS = {name: path.read_text("utf-8") for name, path in PAGES.items()}


def shown(pattern: str) -> list[str]:
    return sorted({match for text in TEXTS.values() for match in re.findall(pattern, text)})


@pytest.mark.parametrize("command", shown(r"python -m sparkwire ([a-z][^`\n|;>]*)"))
def test_the_command_line_takes_it(command: str) -> None:
    # The rest of the sentence does not belong to the command: arguments are names, paths and options.
    words = [word for word in shlex.split(command, comments=True) if re.fullmatch(r"[\w./…-]+", word)]
    if words == ["dump"]:
        words.append("PATH")  # sentences about the command leave it out
    assert arguments().parse_args(words).command == words[0]


@pytest.mark.parametrize("target", shown(r"(?m)(?:^    |`)make ([a-z]+)"))
def test_make_has_it(target: str) -> None:
    assert re.search(rf"(?m)^{target}:", (ROOT / "Makefile").read_text())
