"""``dbus_from_json``: encode a V1 event, big-endian, from the JSON that Databus writes.

It accepts the JSON that Databus's own import accepts (`DbusEventSerializable.appendToEventBuffer`) and reads it in the same way.
It converts numbers like Java's `longValue` and `shortValue`, which truncate (`"key":5.9` is 5, `"srcId":70000` is 4464). Only
the first 16 bytes of a schema id count. `endOfPeriod` is a boolean or a string. Unknown names have no effect. Any other text is
NULL.

It differs from Databus's import in these points:

- It reads `opcode`, `isReplicated`, `keyBytes` and `physicalPartitionId`. Databus ignores them: it uses UPSERT, false and its
  buffer's own partition, and throws for an event with `keyBytes`. If one of these fields is invalid, the event is NULL. Without
  `opcode`, the event has no opcode.
- `JSON_PLAIN` means `JSON_PLAIN_VALUE`.
- An event with `endOfPeriod` keeps its fields; Databus writes a new end-of-period event. Missing fields are as in Databus: key 0,
  physical partition -1, logical partition 0, no schema id, no value.
- Invalid Base64 is NULL; Databus makes it an empty value. A value that looks gzipped is not decompressed.
- Text after the JSON object is an error; Databus's parser ignores it.
"""

from __future__ import annotations

import binascii
import json
from typing import Any, Final, NoReturn, cast

import pyarrow as pa

from sparkwire.databus import layout
from sparkwire.databus.to_event import to_event
from sparkwire.databus.to_json import ENCODINGS, PLAIN

_FIELDS: Final = pa.struct(
    [
        ("opcode", pa.string()),
        ("is_trace", pa.bool_()),
        ("is_replicated", pa.bool_()),
        ("key_long", pa.int64()),
        ("key_bytes", pa.binary()),
        ("sequence", pa.int64()),
        ("physical_partition_id", pa.int64()),
        ("logical_partition_id", pa.int64()),
        ("timestamp_nanos", pa.int64()),
        ("src_id", pa.int64()),
        ("schema_id", pa.binary()),
        ("value", pa.binary()),
    ]
)
_SPACE: Final = str.maketrans("", "", " \t\r\n")
_LONG: Final = 64  # [bits]
_INT: Final = 32
_SHORT: Final = 16


class InvalidEventError(ValueError):
    """The reason why a text is not an event."""


def from_json(column: pa.Array[Any]) -> pa.Array[Any]:
    """BINARY: the event of each text, NULL if the text is not an event."""
    texts = column.cast(pa.large_binary())
    fields = [None if text is None else _read(text) for text in texts.to_pylist()]
    return to_event(cast("pa.StructArray", pa.array(fields, _FIELDS)))


def _read(text: bytes) -> dict[str, Any] | None:
    """The fields of an event, None if the text is not an event."""
    try:
        return _fields(json.loads(text.decode(), parse_constant=_no_constant))
    except (ValueError, RecursionError):  # not UTF-8, not JSON, nested too deeply, not Base64, or an invalid field
        return None


def _no_constant(name: str) -> NoReturn:
    raise InvalidEventError(f"{name} is not JSON")


def _fields(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise InvalidEventError("not an object")
    end = _ends_period(document)
    fields: dict[str, Any] = {
        "opcode": _opcode(document),
        "is_trace": _flag(document, "traceEnabled"),
        "is_replicated": _flag(document, "isReplicated"),
        "sequence": _number(document, "sequence", _LONG),
        "timestamp_nanos": _number(document, "timestampInNanos", _LONG),
        "physical_partition_id": _number(document, "physicalPartitionId", _SHORT, -1 if end else None),
        "logical_partition_id": _number(document, "logicalPartitionId", _SHORT, 0 if end else None),
        "src_id": layout.END_OF_PERIOD if end else _number(document, "srcId", _SHORT),
    }
    if document.get("key") is None and document.get("keyBytes") is not None:
        fields["key_bytes"] = _base64(document["keyBytes"])
    else:
        fields["key_long"] = _number(document, "key", _LONG, 0 if end else None)
    if not end or document.get("schemaId") is not None:
        fields["schema_id"] = _schema_id(document)
    if not end or document.get("value") is not None:
        fields["value"] = _value(document)
    return fields


def _ends_period(document: dict[str, Any]) -> bool:
    value = document.get("endOfPeriod", False)
    if isinstance(value, str):
        return value.lower() == "true"
    return _flag(document, "endOfPeriod")


def _flag(document: dict[str, Any], name: str) -> bool:
    value = document.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidEventError(f"{name} is not a boolean")
    return bool(value)


def _opcode(document: dict[str, Any]) -> str | None:
    opcode: str | None = document.get("opcode")
    if opcode is not None and opcode not in layout.OPCODES:
        raise InvalidEventError("an unknown opcode")
    return opcode


def _number(document: dict[str, Any], name: str, bits: int, absent: int | None = None) -> int:
    """A number, converted as by Java's `longValue` (64 bits) or `shortValue` (16); ``absent`` if it is missing."""
    value = document.get(name, absent)
    value = absent if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidEventError(f"{name} is not a number")
    # A fraction is truncated. A float that is too large becomes the largest integer; an integer keeps its lowest bits.
    whole = value if isinstance(value, int) else _saturated(value, max(bits, _INT))
    return _wrapped(whole, bits)


def _saturated(value: float, bits: int) -> int:
    bound = 1 << (bits - 1)
    if value >= bound:
        return bound - 1
    return -bound if value <= -bound else int(value)


def _wrapped(value: int, bits: int) -> int:
    bound = 1 << (bits - 1)
    return (value + bound) % (2 * bound) - bound


def _schema_id(document: dict[str, Any]) -> bytes:
    schema_id = _base64(document.get("schemaId"))
    if len(schema_id) < layout.MD5_SIZE:
        raise InvalidEventError("a schema id that is too short")
    return schema_id[: layout.MD5_SIZE]


def _value(document: dict[str, Any]) -> bytes:
    encoding = document.get("valueEnc")
    if not isinstance(encoding, str) or encoding not in ENCODINGS:
        raise InvalidEventError("an unknown encoding of the value")
    value = document.get("value")
    if ENCODINGS[encoding] != PLAIN:
        return _base64(value)
    if not isinstance(value, str):
        raise InvalidEventError("a value that is not a string")
    return value.encode("utf-8", "replace")  # a lone surrogate becomes "?", as in Java


def _base64(text: Any) -> bytes:
    """Bytes from Base64, without its white space."""
    if not isinstance(text, str):
        raise InvalidEventError("Base64 that is not a string")
    return binascii.a2b_base64(text.translate(_SPACE), strict_mode=True)
