"""Check the plain English of pages, notebooks, queries, docstrings, comments and messages: ``python -m tools.prose``.

`house_words.tsv` has a pattern on each line, the field's word for it, and how often it still occurs. A pattern such as ``*.md``
counts the sentences that are too long in files with this ending, ``passive *.md`` the passives. A change that raises a number
above its row is an error. ``--lower`` lowers the numbers of words and sentences after a clean-up. ``--list`` prints the place
of each known word and passive.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
TABLE: Final = ROOT / "tools" / "house_words.tsv"
LONGEST: Final = 25
"""a sentence should have no more words"""
_GENERATED: Final = ("docs/benchmarks.md", "udfs/sparkwire/sql_functions.py")
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"``.*?``|`[^`]*`", re.DOTALL)
_SIGNATURE: Final = re.compile(r"\w+\(.*\) -> ", re.DOTALL)
_TABLE_ROW: Final = r"\n(?=[^\n]*\S {2,}\S)"
"""before a line with two spaces within it: a row of a layout, or an argument of a docstring"""
_ARGUMENT: Final = r"\n *\w+(?:, \w+)*\n(?= )"
"""a line with nothing but names: the arguments that the next line explains"""
_SENTENCE_END: Final = re.compile(
    rf"(?<=[.!?:])\s+|\n\s*\n|\n\s*(?=[-*|#]|\d+\.\s)|\s\|\s|{_TABLE_ROW}|{_ARGUMENT}|\n(?=\s*>>>)"
)
_STATES: Final = (
    "absent|adjacent|ahead|ancient|beneath|beside|between|code|consistent|corrupt|dependent|different|even|evident|exempt|fluent"
    "|hidden|independent|inside|open|outside|permanent|present|recent|right|seven|silent|sufficient|ten|then|transparent|unknown|when"
)
"""words that end as participles do and say how a thing is"""
_PASSIVE: Final = re.compile(
    rf"\b(?:is|are|was|were|be|been|being)\s+(?:\w+ly\s+)?(?!(?:{_STATES})\b)[a-z]+(?:ed|wn|en|pt|lt|ld|nt|ght|de)\b",
    re.IGNORECASE,
)
_KINDS: Final = (
    ("pages", ".md"),
    ("notebooks", ".ipynb"),
    ("queries", ".sql"),
    ("docstrings, comments and messages", ".py"),
)


class Text(NamedTuple):
    """Prose in a file, without code."""

    file: str
    line: int
    """where it begins; in a notebook, the number of its cell"""
    text: str

    def place(self, at: int = 0) -> str:
        """The place of its character ``at``."""
        if self.file.endswith(".ipynb"):
            return f"{self.file}, cell {self.line}"
        return f"{self.file}:{self.line + self.text.count(chr(10), 0, at)}"


class HouseWord(NamedTuple):
    """A word that this project used and the field does not; or, for the pattern ``*.md``, the long sentences of such files."""

    pattern: str
    instead: str
    known: int
    """how often it may occur until it is replaced"""

    def occurrences(self, texts: list[Text]) -> list[str]:
        """Where it occurs."""
        if self.pattern.startswith("passive *"):
            return _passives(self.pattern.removeprefix("passive *"), texts)
        if self.pattern.startswith("*"):
            return _long_sentences(self.pattern[1:], texts)
        regex = re.compile(rf"(?<![\w.])(?:{self.pattern})(?!\w)", re.IGNORECASE)
        return [
            f"{each.place(match.start())}: {match.group()}" for each in texts for match in regex.finditer(each.text)
        ]


def house_words() -> list[HouseWord]:
    """The rows of the table."""
    rows = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [HouseWord(pattern, instead, int(known)) for pattern, instead, known in rows]


def texts() -> list[Text]:
    """The prose of the project."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    modules = sorted((ROOT / "udfs").rglob("*.py"))
    of_pages = [each for path in sorted(pages) if _counts(path) for each in _of_page(path)]
    of_modules = [each for path in modules if _counts(path) for each in _of_module(path)]
    of_notebooks = [each for path in sorted((ROOT / "notebooks").glob("*.ipynb")) for each in _of_notebook(path)]
    of_queries = [each for path in sorted((ROOT / "sql").rglob("*.sql")) for each in _of_query(path)]
    return of_pages + of_modules + of_notebooks + of_queries


def _counts(path: Path) -> bool:
    return _name(path) not in _GENERATED


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _of_page(path: Path) -> Iterator[Text]:
    yield Text(_name(path), 1, _without_code(path.read_text("utf-8")))


def _without_code(text: str) -> str:
    """The text with its line numbers, code left blank."""
    text = _FENCE.sub(lambda fence: "\n" * fence.group().count("\n"), text)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    return _CODE.sub("code", text)


def _of_notebook(path: Path) -> Iterator[Text]:
    """The text between its code."""
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        if cell["cell_type"] == "markdown":
            yield Text(_name(path), number, _without_code("".join(cell["source"])))


def _of_query(path: Path) -> Iterator[Text]:
    """Each block of comment lines."""
    for block in re.finditer(r"(?:^--.*\n)+", path.read_text("utf-8"), re.MULTILINE):
        line = block.string.count("\n", 0, block.start()) + 1
        yield Text(_name(path), line, _CODE.sub("code", re.sub(r"^-- ?", "", block.group(), flags=re.MULTILINE)))


def _of_module(path: Path) -> Iterator[Text]:
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_prose(node.value):
            yield Text(_name(path), node.lineno, _CODE.sub("code", node.value))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(_name(path), token.start[0], _CODE.sub("code", token.string.lstrip("# ")))


def _is_prose(text: str) -> bool:
    return text.count(" ") > 2 and not _SIGNATURE.match(text)


def sentences(text: str) -> list[list[str]]:
    """The words of each sentence of a text."""
    parts = (re.findall(r"[\w'’-]+", part) for part in _SENTENCE_END.split(text))
    return [words for words in parts if len(words) > 2]


def _long_sentences(suffix: str, texts: list[Text]) -> list[str]:
    """The file and first line of the text, and the first words, of each long sentence."""
    return [
        f"{each.place()}: {' '.join(words[:5])} …"
        for each in texts
        if each.file.endswith(suffix)
        for words in sentences(each.text)
        if len(words) > LONGEST
    ]


def _passives(suffix: str, texts: list[Text]) -> list[str]:
    """The file and line of each passive."""
    return [
        f"{each.place(match.start())}: {' '.join(match.group().split())}"
        for each in texts
        if each.file.endswith(suffix)
        for match in _PASSIVE.finditer(each.text)
    ]


def new_house_words(all_texts: list[Text]) -> list[str]:
    """A line for each house word that occurs more often than its row allows."""
    lines = []
    for word in house_words():
        places = word.occurrences(all_texts)
        if len(places) > word.known:
            lines.append(f"say {word.instead!r}: {len(places)} where {word.known} are known: {', '.join(places[:12])}")
    return lines


def figures(all_texts: list[Text]) -> str:
    """How long the sentences are, for each kind of text."""
    lines = []
    for title, suffix in _KINDS:
        prose = [each for each in all_texts if each.file.endswith(suffix)]
        counted = [words for each in prose for words in sentences(each.text)]
        long = sum(len(words) > LONGEST for words in counted)
        passive = len(_passives(suffix, prose))
        lines.append(
            f"{title}: {len(counted)} sentences, {long} of more than {LONGEST} words ({long / len(counted):.0%}), "
            f"{passive} passives ({passive / len(counted):.0%})"
        )
    return "\n".join(lines)


def lower(all_texts: list[Text]) -> None:
    """Write the table with the numbers of today where they are lower."""
    rows = [f"{word.pattern}\t{word.instead}\t{_lowered(word, all_texts)}" for word in house_words()]
    head = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("#")]
    TABLE.write_text("\n".join([*head, *rows]) + "\n", "utf-8")


def _lowered(word: HouseWord, all_texts: list[Text]) -> int:
    if word.pattern.startswith("passive"):
        return word.known  # with room for the few that read well
    return min(word.known, len(word.occurrences(all_texts)))


def main() -> int:
    """Print figures and errors; 1 where a house word is new."""
    all_texts = texts()
    if "--lower" in sys.argv[1:]:
        lower(all_texts)
    if "--list" in sys.argv[1:]:
        sys.stdout.write(
            "".join(f"{place} -> {word.instead}\n" for word in house_words() for place in word.occurrences(all_texts))
        )
    sys.stdout.write(figures(all_texts) + "\n")
    errors = new_house_words(all_texts)
    sys.stdout.write("".join(f"{line}\n" for line in errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
