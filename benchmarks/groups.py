"""The groups of claims, in the order of the report."""

from __future__ import annotations

import importlib
import pkgutil

import benchmarks
from benchmarks.report import Row
from sparkwire.catalogue import FORMATS

_MODULES = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__))
# A format's benchmarks are the modules whose names begin with its name.
_OF_FORMATS = tuple(name for format in FORMATS for name in _MODULES if name.split("_")[0] == format.name)

GROUPS = (
    "kernels",
    *_OF_FORMATS,
    "attacks",
    "files",
    "files_scale",
    "tiers",
    "way_back",
    "sql",
    "changes",
    "mysql_changes",
    "pandas_interface",
    "cold",
    "ready",
)


def rows_of(group: str) -> list[Row]:
    """The claims of one group, measured."""
    rows: list[Row] = importlib.import_module(f"benchmarks.{group}").rows()
    return rows
