"""Report what a broker that starts would do with the directory of one partition. It follows the steps of the broker's loader:

1. It deletes temporary files, and renames the files of an interrupted compaction.
2. It deletes indexes without a segment. It reads a segment without indexes completely, and rebuilds them.
3. After an unclean shutdown, it verifies every batch from the segment of its recovery point on. It truncates the log at the first
   invalid batch.
4. It empties a log that ends before it starts, and limits the checkpoint of leader epochs to the log.
5. It renames the directory of a topic that the cluster does not have.

Source: apache/kafka, `LogLoader`, `LogSegment`, `LeaderEpochFileCache`, `ProducerStateManager`, `LogManager.isStrayKraftReplica`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import OK
from sparkwire.base.printable import printable
from sparkwire.core.sources.folder import Folder, joined
from sparkwire.core.sources.storage import File, OpenFile
from sparkwire.kafka.cluster.metadata import ClusterState
from sparkwire.kafka.files.naming import base_offset_of, partition_of
from sparkwire.kafka.indexes import TXN_INDEX
from sparkwire.kafka.layout import BATCH_SIZE, OFFSET_INDEX, TIME_INDEX
from sparkwire.kafka.leader_epochs import entries_of
from sparkwire.kafka.producer_snapshot import Producers
from sparkwire.kafka.write.segment_scan import (
    INDEX_INTERVAL,
    Scan,
    bases_after_split,
    has_bad_indexes,
    overflows,
    scan,
    splits,
)
from sparkwire.kafka.write.write_log import EPOCHS, METADATA
from sparkwire.kafka.write.write_options import is_topic

Action = Literal["reject", "stray", "truncate", "delete", "rebuild", "restore", "split", "serve"]

_SWAP: Final = ".swap"
_INDEXES: Final = {".index": OFFSET_INDEX.size, ".timeindex": TIME_INDEX.size}
_OF_SEGMENT: Final = (*_INDEXES, ".txnindex")
_SNAPSHOT: Final = ".snapshot"
_METADATA: Final = re.compile(rb"\s*version: 0\s*\n\s*topic_id: ([A-Za-z0-9_-]{22})\s*")
_TOPIC, _BROKER = 2, 4
"""the numbers of the resource types topic and broker in configuration records"""


class Finding(NamedTuple):
    """A file or directory that a broker would not accept unchanged."""

    partition: str
    """the partition's directory; empty for files beside the partitions"""
    file: str
    action: Action
    """The broker's action: ``reject`` (fail to start), ``stray`` (rename as a stray), ``truncate``, ``delete``, ``rebuild``,
    ``restore`` (give it its name), ``split``, or ``serve`` although it is wrong"""
    why: str

    def __str__(self) -> str:
        return printable(f"{joined(self.partition, self.file)}: {self.action}: {self.why}")


class CheckedPartition(NamedTuple):
    """The part of a partition that a broker would serve."""

    name: str
    segments: int
    first: int
    """the first offset"""
    next: int
    """the offset after the last offset"""

    def __str__(self) -> str:
        if self.first >= self.next:
            return printable(f"{self.name}: {self.segments} segments, no offsets, the next one is {self.next}")
        return printable(f"{self.name}: {self.segments} segments, offsets {self.first} to {self.next - 1}")


class Checkpoints(NamedTuple):
    """The facts about a partition in the checkpoint files of a log directory."""

    recovery_point: int
    log_start: int
    is_compacted: bool


class _Loaded(NamedTuple):
    """A segment that the broker keeps."""

    log: str
    base: int
    scan: Scan
    end: int
    """its remaining size [bytes]"""
    next: int
    """the offset after its last offset"""


class PartitionLoader:
    """Checks one directory with the files ``files``.

    ``clean``: whether the broker had a clean shutdown. ``cluster``: the cluster's metadata, None if unknown.
    """

    def __init__(
        self,
        folder: Folder,
        name: str,
        shown: str,
        files: Mapping[str, None],
        clean: bool,
        checkpoints: Checkpoints,
        cluster: ClusterState | None,
    ) -> None:
        self._folder = folder
        self._name = name
        self._shown = shown
        self._stored = {file: file for file in sorted(files) if "/" not in file}
        """the files by the names that they have after the treatment of temporary files"""
        self._clean = clean
        self._at = checkpoints
        self._cluster = cluster
        self._loaded: list[_Loaded] = []
        self._start = 0

    def _finding(self, file: str, action: Action, why: str) -> Finding:
        return Finding(self._shown, file, action, why)

    def partition(self) -> list[CheckedPartition]:
        """The partition that the broker would serve. Call it after `findings`."""
        if not self._loaded:
            return []
        return [CheckedPartition(self._shown, len(self._loaded), self._start, max(self._start, self._loaded[-1].next))]

    def findings(self) -> Iterator[Finding]:
        if self._shown.endswith("-delete"):
            yield self._finding("", "delete", "the topic was being deleted")
            return
        if self._shown.endswith(("-stray", "-future")):
            return
        topic, _ = partition_of(self._shown)
        if topic is not None and not is_topic(topic):
            yield self._finding("", "reject", "Kafka takes no topic of this name")
        yield from self._metadata(topic)
        yield from self._temporary()
        yield from self._orphans()
        yield from self._segments()
        yield from self._log_start()
        yield from self._gaps()
        yield from self._snapshots()
        yield from self._epochs(topic)

    # -- the topic

    def _metadata(self, topic: str | None) -> Iterator[Finding]:
        text = self._read(METADATA)
        match = None if text is None else _METADATA.fullmatch(text)
        if text is None:
            yield self._finding(
                METADATA, "stray", "without the id of its topic a broker takes the directory for a stray"
            )
        elif not match:
            yield self._finding(METADATA, "reject", "it must have the lines 'version: 0' and 'topic_id: <id>'")
        elif self._cluster is not None and self._cluster.topics.get(match[1].decode()) != topic:
            topic_id = next((id for id, name in self._cluster.topics.items() if name == topic), None)
            has = "has no such topic" if topic_id is None else f"knows topic {topic} by the id {topic_id}"
            yield self._finding(METADATA, "stray", f"the cluster of this directory {has}")

    def _interval(self, topic: str | None) -> int:
        """`index.interval.bytes` of the topic, else of all brokers, else a bound from the entries of the indexes."""
        configs = {} if self._cluster is None else self._cluster.configs
        for key in ((_TOPIC, topic or "", "index.interval.bytes"), (_BROKER, "", "log.index.interval.bytes")):
            if (value := configs.get(key, "")).isdecimal():
                return int(value)
        widest = INDEX_INTERVAL
        for file in self._stored:
            if file.endswith(".index"):
                positions = np.diff(_entries(self._read(file) or b"", OFFSET_INDEX.size)[:, 1], prepend=0)
                widest = min(widest, *(int(apart) - 1 for apart in positions if apart > 0), widest)
        return widest

    def _leader_epoch(self, topic: str | None) -> int | None:
        """The leader epoch of the partition in the cluster's metadata."""
        if self._cluster is None or topic is None:
            return None
        id = next((id for id, name in self._cluster.topics.items() if name == topic), "")
        partition = self._cluster.partitions.get((id, partition_of(self._shown)[1] or 0))
        return None if partition is None else int(partition["leader_epoch"])

    # -- temporary files, and files without a segment

    def _temporary(self) -> Iterator[Finding]:
        cleaned = [
            offset for file in self._stored if file.endswith(".cleaned") and (offset := _offset(file)) is not None
        ]
        swaps: list[str] = []
        for file in list(self._stored):
            if file.endswith((".deleted", ".cleaned")):
                yield self._finding(file, "delete", "the broker was deleting or creating it")
                del self._stored[file]
            elif file.endswith(_SWAP):
                del self._stored[file]
                if (_offset(file) or 0) >= min(cleaned, default=2**63):
                    yield self._finding(file, "delete", "an interrupted compaction had not finished it")
                else:
                    swaps.append(file)
        for swap in swaps:
            yield from self._covered(swap)
        for swap in swaps:
            yield self._finding(swap, "restore", "it belongs to an interrupted compaction: the broker renames it")
            self._stored[swap.removesuffix(_SWAP)] = swap

    def _covered(self, swap: str) -> Iterator[Finding]:
        """The files of segments that a compacted segment replaces."""
        log = swap.removesuffix(_SWAP)
        begin = base_offset_of(log)
        if begin is None or not log.endswith(".log"):
            return
        scan = self._scan(swap)
        end = max(begin, scan.framed + 1)
        for file in [
            file for file in self._stored if begin <= (-1 if _offset(file) is None else _offset(file) or 0) < end
        ]:
            yield self._finding(file, "delete", f"its records are in {swap}")
            del self._stored[file]

    def _orphans(self) -> Iterator[Finding]:
        for file in list(self._stored):
            stem, dot, suffix = file.partition(".")
            if f"{dot}{suffix}" in _OF_SEGMENT and f"{stem}.log" not in self._stored:
                yield self._finding(file, "delete", "its segment is missing")
                del self._stored[file]

    # -- segments

    def _segments(self) -> Iterator[Finding]:
        interval = self._interval(partition_of(self._shown)[0])
        logs = [log for log in sorted(self._stored) if log.endswith(".log") and base_offset_of(log) is not None]
        bases = [base_offset_of(log) or 0 for log in logs]
        unflushed = max((k for k, base in enumerate(bases) if base <= self._at.recovery_point), default=0)
        for k, (log, base) in enumerate(zip(logs, bases, strict=True)):
            scan = self._scan(log)
            at_once = yield from self._indexes(log, scan)
            looked_at = at_once or not (self._clean or k < unflushed)
            end = scan.end
            parts = [base]
            if looked_at and overflows(scan, base) and splits(scan, base):
                parts = self._bases_after_split(log)
                yield self._finding(
                    log,
                    "split",
                    f"it has offsets up to {scan.largest}, too far from {base}: it becomes {len(parts)} segments",
                )
            elif looked_at and overflows(scan, base):
                yield self._finding(
                    log, "reject", f"it has offsets from {scan.smallest} to {scan.largest}, and begins at {base}"
                )
            elif looked_at and scan.back is not None and self._rejects(log, base, interval):
                if at_once:
                    yield self._finding(
                        log, "reject", f"offsets go back at byte {scan.back}: a broker cannot build an index"
                    )
                else:
                    yield self._finding(
                        log,
                        "truncate",
                        f"offsets go back at byte {scan.back}: a broker empties it, because it cannot build an index",
                    )
                    end = 0
            elif scan.back is not None:
                but = "; a broker with a smaller index.interval.bytes empties it" * (
                    looked_at and self._rejects(log, base, 0)
                )
                yield self._finding(log, "serve", f"offsets go back at byte {scan.back}{but}")
            elif scan.first is not None and scan.smallest < base:
                yield self._finding(log, "serve", f"it has offsets from {scan.first} on, and begins at {base}")
            if end == scan.end and scan.end < scan.size:
                what = f"there is no valid batch ({scan.error})"
                if looked_at:
                    yield self._finding(log, "truncate", f"at byte {scan.end} of {scan.size} {what}")
                elif scan.stops and log == logs[-1]:
                    yield self._finding(log, "reject", f"at byte {scan.end} {what}, where a broker looks for its end")
                else:
                    yield self._finding(log, "serve", f"at byte {scan.end} {what}, which a broker does not check")
            last = self._next(log, base, scan) if not looked_at else scan.last + 1 if end else base
            for first, following in zip(parts, [*parts[1:], max(base, last)], strict=True):
                name = log if first == base else f"{first:020}.log"
                self._loaded.append(_Loaded(name, first, scan, end if looked_at else scan.size, following))
            if looked_at and end < scan.size and not at_once:
                for after in logs[k + 1 :]:
                    yield self._finding(after, "delete", f"it comes after {log}, which is truncated")
                    self._forget(after)
                return

    def _next(self, log: str, base: int, scan: Scan) -> int:
        """The offset after a segment that the broker does not verify. A broker reads it from the position of the last index
        entry on, if there is an index.
        """
        index = self._read(f"{log.removesuffix('.log')}.index") or b""
        at = len(index) // OFFSET_INDEX.size * OFFSET_INDEX.size
        relative = OFFSET_INDEX["relative_offset"].read(index[at - OFFSET_INDEX.size : at]) if at else 0
        return scan.framed + 1 if scan.framed >= base + relative else base

    def _bases_after_split(self, log: str) -> list[int]:
        with OpenFile(self._file(log)) as source:
            return bases_after_split(source)

    def _rejects(self, log: str, base: int, interval: int) -> bool:
        with OpenFile(self._file(log)) as source:
            return has_bad_indexes(source, base, interval)

    def _indexes(self, log: str, scan: Scan) -> Generator[Finding, None, bool]:
        """Findings about a segment's indexes; returns whether the broker rebuilds them first."""
        stem, base = log.removesuffix(".log"), base_offset_of(log) or 0
        at_once = f"{stem}.index" not in self._stored
        action: Action = "serve" if self._clean and not at_once else "rebuild"
        for suffix, width in _INDEXES.items():
            file = f"{stem}{suffix}"
            if file not in self._stored and action == "serve":
                yield self._finding(
                    file, action, "it is missing; the broker makes an empty one, and lookups by time find nothing"
                )
                continue
            if file not in self._stored:
                yield self._finding(file, "rebuild", "it is missing")
                continue
            data = self._read(file) or b""
            entries = _entries(data, width)
            if len(data) % width:
                yield self._finding(file, action, f"its {len(data)} bytes are not entries of {width} each")
            elif len(entries) and int(entries[-1, -1 if width == TIME_INDEX.size else 0]) < 0:
                yield self._finding(file, action, f"its last entry is below offset {base}")
            elif len(entries) and not scan.size:
                yield self._finding(file, action, "it has entries, but its segment has none")
        file = f"{stem}.txnindex"
        data = self._read(file) or b""
        last = TXN_INDEX["last_offset"]
        whole = range(0, len(data) - TXN_INDEX.size + 1, TXN_INDEX.size)
        if any(last.read(data[at : at + TXN_INDEX.size]) < base for at in whole):
            yield self._finding(file, "rebuild", f"it has transactions that end before offset {base}")
            return True
        if len(data) % TXN_INDEX.size:
            yield self._finding(file, action, f"its {len(data)} bytes are not entries of {TXN_INDEX.size} each")
        return at_once

    # -- the log

    def _log_start(self) -> Iterator[Finding]:
        if not self._loaded:
            self._start = self._at.log_start
            return
        start, end = self._at.log_start, self._loaded[-1].next
        self._start = max(start, self._loaded[0].base)
        if start <= self._loaded[0].base:
            return
        why = f"log-start-offset-checkpoint says that the log starts at {start}"
        for k, segment in enumerate(list(self._loaded)):
            following = self._loaded[k + 1].base if k + 1 < len(self._loaded) else None
            if end < start or (following is not None and following <= start):
                yield self._finding(segment.log, "delete", why)
        if end < start:
            deleted, self._loaded = self._loaded, []
            self._loaded.append(_Loaded(f"{start:020}.log", start, deleted[0].scan, 0, start))
            return
        self._loaded = [
            segment
            for k, segment in enumerate(self._loaded)
            if self._loaded[k + 1 : k + 2] == [] or self._loaded[k + 1].base > start
        ]
        if self._loaded[0].base < start:
            yield self._finding(self._loaded[0].log, "serve", f"{why}: records before that are hidden")

    def _gaps(self) -> Iterator[Finding]:
        if self._at.is_compacted:
            return
        for before, after in zip(self._loaded, self._loaded[1:], strict=False):
            if before.scan.end < before.scan.size or BATCH_SIZE in (before.scan.size, after.scan.size):
                continue  # another finding reports it, or an empty batch keeps the start or the end of the log
            if before.next < after.base:
                yield self._finding(
                    after.log,
                    "serve",
                    f"offsets {before.next} to {after.base - 1} are in no segment: one is missing, unless the topic is compacted",
                )
            elif before.next > after.base:
                yield self._finding(
                    after.log, "serve", f"{before.log} ends at offset {before.next - 1}, after the start of this one"
                )

    def _snapshots(self) -> Iterator[Finding]:
        bases = {f"{segment.base:020}{_SNAPSHOT}" for segment in self._loaded}
        files = [file for file in self._stored if file.endswith(_SNAPSHOT)]
        strays = [file for file in files if file not in bases]
        newest = [file for file in strays[-1:] if not bases or file > max(bases)]
        for file in files:
            if file in strays and file not in newest:
                yield self._finding(file, "delete", "no segment begins there")
            elif (Producers(pa.array([self._read(file)], pa.binary())).errors != OK).any():
                yield self._finding(
                    file, "rebuild", "it is corrupt: the broker reads the state of producers from the log"
                )

    def _epochs(self, topic: str | None) -> Iterator[Finding]:
        text = self._read(EPOCHS)
        if text is None:
            return
        entries = entries_of(text)
        if entries is None:
            yield self._finding(
                EPOCHS, "reject", "it is corrupt, or has a number below 0; delete it, and a broker starts"
            )
            return
        ordered: list[tuple[int, int]] = []
        for epoch, offset in entries:
            while ordered and (ordered[-1][0] >= epoch or ordered[-1][1] >= offset):
                ordered.pop()
            ordered.append((epoch, offset))
        end = self._loaded[-1].next if self._loaded else self._start
        leader_epoch = self._leader_epoch(topic)
        if ordered != list(entries):
            yield self._finding(
                EPOCHS, "truncate", "leader epochs and their offsets must ascend: a broker drops those before"
            )
        elif any(offset >= end for _, offset in ordered):
            yield self._finding(
                EPOCHS, "truncate", f"it has epochs that begin at offset {end}, the log's end, or after it"
            )
        elif ordered and leader_epoch is not None and ordered[-1][0] > leader_epoch:
            yield self._finding(
                EPOCHS,
                "truncate",
                f"it has epochs up to {ordered[-1][0]}, and the partition's leader has {leader_epoch}: write with leaderEpoch=0",
            )
        elif ordered and ordered[0][1] < self._at.log_start:
            yield self._finding(EPOCHS, "truncate", f"it has epochs that begin before offset {self._at.log_start}")

    # -- files

    def _forget(self, log: str) -> None:
        for suffix in (".log", *_OF_SEGMENT, _SNAPSHOT):
            self._stored.pop(f"{log.removesuffix('.log')}{suffix}", None)

    def _read(self, file: str) -> bytes | None:
        stored = self._stored.get(file)
        return None if stored is None else self._folder.read(joined(self._name, stored))

    def _scan(self, file: str) -> Scan:
        with OpenFile(self._file(file)) as source:
            return scan(source)

    def _file(self, file: str) -> File:
        place = self._folder.place
        return File(place.root, f"{place.path}/{joined(self._name, self._stored.get(file, file))}", place.query, -1)


def _entries(data: bytes, width: int) -> npt.NDArray[np.int32]:
    """The complete entries of an index, with a column for every four bytes."""
    return np.frombuffer(data[: len(data) // width * width], np.dtype(">i4")).reshape(-1, width // 4)


def _offset(file: str) -> int | None:
    """The offset at the start of a file's name."""
    match = re.match(r"\d{20}(?=\.)", file)
    return int(match.group()) if match else None
