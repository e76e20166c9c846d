"""The code blocks of a page, with the output on the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(r"```(python|sql)\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


class Block(NamedTuple):
    """A code block."""

    language: str
    code: str
    printed: str
    """the output on the page; empty if the page does not show it"""


def blocks_of(page: Path) -> list[Block]:
    return [Block(*match) for match in _BLOCK.findall(page.read_text("utf-8"))]


def lines_of(text: str) -> list[str]:
    """The lines of a text without trailing blanks, which a terminal does not show."""
    return [line.rstrip() for line in text.strip().splitlines()]
