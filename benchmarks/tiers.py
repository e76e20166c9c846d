"""Segments in a bucket of tiered storage compared with segments on disk; requests to an object store, and planning."""

from __future__ import annotations

import base64
import json
import secrets
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from Crypto.Cipher import PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from benchmarks.files import CELL, CELLS, SEGMENTS, TASK, totals, write_segment
from benchmarks.kafka import log
from benchmarks.report import Row, above, below, faster
from benchmarks.sql import local_spark
from benchmarks.timing import Timing, amount, interleave
from sparkwire.core.sources.storage import File
from sparkwire.kafka.files import kafka_log, plan, remote
from sparkwire.kafka.files.naming import in_bucket
from sparkwire.kafka.tiered.encryption_keys import Keys
from tests.integration.object_store import running_store

CHUNK = 4 << 20
"""the plugin's default chunk size [bytes]"""
TOPIC_ID = "GuCdKpmgR5i6jlGF8wo2DQ"
NAMED, PARTITIONS = amount(100_000, trial=1000), 100
SEGMENTS_STORED, CELLS_SOUGHT = amount(1000, trial=50), 128
"""in an object store: segments of one value each, and the number of values in the segment for the look-up of an offset"""
SMALL_CELL = 100_000  # [bytes] about
Transform = Callable[[bytes], bytes]


def rows() -> list[Row]:
    """The claims about tiers."""
    return [*_throughput(), *_one_offset(), *_planning()]


# -- buckets


class Encrypting:
    """A segment's key, wrapped like the plugin's, and chunks encrypted with it."""

    def __init__(self, key: RSA.RsaKey) -> None:
        data_key, self.aad = secrets.token_bytes(32), secrets.token_bytes(32)
        self.cipher = AESGCM(data_key)
        oaep = PKCS1_OAEP.new(key, SHA3_512)  # type: ignore[arg-type]  # the stubs do not have this hash
        self.wrapped = "key1:" + base64.b64encode(oaep.encrypt(data_key)).decode()

    def __call__(self, chunk: bytes) -> bytes:
        iv = secrets.token_bytes(12)
        return iv + self.cipher.encrypt(iv, chunk, self.aad)


def write_copy(segment: Path, folder: Path, offsets: range, compressed: bool, encrypt: Encrypting | None) -> None:
    """A segment in the plugin's format: chunks, indexes, manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    id = f"{offsets.start:022}"
    stem, data = f"{offsets.start:020}-{id}", segment.read_bytes()
    sizes = []
    with (folder / f"{stem}.log").open("wb") as out:
        for at in range(0, len(data), CHUNK):
            chunk = data[at : at + CHUNK]
            chunk = pa.Codec("zstd").compress(chunk, asbytes=True) if compressed else chunk
            sizes.append(out.write(encrypt(chunk) if encrypt else chunk))
    indexes, spans, begin = b"", {}, 0
    parts = {"offset": segment.with_suffix(".index").read_bytes(), "timestamp": b"", "leaderEpoch": b"0\n1\n0 0\n"}
    for name, part in parts.items():
        stored = encrypt(part) if encrypt and part else part
        spans[name] = {"position": begin, "size": len(stored)}
        indexes, begin = indexes + stored, begin + len(stored)
    (folder / f"{stem}.indexes").write_bytes(indexes)
    index = {"type": "variable", "originalChunkSize": CHUNK, "originalFileSize": len(data)}
    manifest = {
        "version": "1",
        "chunkIndex": index | {"transformedChunks": base64.b64encode(_chunk_sizes(sizes)).decode()},
        "segmentIndexes": spans | {"producerSnapshot": {"position": begin, "size": 0}, "transaction": None},
        "compression": compressed,
        "remoteLogSegmentMetadata": {
            "remoteLogSegmentId": {
                "topicIdPartition": {
                    "topicId": TOPIC_ID,
                    "topicPartition": {"topic": "orders", "partition": int(folder.name)},
                },
                "id": id,
            },
            "startOffset": offsets.start, "endOffset": offsets[-1], "maxTimestampMs": 0,
            "segmentLeaderEpochs": {"0": offsets.start},
        },
    }  # fmt: skip
    if encrypt:
        manifest["encryption"] = {"dataKey": encrypt.wrapped, "aad": base64.b64encode(encrypt.aad).decode()}
    (folder / f"{stem}.rsm-manifest").write_text(json.dumps(manifest))


def _chunk_sizes(sizes: list[int]) -> bytes:
    *most, last = sizes
    raw = struct.pack(">i", len(sizes))
    if most:
        raw += struct.pack(">iB", min(most), 4)
        raw += b"".join(struct.pack(">I", size - min(most)) for size in most)
    return bytes(pa.Codec("zstd").compress(raw + struct.pack(">i", last), asbytes=True))


def write_bucket(segments: list[Path], folder: Path, records: int, compressed: bool, key: Any) -> str:
    for k, segment in enumerate(segments):
        encrypt = Encrypting(key) if key else None
        write_copy(segment, folder / f"orders-{TOPIC_ID}" / str(k), range(records), compressed, encrypt)
    return str(folder)


# -- reading


def _throughput() -> list[Row]:
    with local_spark() as spark, tempfile.TemporaryDirectory() as name:
        import sparkwire

        sparkwire.register(spark)
        folder = Path(name)
        cell, records = log(CELL, 1000)
        times = CELLS // SEGMENTS
        segments = [write_segment(folder / f"disk/orders-{k}", cell, records, times) for k in range(SEGMENTS)]
        size = sum(path.stat().st_size for path in segments)
        key = RSA.generate(2048)
        pem = key.export_key(pkcs=8)
        (folder / "key1.pem").write_bytes(pem)
        (folder / "keys.json").write_text('{"key1": "key1.pem"}')
        write = partial(write_bucket, segments, records=records * times)
        plain = write(folder / "plain", compressed=False, key=None)
        zstd = write(folder / "zstd", compressed=True, key=None)
        both = write(folder / "both", compressed=True, key=key)
        read = partial(totals, spark, columns="offset, key, value", total="sum(length(value))")
        taken = interleave(
            {
                "disk": read(f"{folder}/disk"),
                "plain": read(plain),
                "zstd": read(zstd),
                "both": read(both, encryptionKeys=f"{folder}/keys.json"),
                "undone": lambda: _undone(folder / "both", key),
            },
            rounds=3,
        )
    disk, peer = taken["disk"], "the same segments on disk"
    work = "1 GB of 1 KB records in a bucket, two cores: "
    alone = Timing(tuple(size / seconds / 1e9 for seconds in taken["undone"].samples))
    return [
        faster(f"{work}plain", taken["plain"], peer, disk, 0.8, size, "B"),
        faster(f"{work}zstd", taken["zstd"], peer, disk, 0.5, size, "B"),
        faster(f"{work}zstd and encrypted", taken["both"], peer, disk, 0.35, size, "B"),
        # The time of AES-GCM and zstd alone for the same chunks on one core; not a claim.
        above("1 GB of the same chunks: AES-GCM and zstd alone, a core", alone, "GB/s", 0),
    ]


def _undone(bucket: Path, key: RSA.RsaKey) -> None:
    """Decrypt and decompress all chunks, and nothing else."""
    from sparkwire.kafka.tiered.chunks import ChunkLayer
    from sparkwire.kafka.tiered.manifest import parsed

    for path in bucket.rglob("*.rsm-manifest"):
        manifest = parsed(path.read_bytes(), path.name, path.with_suffix(".log").stat().st_size)
        layer = ChunkLayer(manifest.chunks, manifest.encryption, Keys(f"{bucket.parent}/keys.json"))
        data, begin = path.with_suffix(".log").read_bytes(), 0
        for k, end in enumerate(manifest.chunks.ends.tolist()):
            layer.original(data[begin:end], k)
            begin = end


# -- requests


def _one_offset() -> list[Row]:
    """The requests for a thousand segments in an object store."""
    top = f"tiered/orders-{TOPIC_ID}/0"
    with running_store() as server, tempfile.TemporaryDirectory() as name:
        store, folder = server.bucket("tiered"), Path(name)
        cell, records = log(SMALL_CELL, 100)
        cells = [1] * SEGMENTS_STORED
        cells[SEGMENTS_STORED // 2] = CELLS_SOUGHT
        whole, first = write_segment(folder / "whole", cell, records, sum(cells)), 0
        entries = np.fromfile(whole.with_suffix(".index"), ">i4").reshape(-1, 2)
        segment = folder / "segment.log"
        with whole.open("rb") as data:
            for count in cells:
                begin, stop = first * records, (first + count) * records
                segment.write_bytes(data.read(count * len(cell)))
                own = entries[(entries[:, 0] > begin) & (entries[:, 0] < stop)] - (begin, first * len(cell))
                own.astype(">i4").tofile(segment.with_suffix(".index"))
                write_copy(segment, folder / "0", range(begin, stop), False, None)
                first += count
        paths = sorted((folder / "0").iterdir())
        for path in paths:
            if path == paths[-3]:
                time.sleep(1.1)  # the store's dates are whole seconds, and the date determines the newest segment
            with store.open_output_stream(f"{top}/{path.name}") as out:
                out.write(path.read_bytes())
        server.requests.clear()
        offset = (SEGMENTS_STORED // 2 + CELLS_SOUGHT // 2) * records + 7
        options = {"path": f"s3://{top}{server.query}", "columns": "offset", "startingOffset": str(offset)}
        query = kafka_log.query({**options, "endingOffset": str(offset + 1)})
        batches = [batch for task in kafka_log.plan(query) for batch in kafka_log.read(query, task)]
        requests, opened = server.object_requests(top), server.opened(top)
    assert [row["offset"] for batch in batches for row in batch.to_pylist()] == [offset]
    chunks = [ranges.split("-") for path, ranges in requests if path.endswith(".log")]
    fetched = sum(int(last) - int(first) + 1 for first, last in chunks)
    return [
        below("one offset of 1,000 segments: GET requests beyond the listing", Timing((len(requests),)), "requests", 5),
        # Requests of pyarrow, one for each object that it opens: its Python API does not accept a known size.
        below("one offset of 1,000 segments: HEAD requests", Timing((opened,)), "requests", 6),
        below("one offset of 1,000 segments: what is fetched of chunks", Timing((fetched / CHUNK,)), "chunks", 2),
    ]


# -- planning


def _planning() -> list[Row]:
    """A hundred thousand segments by name, in a separate process to measure its memory."""
    command = [sys.executable, "-m", "benchmarks.tiers"]
    plans = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
    seconds, megabytes = (Timing(tuple(run[k] for run in plans)) for k in (0, 1))
    return [
        below(f"planning {NAMED:,} segments", seconds, "s", 4),
        below(f"planning {NAMED:,} segments: memory", megabytes, "MB", 300),
    ]


def plan_names() -> tuple[float, float]:
    """The time [s], and the growth of the process up to its peak [MB]."""
    before = peak()
    each = NAMED // PARTITIONS
    with tempfile.TemporaryDirectory() as name:
        files = []
        for partition in range(PARTITIONS):
            folder = Path(name) / f"orders-{TOPIC_ID}/{partition}"
            folder.mkdir(parents=True)
            sizes = {".indexes": 1000, ".log": 1 << 30, ".rsm-manifest": 1000}
            stems = [f"{folder}/{offset:020}-{offset:022}" for offset in range(0, 1000 * each, 1000)]
            files += [
                File("", stem + suffix, "", size, k + 1.0)
                for k, stem in enumerate(stems)
                for suffix, size in sizes.items()
            ]
            files[-1] = _newest(folder, each - 1, files[-1])
        began = time.perf_counter()
        segments = remote.bucket_segments(in_bucket(files), Keys(""), by_names=True)
        parts = plan.parts(segments, plan.LogBounds(), plan.SelectedRows(), plan.NOT_TRANSACTED, True, TASK)
        tasks = plan.tasks(parts, TASK)
        taken = time.perf_counter() - began
    assert sum(map(len, tasks)) == NAMED
    return taken, peak() - before


def peak() -> float:
    """The peak memory of this process [MB]; the result of `getrusage` may be the parent's."""
    [line] = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def _newest(folder: Path, k: int, file: File) -> File:
    """The segment of a partition whose manifest is read."""
    segment = folder / "segment.log"
    segment.write_bytes(bytes(100))
    segment.with_suffix(".index").write_bytes(b"")
    other = folder / folder.name  # its name is the number of the partition, which the manifest has
    write_copy(segment, other, range(k * 1000, k * 1000 + 1000), False, None)
    (written,) = other.glob("*.rsm-manifest")
    target = Path(file.path)
    target.write_text(written.read_text())
    written.with_suffix(".indexes").replace(target.with_suffix(".indexes"))
    return file._replace(size=target.stat().st_size)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(plan_names()))
