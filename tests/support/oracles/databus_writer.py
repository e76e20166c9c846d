"""A simple writer for Databus events, by docs/formats/databus.md, for tests without Databus's programs.

It shares no code with the package. Its fields are those of the oracle, so `write(decode(event))` returns the event.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from tests.support.oracles.databus import MAGIC, crc

LONG_KEY, BYTES_KEY, SCHEMA_KEY = 1, 2, 3
"""bits 2 and 3 of the attributes, in V2"""
_METADATA, PAYLOAD = 64, 128
_KINDS = {16: 0, 4: 1}
"""the digest types, by size: MD5, CRC-32"""

Event = Mapping[str, Any]


def write(event: Event) -> bytes:
    """A V1 or V2 event with its checksums; the attributes select its parts."""
    order = "<" if event["byte_order"] == "LITTLE_ENDIAN" else ">"
    return _v1(event, order) if event["version"] == 0 else _v2(event, order)


def _v1(event: Event, order: str) -> bytes:
    body: bytes = event["value"]
    if event["attributes"] & 8:
        head, body = struct.pack(order + "i", len(event["key_bytes"])), event["key_bytes"] + body
    else:
        head = struct.pack(order + "q", event["key_long"])
    names = ("attributes", "sequence", "physical_partition_id", "logical_partition_id", "timestamp_nanos", "src_id")
    fields = [event[name] for name in names]
    length = 53 + len(head) + len(body)
    covered = struct.pack(order + "iHqhhqh16sI", length, *fields, event["schema_id"], crc(body)) + head
    return b"\0" + struct.pack(order + "I", crc(covered)) + covered + body


def _v2(event: Event, order: str) -> bytes:
    attributes = event["attributes"]
    kind = attributes >> 2 & 3
    key = b""
    if kind == LONG_KEY:
        key = struct.pack(order + "q", event["key_long"])
    elif kind == BYTES_KEY:
        key = struct.pack(order + "i", len(event["key_bytes"])) + event["key_bytes"]
    elif kind == SCHEMA_KEY:
        key = _part(event, "key_bytes", "key_schema", order)
    body = _part(event, "metadata", "metadata_schema", order) if attributes & _METADATA else b""
    body += _part(event, "value", "schema", order) if attributes & PAYLOAD else b""
    header_length = 45 + len(key)
    names = ("timestamp_nanos", "src_id", "physical_partition_id", "sequence")
    fields = [event[name] for name in names]
    covered = struct.pack(order + "IiHqihq", crc(body), header_length + len(body), attributes, *fields) + key
    return b"\2" + struct.pack(order + "IiI", MAGIC, header_length, crc(covered)) + covered + body


def _part(event: Event, data: str, schema: str, order: str) -> bytes:
    digest: bytes = event[f"{schema}_id"]
    content: bytes = event[data]
    attributes = event[f"{schema}_version"] << 2 | _KINDS[len(digest)]
    return struct.pack(order + "ih", len(content), attributes) + digest + content
