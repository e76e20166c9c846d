"""The comparison of `make golden` with Canal's messages finds all real differences, and no others."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.data.generators.canal.comparison import differing_messages, differing_points, without_time
from tests.data.generators.canal.variants import VARIANTS
from tests.support import cdc_golden as golden

POINT = "truth/point03.jsonl"
UPDATE = 330
"""the number of a message with rows"""


@pytest.mark.parametrize("system", ["canal", "canal-redelivery"])
def test_only_three_members_are_of_time(system: str) -> None:
    variants = VARIANTS if system == "canal" else ("plain", "gtid")
    for variant in variants:
        for record in golden.records(system, variant):
            assert record.value is not None
            value = json.loads(record.value)
            other = json.loads(without_time(record.value.decode()))
            assert other == value | {"es": 0, "id": 0, "ts": 0}


def test_differences_of_time_are_no_differences() -> None:
    stored = golden.texts("canal", "messages.flat-hash.jsonl")
    made = [changed(line, es=1764200000000, ts=1764200000001, id=7) for line in stored]
    by_topic = sorted(made, key=lambda line: str(json.loads(line)["topic"]))
    assert by_topic != made
    assert differing_messages(stored, by_topic) == []


@pytest.mark.parametrize(
    "member", [{"gtid": "0-4711-9"}, {"sql": "?"}, {"type": "?"}, {"data": []}, {"new": None}, {"sqlType": {"id": 5}}]
)
def test_any_other_member_is_a_difference(member: dict[str, Any]) -> None:
    stored = golden.texts("canal", "messages.flat-plain.jsonl")
    made = [*stored[:UPDATE], changed(stored[UPDATE], **member), *stored[UPDATE + 1 :]]
    (sentence,) = differing_messages(stored, made)
    assert sentence.startswith(f"example, message {UPDATE}.value.{next(iter(member))}")


def test_order_bytes_and_number_of_messages_are_compared() -> None:
    stored = golden.texts("canal", "messages.flat-plain.jsonl")
    line = json.loads(stored[UPDATE])
    text = base64.b64decode(line["value_b64"]).replace(b'{"data"', b'{ "data"')
    spaced = json.dumps(line | {"value_b64": base64.b64encode(text).decode()})
    assert ".text: " in differing_messages(stored, [*stored[:UPDATE], spaced, *stored[UPDATE + 1 :]])[0]
    assert differing_messages(stored, stored[:-1]) == ["example, number of messages: stored is 454, made was 453"]
    other_order = [*stored[:UPDATE], stored[UPDATE + 1], stored[UPDATE], *stored[UPDATE + 2 :]]
    assert differing_messages(stored, other_order)


def test_points_are_compared_without_other_variants() -> None:
    stored = golden.texts("canal", POINT)
    about = json.loads(stored[0])
    of_variants = {variant: about["messages"][variant] for variant in VARIANTS}
    made = [json.dumps(about | {"messages": of_variants}), *stored[1:]]
    assert differing_points(POINT, stored, made, VARIANTS) == []
    fewer = [json.dumps(about | {"messages": of_variants | {"flat": 1}}), *stored[1:]]
    assert len(differing_points(POINT, stored, fewer, VARIANTS)) == 1
    other = [line.replace('"raven', '"robin') for line in stored]
    assert len(differing_points(POINT, stored, other, VARIANTS)) == 1
    assert len(differing_points(POINT, stored, stored[:-1], VARIANTS)) == 1


def changed(line: str, **members: Any) -> str:
    """A line with other members of its message."""
    record = json.loads(line)
    value = json.loads(base64.b64decode(record["value_b64"])) | members
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(record | {"value_b64": base64.b64encode(text.encode()).decode()})
