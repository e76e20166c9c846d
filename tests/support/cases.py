"""Cases: bytes with their origin, and the results that functions must return for them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple


class Case(NamedTuple):
    """Bytes with known results.

    Timestamps are integers [us since epoch]; all other results are those of ``Array.to_pylist``.
    """

    name: str
    origin: str
    data: bytes
    answers: Mapping[str, Any]
    """the results by function name"""


def cases_of(format: str) -> list[Case]:
    """The cases of ``tests/support/<format>_cases.py``."""
    cases: list[Case] = importlib.import_module(f"tests.support.{format}_cases").cases()
    return cases
