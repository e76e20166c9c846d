"""Load public names on first use, as PEP 562 allows.

So the ``__init__`` of a format needs no Spark, and importing one format does not load all of them. A table says which module has
each name. Type checkers do not run it: they read the same imports under ``if TYPE_CHECKING``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str], *, packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package
        the name of the package
    modules
        the module of each public name. If this is a module in the package with that name, the name stands for the module
    packages
        the names that are packages in the package, too. Their import comes first: a later one would hide what the table names
    """
    for name in packages:
        import_module(f"{package}.{name}")
        delattr(sys.modules[package], name)

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name])
        return module if modules[name] == f"{package}.{name}" else getattr(module, name)

    def names() -> list[str]:
        return list(sys.modules[package].__all__)

    return get, names
