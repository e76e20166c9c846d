"""Compare two runs of the scenario, without the parts that depend on time."""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from tests.data.generators.comparison import difference, differing_fields

_OF_TIME = re.compile(r'(?<="es":)\d{13}|(?<="ts":)\d{13}|(?<="id":)\d+(?=,"isDdl":)')
"""The values of three members. In a text, JSON escapes the quotes."""


def differing_messages(stored: Sequence[str], made: Sequence[str]) -> list[str]:
    """A sentence for the first difference in each topic. The arguments are the lines of a variant.

    The comparison leaves out:

    - the time of the change (``es``), of the message (``ts``), and of sending (``time``);
    - the number of Canal's batch (``id``), because Canal ends a batch when no event arrives for a while;
    - the order between topics, because a thread for each topic sends the messages of a batch.

    It compares all other bytes of a message, and its partition and offset. A message has the rows of one event of the binlog,
    so batches do not change messages. Each run has the same transactions, so it has the same ``gtid`` too.
    """
    old, new = (_by_topic(lines) for lines in (stored, made))
    return [
        sentence for topic in sorted({*old, *new}) for sentence in _compare(topic, old[topic], new[topic], "message")
    ]


def differing_points(place: str, stored: Sequence[str], made: Sequence[str], variants: Collection[str]) -> list[str]:
    """A sentence for the first difference between the lines of a point.

    It compares the position in the binlog, the number of messages and the offsets of these variants, and all tables.
    """
    old, new = ([_of_variants(json.loads(line), variants) for line in lines] for lines in (stored, made))
    return list(_compare(place, old, new, "line"))


def without_time(value: str) -> str:
    """A message without the parts that depend on time."""
    return _OF_TIME.sub("0", value)


def _by_topic(lines: Sequence[str]) -> dict[str, list[Any]]:
    by_name: dict[str, list[Any]] = defaultdict(list)
    for line in map(json.loads, lines):
        value = without_time(base64.b64decode(line["value_b64"]).decode())
        own = {name: line[name] for name in ("partition", "offset", "key_b64")}
        by_name[line["topic"]].append(own | {"value": json.loads(value), "text": value})
    return by_name


def _of_variants(line: dict[str, Any], variants: Collection[str]) -> dict[str, Any]:
    """A line of a point, without other variants."""
    if line["kind"] != "point":
        return line
    return line | {
        name: {variant: item for variant, item in line[name].items() if variant in variants}
        for name in ("messages", "next_offsets")
    }


def _compare(place: str, old: Sequence[Any], new: Sequence[Any], what: str) -> Iterator[str]:
    if len(old) != len(new):
        yield difference(f"{place}, number of {what}s", len(old), len(new))
    for number, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            yield next(differing_fields(f"{place}, {what} {number}", one, other))
            return
