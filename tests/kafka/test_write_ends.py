"""Start and end of written logs: the same as of their source logs, for any rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import kafka
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.write import write_log
from sparkwire.kafka.write.log_ends import extent_of
from tests.kafka.test_write_log import Row, batch, files, read, rows_of, write
from tests.support import kafka_cases as golden
from tests.support.arrow import ask, with_column


def extents(path: Path) -> dict[str, tuple[int, int]]:
    """Start and end of each partition for a broker."""
    report = kafka.check(str(path))
    wrong = [one for one in report.findings if one.action not in ("stray",)]
    assert wrong == []
    return {one.name: (one.first, one.next) for one in report.partitions}


def marked(rows: list[Row], source: Path | str, committed: bool = False, **more: pa.Array) -> pa.RecordBatch:
    """Rows as `kafka_log` returns them to Spark: the columns have their origin."""
    given = batch(rows or rows_of(1)).slice(0, len(rows))
    for name, column in more.items():
        given = with_column(given, name, column)
    metadata = {kafka_log.ORIGIN: kafka_log.origin_of([str(source)], "", "", committed).text}
    fields = [field.with_metadata(metadata) if field.name in kafka_log.MARKED else field for field in given.schema]
    return pa.RecordBatch.from_arrays(given.columns, schema=pa.schema(fields))


def transactions(folder: Path) -> list[Row]:
    """A broker's partition whose last record is a marker, read with read_committed."""
    folder.mkdir(parents=True)
    data = golden.archive("segments_v2")["v2_txn/00000000000000000000.log"]
    (folder / f"{0:020}.log").write_bytes(data)
    return [
        {name: row[name] for name in ("topic", "partition", "offset", "timestamp_ms", "key", "value", "headers")}
        for row in read(folder, isolationLevel="read_committed")
    ]


def test_the_end_is_that_of_the_source(tmp_path: Path) -> None:
    """Also if it ends with markers, and if the last records are omitted."""
    rows = transactions(tmp_path / "old" / "orders-0")
    end = extent_of(kafka_log.find([str(tmp_path / "old")])).end
    assert end > rows[-1]["offset"] + 1
    for k, some in enumerate((rows, rows[:-5], rows[:1])):
        top = tmp_path / f"new {k}"
        write(top, marked(some, tmp_path / "old", True), overwrite=True)
        assert extents(top) == {"orders-0": (0, end)}
        assert [row["offset"] for row in read(top)] == [row["offset"] for row in some]
        [*_, last] = sorted((top / "orders-0").glob("*.log"))
        [empty] = ask("kafka_batches", [last.read_bytes()])[0]
        assert (empty["last_offset"], empty["record_count"], empty["crc_valid"]) == (end - 1, 0, True)


def test_the_start_is_that_of_the_source(tmp_path: Path) -> None:
    write(tmp_path / "old", rows_of(30, first=40))
    write(tmp_path / "new", marked(rows_of(10, first=55), tmp_path / "old" / "orders-*"), ifExists="error")
    assert extents(tmp_path / "new") == {"orders-0": (40, 70)}
    assert [row["offset"] for row in read(tmp_path / "new", startingOffset="41")] == list(range(55, 65))


def test_an_overwritten_log_keeps_its_end(tmp_path: Path) -> None:
    """For any origin of the rows; a log without writes has no start to keep."""
    write(tmp_path, rows_of(30, first=40))
    write(tmp_path, rows_of(5, first=50), overwrite=True)
    assert extents(tmp_path) == {"orders-0": (40, 70)}
    write(tmp_path, rows_of(5, first=30), overwrite=True)
    assert extents(tmp_path) == {"orders-0": (30, 70)}
    write(tmp_path, rows_of(5, first=80), overwrite=True)
    assert extents(tmp_path) == {"orders-0": (30, 85)}
    fresh = tmp_path / "fresh" / "orders-0"
    fresh.mkdir(parents=True)
    (fresh / f"{0:020}.log").write_bytes(b"")
    write(fresh.parent, rows_of(5, first=30), overwrite=True)
    assert extents(fresh.parent) == {"orders-0": (30, 35)}


def test_rows_are_appended_after_the_end(tmp_path: Path) -> None:
    write(tmp_path, rows_of(5), endOffset=20)
    with pytest.raises(ValueError, match="orders-0 ends at offset 19, but the rows to append begin with 5"):
        write(tmp_path, rows_of(5, first=5))
    write(tmp_path, rows_of(5, first=20))
    assert extents(tmp_path) == {"orders-0": (0, 25)}
    assert [row["offset"] for row in read(tmp_path)] == [*range(5), *range(20, 25)]
    rows = [{name: value for name, value in row.items() if name != "offset"} for row in rows_of(3)]
    write(tmp_path, rows, offsets="assign")
    assert [row["offset"] for row in read(tmp_path)][-3:] == [25, 26, 27]


def test_appended_rows_do_not_use_the_ends_of_a_source(tmp_path: Path) -> None:
    """They are only a part of the rows, and the next part follows."""
    write(tmp_path / "old", rows_of(30))
    for k in range(3):
        write(tmp_path / "new", marked(rows_of(10, first=10 * k), tmp_path / "old"))
    assert extents(tmp_path / "new") == {"orders-0": (0, 30)}
    assert len(list((tmp_path / "new").rglob("*.log"))) == 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"endOffset": 20}, {"orders-0": (5, 20), "orders-1": (5, 20)}),
        ({"startOffset": 2}, {"orders-0": (2, 8), "orders-1": (2, 8)}),
        ({"startOffset": 6, "endOffset": 6}, {"orders-0": (5, 8), "orders-1": (5, 8)}),
        ({"endOffset": json.dumps({"orders": {"1": 20}})}, {"orders-0": (5, 8), "orders-1": (5, 20)}),
        ({"startOffset": json.dumps({"orders": {"0": 1}, "x": {}})}, {"orders-0": (1, 8), "orders-1": (5, 8)}),
        ({"endOffset": 2**33}, {"orders-0": (5, 2**33), "orders-1": (5, 2**33)}),
        ({"endOffset": 2**63 - 1}, {"orders-0": (5, 2**63 - 1), "orders-1": (5, 2**63 - 1)}),
    ],
)
def test_options(tmp_path: Path, options: dict[str, Any], expected: dict[str, tuple[int, int]]) -> None:
    write(tmp_path, [*rows_of(3, first=5), *rows_of(3, first=5, partition=1)], **options)
    assert extents(tmp_path) == expected
    assert [row["offset"] for row in read(tmp_path)] == [5, 6, 7, 5, 6, 7]


def test_a_start_that_is_far_before_the_rows(tmp_path: Path) -> None:
    """Further than a segment's index can address."""
    write(tmp_path, rows_of(3, first=2**40), startOffset=7)
    assert extents(tmp_path) == {"orders-0": (7, 2**40 + 3)}
    assert [row["offset"] for row in read(tmp_path)] == [2**40 + k for k in range(3)]


@pytest.mark.parametrize(
    "value", ["-1", "x", "[1]", '{"orders": 5}', '{"orders": {"0": -1}}', "9223372036854775808", "1.5"]
)
def test_invalid_offsets(value: str) -> None:
    with pytest.raises(ValueError, match=r"kafka_log takes endOffset an offset from 0 to 9223372036854775807, or"):
        write_log.write_of({"path": "/nowhere", "endOffset": value}, batch(rows_of(1)).schema, False)


# -- partitions without rows


def test_a_partition_without_rows_is_emptied(tmp_path: Path) -> None:
    """If the source is named; the partition keeps its start and end."""
    for partition in range(3):
        write(tmp_path, rows_of(10, first=5, partition=partition))
    kept = marked([*rows_of(4, first=5), *rows_of(2, first=8, partition=2)], tmp_path / "orders-*")
    write(tmp_path, kept, overwrite=True, sourcePath=tmp_path / "orders-*")
    assert extents(tmp_path) == {f"orders-{k}": (5, 15) for k in range(3)}
    assert [(row["partition"], row["offset"]) for row in read(tmp_path)] == [
        (0, 5), (0, 6), (0, 7), (0, 8), (2, 8), (2, 9),
    ]  # fmt: skip
    write(tmp_path, kept.slice(0, 0), overwrite=True, sourcePath=tmp_path / "orders-*")
    assert extents(tmp_path) == {f"orders-{k}": (5, 15) for k in range(3)}
    assert read(tmp_path) == []


def test_into_another_directory_as_well(tmp_path: Path) -> None:
    for partition in range(2):
        write(tmp_path / "old", rows_of(10, first=5, partition=partition))
    write(tmp_path / "new", batch(rows_of(4, first=5)), sourcePath=tmp_path / "old")
    assert extents(tmp_path / "new") == {"orders-0": (5, 15), "orders-1": (5, 15)}
    write(tmp_path / "again", batch(rows_of(1)).slice(0, 0), sourcePath=tmp_path / "new")
    assert extents(tmp_path / "again") == extents(tmp_path / "new")


def test_one_partition_by_options(tmp_path: Path) -> None:
    write(tmp_path, rows_of(10))
    none = pa.RecordBatch.from_pydict({"offset": pa.array([], pa.int64())})
    write(tmp_path, none, overwrite=True, topic="orders", partition=0)
    assert extents(tmp_path) == {"orders-0": (0, 10)}
    assert read(tmp_path) == []


def test_a_partition_is_not_emptied_without_an_option(tmp_path: Path) -> None:
    for partition in range(2):
        write(tmp_path, rows_of(10, partition=partition))
    before = files(tmp_path)
    some = marked(rows_of(4), tmp_path / "orders-*")
    with pytest.raises(ValueError, match=r"orders-1 was read, but no row of it is left to write. Pass sourcePath"):
        write(tmp_path, some, overwrite=True)
    assert files(tmp_path) == before
    write(tmp_path, some, overwrite=True, sourcePath=tmp_path / "orders-0")
    assert [(row["partition"], row["offset"]) for row in read(tmp_path)] == [
        *((0, k) for k in range(4)), *((1, k) for k in range(10)),
    ]  # fmt: skip
    write(tmp_path, some, overwrite=True, sourcePath=tmp_path / "orders-*")
    write(tmp_path, some, overwrite=True)  # a partition without records cannot lose any
    assert extents(tmp_path) == {"orders-0": (0, 10), "orders-1": (0, 10)}


def test_a_topic_without_rows_is_not_emptied_with_others(tmp_path: Path) -> None:
    write(tmp_path, [*rows_of(3), *rows_of(3, topic="other")])
    before = files(tmp_path)
    with pytest.raises(ValueError, match="sourcePath has several topics, and no row of other is left"):
        write(tmp_path, rows_of(2), overwrite=True, sourcePath=tmp_path)
    assert files(tmp_path) == before


def test_a_deleted_source(tmp_path: Path) -> None:
    """A table keeps the path of its rows, which no longer exists."""
    write(tmp_path, marked(rows_of(3), "/nowhere/orders-*"), overwrite=True)
    assert extents(tmp_path) == {"orders-0": (0, 3)}
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        write(tmp_path, rows_of(3), overwrite=True, sourcePath="/nowhere/orders-*")


def test_another_name(tmp_path: Path) -> None:
    """The ends of a renamed topic's partitions are those of the source topic."""
    write(tmp_path / "old", [*rows_of(9, first=3), *rows_of(5, first=3, partition=1)])
    rows = [{name: value for name, value in row.items() if name != "topic"} for row in rows_of(2, first=3)]
    write(tmp_path / "new", rows, topic="copy", sourcePath=tmp_path / "old")
    assert extents(tmp_path / "new") == {"copy-0": (3, 12), "copy-1": (3, 8)}


# -- records that a broker has deleted


def test_records_before_the_start_are_not_written_again(tmp_path: Path) -> None:
    """`DeleteRecords` moves the start of a log, but the file keeps the records for a while."""
    write(tmp_path / "old", rows_of(30))
    (tmp_path / "old" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    rows = marked(rows_of(30), tmp_path / "old")
    with pytest.raises(ValueError, match="rows begin with offset 0, but the log that they come from starts at 12"):
        write(tmp_path / "new", rows, overwrite=True)
    assert files(tmp_path / "new") == {}
    write(tmp_path / "new", rows.slice(12), overwrite=True)
    assert extents(tmp_path / "new") == {"orders-0": (12, 30)}
    write(tmp_path / "all", rows, overwrite=True, startOffset=0)
    assert extents(tmp_path / "all") == {"orders-0": (0, 30)}


# -- rows of transactions


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (lambda rows, at: marked(rows, at, is_transactional=pa.array([True, False])), "it is part of a transaction"),
        (lambda rows, _: with_column(batch(rows), "is_transactional", pa.array([False, True])), "part of a transaction"),
        (lambda rows, _: with_column(batch(rows), "hidden", pa.array([None, "ABORTED"])), "hidden says that its"),
    ],
)  # fmt: skip
def test_rows_with_an_unknown_outcome_are_rejected(
    tmp_path: Path, rows: Callable[[list[Row], Path], pa.RecordBatch], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        write(tmp_path / "new", rows(rows_of(2), tmp_path / "old"))
    assert files(tmp_path) == {}


def test_rows_that_are_known_to_be_committed(tmp_path: Path) -> None:
    is_transactional = pa.array([True, False])
    write(tmp_path, marked(rows_of(2), tmp_path, True, is_transactional=is_transactional))
    outcome = {"is_transactional": is_transactional, "hidden": pa.nulls(2, pa.string())}
    write(tmp_path, marked(rows_of(2, first=2), tmp_path, **outcome))
    assert [row["offset"] for row in read(tmp_path)] == [0, 1, 2, 3]


@pytest.mark.parametrize("options", [{}, {"sourcePath": "there"}], ids=["read", "named"])
def test_a_log_with_an_open_transaction_is_not_replaced_by_its_own_rows(
    tmp_path: Path, options: dict[str, str]
) -> None:
    """Records after the transaction are not read and would be lost. Writing elsewhere is allowed, as the log remains."""
    folder = tmp_path / "old" / "orders-0"
    folder.mkdir(parents=True)
    (folder / f"{280:020}.log").write_bytes(golden.archive("segments_v2")["v2_txn/00000000000000000280.log"])
    options = dict.fromkeys(options, str(folder))
    before = files(tmp_path)
    for committed in (True, False):
        rows = marked(rows_of(5, first=280), folder, committed)
        with pytest.raises(
            ValueError, match="orders-0 with an incomplete reading: a transaction is open from offset 396 on"
        ):
            write(tmp_path / "old", rows, overwrite=True, **options)
        assert files(tmp_path) == before
    write(tmp_path / "new", rows, overwrite=True, **options)
    assert [row["offset"] for row in read(tmp_path / "new")] == list(range(280, 285))


def test_paths_with_credentials_are_not_kept() -> None:
    for path in ("s3://key:secret@bucket/orders-0", "s3://bucket/orders-0?access_key=key&secret_key=secret"):
        assert kafka_log.origin_of([path], "", "", True) == kafka_log.Origin((), committed=True)
    query = kafka_log.query({"path": "logs/orders-?", "isolationLevel": "read_committed"})
    [read] = {tuple(some.items()) for some in kafka_log.marks(query).values()}
    assert json.loads(dict(read)[kafka_log.ORIGIN])["paths"] == [str(Path("logs/orders-?").absolute())]


def test_extents_of_a_log_whose_last_offsets_are_absurd(tmp_path: Path) -> None:
    """No checksum covers an offset."""
    write(tmp_path, rows_of(10), rows_of(10, first=10))
    log = tmp_path / "orders-0" / f"{10:020}.log"
    log.write_bytes(b"\x10" + log.read_bytes()[1:])
    assert extent_of(kafka_log.find([str(tmp_path)]))[:2] == (0, 10)
