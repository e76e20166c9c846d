"""Every example from Kafka's segments to changes or typed rows leaves out aborted transactions: they never happened."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.pages import blocks_of

READERS = {"changes", "changes_by_table", "rows", "columns"}
"""functions from messages to changes or rows; ``rows`` and ``columns`` of any module"""


def python_of(path: Path) -> Iterator[str]:
    """The Python examples in a file, and for SQL the statements as calls."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield "\n".join(block.code for block in blocks_of(path) if block.language == "python")
    elif path.suffix == ".ipynb":
        cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell) for cell in cells]
        yield "\n".join(source for source in sources if not source.startswith("%"))
    else:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (doc := ast.get_docstring(node)):
                yield "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) (.*)", doc, re.MULTILINE)) or _indented(doc)


def _indented(doc: str) -> str:
    return "\n".join(line[4:] for line in doc.splitlines() if line.startswith("    ") and "=" in line)


def uncommitted(code: str) -> list[str]:
    """The calls that read changes from rows of aborted transactions, too."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a text that only looks like code
        return []
    names: set[str] = set()
    wrong = []
    for node in tree.body:
        for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in READERS and call.args and _is_uncommitted(call.args[0], names):
                wrong.append(ast.unparse(call))
        if isinstance(node, ast.Assign | ast.FunctionDef):
            targets = [node.name] if isinstance(node, ast.FunctionDef) else [ast.unparse(one) for one in node.targets]
            change = names.update if _is_uncommitted(node, names) else names.difference_update
            change(targets)
    return wrong


def _is_uncommitted(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression reads segments with aborted transactions, itself or by a name."""
    text = ast.unparse(node)
    if "read_committed" in text:
        return False
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    return "'kafka_log'" in text or not used.isdisjoint(names)


def files() -> list[Path]:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
    return sorted([*pages, *(ROOT / "udfs").rglob("*.py")])


def test_examples_read_committed_records() -> None:
    seen, wrong = 0, {}
    for path in files():
        for code in python_of(path):
            seen += "kafka_log" in code and "changes(" in code
            if calls := uncommitted(code):
                wrong[str(path.relative_to(ROOT))] = calls
    assert wrong == {}
    assert seen >= 5  # README, docs/changes.md, the notebook, and two docstrings


@pytest.mark.parametrize(
    "code",
    [
        'sparkwire.changes(spark.read.format("kafka_log").load("/a"), format="debezium", table="t")',
        'a = spark.readStream.format("kafka_log").load("/a")\nb = a.where("offset > 3")\nsparkwire.changes(b, "value")',
        'reader = spark.read.format("kafka_log")\nchanges_by_table(reader.load("/a"), format="canal")',
        'def log():\n    return spark.read.format("kafka_log").load("/a")\nx = debezium.rows(log(), "value")',
    ],
)
def test_an_example_with_aborted_records_is_found(code: str) -> None:
    assert uncommitted(code)
    assert not uncommitted(
        code.replace('format("kafka_log")', 'format("kafka_log").option("isolationLevel", "read_committed")')
    )


def test_sql_examples_read_committed_records() -> None:
    for path in (ROOT / "sql").rglob("*.sql"):
        text = path.read_text("utf-8")
        for statement in text.split(";"):
            if "USING kafka_log" in statement and re.search(r"\b(debezium|datahub)_\w+\(", text):
                assert "read_committed" in statement, path
