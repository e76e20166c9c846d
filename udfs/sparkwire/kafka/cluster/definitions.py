"""Kafka's own message definitions, and the programs that they become.

`definitions.json` is made by `tools.kafka_definitions` out of Kafka's jars. A message is fields in the order of its definition,
of which a version has some:

    string   i16 size, UTF-8              flexible: unsigned varint size + 1
    bytes    i32 size, bytes              flexible: the same
    array    i32 count, item item …       flexible: unsigned varint count + 1
    tags     at the end of a message and of each structure, if flexible: unsigned varint count, for each unsigned varint tag,
             unsigned varint size, bytes. A tag that the definition does not have is passed over

A size or count of -1 (flexible: 0) is null, where the definition allows it; a structure that may be null has an i8 before it,
1, and -1 for null, in a tag 0. Bytes after the message are ignored.

Each version becomes steps that one kernel runs (`definition_machine`): a new definition compiles nothing.

Source: apache/kafka, `generator/src/main/java/org/apache/kafka/message/FieldSpec.java`, and KIP-482.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, Self

import numpy as np

from sparkwire.kafka.cluster import definition_machine as machine
from sparkwire.kafka.cluster.definition_machine import MessageProgram, Step
from sparkwire.kernels.gather import texts_of

_LAST: Final = 1 << 15  # beyond every version
_TYPES: Final = {
    "bool": machine.BOOL,
    "int8": machine.I8,
    "int16": machine.I16,
    "uint16": machine.U16,
    "int32": machine.I32,
    "int64": machine.I64,
    "float64": machine.F64,
    "uuid": machine.UUID,
    "string": machine.STRING,
    "bytes": machine.BYTES,
}


class DefinedField(NamedTuple):
    """A field of a message, or of a structure in one."""

    name: str
    """as in Kafka's JSON"""
    type: str
    """of its items, where it is an array"""
    is_array: bool
    versions: range
    """that have it"""
    nullable: range
    tagged: range
    """the versions that have it as a tag"""
    tag: int
    fields: tuple[DefinedField, ...]
    """of a structure"""

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
    """A message: where it is, what names it there, and its fields."""

    topic: str
    part: str
    """``key``, ``value``, ``control``, ``embedded``"""
    number: int
    """Kafka's apiKey; for a control record its type"""
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
    """All that internal topics hold; where two have the same number and version, the first one is the newer."""
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


class Compiler:
    """Steps of messages, one version after the other.

    Parameters
    ----------
    slots
        the fields that are kept beside the JSON, by their path (``transactionPartitions.topic``), and where
    emitted
        the path of the numbers of which each is an item
    """

    def __init__(self, slots: Mapping[str, int], emitted: str = "") -> None:
        self._slots = slots
        self._emitted = emitted
        self._steps: list[list[int]] = []
        self._texts: dict[str, int] = {}

    def program(self) -> MessageProgram:
        return MessageProgram(np.array(self._steps, np.int64), texts_of([*self._texts, ""]))

    def add(self, message: Message, version: int) -> int:
        """The step at which this version of the message begins."""
        first = len(self._steps)
        self._structure(message.fields, version, version in message.flexible, "", "")
        self._step(machine.END)
        return first

    def _step(
        self, what: int, text: str = "", path: str = "", *, nullable: bool = False, flexible: bool = False
    ) -> int:
        """One step more; its place."""
        named = self._texts.setdefault(f'"{text}":', len(self._texts)) if text else -1
        self._steps.append([what, self._slots.get(path, -1), nullable, flexible, 0, named, 0])
        return len(self._steps) - 1

    def _jump(self, step: int) -> None:
        """``step`` goes on after the last one, where it has nothing to do in between."""
        self._steps[step][Step.JUMP] = len(self._steps)

    def _structure(
        self, fields: Iterable[DefinedField], version: int, flexible: bool, text: str, path: str, nullable: bool = False
    ) -> None:
        opened = self._step(machine.OPEN, text, nullable=nullable)
        there = [field for field in fields if version in field.versions]
        for field in there:
            if version not in field.tagged:
                self._field(field, version, flexible, path)
        if flexible:
            # What is not kept of a message whose JSON nobody asks for is passed over, whatever it is.
            known = [] if self._slots else [field for field in there if version in field.tagged]
            self._tags(known, version, path)
        self._step(machine.CLOSE)
        self._jump(opened)

    def _tags(self, fields: list[DefinedField], version: int, path: str) -> None:
        self._step(machine.TAGS)
        next_tag = self._step(machine.TAG)
        self._steps[next_tag][Step.VALUE] = len(fields)
        cases = [self._step(machine.CASE) for _ in fields]
        for field, case in zip(fields, cases, strict=True):
            self._steps[case][Step.VALUE] = field.tag
            self._jump(case)
            self._field(field, version, True, path)
            self._steps[self._step(machine.TAG_END)][Step.JUMP] = next_tag
        self._jump(next_tag)

    def _field(self, field: DefinedField, version: int, flexible: bool, above: str) -> None:
        path = f"{above}{field.name}"
        nullable = version in field.nullable
        if not field.is_array:
            self._value(field, version, flexible, field.name, path, nullable)
            return
        loop = self._step(machine.LOOP, field.name, path, nullable=nullable, flexible=flexible)
        self._value(field, version, flexible, "", path, False)
        if path == self._emitted:
            self._step(machine.EMIT)
        self._steps[self._step(machine.NEXT)][Step.JUMP] = loop + 1
        self._jump(loop)

    def _value(self, field: DefinedField, version: int, flexible: bool, text: str, path: str, nullable: bool) -> None:
        if field.type in _TYPES:
            self._step(_TYPES[field.type], text, path, nullable=nullable, flexible=flexible)
        else:
            self._structure(field.fields, version, flexible, text, f"{path}.", nullable)


class Programs(NamedTuple):
    """All versions of some messages, and where each begins."""

    program: MessageProgram
    first: np.ndarray[Any, np.dtype[np.int64]]
    """(parts, numbers, versions): the step, -1 for what is not defined"""

    @classmethod
    def of(
        cls,
        parts: Iterable[tuple[str, str]],
        slots: Mapping[str, int] | None = None,
        emitted: str = "",
        wanted: Callable[[Message], bool] = lambda message: True,
    ) -> Self:
        """The messages of ``parts``, pairs of topic and part."""
        order = {part: place for place, part in enumerate(parts)}
        chosen = [message for message in messages() if (message.topic, message.part) in order and wanted(message)]
        numbers, versions = (
            max(message.number for message in chosen) + 1,
            max(message.versions[-1] for message in chosen) + 1,
        )
        first = np.full((len(order), numbers, versions), -1, np.int64)
        compiler = Compiler(slots or {}, emitted)
        for message in chosen:
            for version in message.versions:
                place = order[message.topic, message.part], message.number, version
                if first[place] < 0:
                    first[place] = compiler.add(message, version)
        return cls(compiler.program(), first)

    def which(self, part: Any, number: Any, version: Any) -> Any:
        """The step at which each message begins, -1 where nothing defines it."""
        _, numbers, versions = self.first.shape
        known = (number >= 0) & (number < numbers) & (version >= 0) & (version < versions) & (part >= 0)
        return np.where(known, self.first[part, np.where(known, number, 0), np.where(known, version, 0)], -1)
