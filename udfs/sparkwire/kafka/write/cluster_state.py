"""Read the state of a cluster from the metadata log in a directory of `log.dirs`, without Spark.

LOGDIR/__cluster_metadata-0/00000000000000000209-0000000002.checkpoint     the newest snapshot
                            00000000000000000166.log                       the changes since then

Every broker has a copy of this log. It ends at the first unreadable record, where a broker truncates it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from sparkwire.kafka.cluster.internal_json import decode_internal_record
from sparkwire.kafka.cluster.metadata import ClusterState, MetadataChange
from sparkwire.kafka.files import kafka_log

TOPIC: Final = "__cluster_metadata"
_SNAPSHOT: Final = re.compile(r"(\d{20})-\d{10}\.checkpoint$")


class _Record(NamedTuple):
    file: str
    offset: int
    type: str | None
    value: str | None
    is_valid: bool


def state_of(path: str) -> ClusterState | None:
    """The state of the cluster according to the metadata in a directory; None if there is no metadata."""
    folder = f"{path.rstrip('/')}/{TOPIC}-0"
    log, snapshots = _records(folder), _records(f"{folder}/*.checkpoint")
    if log is None and snapshots is None:
        return None
    begin, changes = 0, list[MetadataChange]()
    by_file: dict[str, list[_Record]] = {}
    for record in snapshots or []:
        by_file.setdefault(record.file, []).append(record)
    for file, records in by_file.items():
        name = _SNAPSHOT.search(file)
        is_whole = records[-1].type == "SnapshotFooterRecord" and all(record.is_valid for record in records)
        if name and is_whole and int(name[1]) >= begin:
            begin, changes = int(name[1]), list(_changes(records))
    after = [record for record in log or [] if record.offset >= begin]
    broken = next((k for k, record in enumerate(after) if not record.is_valid), len(after))
    return ClusterState().apply([*changes, *_changes(after[:broken])])


def _records(path: str) -> list[_Record] | None:
    query = kafka_log.query({"path": path, "columns": "file, offset, key, value, error", "controlRecords": "true"})
    try:
        tasks = kafka_log.plan(query)
    except (FileNotFoundError, ValueError):  # there is no metadata log
        return None
    records = []
    for task in tasks:
        for batch in kafka_log.read(query, task):
            file, offset, key, value, corrupt = (batch.column(k) for k in range(5))
            decoded = decode_internal_record(pa.array([TOPIC] * len(batch)), key, value)
            types, values, errors = (decoded.field(name) for name in ("type", "value", "error"))
            columns = (one.to_pylist() for one in (file, offset, types, values, errors, corrupt))
            for name, at, type, text, wrong, broken in zip(*columns, strict=True):
                records.append(_Record(name, -1 if at is None else at, type, text, wrong is None and broken is None))
    return records


def _changes(records: list[_Record]) -> Iterator[MetadataChange]:
    for record in records:
        if record.type is not None and record.value is not None:
            yield MetadataChange(record.type, json.loads(record.value))
