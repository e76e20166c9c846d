"""Databus events written from fields, and as JSON, compared with loops over struct, zlib, json and base64."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from benchmarks.databus import SIZE, events
from benchmarks.report import Row, below, faster
from benchmarks.timing import amount, interleave
from sparkwire import FUNCTIONS

EVENTS = amount(200_000, trial=2000)
BATCH = 10_000  # rows that Spark passes at once
LOOPED = amount(5_000, trial=500)  # events that the loops write; their time is scaled
FIELDS = (
    *("opcode", "sequence", "physical_partition_id", "logical_partition_id", "timestamp_nanos", "src_id"),
    *("schema_id", "key_long", "value"),
)
_HEADER = struct.Struct(">bIiHqhhqh16sIq")
_COVERED = struct.Struct(">iHqhhqh16sIq")


def in_batches(function: str, column: pa.Array[Any]) -> int:
    answer: Callable[[pa.Array[Any]], pa.Array[Any]] = FUNCTIONS[function].decode
    return sum(len(answer(column[first : first + BATCH])) for first in range(0, len(column), BATCH))


def packed(fields: Any) -> pa.Array[Any]:
    """The same by struct and zlib, V1 with a LONG key."""
    made = []
    for opcode, sequence, physical, logical, nanos, src_id, schema_id, key, value in tuples(fields):
        crc = zlib.crc32(value, 0xFFFFFFFF) ^ 0xFFFFFFFF
        attributes = 1 if opcode == "UPSERT" else 2
        stored = (61 + len(value), attributes, sequence, physical, logical, nanos, src_id, schema_id, crc, key)
        header_crc = zlib.crc32(_COVERED.pack(*stored), 0xFFFFFFFF) ^ 0xFFFFFFFF
        made.append(_HEADER.pack(0, header_crc, *stored) + value)
    return pa.array(made, pa.binary())


def tuples(fields: Any) -> Iterator[tuple[Any, ...]]:
    """Python values, row by row."""
    return zip(*(field.to_pylist() for field in fields.flatten()), strict=True)


def dumped(fields: Any) -> pa.Array[Any]:
    """The JSON by json and base64, without Databus's line breaks."""
    made = []
    for opcode, sequence, physical, logical, nanos, src_id, schema_id, key, value in tuples(fields):
        text = {
            "opcode": opcode,
            "key": key,
            "sequence": sequence,
            "logicalPartitionId": logical,
            "physicalPartitionId": physical,
            "timestampInNanos": nanos,
            "srcId": src_id,
            "schemaId": base64.b64encode(schema_id).decode(),
            "valueEnc": "JSON",
            "isReplicated": False,
            "value": base64.b64encode(value).decode(),
        }
        made.append(json.dumps(text) + "\n")
    return pa.array(made, pa.string())


def rows() -> list[Row]:
    """The claims about writing Databus events."""
    column = events(EVENTS)
    everything: Any = FUNCTIONS["dbus_event"].decode(column)
    fields = pa.StructArray.from_arrays([everything.field(name) for name in FIELDS], list(FIELDS))
    some = fields[:LOOPED]
    assert FUNCTIONS["to_dbus_event"].decode(fields).equals(column)
    assert packed(some).equals(column[:LOOPED])
    times = interleave(
        {
            "events": lambda: in_batches("to_dbus_event", fields),
            "all fields": lambda: in_batches("to_dbus_event", everything),
            "struct": lambda: packed(some),
            "json": lambda: in_batches("dbus_to_json", column),
            "dumps": lambda: dumped(some),
        }
    )
    ours = {name: times[name].per(EVENTS) for name in ("events", "all fields", "json")}
    theirs = {name: times[name].per(LOOPED) for name in ("struct", "dumps")}
    return [
        faster(f"fields to events of {SIZE} B", ours["events"], "struct + zlib", theirs["struct"], 8, 1, "events"),
        below("the same, one event", ours["events"].per(1e-9), "ns", 200),
        below("from all fields of dbus_event", ours["all fields"].per(1e-9), "ns", 200),
        faster("events to Databus's JSON", ours["json"], "json + base64", theirs["dumps"], 8, 1, "events"),
    ]
