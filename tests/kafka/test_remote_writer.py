"""The independent writer of tiered storage: it writes the same bytes as the plugin, and they are read in the same way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sparkwire.kafka.files import kafka_log
from tests.support import kafka_tiered as tiered
from tests.support.oracles.tiered_writer import INDEXES, Key, write

KEY = "key1"


class Stored(NamedTuple):
    """An uncompressed and unencrypted segment that the plugin stored."""

    path: str
    objects: Mapping[str, bytes]

    @property
    def manifest(self) -> Any:
        return json.loads(self.objects["rsm-manifest"])

    def indexes(self) -> dict[str, bytes | None]:
        spans = self.manifest["segmentIndexes"]
        data = self.objects["indexes"]
        return {
            name: None if (span := spans[name]) is None else data[span["position"] :][: span["size"]]
            for name in INDEXES
        }

    def again(self, compressed: bool = False, key: Key | None = None) -> dict[str, bytes]:
        about, chunk = self.manifest["remoteLogSegmentMetadata"], self.manifest["chunkIndex"]["originalChunkSize"]
        return write(self.objects["log"], self.indexes(), about, chunk, compressed, key)


def segments() -> Iterator[Stored]:
    files = tiered.run_files("plain")
    for path in sorted(files):
        if path.startswith("remote/") and path.endswith(".rsm-manifest"):
            start = path.removesuffix("rsm-manifest")
            suffixes = ("log", "indexes", "rsm-manifest")
            yield Stored(start, {suffix: files[start + suffix] for suffix in suffixes})


def test_the_same_bytes_as_the_plugin() -> None:
    found = list(segments())
    assert len(found) > 20
    for segment in found:
        assert segment.again() == segment.objects, segment.path


@pytest.mark.parametrize(("compressed", "encrypted"), [(True, False), (False, True), (True, True)])
def test_written_segments_are_read(tmp_path: Path, compressed: bool, encrypted: bool) -> None:
    private = tiered.run_files("enc")[f"keys/{KEY}.private.pem"]
    public = tiered.run_files("enc")[f"keys/{KEY}.public.pem"]
    (tmp_path / "key.pem").write_bytes(private)
    (tmp_path / "keys.json").write_text(json.dumps({KEY: "key.pem"}))
    for segment in segments():
        changed = segment.again(compressed, Key(KEY, public) if encrypted else None)
        assert changed["log"] != segment.objects["log"]
        for bucket, objects in (("plugin", segment.objects), ("writer", changed)):
            for suffix, data in objects.items():
                file = tmp_path / bucket / f"{segment.path}{suffix}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
    read = rows(tmp_path / "plugin/remote")
    assert len(read) > 1000
    options = {"encryptionKeys": str(tmp_path / "keys.json")} if encrypted else {}
    assert rows(tmp_path / "writer/remote", **options) == read


def rows(bucket: Path, **options: str) -> list[dict[str, Any]]:
    names = "topic,partition,offset,timestamp_ms,partition_leader_epoch,key,value,headers,error"
    query = kafka_log.query({"columns": names, "path": str(bucket), **options})
    return [row for task in kafka_log.plan(query) for batch in kafka_log.read(query, task) for row in batch.to_pylist()]
