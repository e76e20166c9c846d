"""Kafka's own message definitions, for `message_reader`.

`tools.kafka_definitions` makes `definitions.json` from Kafka's jars. A message consists of the fields of its definition that its
version has, in order:

    string   i16 size, UTF-8              flexible: unsigned varint size + 1
    bytes    i32 size, bytes              flexible: the same
    array    i32 count, item item …       flexible: unsigned varint count + 1
    tags     at the end of a message and of each structure, if flexible: unsigned varint count, then for each tag its number
             (unsigned varint), size (unsigned varint) and bytes. The reader skips tags that the definition does not have

A size or count of -1 (flexible: 0) means null, if the definition allows it. A nullable structure begins with an i8: 1, or -1 for
null (in a tag: 0). Bytes after the message have no effect.

Source: apache/kafka, `generator/src/main/java/org/apache/kafka/message/FieldSpec.java`, and KIP-482.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, Self

_LAST: Final = 1 << 15  # beyond every version


class DefinedField(NamedTuple):
    """A field of a message, or of a structure in one."""

    name: str
    """name as in Kafka's JSON"""
    type: str
    """type; for an array, type of its items"""
    is_array: bool
    versions: range
    """versions that have the field"""
    nullable: range
    tagged: range
    """versions that have the field as a tag"""
    tag: int
    fields: tuple[DefinedField, ...]
    """fields of a structure"""

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Self:
        tagged = _versions(raw.get("taggedVersions", "none"))
        return cls(
            name=raw["name"][0].lower() + raw["name"][1:],
            type=raw["type"].removeprefix("[]"),
            is_array=raw["type"].startswith("[]"),
            versions=_versions(raw["versions"]) if "versions" in raw else tagged,
            nullable=_versions(raw.get("nullableVersions", "none")),
            tagged=tagged,
            tag=raw.get("tag", -1),
            fields=tuple(map(cls.of, raw.get("fields", ()))),
        )


class Message(NamedTuple):
    """The definition of a message: its topic, the numbers that identify it there, and its fields."""

    topic: str
    part: str
    """``key``, ``value``, ``control``, ``embedded``"""
    number: int
    """Kafka's apiKey; the type of a control record"""
    name: str
    versions: range
    flexible: range
    fields: tuple[DefinedField, ...]


def _versions(text: str) -> range:
    low, _, high = text.removesuffix("+").partition("-")
    if low == "none":
        return range(0)
    return range(int(low), _LAST if text.endswith("+") else int(high or low) + 1)


@cache
def messages() -> tuple[Message, ...]:
    """The messages of all internal topics. If two have the same number and version, the first is the newer one."""
    text = (files(__package__) / "definitions.json").read_text(encoding="utf-8")
    return tuple(
        Message(
            raw["topic"],
            raw["part"],
            raw["number"],
            raw["name"],
            _versions(raw["validVersions"]),
            _versions(raw["flexibleVersions"]),
            tuple(map(DefinedField.of, raw["fields"])),
        )
        for raw in json.loads(text)
    )
