"""A case is data: bytes, where they come from, and what the functions must return for them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple


class Case(NamedTuple):
    """Bytes with known results.

    Timestamps are integers [us since epoch]; everything else is what ``Array.to_pylist`` gives.
    """

    name: str
    origin: str
    data: bytes
    answers: Mapping[str, Any]
    """by function name"""


def cases_of(format: str) -> list[Case]:
    """The cases of ``tests/support/<format>_cases.py``."""
    cases: list[Case] = importlib.import_module(f"tests.support.{format}_cases").cases()
    return cases
