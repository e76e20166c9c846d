"""The DataHub oracle parses JSON itself, to return the fields before corruption. These tests compare it with `json`."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tests.support import datahub_cases, datahub_messages
from tests.support.oracles import datahub as oracle


def test_cases() -> None:
    for case in datahub_cases.cases():
        answers = oracle.answers(case.data)
        assert {name: answers[name] for name in case.answers} == case.answers, case.name


@pytest.mark.parametrize("seed", range(20))
def test_validity_is_that_of_json(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        blob = datahub_messages.message(random)
        for data in (blob, datahub_messages.mutated(random, blob)):
            document, intact = oracle.read(data)
            expected = standard(data)
            assert intact == isinstance(expected, dict), data
            if intact:
                assert value_of(document) == expected, data


def standard(data: bytes) -> Any:
    """The result of `json`, with numbers as text; None for a text that `json` or RFC 8259 does not accept."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=reject, object_hook=mended)
    except ValueError:
        return None


class Number(str):
    """A number as written."""

    __slots__ = ()


def reject(word: str) -> None:
    raise ValueError(word)


def mended(pairs: dict[str, Any]) -> dict[str, Any]:
    """Lone surrogates become U+FFFD; if two keys become equal, the last counts."""
    return {oracle.joined(key): mend(value) for key, value in pairs.items()}


def mend(value: Any) -> Any:
    if isinstance(value, list):
        return [mend(item) for item in value]
    return value if isinstance(value, Number) or not isinstance(value, str) else oracle.joined(value)


def value_of(value: oracle.Value) -> Any:
    if value.kind == "object":
        return {key: value_of(inner) for key, inner in value.content.items()}
    if value.kind == "array":
        return [value_of(inner) for inner in value.content]
    if value.kind == "string":
        return value.content
    return Number(value.text) if value.kind == "number" else {"true": True, "false": False, "null": None}[value.kind]
