"""The documentation speaks the field's words: those of Kafka, Spark and Avro, not of this house."""

from __future__ import annotations

import re

import pytest

from tests.support import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
INSTEAD = {
    r"intact": "valid",
    r"damaged?(?!_)": "corrupt, corruption",
    r"cells?": "value",
    r"crossings?|crosses": "round trip",
    r"twins?": "equivalent",
    r"the originals?": "Databus's Java client, Kafka",
}


@pytest.mark.parametrize("word", INSTEAD)
def test_no_word_of_the_house(word: str) -> None:
    found = [
        f"{page.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for page in PAGES
        if page.name not in ("benchmarks.md", "CHANGELOG.md")
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1)
        if re.search(rf"(?<![\w_./])({word})(?!\w)", line.replace("The first cell:", ""), re.IGNORECASE)
    ]
    assert not found, f"say {INSTEAD[word]}: {found}"
