"""All exceptions that a program can catch are in one module and have one base class."""

from __future__ import annotations

import ast
import builtins
import importlib
from functools import cache
from pathlib import Path

import pytest

from sparkwire import errors
from sparkwire.errors import SparkwireError

PACKAGE = Path(errors.__file__).parent
CAUGHT = {
    "InvalidEventError",
    "Lost",
    "InvalidManifestError",
    "ManifestMismatchError",
    "UnreadableEventError",
    "MessageError",
    "MisfitError",
    "NoResponse",
    "_Stop",
    "_TooLong",
}
"""exceptions that the package catches itself"""


@cache
def declared() -> list[tuple[str, str]]:
    """The module and name of each class that is derived from an exception of Python or of `sparkwire.errors`."""
    result = []
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(["sparkwire", *path.relative_to(PACKAGE).with_suffix("").parts])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            bases = (
                [base.id for base in node.bases if isinstance(base, ast.Name)] if isinstance(node, ast.ClassDef) else []
            )
            kinds = [getattr(builtins, base, getattr(errors, base, None)) for base in bases]
            if any(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
                assert isinstance(node, ast.ClassDef)
                result.append((module, node.name))
    return result


@pytest.mark.parametrize("name", errors.__all__)
def test_each_has_the_base_and_a_docstring(name: str) -> None:
    error_class = getattr(errors, name)
    assert issubclass(error_class, SparkwireError)
    assert error_class.__doc__ != SparkwireError.__doc__ or error_class is SparkwireError


def test_no_other_exception_leaves_the_package() -> None:
    others = [(module, name) for module, name in declared() if module != "sparkwire.errors"]
    assert {name for _, name in others} >= CAUGHT
    for module, name in others:
        member = getattr(importlib.import_module(module), name)
        assert name in CAUGHT or issubclass(member, SparkwireError), (
            f"{module}.{name}: into sparkwire.errors, or caught?"
        )


def test_the_module_lists_all_its_exceptions() -> None:
    assert sorted(name for module, name in declared() if module == "sparkwire.errors") == sorted(errors.__all__)
