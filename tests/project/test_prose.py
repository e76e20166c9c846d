"""The check of plain English reads every kind of text, and finds what is new."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import prose

LONG = " ".join(["word"] * (prose.LONGEST + 1))
CELLS = [{"cell_type": "code", "source": [LONG]}, {"cell_type": "markdown", "source": [f"{LONG}.\n", "It lies here."]}]
FILES = {
    "README.md": f"{LONG}. It lies here. It is written.\n\n    {LONG}\n\n`lies`\n",
    "notebooks/one.ipynb": json.dumps({"cells": CELLS}),
    "sql/one.sql": f"-- {LONG}.\n-- It lies here.\nSELECT 'lies';\n",
    "udfs/one.py": f'"""{LONG}. It lies here."""\nlies = 1  # it lies here, too\n',
}


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[prose.Text]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    table = tmp_path / "words.tsv"
    rows = ("*.md", "*.ipynb", "*.sql", "*.py", "passive *.md")
    table.write_text("# a comment\nlies?\tis stored\t4\n" + "".join(f"{row}\tshort\t0\n" for row in rows), "utf-8")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(prose, "TABLE", table)
    return prose.texts()


def test_every_kind_of_text_is_read(texts: list[prose.Text]) -> None:
    words, *lengths = prose.new_house_words(texts)
    assert words == (
        "say 'is stored': 5 where 4 are known: README.md:1: lies, udfs/one.py:1: lies, udfs/one.py:2: lies, "
        "notebooks/one.ipynb, cell 1: lies, sql/one.sql:2: lies"
    )
    places = [line.removeprefix("say 'short': 1 where 0 are known: ").split(": ")[0] for line in lengths]
    assert places == ["README.md:1", "notebooks/one.ipynb, cell 1", "sql/one.sql:1", "udfs/one.py:1", "README.md:1"]
    assert lengths[-1].endswith("is written")


def test_numbers_are_only_lowered(texts: list[prose.Text]) -> None:
    prose.lower([text for text in texts if text.file != "README.md"])
    assert [word.known for word in prose.house_words()] == [4, 0, 0, 0, 0, 0]
    prose.lower([])
    prose.lower(texts)
    assert prose.house_words()[0].known == 0
