"""The golden files of Kafka's local storage, with the output of Kafka's programs for them."""

from __future__ import annotations

import json
import lzma
import re
from functools import cache
from typing import Any, NamedTuple

from tests.support import kafka_cases as golden
from tests.support.oracles import kafka as oracle

Row = dict[str, Any]
_DUMPED = re.compile(r"(\w+): (OptionalLong\.empty|OptionalLong\[\d+\]|\S+)")


class Dumped(NamedTuple):
    """A file, with DumpLogSegments' lines about it as names and numbers."""

    path: str
    data: bytes
    lines: list[Row]


class Record(NamedTuple):
    """A record of an internal topic, with Kafka's output for it."""

    key: bytes
    value: bytes | None
    java: Any


def _number(text: str) -> int | None:
    return None if text == "OptionalLong.empty" else int(text.removeprefix("OptionalLong[").rstrip("]"))


def dump_lines(text: str) -> dict[str, list[Row]]:
    """DumpLogSegments' output for transaction indexes and snapshots: the names and numbers of each line, by file."""
    about: dict[str, list[Row]] = {}
    lines: list[Row] = []
    for line in text.splitlines():
        if line.startswith("Dumping "):
            lines = about.setdefault(line.removeprefix("Dumping "), [])
        elif line.startswith(("version: ", "producerId: ")):
            lines.append({name: _number(value) for name, value in _DUMPED.findall(line)})
    return about


@cache
def dumped(suffix: str) -> list[Dumped]:
    """The files with a suffix, with their dumps."""
    files = {path.removeprefix("./"): data for path, data in golden.archive("storage").items()}
    result = []
    for folder in sorted({path.rpartition("/")[0] for path in files if path.endswith("/other_files.dump.txt")}):
        about = dump_lines(files[f"{folder}/other_files.dump.txt"].decode())
        for name, lines in about.items():
            if name.endswith(suffix):
                result.append(Dumped(f"{folder}/{name}", files[f"{folder}/{name}"], lines))
    return result


@cache
def checkpoints() -> list[bytes]:
    """Every `leader-epoch-checkpoint`."""
    return [data for path, data in golden.archive("storage").items() if path.endswith("/leader-epoch-checkpoint")]


@cache
def decoded(topic: str) -> list[Record]:
    """The records of an internal topic's segment, each with the text of DumpLogSegments' decoder."""
    (log,) = (log for log in golden.logs(("segments_other",)) if log.name.startswith(f"{topic}/"))
    text = next(
        data for path, data in golden.archive("storage").items() if f"{topic}/" in path and "decoded" in path
    ).decode()
    printed = [line.partition(" key: ")[2] for line in text.splitlines() if line.startswith("| offset: ")]

    records = [record for record in oracle.records(log.data) if not record["is_control"]]
    return [Record(record["key"], record["value"], line) for record, line in zip(records, printed, strict=True)]


@cache
def written() -> list[Row]:
    """Records of every version that Kafka's classes wrote, with their JSON."""
    with lzma.open(golden.DATA / "internal_records.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
