"""Recognize what Debezium writes in place of a value that the database did not provide.

``unavailable.value.placeholder`` is a text, or bytes in hexadecimal after ``hex:``. By the type of the column, it becomes

    text, json, xml, bytes in hexadecimal mode    the text; its bytes in hexadecimal
    bytes                                         its bytes in Base64
    an array of texts, of bytes, of UUIDs         an array of one item: the text, its bytes in Base64, the UUID of its bytes
    an array of numbers, decimals or dates        one item for each byte of the text, with the number of the byte. A decimal may
                                                  be a number, a text, bytes in Base64, or {scale, value} with such bytes
    hstore                                        a map of one entry: the text to the text; or this map as JSON text
    point, geometry, geography                    fixed places: (-99999999, -99999999), (179.999999, 89.999999)

Sources: Debezium 3.3, and the repository of Debezium up to October 2026 for arrays of decimals and for places.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import bools_of
from sparkwire.json import values
from sparkwire.json.grammar import ARRAY, OBJECT
from sparkwire.json.types import Type
from sparkwire.json.values import Values
from sparkwire.kernels import Bools

_HEX: Final = "hex:"
_PLACE: Final = -99_999_999
_PLACES: Final = (
    "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==",
    "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==",
)
"""the places of geometry and geography, as WKB in Base64"""
_POWERS: Final = tuple(Decimal(10) ** scale for scale in range(39))
_FEW: Final = 3
"""so few numbers may be the placeholder's by chance"""
_WIDEST: Final = 64
"""the most bytes of JSON for each byte of the placeholder, with white space and digits of a decimal"""


class Placeholder(NamedTuple):
    """The forms of a placeholder."""

    text: str
    data: bytes

    @property
    def texts(self) -> tuple[str, ...]:
        """The forms of a column of texts."""
        as_map = json.dumps({self.text: self.text}, separators=(",", ":"), ensure_ascii=False)
        return self.text, self.data.hex(), as_map

    @property
    def in_base64(self) -> tuple[str, ...]:
        return tuple(encode(self.data).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode))

    def is_list(self, items: list[Any]) -> bool:
        """Whether the items of an array are those of the placeholder."""
        if len(items) == 1 and _bytes_of(items[0]) in (self.text, *self.in_base64, str(uuid_of(self.data))):
            return True
        return len(items) == len(self.data) and (self._are_bytes(_number, items) or self._are_bytes(_unscaled, items))

    def _are_bytes(self, read: Callable[[Any], Decimal | None], items: list[Any]) -> bool:
        """Whether the items are the numbers of the bytes, each times the same power of ten: the scale may be unknown."""
        numbers = [read(item) for item in items]
        if not self.data or None in numbers:
            return False
        powers = _POWERS if len(self.data) > _FEW else _POWERS[:1]
        return any(numbers == [byte * power for byte in self.data] for power in powers)

    def is_object(self, members: dict[str, Any]) -> bool:
        """Whether the members of a map or STRUCT are those of the placeholder."""
        if members == {self.text: self.text}:
            return True
        if _bytes_of(members) in self.in_base64:
            return True
        is_place = members.get("x") == members.get("y") == _PLACE
        return is_place or members.get("wkb") in _PLACES


def _number(item: Any) -> Decimal | None:
    """A number, its text, or a decimal of scale 0 in Base64 of its number."""
    if isinstance(item, int | Decimal):
        return Decimal(item)
    return Decimal(item) if isinstance(item, str) and item.replace(".", "", 1).isdecimal() else None


def _bytes_of(item: Any) -> Any:
    """The bytes in Base64 of {scale, value}; any other item unchanged."""
    return item["value"] if isinstance(item, dict) and item.keys() == {"scale", "value"} else item


def _unscaled(item: Any) -> Decimal | None:
    """The number in bytes in Base64, without its scale."""
    text = _bytes_of(item)
    try:
        return Decimal(int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True))
    except (TypeError, ValueError):  # another value than bytes
        return None


def uuid_of(data: bytes) -> uuid.UUID:
    """The result of Java's ``UUID.nameUUIDFromBytes``."""
    digest = bytearray(hashlib.md5(data, usedforsecurity=False).digest())
    digest[6] = digest[6] & 0x0F | 0x30
    digest[8] = digest[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(digest))


@text_cache(64)
def placeholder_of(setting: str) -> Placeholder:
    """The placeholder of a connector's setting. Raises ValueError if its hexadecimal digits are invalid."""
    if not setting.startswith(_HEX):
        return Placeholder(setting, setting.encode())
    data = bytes.fromhex(setting.removeprefix(_HEX))
    return Placeholder(data.decode("utf-8", "replace"), data)


def unavailable(placeholder: Placeholder, value: Values, type: Type) -> Bools:
    """Which values of a column are the placeholder."""
    rows = np.zeros(len(value.kinds), np.bool_)
    forms = placeholder.in_base64 if type.kind == "bytes" else (*placeholder.texts, *placeholder.in_base64)
    sizes = {size for text in forms for size in _sizes(text)}
    _mark(rows, value, value.are_texts & np.isin(value.sizes, list(sizes)), lambda text: text in forms)
    most = _WIDEST * (len(placeholder.data) + 2)
    arrays = (value.kinds == ARRAY) & (value.sizes <= most) & np.isin(value.counts, (1, len(placeholder.data)))
    _mark(rows, value, arrays, lambda text: placeholder.is_list(_parsed(text)))
    objects = (value.kinds == OBJECT) & (value.sizes <= most) & (value.counts <= len(("x", "y", "wkb", "srid")))
    _mark(rows, value, objects, lambda text: placeholder.is_object(_parsed(text)))
    return rows


def _mark(rows: Bools, value: Values, likely: Bools, is_placeholder: Callable[[str], bool]) -> None:
    """Mark the likely rows whose text is the placeholder."""
    places = np.flatnonzero(likely)
    if len(places):
        encoded = values.texts(value.at(places)).dictionary_encode()
        found = pa.array([is_placeholder(text) for text in encoded.dictionary.to_pylist()], pa.bool_())
        rows[places] = bools_of(found.take(encoded.indices))


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _sizes(text: str) -> tuple[int, ...]:
    """The possible sizes of a placeholder in JSON [bytes]: plain, and with every quote escaped."""
    size = len(text.encode())
    return size, size + text.count('"') + text.count("\\")
