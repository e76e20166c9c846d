"""A slow and simple oracle for Databus's JSON: the expected results of `dbus_to_json`.

It shares no code with the package. It joins the results of `oracles.databus.decode` by the rules of the format page. Tests
compare it with Databus's own texts in tests/data/databus.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from tests.support.oracles import databus

REPLACED = "\ufffd"


def to_json(event: bytes, encoding: str = "JSON") -> str | None:
    """The JSON of one event; None if a required field cannot be read."""
    result = databus.decode(event)
    if result["version"] not in (0, 2):
        return None
    fields = (v1_fields if result["version"] == 0 else v2_fields)(event, result, encoding)
    if fields is None or any(value is None for value in fields.values()):
        return None
    return "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}\n"


def v1_fields(event: bytes, result: dict[str, Any], encoding: str) -> dict[str, str | None]:
    fields: dict[str, str | None] = {}
    if result["opcode"]:
        fields["opcode"] = quoted(result["opcode"])
    if result["key_type"] == "LONG":
        fields["key"] = number(result["key_long"])
    else:
        fields["keyBytes"] = base64_text(result["key_bytes"])
    fields["sequence"] = number(result["sequence"])
    fields["logicalPartitionId"] = number(result["logical_partition_id"])
    fields["physicalPartitionId"] = number(result["physical_partition_id"])
    fields["timestampInNanos"] = number(result["timestamp_nanos"])
    fields["srcId"] = number(result["src_id"])
    fields["schemaId"] = base64_text(result["schema_id"])
    fields["valueEnc"] = quoted(encoding)
    fields["isReplicated"] = boolean(result["is_replicated"])
    if result["src_id"] == -2:
        fields["endOfPeriod"] = "true"
    if result["is_trace"]:
        fields["traceEnabled"] = "true"
    fields["value"] = value_text(result["value"], encoding)
    return fields


def v2_fields(event: bytes, result: dict[str, Any], encoding: str) -> dict[str, str | None] | None:
    key_type, attributes = result["key_type"], result["attributes"]
    if key_type is None or attributes & 3 == 3:
        return None  # Java throws an exception
    fields = {
        "version": "2",
        "magicByte": number(databus.integer(event, 1, 4, result["byte_order"])),
        "headerCrc": number(result["header_crc"]),
        "bodyCrc": number(result["value_crc"]),
        "opcode": quoted(result["opcode"]) if result["opcode"] else "null",
        "keyType": quoted({"LONG": "Number", "BYTES": "String", "SCHEMA": "Schema"}[key_type]),
    }
    if key_type == "LONG":
        fields["key"] = number(result["key_long"])
    elif key_type == "BYTES":
        fields["keyBytes"] = base64_text(result["key_bytes"])
    else:
        fields["key"] = schema_key(result)
    has_metadata, has_payload = bool(attributes & 1 << 6), bool(attributes & 1 << 7)
    fields |= {
        "valueEnc": quoted(encoding),
        "isReplicated": boolean(result["is_replicated"]),
        "traceOn": boolean(result["is_trace"]),
        "hasPayloadMetadata": boolean(has_metadata),
        "hasPayload": boolean(has_payload),
        "timestampInNanos": number(result["timestamp_nanos"]),
        "srcId": number(result["src_id"]),
        "logicalPartitionId": number(result["logical_partition_id"]),
        "physicalPartitionId": number(result["physical_partition_id"]),
        "sequence": number(result["sequence"]),
    }
    if has_metadata:
        fields |= part("metadata", result["metadata"], result, "metadata_schema", encoding)
    if has_payload:
        fields |= part("payload", result["value"], result, "schema", encoding)
    return fields


def part(name: str, data: bytes | None, fields: dict[str, Any], schema: str, encoding: str) -> dict[str, str | None]:
    return {
        f"{name}Length": None if data is None else str(len(data)),
        f"{name}SchemaVersion": number(fields[f"{schema}_version"]),
        f"{name}SchemaId": base64_text(fields[f"{schema}_id"]),
        f"{name}Value": value_text(data, encoding),
    }


def schema_key(fields: dict[str, Any]) -> str | None:
    """The result of `DbusEventPart.toString`: with at most 64 bytes of the data."""
    data, schema_id = fields["key_bytes"], fields["key_schema_id"]
    if data is None or schema_id is None:
        return None
    version = fields["key_schema_version"]
    return quoted(f"Length={len(data)};SchemaVersion={version};SchemaId=0x{schema_id.hex()};Value=0x{data[:64].hex()}")


def number(value: int | None) -> str | None:
    return None if value is None else str(value)


def boolean(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def value_text(data: bytes | None, encoding: str) -> str | None:
    if data is None:
        return None
    return base64_text(data) if encoding == "JSON" else quoted(java_string(data))


def base64_text(data: bytes | None) -> str | None:
    """Base64 with a line break after every 57 bytes, also after the last ones."""
    if data is None:
        return None
    lines = [data[start : start + 57] for start in range(0, len(data), 57)]
    return quoted("".join(base64.b64encode(line).decode() + "\n" * (len(line) == 57) for line in lines))


def java_string(data: bytes) -> str:
    """`new String(data, UTF_8)`: like Python, but an encoded surrogate, even if truncated, is one malformed character."""
    return REPLACED.join(text.decode("utf-8", "replace") for text in re.split(rb"\xed[\xa0-\xbf][\x80-\xbf]?", data))


SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def quoted(text: str) -> str:
    return '"' + "".join(escaped(character) for character in text) + '"'


def escaped(character: str) -> str:
    code = ord(character)
    if character in SHORT:
        return SHORT[character]
    if code < 0x20:
        return f"\\u{code:04X}"
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"
    return character
