"""The golden Databus events as cases: bytes that Databus wrote, with Databus's own results.

Every result is a field of Java's record of the event, not of an oracle. If a name has different meanings in sparkwire and
Java, a comment beside the field describes the difference.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tests.support import DATA as DATA_FOLDER
from tests.support.cases import Case

DATA = DATA_FOLDER / "databus"
EVENTS = ("events_v1_be", "events_v1_le", "events_v2_be", "events_v2_le")
DAMAGED = ("corrupt_v1", "corrupt_v2")
STREAMS = ("window_stream", "window_stream_v2_le")


class Damaged(NamedTuple):
    """Corrupt bytes, with Java's verdict."""

    name: str
    data: bytes
    java: dict[str, Any]


def cases() -> list[Case]:
    """All events of both versions and both byte orders, with the results of all accessors."""
    return [
        Case(f"{file} {java['i']}: {java['name']}", f"tests/data/databus/{file}.bin.xz", event, answers(java, event))
        for file in EVENTS
        for java, event in golden_events(file)
    ]


def golden_events(file: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Java's record of each event, and the event."""
    stream = golden_bytes(file)
    for java in golden_lines(file):
        if "position" in java:  # the summary of a stream has no position
            yield java, stream[java["position"] : java["position"] + java["size"]]


@cache
def damaged(file: str) -> tuple[Damaged, ...]:
    """The corrupt events of one version, in the file's order."""
    container = golden_bytes(file)
    records, position = [], 0
    for java in golden_lines(file):
        size = int.from_bytes(container[position : position + 4], "big")
        data = container[position + 4 : position + 4 + size]
        assert len(data) == size == java["len"]
        records.append(Damaged(f"{file} {java['i']}: {java['base']}, {java['order']}: {java['name']}", data, java))
        position += 4 + size
    assert position == len(container)
    return tuple(records)


@cache
def golden_bytes(file: str) -> bytes:
    return lzma.decompress((DATA / f"{file}.bin.xz").read_bytes())


@cache
def golden_lines(file: str) -> tuple[dict[str, Any], ...]:
    text = lzma.decompress((DATA / f"{file}.jsonl.xz").read_bytes()).decode("utf-8")
    return tuple(json.loads(line) for line in text.split("\n") if line)


def answers(java: dict[str, Any], event: bytes) -> dict[str, Any]:
    """The expected results of all accessors, from Java's record. All golden events are valid."""
    assert (java["scanEvent"], java["isValid"], java["size"]) == ("OK", True, len(event))
    by_name = {
        "version": java["version"],
        "byte_order": java["order"],
        "header_crc": java["headerCrc"],
        "value_crc": java["bodyCrc"],
        "header_crc_computed": java["headerCrc"],
        "value_crc_computed": java["calculatedValueCrc"],
        "header_crc_valid": java["scanHeader"] == "OK",
        "value_crc_valid": java["bodyCrc"] == java["calculatedValueCrc"],
        "length": java["size"],
        "attributes": java["attributes"],
        "opcode": java["opcode"],
        "is_trace": java["isTraceEnabled"],
        "is_replicated": java["isExtReplicatedEvent"],
        "sequence": java["sequence"],
        "physical_partition_id": java["physicalPartitionId"],
        "logical_partition_id": java["logicalPartitionId"],
        "timestamp_nanos": java["timestampInNanos"],
        "timestamp": java["timestampInNanos"] // 1000,
        "status": java["scanEvent"],
        "error": None,
        "is_valid": java["isValid"],
        **source(java),
        **key(java),
        **payload(java, event),
        **schema_and_data(java.get("metadataPart"), "metadata", "metadata_schema"),
    }
    return {f"dbus_{name}": answer for name, answer in by_name.items()}


def source(java: dict[str, Any]) -> dict[str, Any]:
    """The source id, and the results that depend on it.

    Java uses the id truncated to 16 bits, sparkwire the complete id. They differ only for ids beyond 16 bits.
    """
    src_id = java["sourceId"]
    types = {
        "END_OF_PERIOD": java["isEndOfPeriodMarker"],
        "CHECKPOINT": java["isCheckpointMessage"],
        "SCN_REGRESS": java["isSCNRegressMessage"],
        "ERROR": java["isErrorEvent"],
        "PRIVATE": java["isPrivateControlMessage"],
    }
    named = [name for name, is_one in types.items() if is_one]
    if src_id != java["srcId"]:
        event_type = "DATA" if src_id > 0 else "PRIVATE"
    elif named:
        [event_type] = named
    else:
        event_type = "DATA" if src_id > 0 else "SYSTEM"
    source_range = "DATA" if src_id > 0 else "PRIVATE_SYSTEM" if event_type == "PRIVATE" else "GLOBAL_SYSTEM"
    return {
        "src_id": src_id,
        "is_end_of_period": event_type == "END_OF_PERIOD",
        "event_type": event_type,
        "source_range": source_range,
    }


def key(java: dict[str, Any]) -> dict[str, Any]:
    types = {"LONG": java["isKeyNumber"], "BYTES": java["isKeyString"], "SCHEMA": java["isKeySchema"]}
    [key_type] = [name for name, is_one in types.items() if is_one]
    key_part = java["keyPart"] if key_type == "SCHEMA" else None
    data = None
    if key_type != "LONG":
        data = base64.b64decode(key_part["data"] if key_part else java["keyBytes"])
    return {
        "key_type": key_type,
        "key": str(java["key"]) if data is None else utf8(data),
        "key_long": java["key"] if data is None else None,
        "key_bytes": data,
        "key_schema_id": bytes.fromhex(key_part["digest"]) if key_part else None,
        "key_schema_version": key_part["version"] if key_part else None,
    }


def payload(java: dict[str, Any], event: bytes) -> dict[str, Any]:
    """The value and its schema. A V2 event without a payload part has neither; Java reports length 0 and version 0."""
    if java["version"] == 2 and java["payloadPart"] is None:
        return dict.fromkeys(("value", "value_size", "schema_id", "schema_version"))
    return {
        "value": value(java, event),
        "value_size": java["valueLength"],
        "schema_id": bytes.fromhex(java["schemaId"]),
        "schema_version": java["schemaVersion"],
    }


def value(java: dict[str, Any], event: bytes) -> bytes:
    """The payload. For a long payload, the golden data have only a digest; then the payload is the end of the event."""
    if "valueSha256" not in java:
        return base64.b64decode(java["value"])
    tail = event[-java["valueLength"] :]
    assert hashlib.sha256(tail).hexdigest() == java["valueSha256"]
    return tail


def schema_and_data(part: dict[str, Any] | None, data: str, schema: str) -> dict[str, Any]:
    return {
        data: base64.b64decode(part["data"]) if part else None,
        f"{schema}_id": bytes.fromhex(part["digest"]) if part else None,
        f"{schema}_version": part["version"] if part else None,
    }


def utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
