"""The golden Databus events as cases of `dbus_to_json`, with Databus's own JSON of each event."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.cases import Case
from tests.support.databus_cases import EVENTS, STREAMS, golden_events

JAVA_NAMES = {"JSON": "json", "JSON_PLAIN_VALUE": "jsonPlain"}


class Golden(NamedTuple):
    """An event, with Java's JSON of it."""

    name: str
    event: bytes
    java: dict[str, Any]

    def is_text(self, text: str | None, encoding: str) -> bool:
        """Whether Java wrote this text. For long texts, the golden data have a digest."""
        name = JAVA_NAMES[encoding]
        if name in self.java:
            return bool(text == self.java[name])
        return text is not None and hashlib.sha256(text.encode()).hexdigest() == self.java[f"{name}Sha256"]


def golden(files: tuple[str, ...] = EVENTS + STREAMS) -> Iterator[Golden]:
    for file in files:
        for java, event in golden_events(file):
            yield Golden(f"{file} {java['i']}: {java.get('name', '')}", event, java)


def cases() -> list[Case]:
    """All events whose complete text is in the golden data, in the default encoding."""
    return [
        Case(name, "tests/data/databus", event, {"dbus_to_json": java["json"]})
        for name, event, java in golden(EVENTS)
        if "json" in java
    ]
