"""Read messages by Kafka's own definitions, field by field, as plain Python values.

`tools.kafka_definitions` makes `definitions.json` from Kafka's jars. A message consists of the fields of its definition that its
version has, in order:

    string   i16 size, UTF-8              flexible: unsigned varint size + 1
    bytes    i32 size, bytes              flexible: the same
    array    i32 count, item item …       flexible: unsigned varint count + 1
    tags     at the end of a message and of each structure, if flexible: unsigned varint count, then for each tag its number
             (unsigned varint), size (unsigned varint) and bytes. The reader skips tags that the definition does not have

A size or count of -1 (flexible: 0) means null, if the definition allows it. A nullable structure begins with an i8: 1, or -1 for
null (in a tag: 0). Bytes after the message have no effect.

Values are those of Kafka's own JSON converters, which its dump prints. Bytes are Base64, and a UUID is the text that Kafka
prints. Fields are in the order of the definition, except tags, which come last. Every iteration of a loop consumes bytes, so that
a wrong count ends with the bytes.

Source: apache/kafka, `generator/src/main/java/org/apache/kafka/message/FieldSpec.java`, and KIP-482.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, Self

from sparkwire.base.error_codes import BAD_LENGTH, OK, TOO_LARGE, TRUNCATED

_LAST: Final = 1 << 15  # beyond every version
MOST_COPIED: Final = 1 << 26
"""largest total size of the texts of one message's items; each item has its own copy of the text [bytes]"""
_VARINT_BITS: Final = 35
_FORMATS: Final = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "bool": "b", "float64": "d"}


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


class MessageError(Exception):
    """The error of a message, as a code of `base.error_codes`."""

    def __init__(self, error: int) -> None:
        self.error = error


class Selection(NamedTuple):
    """The selected fields of a message."""

    values: dict[str, Any]
    """values by path (``transactionPartitions.topic``): numbers, the bytes of texts, the number of an array's items"""
    items: list[tuple[bytes | None, int]]
    """numbers of an array, each with the text of the structure around it"""


class Cursor:
    """The position of the reader in a message."""

    __slots__ = ("copied", "data", "end", "pos", "selection")

    def __init__(self, data: memoryview, pos: int, end: int) -> None:
        self.data, self.pos, self.end = data, pos, end
        self.selection = Selection({}, [])
        self.copied = 0

    def take(self, size: int) -> int:
        """Advance by ``size`` bytes and return their start."""
        pos = self.pos
        if size > self.end - pos:
            raise MessageError(TRUNCATED)
        self.pos = pos + size
        return pos

    def varint(self) -> int:
        """Read an unsigned varint of at most five bytes, of which 32 bits count."""
        value = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self.data[self.take(1)]
            value |= (byte & 127) << shift
            if byte < 128:
                return value & 0xFFFFFFFF
        raise MessageError(TRUNCATED)

    def size(self, least: int, width: struct.Struct | None) -> int:
        """Read a size or count, -1 for null. Without a width, it is a varint."""
        size = self.varint() - 1 if width is None else width.unpack_from(self.data, self.take(width.size))[0]
        if size < least:
            raise MessageError(BAD_LENGTH)
        return int(size)


Read = Callable[[Cursor], Any]
_INT8, _INT16, _INT32 = struct.Struct(">b"), struct.Struct(">h"), struct.Struct(">i")


class MessageVersion:
    """A version of a message.

    Parameters
    ----------
    paths
        the fields to select
    emitted
        the paths of a text and of an array of numbers, each of which becomes an item
    """

    def __init__(self, message: Message, version: int, paths: frozenset[str], emitted: tuple[str, str] | None) -> None:
        self._version, self._flexible = version, version in message.flexible
        self._paths, self._emitted = paths, emitted
        self._read = self._structure(message.fields, "", False)

    def read(self, cursor: Cursor) -> tuple[Any, int]:
        """The message as JSON values, and its error. After an error, the fields selected so far remain."""
        try:
            return self._read(cursor), OK
        except MessageError as wrong:
            return None, wrong.error

    def _structure(self, fields: Iterable[DefinedField], path: str, nullable: bool) -> Read:
        of_version = [field for field in fields if self._version in field.versions]
        plain = [(f.name, self._field(f, path)) for f in of_version if self._version not in f.tagged]
        # A selection of a few fields never includes tags.
        tagged = (
            {}
            if self._paths
            else {f.tag: (f.name, self._field(f, path)) for f in of_version if self._version in f.tagged}
        )
        flexible = self._flexible

        def read(cursor: Cursor) -> dict[str, Any] | None:
            if nullable and _INT8.unpack_from(cursor.data, cursor.take(1))[0] <= 0:
                return None
            values = {name: value(cursor) for name, value in plain}
            if flexible:
                _read_tags(cursor, tagged, values)
            return values

        return read

    def _field(self, field: DefinedField, above: str) -> Read:
        path, nullable = f"{above}{field.name}", self._version in field.nullable
        if not field.is_array:
            return self._value(field, path, nullable)
        item, least, width = self._value(field, path, False), -1 if nullable else 0, self._width(_INT32)
        is_selected, emitted = path in self._paths, self._emitted
        emits = emitted is not None and path == emitted[1]

        def read(cursor: Cursor) -> list[Any] | None:
            count = cursor.size(least, width)
            if count < 0:
                return None
            if is_selected:
                cursor.selection.values[path] = count
            structures = []
            for _ in range(count):
                structures.append(item(cursor))
                if emits:
                    _emit(cursor, emitted, structures[-1])
            return structures

        return read

    def _width(self, width: struct.Struct) -> struct.Struct | None:
        return None if self._flexible else width

    def _value(self, field: DefinedField, path: str, nullable: bool) -> Read:
        selected = path if path in self._paths else ""
        if field.type in ("string", "bytes"):
            least, is_text = -1 if nullable else 0, field.type == "string"
            return _sized(self._width(_INT16 if is_text else _INT32), least, selected, is_text)
        if field.type == "uuid":
            return _uuid
        if field.type in _FORMATS:
            return _fixed(field.type, selected)
        return self._structure(field.fields, f"{path}.", nullable)


def _fixed(type: str, path: str) -> Read:
    """A reader of a number, which selects the number if it has a path."""
    form = struct.Struct(">" + _FORMATS[type])
    size, unpack = form.size, form.unpack_from

    def read(cursor: Cursor) -> Any:
        value = unpack(cursor.data, cursor.take(size))[0]
        if path:
            cursor.selection.values[path] = value
        return value

    if type == "bool":
        return lambda cursor: read(cursor) != 0
    return (lambda cursor: _finite(read(cursor))) if type == "float64" else read


def _finite(number: float) -> float | str:
    """A number, or its text if it is not finite: JSON has no such numbers, and Kafka writes texts."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"


def _uuid(cursor: Cursor) -> str:
    """Kafka's text of a UUID: URL-safe Base64 without padding."""
    pos = cursor.take(16)
    return base64.urlsafe_b64encode(cursor.data[pos : pos + 16]).decode()[:22]


def _sized(width: struct.Struct | None, least: int, path: str, is_text: bool) -> Read:
    """A reader of text or bytes, which selects them if they have a path."""

    def read(cursor: Cursor) -> str | None:
        size = cursor.size(least, width)
        pos = cursor.take(max(size, 0))
        content = None if size < 0 else bytes(cursor.data[pos : pos + size])
        if path:
            cursor.selection.values[path] = content
        if content is None:
            return None
        return content.decode("utf-8", "replace") if is_text else base64.b64encode(content).decode()

    return read


def _read_tags(cursor: Cursor, tagged: Mapping[int, tuple[str, Read]], values: dict[str, Any]) -> None:
    """Read the tags that the definition has and skip the others; each tag must have its stated size."""
    for _ in range(cursor.varint()):
        tag, size = cursor.varint(), cursor.varint()
        if size > cursor.end - cursor.pos:
            raise MessageError(TRUNCATED)
        end = cursor.pos + size
        if tag in tagged:
            name, value = tagged[tag]
            values[name] = value(cursor)
            if cursor.pos != end:
                raise MessageError(BAD_LENGTH)
        else:
            cursor.pos = end


def _emit(cursor: Cursor, emitted: tuple[str, str] | None, number: int) -> None:
    """Add an item with the last text and number."""
    text = cursor.selection.values.get(emitted[0]) if emitted else None
    cursor.copied += len(text or b"")
    if cursor.copied > MOST_COPIED:
        raise MessageError(TOO_LARGE)
    cursor.selection.items.append((text, number))
