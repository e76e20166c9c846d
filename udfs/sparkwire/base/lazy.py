"""Load public names on first use, as PEP 562 allows: the stub of a package says which module has each.

So the ``__init__`` of a format needs no Spark, and importing one format does not load all of them. Type checkers and editors read
the same stub, ``__init__.pyi``.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

STUB = "__init__.pyi"


def lazy_names(
    package: str, *, packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package, and its ``__all__``.

    Parameters
    ----------
    package
        the name of the package, whose stub imports each public name from its module
    packages
        the names that are packages in the package, too. Their import comes first: a later one would hide what the stub names
    """
    modules = _modules(package)
    for name in packages:
        import_module(f"{package}.{name}")
        delattr(sys.modules[package], name)

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] == package:  # the name stands for a module in the package
            return import_module(f"{package}.{name}")
        return getattr(import_module(modules[name]), name)

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, names, sorted(modules)


def _modules(package: str) -> dict[str, str]:
    """The module from which a stub imports each name."""
    stub = pkgutil.get_data(package, STUB)
    if stub is None:
        raise ImportError(f"{package!r} needs its file {STUB}, which its loader cannot read: install the wheel")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname: str(node.module) for node in imports for alias in node.names if alias.asname}
