"""Debezium's functions: the cases."""

from __future__ import annotations

import pytest

from tests.support.arrow import ask
from tests.support.cases import Case
from tests.support.debezium_cases import cases


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_case(case: Case) -> None:
    assert {name: ask(name, [case.data])[0] for name in case.answers} == case.answers
