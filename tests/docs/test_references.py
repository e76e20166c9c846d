"""Files, modules and loggers named in documentation and docstrings exist, and code spans are well-formed."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from sparkwire import FUNCTIONS
from tests.support import ROOT

PACKAGE = ROOT / "udfs" / "sparkwire"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(path for folder in ("udfs", "tools", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py"))
FOLDERS = ("udfs", "tools", "benchmarks", "tests", "docs", "sql", "notebooks")
FILES = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*")}
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NONE = {"utils.py"}
"""names of files that need not exist"""


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield text


def texts() -> Iterator[tuple[str, str]]:
    """Each page without its code blocks, and each docstring."""
    for page in PAGES:
        yield str(page.relative_to(ROOT)), re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for source in SOURCES:
        for text in docstrings(source):
            yield str(source.relative_to(ROOT)), text


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of the package, or an object in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            if not hasattr(module, part):
                return False
            module = getattr(module, part)
        return True
    return False


def test_files_exist() -> None:
    missing = set()
    for where, text in texts():
        for span in SPAN.findall(text):
            for file in re.findall(r"^[\w./-]+\.(?:py|md|ipynb|tsv|toml|yml)$", span):
                there = any(
                    (base / file).exists()
                    for base in (ROOT, PACKAGE, ROOT / "docs", ROOT / "sql" / "recipes", (ROOT / where).parent)
                )
                if not there and not ("/" not in file and file in FILES | NONE):
                    missing.add((where, file))
    assert missing == set()


def test_names_of_the_package_exist() -> None:
    missing = set()
    for where, text in texts():
        for name in re.findall(r"`(sparkwire(?:\.[A-Za-z_]\w*)+)", text):
            if not resolves(name):
                missing.add((where, name))
    assert missing == set()


def test_loggers_exist() -> None:
    """If a page names a logger, the package has it."""
    named = {
        (where, name) for where, text in texts() for name in re.findall(r"[Ll]ogger\w*[ (\"'`]+(sparkwire[\w.]*)", text)
    }
    assert all(resolves(name) for _, name in named), named


def inside_out(text: str) -> list[str]:
    """Texts between code spans that are rendered as code, because a closing mark opens a span."""
    parts = text.split("``")
    if len(parts) % 2 == 0:
        return ["a mark without another"]
    return [span for span in parts[1::2] if not span.strip() or span[0] in " \n,;)" or span[-1] in " \n("]


def test_code_spans_are_not_inside_out() -> None:
    assert [
        (source.name, result) for source in SOURCES for text in docstrings(source) if (result := inside_out(text))
    ] == []


def test_an_inside_out_span_is_detected() -> None:
    assert inside_out("``rollbacks INT`` (since the window before)``, retries INT`` (of these)") == [", retries INT"]
    assert inside_out("``a`` and ``b") != []


def test_modules_named_by_a_format_package_exist() -> None:
    """In the docstring of a format's package, a word in single back quotes is a module, a name in one, or an argument."""
    arguments = {argument.name for function in FUNCTIONS.values() for argument in function.arguments}
    missing = set()
    for wing in sorted(path.parent for path in PACKAGE.glob("*/__init__.py")):
        modules = {path.stem for path in wing.rglob("*.py")} | {path.name for path in wing.iterdir()}
        source = "\n".join(path.read_text("utf-8") for path in wing.rglob("*.py"))
        defined = set(re.findall(r"(?:^\s*def |^class |Field\(\"|\"(?=_))(\w+)", source, re.MULTILINE))
        for span in SPAN.findall(ast.get_docstring(ast.parse((wing / "__init__.py").read_text("utf-8"))) or ""):
            if re.fullmatch(r"[a-z_]+", span) and span not in modules | defined | FUNCTIONS.keys() | arguments:
                missing.add((wing.name, span))
    assert missing == set()
