"""Write the last line of each walk in CONTRIBUTING.md, "Where to look": the other files that belong to it.

A walk names files in the order in which one reads them. The others are those that they import, directly or not, in the same
folders. A list of functions imports its whole format, so the walks do not follow it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "CONTRIBUTING.md"
_UDFS: Final = ROOT / "udfs"
_NAMED: Final = re.compile(r"`udfs/([\w/]+)\.py`")
WIDTH: Final = 150  # of a line [characters]
_OTHERS: Final = "Other files: "
_CATALOGUES: Final = ("functions", "__init__")


def page() -> str:
    """CONTRIBUTING.md with current lists."""
    text = PAGE.read_text("utf-8")
    head, heading, walks = text.partition("\n## Where to look\n")
    return head + heading + re.sub(r"^### .*?(?=^#|\Z)", _with_files, walks, flags=re.DOTALL | re.MULTILINE)


def _with_files(walk: re.Match[str]) -> str:
    body = re.sub(rf"\n{_OTHERS}.*?\n(?=\n|\Z)", "", walk[0], flags=re.DOTALL).rstrip("\n")
    others = sorted(others_of(set(_NAMED.findall(body))))
    end = "\n" if walk.end() == len(walk.string) else "\n\n"
    if not others:
        return body + end
    folders = groupby(others, key=lambda module: module.rpartition("/")[0])
    shown = "; ".join(
        f"`udfs/{folder}`: {', '.join(f'`{_stem(module)}`' for module in modules)}" for folder, modules in folders
    )
    lines = textwrap.wrap(f"{_OTHERS}{shown}.", WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{body}\n", *lines, ""]) + end[1:]


def others_of(named: set[str]) -> set[str]:
    """The modules that belong to a walk and that it does not name. A module is a path in ``udfs`` without its suffix."""
    folders = {module.rpartition("/")[0] for module in named}
    found: set[str] = set()
    pending = [module for module in named if _stem(module) not in _CATALOGUES]
    while pending:
        for module in _imports(pending.pop()):
            if module not in found | named and module.rpartition("/")[0] in folders:
                found.add(module)
                pending.append(module)
    return found


@cache
def _imports(module: str) -> frozenset[str]:
    tree = ast.parse((_UDFS / f"{module}.py").read_text("utf-8"))
    return frozenset(found for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for found in _modules(node))


def _modules(node: ast.ImportFrom) -> Iterator[str]:
    place = (node.module or "").replace(".", "/")
    for name in (place, *(f"{place}/{alias.name}" for alias in node.names)):
        if name.startswith("sparkwire/") and _stem(name) not in _CATALOGUES and (_UDFS / f"{name}.py").is_file():
            yield name


def _stem(module: str) -> str:
    return module.rpartition("/")[2]
