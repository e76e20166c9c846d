"""A partition's picture agrees for every offset with Kafka's consumers, and with the changes of the files."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sparkwire
from sparkwire.kafka.drawing import (
    FAULTS,
    TIERS,
    TRANSACTIONS,
    DrawnBatches,
    PictureColumns,
    Strip,
    batches_of,
    draw,
    strips,
)
from sparkwire.kafka.files import kafka_log
from tests.support import kafka_tiered as tiered
from tests.support.log_files import CREATED, entry, segment

CLUSTER = sparkwire.samples() / "cluster"
DISK, BUCKET = CLUSTER / "disk", {"remotePath": str(CLUSTER / "bucket")}


def by_offset(strip: Strip) -> list[str]:
    return [strip.kinds[kind].name for kind in strip.columns]


def strips_of(path: Path, **options: str) -> dict[str, Strip]:
    """For a partition with fewer offsets than a picture has columns, so that each offset has a column."""
    batches = batches_of(str(path), "payments", 0, options)
    columns = PictureColumns(batches)
    assert columns.count == columns.end - columns.begin
    return strips(batches, columns)


def consumed(level: str) -> set[int]:
    text = tiered.run_files("plain")[f"truth/payments-0.{level}.jsonl"].decode()
    return {json.loads(line)["offset"] for line in text.splitlines()}


def test_transactions_agree_with_the_consumers() -> None:
    kinds = by_offset(strips_of(DISK, **BUCKET)["transactions"])
    every, committed = consumed("read_uncommitted"), consumed("read_committed")
    stable = max(committed)
    for offset in every:
        if offset in committed:
            assert kinds[offset] in ("none", "committed"), offset
        elif offset <= stable:
            assert kinds[offset] == "aborted", offset
        else:
            assert kinds[offset] != "committed", offset  # after an open transaction
    assert "open" in kinds


def test_tiers_and_epochs() -> None:
    strips = strips_of(DISK, **BUCKET)
    tiers = by_offset(strips["tier"])
    assert tiers.index("on disk") == 652  # the first segment on the disk
    assert set(tiers[:652]) == {"in the bucket"}
    assert set(tiers[652:]) == {"on disk"}
    assert [kind.name for kind in strips["epoch"].kinds[1:]] == ["0", "2"]


def test_a_corrupt_offset_does_not_change_the_scale(tmp_path: Path) -> None:
    folder = tmp_path / "payments-0"
    shutil.copytree(DISK / "payments-0", folder)
    segment = folder / "00000000000000001088.log"
    data = bytearray(segment.read_bytes())
    data[1] ^= 0x40  # a byte of the first batch's offset, which no checksum covers
    data[30] ^= 1
    segment.write_bytes(data)
    kinds = by_offset(strips_of(tmp_path)["corruption"])
    assert len(kinds) == 1176 - 652
    assert "corrupt" in kinds[1086 - 652 : 1100 - 652]


def test_gaps_and_corruption(tmp_path: Path) -> None:
    """A missing segment is a gap; a flipped bit is corruption; all other columns stay the same."""
    folder = tmp_path / "payments-0"
    shutil.copytree(DISK / "payments-0", folder)
    (folder / "00000000000000000868.log").unlink()
    segment = folder / "00000000000000001088.log"
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    kinds = by_offset(strips_of(tmp_path)["corruption"])
    before = by_offset(strips_of(DISK)["corruption"])
    assert set(before) == {"valid"}
    assert set(kinds[868 - 652 : 1088 - 652]) == {"gap"}
    assert kinds[1088 - 652] == "corrupt"
    assert set(kinds[: 868 - 652]) == {"valid"}
    assert kinds[-1] == "valid"


def test_save_and_show(tmp_path: Path) -> None:
    picture = sparkwire.kafka.picture(str(DISK), topic="payments", partition=0, **BUCKET)
    for suffix in ("png", "svg", "pdf"):
        picture.save(tmp_path / f"payments.{suffix}")
        assert (tmp_path / f"payments.{suffix}").stat().st_size > 5000
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert repr(picture) == "Picture(payments-0: offsets 0 to 1,175, 224 batches in 6 segments, 125.7 KiB)"


def test_exactly_one_partition(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pass topic and partition; .* has __cluster_metadata-0, "):
        sparkwire.kafka.picture(str(DISK))
    with pytest.raises(ValueError, match="has no batches of it"):
        sparkwire.kafka.picture(str(DISK), topic="payments", partition=7)
    assert "payments-1" in repr(sparkwire.kafka.picture(str(DISK / "payments-1")))


def test_a_partition_without_batches(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / "00000000000000000042.log").touch()
    with pytest.raises(ValueError, match="has no batches of it"):
        sparkwire.kafka.picture(str(tmp_path))


def many(count: int) -> DrawnBatches:
    """Batches of ten offsets, a thousand in each segment; every thousandth is of an aborted transaction."""
    numbers = np.arange(count)
    first = numbers.astype(np.int64) * 10
    query = kafka_log.query({"path": "", "rows": "batches", "columns": "size, file, tier, hidden, is_transactional"})
    table = pa.table(
        [
            np.full(count, 1000),
            pa.array([f"{k}.log" for k in range(count // 1000 + 1)]).take(pa.array(numbers // 1000)),
            pa.array(["remote", "local"]).take(pa.array((numbers >= count // 2).astype(np.int64))),
            pa.array(["ABORTED", None]).take(pa.array((numbers % 1000 != 0).astype(np.int64))),
            numbers % 1000 == 0,
        ],
        schema=kafka_log.schema(query),
    )
    for name, kind in (
        ("max_timestamp_ms", pa.int64()),
        ("partition_leader_epoch", pa.int32()),
        ("is_control", pa.bool_()),
    ):
        table = table.append_column(name, pa.nulls(count, kind))
    for name in ("compression", "error"):
        table = table.append_column(name, pa.nulls(count, pa.string()))
    return DrawnBatches("orders-0", table, first, first + 9)


@pytest.mark.parametrize("count", [10, 1_000_000])
def test_sizes_from_ten_batches_to_a_million(count: int) -> None:
    """Aggregation neither loses bytes nor hides rare states."""
    batches = many(count)
    columns = PictureColumns(batches)
    assert columns.count <= 1200
    assert columns.total(batches.column("size", 0)).sum() == pytest.approx(1000 * count)
    result = strips(batches, columns)
    aborted = TRANSACTIONS.index(next(kind for kind in TRANSACTIONS if kind.name == "aborted"))
    assert (result["transactions"].columns == aborted).sum() >= min(columns.count, max(count // 1000, 1)) * 0.8
    assert [TIERS[k].name for k in np.unique(result["tier"].columns)] == ["on disk", "in the bucket"]
    assert [FAULTS[k].name for k in np.unique(result["corruption"].columns)] == ["valid"]
    assert f"{count:,} batches" in draw(batches).title


@pytest.mark.parametrize(
    ("base", "time"),
    [(0, -(2**63)), (2**53, -1), (2**62, 0), (2**63 - 12, 253_402_300_800_000), (2**53, 2**63 - 1)],
)
def test_offsets_and_times_at_the_edges(tmp_path: Path, base: int, time: int) -> None:
    segment(tmp_path / "t-0", base, [entry(base, [b"a"] * 4, time=time), entry(base + 6, [b"b"] * 6, time=CREATED)])
    picture = sparkwire.kafka.picture(str(tmp_path))
    assert f"offsets {base:,} to {base + 11:,}" in picture.title
    assert picture._repr_png_().startswith(b"\x89PNG")
    batches = batches_of(str(tmp_path), None, None, {})
    assert np.flatnonzero(PictureColumns(batches).missing(batches)).tolist() == [4, 5]


def test_all_possible_offsets(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, [entry(0, [b"a"]), entry(2**63 - 1, [b"b"])])
    batches = batches_of(str(tmp_path), None, None, {})
    columns = PictureColumns(batches)
    assert (columns.count, columns.end) == (1200, 2**63)
    assert columns.missing(batches).sum() >= 1199
    assert draw(batches)._repr_png_()


@pytest.mark.parametrize("data", [b"", bytes(500), b"\xff" * 500, b"no log at all"])
def test_a_picture_of_other_bytes(tmp_path: Path, data: bytes) -> None:
    segment(tmp_path / "t-0", 0, [data])
    with nullcontext() if data else pytest.raises(ValueError, match=r"^picture draws one partition"):
        assert sparkwire.kafka.picture(str(tmp_path))._repr_png_()
