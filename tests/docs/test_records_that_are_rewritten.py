"""Check the results of the examples that remove or change records, over logs with everything that a broker may write.

The logs have NULL keys, NULL values, and a committed, an aborted and an open transaction. One partition has only records to
delete, and one has no records.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import crc32c
import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from tests.docs import test_way_back_page as guide
from tests.support import ROOT

COPY, RESTORE, CLONE, ERASE, PROVE, THIN = range(6)
TRANSACTIONAL, CONTROL = 1 << 4, 1 << 5
ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)
PERSON = "user-17"
MAIL = b'{"user":"heidi","email":"a@b.c"}'
OTHER = b'{"user":"ivan","email":"c@d.e"}'
FREE = b'{"user":"ivan","email":null}'

Pair = tuple[bytes | None, bytes | None]
Records = list[tuple[int, bytes | None, bytes | None]]
Left = dict[int, Records]


def varint(number: int) -> bytes:
    zigzag, out = number << 1 if number >= 0 else ~(number << 1), b""
    while zigzag > 127:
        zigzag, out = zigzag >> 7, out + bytes([zigzag & 127 | 128])
    return out + bytes([zigzag])


def text(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def entry(base: int, records: Sequence[Pair], producer: int = -1, attributes: int = 0) -> bytes:
    """A record batch."""
    body = b""
    for k, (key, value) in enumerate(records):
        one = b"\0" + varint(0) + varint(k) + text(key) + text(value) + varint(0)
        body += varint(len(one)) + one
    count, epoch = len(records), -1 if producer < 0 else 0
    time = 1_600_000_000_000 + base
    covered = struct.pack(">hiqqqhii", attributes, count - 1, time, time, producer, epoch, epoch, count) + body
    return struct.pack(">qiibI", base, 9 + len(covered), 0, 2, crc32c.crc32c(covered)) + covered


def partitions(person: bytes) -> dict[int, bytes]:
    """The log of each partition; partition 3 has an open transaction."""

    def transaction(base: int, producer: int, ending: bytes | None) -> bytes:
        data = entry(base, [(b"user-2", OTHER), (None, OTHER)], producer, TRANSACTIONAL)
        if ending is None:
            return data
        return data + entry(base + 2, [(ending, bytes(6))], producer, TRANSACTIONAL | CONTROL)

    plain = entry(0, [(b"user-1", OTHER), (None, OTHER), (b"user-1", None), (None, None), (person, MAIL)])
    return {
        0: plain + transaction(5, 7, COMMIT) + transaction(8, 8, ABORT),
        1: entry(0, [(person, MAIL), (person, None), (person, MAIL)]),
        2: b"",
        3: plain + transaction(5, 7, None) + entry(7, [(b"user-3", OTHER), (None, OTHER)]),
    }


ENDS = {0: 11, 1: 3, 2: 0, 3: 9}
FIRST: Records = [
    (0, b"user-1", OTHER), (1, None, OTHER), (2, b"user-1", None), (3, None, None)
]  # fmt: skip
COMMITTED: Records = [(5, b"user-2", OTHER), (6, None, OTHER)]


def kept(person: bytes) -> Left:
    """The records for `read_committed`: in partition 3, those before the open transaction."""
    hers: Records = [(4, person, MAIL)]
    return {
        0: FIRST + hers + COMMITTED,
        1: [(0, person, MAIL), (1, person, None), (2, person, MAIL)],
        3: FIRST + hers,
    }


WITHOUT_PERSON: Left = {0: FIRST + COMMITTED, 3: FIRST}


def freed(left: Left) -> Left:
    return {p: [(k, key, value and FREE) for k, key, value in some] for p, some in left.items()}


def make(top: Path, person: str = PERSON, has_open: bool = True, topic: str = "orders") -> Path:
    for partition, data in partitions(person.encode()).items():
        if has_open or partition != 3:
            folder = top / f"{topic}-{partition}"
            folder.mkdir(parents=True)
            (folder / f"{0:020}.log").write_bytes(data)
    return top


def left(spark: SparkSession, top: Path, topic: str = "orders") -> Left:
    """The records of each partition with `read_uncommitted`."""
    by_name: Left = {}
    rows = spark.read.format("kafka_log").load(str(top)).where(f"topic = '{topic}'").orderBy("partition", "offset")
    for row in rows.collect():
        assert row.error is None
        key, value = (None if one is None else bytes(one) for one in (row.key, row.value))
        by_name.setdefault(row.partition, []).append((row.offset, key, value))
    return by_name


def ends(top: Path, topic: str = "orders") -> dict[int, int]:
    return {
        int(one.name.rpartition("-")[2]): one.next
        for one in sparkwire.kafka.check(str(top)).partitions
        if one.name.rpartition("-")[0] == topic
    }


@pytest.fixture
def disk(spark: SparkSession, tmp_path: Path) -> Path:
    """The directories on the page."""
    top = tmp_path / "disk"
    make(top / "kafka")
    make(top / "old")
    make(top / "old", topic="__consumer_offsets", has_open=False)
    read_committed(spark, top / "kafka").write.parquet(str(top / "backup" / "orders"))
    return top


def read_committed(spark: SparkSession, top: Path) -> DataFrame:
    return spark.read.format("kafka_log").option("isolationLevel", "read_committed").load(f"{top}/orders-*")


@pytest.mark.parametrize("block", [COPY, RESTORE, CLONE])
def test_all_committed_records_are_rewritten(spark: SparkSession, disk: Path, tmp_path: Path, block: int) -> None:
    """The log keeps its end offset. Without ``source``, a partition without rows is not written."""
    guide.run(spark, disk, tmp_path / "restored", block)
    assert left(spark, tmp_path / "restored") == kept(PERSON.encode())
    assert ends(tmp_path / "restored") == (ENDS if block != RESTORE else {p: ENDS[p] for p in (0, 1, 3)})
    if block == CLONE:
        without_open = {p: some for p, some in kept(PERSON.encode()).items() if p != 3}
        assert left(spark, tmp_path / "restored", "__consumer_offsets") == without_open


@pytest.mark.parametrize("block", [ERASE, THIN])
def test_a_recipe_stops_at_an_open_transaction(spark: SparkSession, disk: Path, tmp_path: Path, block: int) -> None:
    """Otherwise all records after its start would be missing, and the recipe's own checks would pass."""
    with pytest.raises(RuntimeError, match=r"^a transaction is open: end it on a running broker"):
        guide.run(spark, disk, tmp_path / "restored", block)
    assert not (tmp_path / "restored").exists()


def end_transaction(disk: Path) -> None:
    """Remove the partition with the open transaction."""
    shutil.rmtree(disk / "kafka" / "orders-3")


def test_a_person_is_erased(spark: SparkSession, disk: Path, tmp_path: Path) -> None:
    end_transaction(disk)
    names = guide.run(spark, disk, tmp_path / "restored", ERASE)
    guide.run(spark, disk, tmp_path / "restored", PROVE, names)
    assert left(spark, tmp_path / "restored") == freed({0: WITHOUT_PERSON[0]})
    assert ends(tmp_path / "restored") == {p: ENDS[p] for p in (0, 1, 2)}


def test_the_last_of_each_key(spark: SparkSession, disk: Path, tmp_path: Path) -> None:
    """A key whose last record is a tombstone is gone; records without a key stay."""
    end_transaction(disk)
    guide.run(spark, disk, tmp_path / "restored", THIN)
    hers = (4, PERSON.encode(), MAIL)
    assert left(spark, tmp_path / "restored") == {
        0: [FIRST[1], FIRST[3], hers, *COMMITTED],
        1: [(2, PERSON.encode(), MAIL)],
    }
    assert ends(tmp_path / "restored") == {p: ENDS[p] for p in (0, 1, 2)}


def test_the_example_of_write(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path / "backup", "u-17")
    code = re.findall(r"^ *>>> (.*)$", inspect.getdoc(sparkwire.kafka.write) or "", re.MULTILINE)
    assert any(".where(" in line for line in code)
    run("\n".join(code), spark, {"/backup": tmp_path / "backup", "/cleaned": tmp_path / "cleaned"})
    assert left(spark, tmp_path / "cleaned") == WITHOUT_PERSON
    assert ends(tmp_path / "cleaned") == ENDS


def test_the_cell_of_the_notebook(spark: SparkSession, tmp_path: Path) -> None:
    """It erases by the value, so a record without a value stays."""
    make(tmp_path / "backup")
    cells = json.loads((ROOT / "notebooks" / "06_erasure.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    read = next(source for source in sources if source.startswith("source = "))
    erase = next(source for source in sources if "sparkwire.kafka.write(" in source)
    code = "from pyspark.sql import functions as F\nimport tempfile\n" + read + "\n" + erase
    code = code.replace('str(sparkwire.samples() / "kafka" / "orders-0")', repr(f"{tmp_path / 'backup'}/orders-*"))
    names = run(code.replace("tempfile.mkdtemp()", repr(str(tmp_path / "restored"))), spark, {})
    assert names["report"].partitions
    assert left(spark, tmp_path / "restored") == WITHOUT_PERSON | {1: [(1, PERSON.encode(), None)]}
    assert ends(tmp_path / "restored") == ENDS


def run(code: str, spark: SparkSession, places: dict[str, Path]) -> dict[str, Any]:
    for place, instead in places.items():
        code = code.replace(f'"{place}', f'"{instead}')
    names: dict[str, Any] = {"spark": spark, "sparkwire": sparkwire}
    exec(code, names)
    return names


# -- in place


def test_in_place(spark: SparkSession, tmp_path: Path) -> None:
    make(tmp_path / "disk" / "kafka", has_open=False)
    guide.run(spark, tmp_path / "disk", tmp_path / "disk" / "kafka", ERASE)
    assert left(spark, tmp_path / "disk" / "kafka") == {0: freed(WITHOUT_PERSON)[0]}
    assert ends(tmp_path / "disk" / "kafka") == {p: ENDS[p] for p in range(3)}


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (COPY, "orders-3 with an incomplete reading: a transaction is open from offset 5 "),
        (ERASE, "a transaction is open: end it"),
        (THIN, "a transaction is open: end it"),
    ],
)
def test_in_place_over_an_open_transaction(spark: SparkSession, disk: Path, block: int, reason: str) -> None:
    """Later records are not read and would be lost, so no partition is written."""
    before = {path: path.read_bytes() for path in sorted((disk / "kafka").rglob("*.*"))}
    with pytest.raises(Exception, match=reason):
        guide.run(spark, disk, disk / "kafka", block, overwrites=True)
    assert {path: path.read_bytes() for path in sorted((disk / "kafka").rglob("*.*"))} == before


def test_in_place_without_hidden_records(spark: SparkSession, disk: Path) -> None:
    """The column `hidden` marks all records after an open transaction."""
    source = f"{disk}/kafka/orders-*"
    log = spark.read.format("kafka_log").load(source)
    columns = ", ".join([*log.columns, "hidden"])
    shown = spark.read.format("kafka_log").option("columns", columns).load(source).where("hidden IS NULL")
    before = left(spark, disk / "kafka")
    with pytest.raises(Exception, match="orders-3 with an incomplete reading: a transaction is open from offset 5 on"):
        sparkwire.kafka.write(shown, str(disk / "kafka"), mode="overwrite", sourcePath=source)
    assert left(spark, disk / "kafka") == before
