"""Completion of names, and errors for misspelled names."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import pydoc
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire.base import lazy
from sparkwire.catalogue import FORMATS

PACKAGES = [
    "sparkwire",
    *(f"sparkwire.{name}" for name in ("avro", "databus", "datahub", "debezium", "kafka", "registry")),
]


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_lists_the_public_names(name: str) -> None:
    module = import_module(name)
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_documented(name: str) -> None:
    """Each name of a stub is there, with a text of its own."""
    module = import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        text = value.__doc__ or ""
        assert public == "FUNCTIONS" or (len(text) > 20 and text != type(value).__doc__), public


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_imports_no_module_that_its_stub_names(name: str) -> None:
    """The stub has an import for each public name, as type checkers read it. The package itself imports none of them."""
    module = import_module(name)
    path = Path(module.__file__ or "")
    imports = [
        node
        for node in ast.parse(path.with_name(lazy.STUB).read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
    ]
    names = [(alias.name, alias.asname) for node in imports for alias in node.names]
    written_here = {"samples"} & set(module.__all__)
    assert [(public, public) for public in module.__all__ if public not in written_here] == sorted(
        set(names) - {("Path", None)}
    )
    eager = {node.module for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)}
    assert eager == {"sparkwire.base.lazy"} | ({"__future__", "pathlib"} if name == "sparkwire" else set())


def test_a_loader_that_reads_no_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pkgutil, "get_data", lambda *_: None)
    with pytest.raises(ImportError, match=r"'sparkwire\.kafka' needs its file __init__\.pyi"):
        lazy.lazy_names("sparkwire.kafka")


def test_no_module_imports_through_a_stub() -> None:
    """The import rules do not see stubs. So only users import through them."""
    public = {(name, one) for name in PACKAGES for one in import_module(name).__all__}
    public -= {(name, one) for name, one in public if isinstance(getattr(import_module(name), one), ModuleType)}
    imports = {
        (node.module, alias.name)
        for path in Path(sparkwire.__path__[0]).rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert len(imports) > 1000
    assert imports & public == set()


def test_help_begins_with_what_users_call() -> None:
    text = pydoc.plain(pydoc.render_doc(sparkwire))
    assert "\nCLASSES\n" not in text
    first = re.findall(r"^    (\w+)\(", text.partition("\nFUNCTIONS\n")[2], re.MULTILINE)
    assert first[:3] == ["changes", "changes_by_table", "current"]
    for format in FORMATS:
        assert format.title.partition(" ")[0] in text.partition("\nPACKAGE CONTENTS\n")[0]


@pytest.mark.process
def test_a_module_hides_no_function() -> None:
    """After any import, a public name stays the same object; a module of that name does not replace it."""
    script = """
import importlib, pkgutil, sparkwire
for module in pkgutil.walk_packages(sparkwire.__path__, "sparkwire."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
modules = {"avro", "databus", "datahub", "debezium", "errors", "kafka", "registry", "sql_functions"}
for package in (sparkwire, *(getattr(sparkwire, name) for name in sorted(modules - {"errors", "sql_functions"}))):
    for name in package.__all__:
        is_module = type(getattr(package, name)).__name__ == "module"
        assert is_module == (package is sparkwire and name in modules), (package, name)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_misspelled_name() -> None:
    with pytest.raises(KeyError, match="no function is named 'dbus_opcod'; did you mean 'dbus_opcode'\\?"):
        FUNCTIONS["dbus_opcod"]
    with pytest.raises(KeyError, match="no function is named 'x'"):
        FUNCTIONS["x"]
    assert "dbus_opcod" not in FUNCTIONS
    assert FUNCTIONS.get("dbus_opcod") is None


def test_there_is_no_other_attribute() -> None:
    assert isinstance(sparkwire.sql_functions, ModuleType)
    with pytest.raises(AttributeError, match="module 'sparkwire' has no attribute 'kafkaa'"):
        sparkwire.kafkaa  # type: ignore[attr-defined]  # noqa: B018


SAME_IN_EVERY_WING = {"__init__", "explain", "functions", "layout"}
"""modules that each format's folder has"""


def test_one_name_is_one_thing() -> None:
    """The name of a class is unique in the whole package, and that of a module in its wing."""
    package = Path(sparkwire.__path__[0])
    modules = [path for path in package.rglob("*.py") if path.stem not in SAME_IN_EVERY_WING]
    classes = [
        node.name
        for path in modules
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    wings = Counter((path.relative_to(package).parts[0], path.stem) for path in modules if path.parent != package)
    in_spark = {("spark", name) for name in ("debezium", "datahub", "avro", "kafka")}
    assert [name for name, count in (wings + Counter(classes)).items() if count > 1 and name not in in_spark] == []


def public_functions() -> dict[str, Any]:
    """The public functions by their names."""
    modules = [
        import_module(f"sparkwire{name}")
        for name in ("", ".avro", ".databus", ".datahub", ".debezium", ".kafka", ".registry")
    ]
    functions = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    registry = import_module("sparkwire.avro").Registry
    return functions | {f"Registry.{name}": getattr(registry, name) for name in ("of", "http", "topic")}


def test_every_public_function_has_an_example() -> None:
    public = public_functions()
    assert len(public) > 20
    assert [name for name, function in public.items() if "Examples\n" not in (inspect.getdoc(function) or "")] == []


COLUMNS_OF_CHANGES = {"order", "partition", "topic"}
"""parameters of `changes` that name a column of a DataFrame; elsewhere they are values"""


def test_a_parameter_has_one_default() -> None:
    """A parameter has the same default in all functions."""
    defaults: dict[str, set[Any]] = {}
    for of, function in public_functions().items():
        for name, parameter in inspect.signature(function).parameters.items():
            if of == "sparkwire.changes" and name in COLUMNS_OF_CHANGES:
                continue
            if parameter.default is not inspect.Parameter.empty:
                defaults.setdefault(name, set()).add(parameter.default)
    assert (defaults["wire_format"], defaults["keep_payload"]) == ({"confluent"}, {True})
    assert {name: some for name, some in defaults.items() if len(some) > 1} == {}


def test_options_and_arguments_are_spelt_apart() -> None:
    """Options have Spark's spelling, arguments Python's. If a function has both, its arguments have one word."""
    with_options = 0
    for name, function in public_functions().items():
        given = inspect.signature(function).parameters.values()
        names = [parameter.name for parameter in given]
        assert [one for one in names if one != one.lower()] == [], name
        if name != "sparkwire.changes_by_table" and any(one.kind is one.VAR_KEYWORD for one in given):
            with_options += 1
            assert [one for one in names if "_" in one] == [], name
    assert with_options == 4


BYTES = {"event", "stream", "message", "log", "file", "blob", "value", "key"}
"""the argument names for bytes: one name for each kind"""


def test_the_bytes_of_a_kind_have_one_name() -> None:
    taken = {argument.name for one in FUNCTIONS.values() for argument in one.arguments if argument.sql == "BINARY"}
    assert taken == BYTES
