"""No file names an address, a team or a package on PyPI as the project's own, because there is none before the first release."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

OWN = re.compile(
    r"sparkwire\.github\.io|github\.com/sparkwire|@sparkwire/"
    r"|(?:pip|uv) install [^\n`]*(?<=['\" ])sparkwire(?:\[|==|['\"` ])"
)
TEXTS = (".md", ".py", ".toml", ".yml", ".yaml", ".ipynb", ".sql", ".txt", ".sh")


def named(text: str) -> list[str]:
    return OWN.findall(text)


def test_no_file_names_one() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.splitlines() if name.endswith(TEXTS)]
    assert len(files) > 500
    found = {path: named(path.read_text("utf-8")) for path in files if path.exists() and path != Path(__file__)}
    assert {str(path.relative_to(ROOT)): names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "https://sparkwire.github.io/sparkwire",
        "git clone https://github.com/sparkwire/sparkwire",
        "pip install sparkwire",
        "pip install 'sparkwire[registry]'",
        'pip install "sparkwire==0.1.0"',
    ],
)
def test_such_names_are_found(text: str) -> None:
    assert named(f"{text} ")


def test_other_names_are_not() -> None:
    assert named("pip install '.[registry]'; pip install sparkwire-….whl; pip install build/site/sparkwire.zip") == []
