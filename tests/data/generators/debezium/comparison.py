"""Compare two runs of the scenario, without the parts that depend on time."""

from __future__ import annotations

import base64
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import fastavro

Files = Mapping[str, bytes]

OF_TIME = {
    *("ts_ms", "ts_us", "ts_ns", "lsn", "sequence", "txId", "xmin"),
    *("pos", "gtid", "thread"),
    *("__lsn", "__source_ts_ms", "__source_pos"),
}
"""fields of a message or of its source, and headers, that differ in each run, like the id of a transaction"""
REDELIVERED = "redelivery-json"
"""the variant with what a connector sends again after a crash"""
_IDENTITY = re.compile(r"(?<=LogicalDecodingMessageId)@[0-9a-f]+$")
"""the text of a Java object for which the engine has no name"""
_SIGNALS = ".dbz_signal"
_TRANSACTIONS = "shop.transaction"
_ALTERED = ".evolving"
"""the schemas of this topic are not compared, because Debezium may query the default of a new column too late"""


def differences(stored: Files, made: Files, variants: Iterable[str]) -> Iterator[str]:
    """A sentence for each difference."""
    for variant in variants:
        old, new = (_by_topic(files, variant) for files in (stored, made))
        for topic in sorted({*old, *new}):
            compare = _compare_redelivered if variant == REDELIVERED else _compare
            yield from compare(f"{variant}, {topic}", old[topic], new[topic], "message")
    for name in sorted(name for name in stored if name.startswith("truth/point")):
        old_rows, new_rows = (_truth(files[name]) for files in (stored, made))
        yield from _compare(name, old_rows, new_rows, "line")


def _compare(place: str, old: list[Any], new: list[Any], what: str) -> Iterator[str]:
    if len(old) != len(new):
        yield f"{place}: stored are {len(old)} {what}s, made were {len(new)}"
    for number, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            yield f"{place}, {what} {number}: stored is {json.dumps(one)}, made was {json.dumps(other)}"
            return


def _compare_redelivered(place: str, old: list[Any], new: list[Any], what: str) -> Iterator[str]:
    """As `_compare`, but one of both may repeat more messages.

    The connector repeats what it has sent since its last flush of offsets, and that depends on time.
    """
    fewer, more = sorted((old, new), key=len)
    start = _common(fewer, more)
    end = start + len(more) - len(fewer)
    repeated = more[start:end]
    if fewer[start:] != more[end:] or any(message not in more[:start] for message in repeated):
        yield from _compare(place, old, new, what)


def _common(one: list[Any], other: list[Any]) -> int:
    """The length of the common start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (left, right) in pairs if left != right), min(len(one), len(other)))


def _by_topic(files: Files, variant: str) -> dict[str, list[Any]]:
    """A variant's messages without the parts that depend on time. Messages that exist only because of time are left out.

    These are heartbeats, the rows with which an incremental snapshot marks its windows, and the rows that it reads.
    """
    schemas = {int(id): json.loads(text) for id, text in json.loads(files["schemas.json"]).items()}
    parsed = {id: fastavro.parse_schema(schema) for id, schema in schemas.items()}
    by_name: dict[str, list[Any]] = defaultdict(list)
    for line in map(json.loads, files[f"messages.{variant}.jsonl"].splitlines()):
        topic = line["topic"]
        if "heartbeat" in topic:
            continue
        key, value = (_content(line[name], variant, schemas, parsed) for name in ("key_b64", "value_b64"))
        if topic.endswith(_SIGNALS) and "sig-1" not in json.dumps(key):
            continue
        if _is_incremental(value):
            continue
        headers = [(header["key"], header["value_b64"]) for header in line["headers"] if header["key"] not in OF_TIME]
        if topic.endswith(_ALTERED):
            key, value = (side.get("payload", side) if side else side for side in (key, value))
        if topic == _TRANSACTIONS:
            key = None
            if _is_of_signals(value):
                by_name[topic].pop()  # its beginning
                continue
        by_name[topic].append([key, _without_time(value), headers])
    return by_name


def _content(text: str | None, variant: str, schemas: Mapping[int, Any], parsed: Mapping[int, Any]) -> Any:
    """The JSON value of bytes in Base64; for Avro, the schema and the datum."""
    if text is None:
        return None
    data = base64.b64decode(text)
    if not variant.endswith("avro"):
        return json.loads(data)
    id = int.from_bytes(data[1:5], "big")
    datum = fastavro.schemaless_reader(io.BytesIO(data[5:]), parsed[id], None)
    return {"schema": schemas[id], "payload": json.loads(json.dumps(datum, default=repr))}


def _is_of_signals(value: Any) -> bool:
    """Whether a message, with or without its schema, is the end of a transaction that changed only signals."""
    changed = value.get("payload", value).get("data_collections") or []
    return bool(changed) and all(table["data_collection"].endswith(_SIGNALS) for table in changed)


def _is_incremental(value: Any) -> bool:
    """Whether an envelope, with or without its schema, is from an incremental snapshot."""
    sides = [value, value.get("payload")] if isinstance(value, dict) else []
    sources = [side["source"] for side in sides if isinstance(side, dict) and isinstance(side.get("source"), dict)]
    return any(source.get("snapshot") == "incremental" for source in sources)


def _without_time(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_time(item) for item in value]
    if isinstance(value, str):
        return _IDENTITY.sub("", value)
    if not isinstance(value, dict):
        return value
    return {name: None if _is_of_time(name, item, value) else _without_time(item) for name, item in value.items()}


def _is_of_time(name: str, item: Any, among: Mapping[str, Any]) -> bool:
    return (name in OF_TIME and not isinstance(item, dict)) or (
        name == "id" and ("total_order" in among or "event_count" in among)
    )


def _truth(lines: bytes) -> list[Any]:
    """The lines of a point without offsets, which depend on signals, and without signals except the scenario's."""
    document = list(map(json.loads, lines.splitlines()))
    rows: Iterable[Any] = (line for line in document if not line.get("table", "").endswith(".dbz_signal"))
    return [{name: value for name, value in line.items() if name != "next_offsets"} for line in rows]
