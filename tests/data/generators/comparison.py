"""Compare generated data with the stored data."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple


class Compared(NamedTuple):
    """The number of things that a program generated, and a sentence for each that differs from the stored one."""

    made: int
    things: str
    """description, such as `lines read again`"""
    differences: Sequence[str]

    def __str__(self) -> str:
        return f"{self.made} {self.things}, {len(self.differences)} differences"


def stored_lines(file: Path) -> list[str]:
    """The lines of a text in the stored data, which may be compressed. Only ``\\n`` separates lines."""
    data = file.read_bytes()
    return _lines((lzma.decompress(data) if file.suffix == ".xz" else data).decode())


def made_lines(file: Path) -> list[str]:
    """The lines of a generated text."""
    return _lines(file.read_text("utf-8"))


def compare_lines(
    place: str, stored: Sequence[str], made: Sequence[str], essence: Callable[[str], Any] = str
) -> Compared:
    """Compare line by line. ``essence`` removes the parts of a line that differ in each run."""
    result = [
        difference(f"{place}, line {number}", old, new)
        for number, (old, new) in enumerate(zip_longest(stored, made), 1)
        if old is None or new is None or essence(old) != essence(new)
    ]
    return Compared(len(made), f"lines of {place} written again", result)


def difference(place: str, stored: Any, made: Any) -> str:
    """A sentence that describes a difference."""
    return f"{place}: stored is {_short(stored)}, made was {_short(made)}"


def differing_fields(place: str, stored: Any, made: Any) -> Iterator[str]:
    """A sentence for each field, at any depth, that differs between two JSON values."""
    if isinstance(stored, dict) and isinstance(made, dict):
        for name in stored | made:
            yield from differing_fields(f"{place}.{name}", stored.get(name, "nothing"), made.get(name, "nothing"))
    elif isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        for number, (old, new) in enumerate(zip(stored, made, strict=True)):
            yield from differing_fields(f"{place}[{number}]", old, new)
    elif stored != made:
        yield difference(place, stored, made)


def first_of_each(sentences: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """The first sentence about each thing."""
    firsts = ((thing, next(iter(said), None)) for thing, said in sentences)
    return [f"{thing}: {said}" for thing, said in firsts if said is not None]


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


_MOST = 200  # [characters]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else "nothing" if value is None else json.dumps(value, default=repr)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
