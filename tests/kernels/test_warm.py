"""``warm`` compiles the kernels of all public functions."""

from __future__ import annotations

import json
import re

import pytest

from tests.support import warm_calls
from tests.support.child import run_python

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def requested() -> dict[str, list[str]]:
    """The kernels that `warm` requests, and those that each call requests beside them."""
    document: dict[str, list[str]] = json.loads(run_python("-m", "tests.support.warm_calls"))
    return document


@pytest.mark.parametrize("name", warm_calls.CALLS)
def test_a_call_needs_no_other_kernel(requested: dict[str, list[str]], name: str) -> None:
    assert [re.sub(r"(-[0-9a-f]{16}){2}\.bin$", "", kernel) for kernel in requested[name]] == []


def test_requests_are_recorded(requested: dict[str, list[str]]) -> None:
    assert len(requested["warm"]) > 100
    assert any(kernel.startswith("sparkwire.databus.") for kernel in requested["warm"])
