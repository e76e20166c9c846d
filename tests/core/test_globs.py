"""Matching of names with globs, in bounded time."""

from __future__ import annotations

import fnmatch
import re
from random import Random

import pytest

from sparkwire.core.sources.globs import Glob


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("*", ["", "a", "a\nb"], []),
        ("a?c", ["abc"], ["ac", "abbc"]),
        ("[ab]*", ["a", "bx"], ["ca", ""]),
        ("[!ab]", ["c", "\n"], ["a", "cc"]),
        ("{a,b*c,}d", ["ad", "bxcd", "d"], ["bd", "a,d"]),
        ("{a{b,c},d{e,{f,g}}}", ["ab", "ac", "de", "df", "dg"], ["a", "d", "abde"]),
        ("a,b}", ["a,b}"], ["ab"]),
        ("{a", ["{a"], ["a"]),
        ("[z-a]", ["[z-a]"], ["z"]),
        ("x[", ["x["], ["x"]),
    ],
)
def test_matches(pattern: str, names: list[str], others: list[str]) -> None:
    glob = Glob(pattern)
    assert [name for name in names if not glob.matches(name)] == []
    assert [name for name in others if glob.matches(name)] == []


def test_as_pythons_own_without_braces() -> None:
    chance = Random(5)
    for _ in range(2000):
        pattern = "".join(chance.choices("ab*?", k=chance.randrange(8)))
        name = "".join(chance.choices("abc", k=chance.randrange(8)))
        assert Glob(pattern).matches(name) == bool(re.match(fnmatch.translate(pattern), name)), (pattern, name)


def test_sixty_stars() -> None:
    """An equivalent regular expression would take practically forever."""
    assert not Glob("*a" * 60 + "*b").matches("a" * 250)
    assert Glob("{*a,*b}" * 60).matches("ab" * 100)
