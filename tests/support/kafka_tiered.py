"""The golden buckets and directories of brokers with tiered storage, with the output of their consumers and of Kafka's dump."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from sparkwire.kafka.cluster.internal_json import decode_internal_record
from tests.support import kafka_cases as golden
from tests.support.oracles import kafka as oracle

RUNS = ("enc", "heuristic", "leftovers", "lineage", "local", "plain", "prefix", "zstd")

Row = dict[str, Any]


class Record(NamedTuple):
    """A metadata record with the output of Kafka's dump or converters."""

    topic: str
    key: bytes | None
    value: bytes | None
    type: str
    """the name of the type, or its beginning; none for a control record, which has another name in the dump"""
    version: int
    json: Any


@cache
def run_files(run: str) -> dict[str, bytes]:
    """The files of a run by their paths."""
    start = f"gen1/{run}/"
    return {path.partition(start)[2]: data for path, data in golden.archive("tiered").items() if start in path}


def metadata_records(run: str) -> Iterator[Record]:
    """All records of `__cluster_metadata` (logs and snapshots) and of `__remote_log_metadata`."""
    files = run_files(run)
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        if folder.startswith("truth/metadata") and name != "control.jsonl":
            yield from _dumped(files, folder, name.removesuffix(".jsonl"))
    reported = {
        (line["partition"], line["offset"]): line for line in golden.lines(files["truth/remote_log_metadata.jsonl"])
    }
    for path in sorted(files):
        log = re.fullmatch(r"local.*/__remote_log_metadata-(\d+)/\d+\.log", path)
        for record in oracle.records(files[path]) if log else ():
            line = reported.get((int(log[1]), record["offset"])) if log else None
            if line is not None and not record["is_control"]:
                yield Record("__remote_log_metadata", None, record["value"], "REMOTE_", line["version"], line["record"])


def _dumped(files: dict[str, bytes], folder: str, name: str) -> Iterator[Record]:
    local = f"local{folder.removeprefix('truth/metadata')}"
    path = f"{local}/__cluster_metadata-0/{name}"
    data = files.get(path) or files[f"{local}/{name}"]
    control = {
        (line["file"], line["offset"]): line for line in map(json.loads, files[f"{folder}/control.jsonl"].splitlines())
    }
    lines = golden.lines(files[f"{folder}/{name}.jsonl"])
    for line, record in zip(lines, oracle.records(data), strict=True):
        reported = control[name, line["offset"]] if line["control"] else line
        kind = "" if line["control"] else reported["type"]
        yield Record(
            "__cluster_metadata", record["key"], record["value"], kind, reported["version"], reported["record"]
        )


@cache
def _dates() -> dict[str, float]:
    with tarfile.open(golden.DATA / "tiered.tar.xz") as files:
        return {member.name: member.mtime for member in files}


def extract(run: str, folder: Path) -> None:
    """Write the files of a run below a folder, with their dates."""
    for name, data in golden.archive("tiered").items():
        _, inside, path = name.partition(f"gen1/{run}/")
        if inside:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            os.utime(target, (_dates()[name], _dates()[name]))


def metadata_files(run: str, local: str) -> list[str]:
    """The metadata logs and snapshots in a node's directory, by name."""
    start = f"{local}/__cluster_metadata-0/"
    names = (path.removeprefix(start) for path in run_files(run) if path.startswith(start))
    return sorted(name for name in names if name.endswith((".log", ".checkpoint")))


def decoded_metadata(run: str, local: str, file: str) -> list[tuple[int, Row]]:
    """The offset and result of each record."""
    records = oracle.records(run_files(run)[f"{local}/__cluster_metadata-0/{file}"])
    keys, values = ([record[name] for record in records] for name in ("key", "value"))
    topics = pa.array(["__cluster_metadata"] * len(keys))
    answers = decode_internal_record(topics, pa.array(keys, pa.binary()), pa.array(values, pa.binary())).to_pylist()
    return [
        (record["offset"], answer) for record, answer in zip(records, answers, strict=True) if not record["is_control"]
    ]
