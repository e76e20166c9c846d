"""The blocks of a page that a reader runs, and what the page says they print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(r"```(python|sql)\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


class Block(NamedTuple):
    """One of them."""

    language: str
    code: str
    printed: str
    """empty where the page does not show it"""


def blocks_of(page: Path) -> list[Block]:
    return [Block(*match) for match in _BLOCK.findall(page.read_text("utf-8"))]


def lines_of(text: str) -> list[str]:
    """Without what a terminal does not show: blanks at the ends of lines."""
    return [line.rstrip() for line in text.strip().splitlines()]
