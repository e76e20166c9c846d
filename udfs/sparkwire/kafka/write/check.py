"""Report what a broker that starts would do with a log directory, without changing it.

After an unclean shutdown, a broker verifies every batch from the segment of its recovery point on. It truncates the partition
at the first invalid batch. After a clean shutdown, it verifies nothing.

Source: apache/kafka, `LogManager`; `partition_check` handles a partition's directory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa

from sparkwire.base.printable import printable
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job import unfinished
from sparkwire.core.sources.job_file import SIDE
from sparkwire.kafka.cluster.internal_json import decode_internal_record
from sparkwire.kafka.cluster.metadata import ClusterState, MetadataChange
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.files.naming import base_offset_of, partition_of
from sparkwire.kafka.files.seek import CLEANED, LOG_STARTS, checkpointed
from sparkwire.kafka.write.partition_check import CheckedPartition, Checkpoints, Finding, PartitionLoader
from sparkwire.kafka.write.write_log import is_locked

_CLEAN: Final = ".kafka_cleanshutdown"
_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_CLUSTER: Final = "__cluster_metadata"
_OTHER_FOLDERS: Final = ("remote-log-index-cache", f"{_CLUSTER}-0", SIDE)
_SNAPSHOT: Final = re.compile(r"(\d{20})-\d{10}\.checkpoint$")


class Report(NamedTuple):
    """The report about a log directory."""

    path: str
    clean: bool
    """whether the broker would trust the files"""
    partitions: list[CheckedPartition]
    findings: list[Finding]

    @property
    def is_fine(self) -> bool:
        """Whether a broker would accept all files unchanged."""
        return not self.findings

    def __str__(self) -> str:
        how = (
            "in order, so a broker trusts the files" if self.clean else "not in order, so a broker verifies every batch"
        )
        lines = [f"{self.path}: shut down {how}", *map(str, self.partitions), *map(str, self.findings)]
        lines.append("a broker accepts it unchanged" if self.is_fine else f"{len(self.findings)} findings")
        return "\n".join(map(printable, lines))


def check(path: str, *, clean: bool | None = None) -> Report:
    """Report what a broker that starts would do with the partition directories in a directory. It changes no files.

    Parameters
    ----------
    path
        a directory of a broker's ``log.dirs``, or the directory of one partition
    clean
        whether the broker had a clean shutdown. If so, it trusts the files; otherwise it verifies every batch. By default, a
        file in the directory determines this.

    Returns
    -------
    Report
        its ``findings``, in the order of partitions and files: files that the broker would ``reject``, treat as a ``stray``,
        ``truncate``, ``delete``, ``rebuild``, ``restore``, ``split``, or ``serve`` although they are wrong. ``print`` shows a
        line for each

    Raises
    ------
    FileNotFoundError
        if the directory does not exist.

    Examples
    --------
    >>> print(sparkwire.kafka.check("/restored"))
    """
    folder = Folder(path)
    files = folder.tree()
    if not files:
        raise FileNotFoundError(printable(f"path {path} does not exist, or has no file: name a broker's log directory"))
    is_partition = any(base_offset_of(name) is not None for name in files)
    trusted = (_CLEAN in files) if clean is None else clean
    findings = [] if is_partition else list(_other_findings(folder, files))
    log_directory = folder if not is_partition else Folder(path.rstrip("/").rpartition("/")[0] or ".")
    points, starts, compacted = (_checkpoint(log_directory, name) for name in (_RECOVERY_POINTS, LOG_STARTS, CLEANED))
    cluster = cluster_state(path) if f"{_CLUSTER}-0" in {file.partition("/")[0] for file in files} else None
    partitions = []

    def name_of(file: str) -> str:
        return file.partition("/")[0] if "/" in file and not is_partition else ""

    for name, some in groupby(sorted(files, key=lambda file: (name_of(file), file)), key=name_of):
        if not (name or is_partition) or name in _OTHER_FOLDERS:
            continue
        shown = name or folder.shown("").rpartition("/")[2]
        loader = PartitionLoader(
            folder,
            name,
            shown,
            dict.fromkeys(file.removeprefix(f"{name}/") for file in some),
            trusted,
            Checkpoints(0 if trusted else points.get(shown, 0), starts.get(shown, 0), shown in compacted),
            cluster,
        )
        findings += loader.findings()
        partitions += loader.partition()
    return Report(folder.shown(""), trusted, partitions, findings)


def _other_findings(folder: Folder, files: Sequence[str]) -> Iterator[Finding]:
    """Findings about files and directories that are not partitions."""
    if is_locked(folder):
        yield Finding("", ".lock", "reject", "a broker is running on this directory")
    for what in unfinished(folder):
        yield Finding(SIDE, "", "serve", what)
    for name in sorted({file.partition("/")[0] for file in files if "/" in file} - set(_OTHER_FOLDERS)):
        if partition_of(name) == (None, None):
            yield Finding(name, "", "reject", "the name of a directory must be <topic>-<partition>")


def _checkpoint(folder: Folder, name: str) -> dict[str, int]:
    """Offsets by partition in a file of the log directory; empty if the file cannot be read, as in Kafka."""
    return checkpointed((folder.read(name) or b"").partition(b"\n")[2])


# -- the state of the cluster, from the metadata log in the directory: LOGDIR/__cluster_metadata-0/
#
#     00000000000000000209-0000000002.checkpoint     the newest snapshot
#     00000000000000000166.log                       the changes since then
#
# Every broker has a copy of this log. It ends at the first unreadable record, where a broker truncates it.


class _Record(NamedTuple):
    file: str
    offset: int
    """of bytes without a header, the offset after the record before them"""
    type: str | None
    value: str | None
    is_valid: bool


def cluster_state(path: str) -> ClusterState | None:
    """The state of the cluster according to the metadata in a directory; None if there is no metadata."""
    folder = f"{path.rstrip('/')}/{_CLUSTER}-0"
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
    records = list[_Record]()
    for task in tasks:
        for batch in kafka_log.read(query, task):
            file, offset, key, value, corrupt = (batch.column(k) for k in range(5))
            decoded = decode_internal_record(pa.array([_CLUSTER] * len(batch)), key, value)
            types, values, errors = (decoded.field(name) for name in ("type", "value", "error"))
            columns = (one.to_pylist() for one in (file, offset, types, values, errors, corrupt))
            for name, at, type, text, wrong, broken in zip(*columns, strict=True):
                following = records[-1].offset + 1 if records else 0
                is_valid = wrong is None and broken is None
                records.append(_Record(name, following if at is None else at, type, text, is_valid))
    return records


def _changes(records: list[_Record]) -> Iterator[MetadataChange]:
    for record in records:
        if record.type is not None and record.value is not None:
            yield MetadataChange(record.type, json.loads(record.value))
