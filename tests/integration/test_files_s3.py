"""Files in an object store with the S3 API: results, and requested ranges."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job import recover
from sparkwire.core.sources.job_file import SIDE
from sparkwire.core.sources.partition_versions import Unfinished
from sparkwire.core.sources.storage import listed
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.files.remote import forget_manifests
from sparkwire.kafka.files.seek import PAGE
from tests.integration.object_store import Server, running_store
from tests.kafka.test_files import records, rows
from tests.kafka.test_remote import options_of
from tests.kafka.test_write_log import read, rows_of, write
from tests.support import kafka_cases as golden
from tests.support import kafka_tiered as tiered
from tests.support.faults import Gone
from tests.support.unfinished import DEAD
from tests.support.writer_chaos import Job, Versions, WriterChaos

STEPS = 8
"""steps at which a job is interrupted"""
NAMES = ("00000000000000000100", "00000000000000000494")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_store() as server:
        yield server


@pytest.fixture(scope="module")
def bucket(server: Server) -> str:
    """A bucket with a partition: a large and a small segment with their indexes."""
    store = server.bucket("topics")
    files = golden.archive("segments_v2")
    for name in NAMES:
        for suffix in (".log", ".index", ".timeindex"):
            with store.open_output_stream(f"topics/orders-3/{name}{suffix}") as out:
                out.write(files[f"v2_multi_segment/{name}{suffix}"])
    return "s3://topics/orders-3"


def local(folder: Path) -> list[dict[str, Any]]:
    for name in NAMES:
        (folder / f"{name}.log").write_bytes(golden.archive("segments_v2")[f"v2_multi_segment/{name}.log"])
    return records(rows(folder))


def test_the_rows_equal_those_of_local_files(server: Server, bucket: str, tmp_path: Path) -> None:
    result = rows(bucket + server.query)
    assert records(result) == local(tmp_path)
    assert {row["file"] for row in result} == {f"{bucket}/{name}.log" for name in NAMES}
    assert {(row["topic"], row["partition"]) for row in result} == {("orders", 3)}
    assert records(rows(f"s3://topics/*/*.log{server.query}")) == records(result)


def test_a_seek_requests_ranges(server: Server, bucket: str) -> None:
    server.requests.clear()
    assert [row["offset"] for row in rows(bucket + server.query, startingOffset="480", endingOffset="481")] == [480]
    reads = [
        (path, ranges)
        for method, path, ranges in server.requests
        if method == "GET" and path.startswith("/topics/orders-3/")
    ]
    assert {path.rsplit("/", 1)[-1] for path, _ in reads} == {f"{NAMES[0]}.log", f"{NAMES[0]}.index"}
    asked_for = 0
    for path, ranges in reads:
        assert ranges.startswith("bytes="), path
        if path.endswith(".log"):
            first, last = ranges.removeprefix("bytes=").split("-")
            asked_for += int(last) - int(first) + 1
            assert int(first) > 50_000  # of 119,866 bytes: nothing before the index entry
    assert 0 < asked_for < 60_000


def test_partitions_are_written(server: Server, bucket: str) -> None:
    """As on a disk, objects get their final names when the job ends."""
    top = f"s3://topics/back{server.query}"
    write(top, rows_of(60), rows_of(40, first=100), segmentBytes=1000, batchBytes=300)
    write(top, rows_of(5, first=200))
    assert [row["offset"] for row in read(top)] == [*range(60), *range(100, 140), *range(200, 205)]
    with pytest.raises(ValueError, match="back/orders-0 ends at offset 204, but the rows to append begin with 7"):
        write(top, rows_of(5, first=7))
    write(top, rows_of(9, first=3), overwrite=True)
    assert [row["offset"] for row in read(top)] == list(range(3, 12))
    numbered = [{name: value for name, value in row.items() if name != "offset"} for row in rows_of(10)]
    # The replaced log ended at 205; the new one has the same end.
    write(top, numbered[:4], numbered[4:], offsets="assign")
    assert [(row["offset"], row["value"]) for row in read(top)][9:] == [(205 + k, b"%d" % k) for k in range(10)]
    store, _ = fs.FileSystem.from_uri(f"s3://topics{server.query}")
    kept = [info.base_name for info in store.get_file_info(fs.FileSelector("topics/back", recursive=True)) if info.size]
    assert [
        name for name in kept if not name.endswith((".log", ".timeindex", ".snapshot", "leader-epoch-checkpoint"))
    ] == []


@pytest.mark.parametrize("run", ["plain", "zstd"])
def test_one_offset_of_a_tiered_topic_is_a_few_requests(server: Server, tmp_path: Path, run: str) -> None:
    """In addition to the listing: manifest and epochs of the newest segment, manifest and index of its segment, 1 or 2 chunks."""
    tiered.extract(run, tmp_path)
    top = next((tmp_path / "remote").glob("orders-*"))
    store = server.bucket(run)
    paths = sorted((top / "0").iterdir())
    for path in paths:
        if path == paths[-3]:
            time.sleep(1.1)  # the store's times are whole seconds, and they determine the newest segment
        with store.open_output_stream(f"{run}/{path.relative_to(top.parent)}") as out:
            out.write(path.read_bytes())
    uri = f"s3://{run}/{top.name}/0{server.query}"
    everything = rows(uri, **options_of(tmp_path))
    forget_manifests()
    server.requests.clear()
    (row,) = rows(uri, startingOffset="300", endingOffset="301", **options_of(tmp_path))
    assert row == next(row for row in everything if row["offset"] == 300)
    requests = server.object_requests(f"{run}/{top.name}/")
    assert len(requests) <= 5, requests
    of_chunks = [ranges.split("-") for path, ranges in requests if path.endswith(".log")]
    # Here, chunks are smaller than the pages that a look-up reads.
    assert sum(int(last) - int(first) + 1 for first, last in of_chunks) <= 2 * PAGE


def test_requests_to_a_busy_store_are_retried(server: Server, tmp_path: Path) -> None:
    """A few rejected requests change nothing. If every request is rejected, the query fails; it never reads an empty store."""
    tiered.extract("plain", tmp_path)
    store, top = server.bucket("busy"), next((tmp_path / "remote").glob("orders-*"))
    for path in (top / "0").iterdir():
        with store.open_output_stream(f"busy/{path.relative_to(top.parent)}") as out:
            out.write(path.read_bytes())
    uri = f"s3://busy/{top.name}/0{server.query}"
    expected = rows(uri)
    assert len(expected) > 500
    forget_manifests()
    server.faults[0] = 2
    assert rows(uri) == expected
    assert server.faults[0] == 0
    forget_manifests()
    server.faults[0] = 1_000_000
    try:
        with pytest.raises(OSError, match=r"busy/orders-.*cannot be read.*SERVICE_UNAVAILABLE"):
            rows(uri)
    finally:
        server.faults[0] = 0


@contextmanager
def ends_at(step: int) -> Iterator[list[str]]:
    """Simulate a process that ends before a certain change of the store: later changes have no effect."""
    done: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        original = getattr(Folder, name)

        def call(self: Folder, *arguments: Any) -> Any:
            done.append(name)
            if len(done) > step:
                raise Gone
            return original(self, *arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("create", "move", "remove", "remove_tree"):
            patch.setattr(Folder, name, counted(name))
        yield done


@pytest.mark.parametrize("overwrite", [True, False], ids=["overwrite", "append"])
def test_a_job_in_a_bucket_is_interrupted(server: Server, overwrite: bool) -> None:
    """A reader sees one version, or an error with the unfinished job. After recovery or another run, it sees all rows."""
    server.bucket("interrupted")
    old: Versions = {f"orders-{k}": ((0, f"old {k}"), (1, "old")) for k in range(2)}
    new: Versions = {f"orders-{k}": ((2, f"new {k}"),) for k in range(2)}
    second = Job(new, overwrite, once="it")
    after = second.after(old, {})
    reported = 0
    for step in steps_of(server, old, second):
        chaos = BucketChaos(f"s3://interrupted/{overwrite}-{step}{server.query}")
        chaos.write(Job(old, True))
        with ends_at(step), suppress(Gone, Unfinished):
            chaos.write(second, owner=DEAD)
        rejected = chaos.rejection()
        if rejected:
            reported += 1
            assert re.fullmatch(
                r"\S+: job \w+ \(since .*\) was interrupted while it replaced orders-\d.*\. "
                r"Run: python -m sparkwire recover \S+",
                rejected,
            )
        else:
            assert chaos.read() in (old, after), step
        if step % 2:
            recover(chaos.path)
            assert chaos.read() in (old, after), step
        chaos.write(second)
        assert chaos.read() == after, step
        assert not any(f"/{SIDE}/" in file.path for file in listed(chaos.path).files), step
    assert 0 < reported < STEPS


def steps_of(server: Server, old: Versions, job: Job) -> list[int]:
    """The numbers of the changes at which a job is interrupted."""
    chaos = BucketChaos(f"s3://interrupted/trial-{job.overwrite}{server.query}")
    chaos.write(Job(old, True))
    with ends_at(sys.maxsize) as done:
        chaos.write(job)
    return [len(done) * k // STEPS for k in range(STEPS)]


class BucketChaos(WriterChaos):
    """The jobs of `WriterChaos` in a bucket."""

    def __init__(self, path: str) -> None:
        super().__init__(Path(), 0)
        self._path = path

    @property
    def path(self) -> str:
        return self._path

    def read(self) -> Versions:
        versions: Versions = self.form.read(self.path)
        return versions

    def rejection(self) -> str:
        """The error of a reader of the partitions."""
        try:
            kafka_log.plan(kafka_log.query({"path": self.path.replace("?", "/orders-*?", 1)}))
        except ValueError as rejected:
            with pytest.raises(ValueError, match="was interrupted"):
                self.read()
            return str(rejected)
        return ""
