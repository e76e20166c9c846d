"""What a broker does at its start with partition directories, told without doing it.

Source: apache/kafka, `LogManager`, `LogLoader`, `LogSegment.recover` and `sanityCheck`, `LeaderEpochFileCache`. A broker that was
not shut down in order looks at every batch from the segment of its recovery point on, and truncates the partition at the first
that is not valid. One that was believes what is there, and checks of the indexes only what their last entries say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

import numpy as np

from sparkwire.base.errors import ERRORS, OK
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job import unfinished
from sparkwire.core.sources.job_file import SIDE
from sparkwire.core.sources.staging import joined
from sparkwire.core.sources.storage import File, OpenFile
from sparkwire.kafka.files.log import Log
from sparkwire.kafka.files.naming import base_offset_of, partition_of
from sparkwire.kafka.files.seek import entry_of
from sparkwire.kafka.layout import OFFSET_INDEX, TIME_INDEX
from sparkwire.kafka.leader_epochs import entries_of
from sparkwire.kafka.write.write_log import EPOCHS, METADATA, is_locked
from sparkwire.kafka.write.write_options import is_topic

Action = Literal["refuse", "stray", "truncate", "delete", "rebuild", "serve"]

_CLEAN: Final = ".kafka_cleanshutdown"
_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_OTHER_FOLDERS: Final = ("remote-log-index-cache", "__cluster_metadata-0", SIDE)
_GOING: Final = (".deleted", ".cleaned")
_INDEXES: Final = {".index": OFFSET_INDEX.size, ".timeindex": TIME_INDEX.size}
_METADATA: Final = re.compile(rb"\s*version: 0\s*\n\s*topic_id: [A-Za-z0-9_-]{22}\s*")


class Finding(NamedTuple):
    """Something that a broker would not take as it is."""

    partition: str
    """the directory; empty for what is beside the partitions"""
    file: str
    action: Action
    """``refuse`` to start, take for a ``stray`` and rename, ``truncate``, ``delete``, ``rebuild``, ``serve`` though wrong"""
    why: str

    def __str__(self) -> str:
        return f"{joined(self.partition, self.file)}: {self.action}: {self.why}"


class CheckedPartition(NamedTuple):
    """What a broker would serve of a partition."""

    name: str
    segments: int
    first: int
    """the first offset"""
    next: int
    """the offset after the last one"""

    def __str__(self) -> str:
        return f"{self.name}: {self.segments} segments, offsets {self.first} to {self.next - 1}"


class Report(NamedTuple):
    """What a broker would do with a directory."""

    path: str
    clean: bool
    """whether it would believe what is there"""
    partitions: list[CheckedPartition]
    findings: list[Finding]

    @property
    def is_fine(self) -> bool:
        """Whether a broker would take all as it is."""
        return not self.findings

    def __str__(self) -> str:
        how = "in order, so a broker believes it" if self.clean else "or not in order, so a broker looks at every batch"
        lines = [f"{self.path}: shut down {how}", *map(str, self.partitions), *map(str, self.findings)]
        return "\n".join([*lines, "a broker takes it as it is" if self.is_fine else f"{len(self.findings)} findings"])


def check(path: str, clean: bool | None) -> Report:
    """See ``sparkwire.kafka.check``."""
    folder = Folder(path)
    files = folder.tree()
    if not files:
        raise FileNotFoundError(f"path {path} does not exist, or has no file: name a broker's log directory")
    is_partition = any(base_offset_of(name) is not None for name in files)
    believed = (_CLEAN in files) if clean is None else clean
    findings = [] if is_partition else list(_beside(folder, files))
    points = {} if believed else _recovery_points(folder)
    partitions = []

    def name_of(file: str) -> str:
        return file.partition("/")[0] if "/" in file and not is_partition else ""

    for name, some in groupby(sorted(files, key=lambda file: (name_of(file), file)), key=name_of):
        if not (name or is_partition) or name in _OTHER_FOLDERS:
            continue
        shown = name or folder.shown("").rpartition("/")[2]
        its = _Partition(
            folder, name, shown, [file.removeprefix(f"{name}/") for file in some], believed, points.get(shown, 0)
        )
        findings += its.findings()
        partitions += its.partition()
    return Report(folder.shown(""), believed, partitions, findings)


def _beside(folder: Folder, files: Sequence[str]) -> Iterator[Finding]:
    """What is wrong beside the partitions."""
    if is_locked(folder):
        yield Finding("", ".lock", "refuse", "a broker is running on this directory")
    for what in unfinished(folder):
        yield Finding(SIDE, "", "serve", what)
    for name in sorted({file.partition("/")[0] for file in files if "/" in file} - set(_OTHER_FOLDERS)):
        if partition_of(name) == (None, None):
            yield Finding(name, "", "refuse", "a directory here is named <topic>-<partition>")


def _recovery_points(folder: Folder) -> dict[str, int]:
    """The offset by partition up to which a broker has flushed; nothing where the file cannot be read, as in Kafka."""
    lines = (folder.read(_RECOVERY_POINTS) or b"").decode("utf-8", "replace").splitlines()[2:]
    found = (line.split() for line in lines)
    return {f"{line[0]}-{line[1]}": int(line[2]) for line in found if len(line) == 3 and line[2].isdecimal()}


class _Partition:
    """One directory."""

    def __init__(
        self, folder: Folder, name: str, shown: str, files: Sequence[str], clean: bool, recovery_point: int
    ) -> None:
        self._folder = folder
        self._name = name
        self._shown = shown
        self._files = sorted(file for file in files if "/" not in file)
        self._clean = clean
        self._point = recovery_point
        self._logs = sorted(file for file in self._files if file.endswith(".log") and base_offset_of(file) is not None)
        self._next = 0
        self._kept: list[str] = []

    def _finding(self, file: str, action: Action, why: str) -> Finding:
        return Finding(self._shown, file, action, why)

    def partition(self) -> list[CheckedPartition]:
        """What would be served, once `findings` has looked."""
        return (
            [CheckedPartition(self._shown, len(self._kept), base_offset_of(self._kept[0]) or 0, self._next)]
            if self._kept
            else []
        )

    def findings(self) -> Iterator[Finding]:
        if self._shown.endswith("-delete"):
            yield self._finding("", "delete", "the topic was being deleted")
            return
        if self._shown.endswith(("-stray", "-future")):
            return
        topic, _ = partition_of(self._shown)
        if topic is not None and not is_topic(topic):
            yield self._finding("", "refuse", "Kafka takes no topic of this name")
        yield from self._metadata()
        yield from self._leftovers()
        yield from self._segments()
        yield from self._epochs()

    def _metadata(self) -> Iterator[Finding]:
        text = self._folder.read(joined(self._name, METADATA))
        if text is None:
            yield self._finding(
                METADATA, "stray", "without the id of its topic a broker takes the directory for a stray"
            )
        elif not _METADATA.fullmatch(text):
            yield self._finding(METADATA, "refuse", "it has to say 'version: 0' and 'topic_id: <id>', a line each")

    def _leftovers(self) -> Iterator[Finding]:
        for file in self._files:
            stem, dot, suffix = file.partition(".")
            if file.endswith(_GOING):
                yield self._finding(file, "delete", "it was on its way out, or not whole yet")
            elif f"{dot}{suffix}" in (*_INDEXES, ".txnindex") and f"{stem}.log" not in self._files:
                yield self._finding(file, "delete", "its segment is not there")

    def _segments(self) -> Iterator[Finding]:
        bases = [base_offset_of(log) or 0 for log in self._logs]
        unflushed = max((k for k, base in enumerate(bases) if base <= self._point), default=0)
        for k, log in enumerate(self._logs):
            with OpenFile(self._file(log)) as source:
                end, first, last, error = _readable(source)
                size = source.size
            yield from self._indexes(log)
            self._kept.append(log)
            begin = max(bases[k], self._next)
            if first is not None and first < begin:
                yield self._finding(
                    log, "serve", f"it has offsets from {first} on, and has to begin at {begin} or later"
                )
            self._next = max(begin, last + 1)
            if end == size:
                continue
            if self._clean or k < unflushed:
                yield self._finding(log, "serve", f"at byte {end} there is no valid batch ({error}), and nobody looks")
                continue
            yield self._finding(log, "truncate", f"at byte {end} of {size} there is no valid batch ({error})")
            for after in self._logs[k + 1 :]:
                yield self._finding(after, "delete", f"it comes after {log}, which is truncated")
            return

    def _indexes(self, log: str) -> Iterator[Finding]:
        stem, base = log.removesuffix(".log"), base_offset_of(log) or 0
        for suffix, width in _INDEXES.items():
            if f"{stem}{suffix}" not in self._files:
                yield self._finding(f"{stem}{suffix}", "rebuild", "it is not there")
                continue
            data = self._folder.read(joined(self._name, f"{stem}{suffix}")) or b""
            entries = np.frombuffer(data[: len(data) // width * width], np.dtype(">i4")).reshape(-1, width // 4)
            if len(data) % width:
                yield self._finding(
                    f"{stem}{suffix}", "rebuild", f"its {len(data)} bytes are not entries of {width} each"
                )
            elif len(entries) and int(entries[-1, -1 if width == 12 else 0]) < 0:
                yield self._finding(f"{stem}{suffix}", "rebuild", f"its last entry is below offset {base}")

    def _epochs(self) -> Iterator[Finding]:
        text = self._folder.read(joined(self._name, EPOCHS))
        if text is None:
            return
        entries = entries_of(text)
        if entries is None:
            yield self._finding(EPOCHS, "refuse", "it is corrupt; without it a broker starts")
        elif any(offset > self._next for _, offset in entries):
            yield self._finding(EPOCHS, "truncate", f"it has epochs that begin after offset {self._next}")

    def _file(self, name: str) -> File:
        place = self._folder.place
        return File(place.root, f"{place.path}/{joined(self._name, name)}", place.query, -1)


def _readable(source: OpenFile) -> tuple[int, int | None, int, str]:
    """Where the first byte is that is of no valid batch, the first and the last offset before it, and what is wrong there."""
    position, first, last = 0, None, -1
    for block in Log(source).blocks(0, source.size):
        wrong = np.flatnonzero(block.frames.error != OK)
        count = int(wrong[0]) if len(wrong) else len(block.frames.error)
        if count:
            first = entry_of(block, 0).first if first is None else first
            entry = entry_of(block, count - 1)
            position, last = entry.position + entry.size, entry.last
        if len(wrong):
            return position, first, last, ERRORS[int(block.frames.error[count])]
    return position, first, last, ""
