"""Every message with a text from elsewhere goes through `printable`: errors, warnings and the log.

The exceptions of `sparkwire.errors`, `value_error` and `type_error` do so themselves. `!r`, constants and lengths need no escape.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from operator import attrgetter

import pytest

import sparkwire
from sparkwire import errors
from sparkwire.base.printable import type_error, value_error
from tests.support import ROOT

PACKAGE = ROOT / "udfs" / "sparkwire"
MODULES = {
    str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "sql_functions.py"
}
ERRORS = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, Exception)}
LEVELS = ("debug", "info", "warning", "error", "exception")
HARMLESS = ("len", "repr", "ascii", "printable", "map")


def called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def is_harmless(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.JoinedStr():
            return all(
                part.conversion in (ord("r"), ord("a")) or is_harmless(part.value)
                for part in node.values
                if isinstance(part, ast.FormattedValue)
            )
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper() or name == "__name__"
        case ast.IfExp():
            return is_harmless(node.body) and is_harmless(node.orelse)
        case ast.BinOp():
            return is_harmless(node.left) and is_harmless(node.right)
        case ast.Call():
            return called(node) in HARMLESS or (called(node) == "join" and is_harmless(node.args[0]))
    return False


def messages(tree: ast.Module) -> Iterator[ast.expr]:
    """The texts of errors, warnings and lines of the log."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if called(node) in ERRORS or called(node) == "warn":
            if not isinstance(node.args[0], ast.Name | ast.Attribute):  # a value, which the module itself catches
                yield node.args[0]
        elif called(node) in LEVELS and isinstance(node.args[0], ast.Constant):
            kinds = [part[:1] for part in str(node.args[0].value).split("%")[1:]]
            yield from (one for one, kind in zip(node.args[1:], kinds, strict=False) if kind == "s")


@pytest.mark.parametrize("module", MODULES)
def test_texts_of_others_are_escaped(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    raw = [f"line {one.lineno}: {ast.unparse(one)}" for one in messages(tree) if not is_harmless(one)]
    assert not raw


def test_the_check_finds_raw_texts() -> None:
    source = """
raise ValueError(f"no column {name}")
raise ValueError(f"no column {name!r} of {NAME}, {len(name)}")
raise TypeError("no " + name.title())
raise value_error(f"no column {name}")
raise OSError(printable(f"no file {name}"))
_log.warning("%s at %d", name, 3)
_log.warning("%s at %d", printable(name), at)
"""
    assert [one.lineno for one in messages(ast.parse(source)) if not is_harmless(one)] == [2, 4, 7]


@pytest.mark.parametrize("error", [errors.SchemaError, value_error, type_error])
def test_some_exceptions_escape_their_messages(error: Callable[[str], Exception]) -> None:
    assert str(error("a\x9b")) == r"a\x9b"


def names_in_texts(tree: ast.Module) -> Iterator[str]:
    """The names of sparkwire in texts, such as ``sparkwire.merge`` in the advice of an error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from re.findall(r"\bsparkwire((?:\.[A-Za-z_]\w*)+)", node.value)


def exists(dotted: str) -> bool:
    """Whether a text after ``sparkwire`` is a public name, a module, or a name in a module."""
    try:
        attrgetter(dotted[1:])(sparkwire)
    except AttributeError:
        names = dotted.split(".")[1:]
        depth = next((k for k in range(len(names), 0, -1) if is_module(names[:k])), 0)
        module = import_module(".".join(["sparkwire", *names[:depth]]))
        return depth > 0 and (depth == len(names) or hasattr(module, names[depth]))
    return True


def is_module(names: list[str]) -> bool:
    path = PACKAGE.joinpath(*names)
    return path.with_suffix(".py").exists() or path.is_dir()


def test_a_text_names_only_what_is_there() -> None:
    """The advice of an error is of no use if its function does not exist."""
    names = {(name, module) for module, path in MODULES.items() for name in names_in_texts(ast.parse(path.read_text()))}
    assert len(names) > 50
    assert {(name, module) for name, module in names if not exists(name)} == set()
