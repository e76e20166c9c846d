"""Unusual paths: any character in a key, Hadoop's schemes, brackets in a name, system directories of volumes."""

from __future__ import annotations

import logging
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest
from pyarrow import fs

from sparkwire.core.sources import storage
from sparkwire.core.sources.storage import OpenFile, PathParts, listed, place_of
from tests.integration.object_store import Server, running_store
from tests.kafka.test_files import rows
from tests.support.child import run_python
from tests.support.log_files import entries, segment

SEGMENT = b"".join(entries(0, 3))
NAME = f"{0:020}.log"
CHARACTERS = [" ", "a", "A", "0", *string.punctuation.replace("/", ""), *"öß日"]
"""each character that a path may give a meaning, and one of each other kind"""
ODD = ["my data", "a%20b", "a%2520b", "a#b", "a?b=c&d", "w[1]", "{a,b}", "größe", "*", "a+b", " x ", "a\\b", "a:b"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_store() as server:
        yield server


@pytest.fixture(scope="module")
def bucket(server: Server) -> str:
    """A bucket with a partition under every odd prefix, and under each of the characters."""
    store = server.bucket("odd")
    for prefix in (*ODD, "".join(CHARACTERS), *(f"char {ord(c)}: {c}" for c in CHARACTERS)):
        with store.open_output_stream(f"odd/{prefix}/orders-0/{NAME}") as out:
            out.write(SEGMENT)
    return "s3://odd"


@pytest.mark.parametrize("prefix", [*ODD, "".join(CHARACTERS)])
def test_a_prefix_of_any_characters(server: Server, bucket: str, prefix: str) -> None:
    for path in (f"{bucket}/{prefix}", f"{bucket}/{prefix}/orders-0/", f"{bucket}/{prefix}/orders-0/{NAME}"):
        result = rows(path + server.query)
        assert [row["offset"] for row in result] == [0, 1, 2]
        assert {row["file"] for row in result} == {f"{bucket}/{prefix}/orders-0/{NAME}"}


def test_every_kind_of_character_and_a_glob_over_all(server: Server, bucket: str) -> None:
    files = listed(f"{bucket}/char *{server.query}").files
    assert len(files) == len(CHARACTERS)
    for file in files:
        with OpenFile(file) as source:
            assert source.view(0, 1000).tobytes() == SEGMENT
        assert [again.path for again in listed(f"s3://odd{file.path}{server.query}").files] == [file.path]


def test_an_encoded_path_is_decoded_if_nothing_has_its_name(server: Server, bucket: str) -> None:
    assert rows(f"{bucket}/my%20data{server.query}")[0]["file"] == f"{bucket}/my data/orders-0/{NAME}"
    assert rows(f"{bucket}/a%20b{server.query}")[0]["file"] == f"{bucket}/a%20b/orders-0/{NAME}"


def test_a_key_that_pyarrow_cannot_open_is_skipped_with_a_warning(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.bucket("slashes")
    client = boto3.client("s3", endpoint_url=server.url, region_name="us-east-1")
    client.put_object(Bucket="slashes", Key=f"top/orders-0/{NAME}", Body=SEGMENT)
    client.put_object(Bucket="slashes", Key=f"top//orders-1/{NAME}", Body=SEGMENT)
    with caplog.at_level(logging.WARNING, logger="sparkwire"):
        assert len(rows(f"s3://slashes/t*{server.query}")) == 3
    assert f"s3://slashes/top//orders-1/{NAME} is skipped: pyarrow.fs opens no key with two slashes" in caplog.text
    with pytest.raises(ValueError, match=r"^path s3://slashes/top//orders-1 cannot be opened: Empty path component"):
        rows(f"s3://slashes/top//orders-1{server.query}")


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3"])
def test_hadoops_schemes(server: Server, bucket: str, scheme: str) -> None:
    assert len(rows(f"{scheme}://odd/my data{server.query}")) == 3


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("dbfs:/data/x", PathParts("", "/dbfs/data/x", "")),
        ("dbfs:///data/x", PathParts("", "/dbfs/data/x", "")),
        ("dbfs:/Volumes/main/raw/x", PathParts("", "/Volumes/main/raw/x", "")),
        ("file:/data/x#1?y", PathParts("", "/data/x#1?y", "")),
        ("wasbs://c@a.blob.core.windows.net/x y/", PathParts("abfss://c@a.dfs.core.windows.net", "/x y", "")),
        ("abfss://c@a.dfs.core.windows.net/x", PathParts("abfss://c@a.dfs.core.windows.net", "/x", "")),
        ("hdfs://name:8020/a//b", PathParts("hdfs://name:8020", "/a//b", "")),
        ("gs://b/x?endpoint_override=localhost:9", PathParts("gs://b", "/x", "?endpoint_override=localhost:9")),
        ("s3://b/x?y/z?endpoint_override=http://h:9&scheme=http", PathParts("s3://b", "/x?y/z", "?endpoint_override=http://h:9&scheme=http")),
        ("s3://b", PathParts("s3://b", "", "")),
    ],
)  # fmt: skip
def test_places(path: str, place: PathParts) -> None:
    assert place_of(path) == place


def test_options_that_pyarrow_does_not_support_in_a_uri(server: Server, bucket: str) -> None:
    # pyarrow before 16 has no force_virtual_addressing.
    flag = "force_virtual_addressing" if "force_virtual_addressing" in str(fs.S3FileSystem.__doc__) else "anonymous"
    assert len(rows(f"{bucket}/my data{server.query}&scheme=http&{flag}=false")) == 3
    with pytest.raises(ValueError, match=r"^path s3://odd/my data cannot be opened: .*colour"):
        rows(f"{bucket}/my data{server.query}&anonymous=false&colour=red")


def test_credentials_in_a_uri_are_not_shown() -> None:
    assert place_of("s3://key:secret@bucket/x").shown == "s3://bucket/x"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "oss://b/x",
            r"^path oss://b/x cannot be opened: Alibaba's OSS speaks S3 as well: write s3://bucket/path\?endpoint",
        ),
        ("swift://b/x", r"^path swift://b/x cannot be opened: Unrecognized filesystem type"),
    ],
)
def test_a_store_that_pyarrow_does_not_have(path: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rows(path)


def test_a_directory_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    for name in ("w[1]", "w1", "a{b,c}"):
        segment(tmp_path / name / "orders-0", 0, [SEGMENT])
    for path in ("w[1]", "w[1]/orders-0", "a{b,c}", "a{b,c}/orders-*"):
        result = {row["file"] for row in rows(tmp_path / path)}
        assert result == {str(tmp_path / path.split("/")[0] / "orders-0" / NAME)}
    both = {row["file"] for row in rows(tmp_path / "w[1]" / "*", replicas="all")}
    assert both == {str(tmp_path / name / "orders-0" / NAME) for name in ("w[1]", "w1")}


CHILD = """
import os, sys
from sparkwire.kafka.files import kafka_log
if os.getuid() == 0:
    os.setuid(65534)
try:
    print([segment.file.path for segment in kafka_log.find([sys.argv[1]])])
except PermissionError as error:
    print(error)
"""


@pytest.mark.process
def test_directories_that_are_not_partitions_need_no_permission() -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        path = segment(top / "orders-0", 0, [SEGMENT])
        for closed in ("lost+found", "private"):
            (top / closed).mkdir(mode=0)
        assert run_python("-c", CHILD, str(top)).splitlines()[-1] == f"['{path}']"
        (top / "orders-1").mkdir(mode=0)
        said = run_python("-c", CHILD, str(top)).splitlines()[-1]
        assert said.startswith(f"path {top}: you do not have permission to read it: "), said
        assert f"{top}/orders-1" in said


def test_databus_files_beside_system_directories() -> None:
    assert [storage._is_user_file(name) for name in ("lost+found", ".Trash-0", "events")] == [False, False, True]
