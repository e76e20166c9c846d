"""The log of a Delta table at a path: commits, and what is missing, corrupt or foreign in it."""

from __future__ import annotations

import json
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from sparkwire.changes.delta_log import DeltaLog, delete_folder, new_folder
from sparkwire.errors import WriteConflictError

NOTED = {"keys": ["id"], "deletes": "keep", "table": "shop.orders"}
ROWS = pa.table({"id": pa.array([1, 2, None], pa.int32()), "v": ["a", None, "c"]})


def schema(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in types.items()]
    return {"type": "struct", "fields": fields}


SCHEMA = schema(id="integer", v="string")


def opened(path: Path | str) -> DeltaLog:
    log = DeltaLog.of(str(path))
    assert log is not None
    return log


def merge(log: DeltaLog, rows: pa.Table = ROWS, columns: dict[str, Any] = SCHEMA, parts: int = 1) -> DeltaLog:
    """Commit rows as a merge does, in files that another program wrote."""
    with new_folder(log.path) as folder:
        place = Path(log.path, folder)
        place.mkdir()
        for part in range(parts):
            pq.write_table(rows, place / f"part-{part}.parquet")
        (place / ".part-0.parquet.crc").write_bytes(b"")
        (place / "_SUCCESS").write_bytes(b"")
    log.commit(folder, columns)
    return opened(log.path)


def created(path: Path | str) -> DeltaLog:
    log = DeltaLog.create(str(path), SCHEMA)
    log.note(NOTED)
    return log


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """A table after two merges, of one file and of two."""
    return merge(merge(created(tmp_path / "table")), parts=2)


def content(path: str) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted(Path(path).rglob("*")) if one.is_file()}


def entry(log: DeltaLog) -> Path:
    return Path(log.path, "_delta_log", f"{log.version:020}.json")


def test_a_table_and_its_versions(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table"
    assert DeltaLog.of(str(path)) is None
    assert not path.exists()
    log = created(path)
    assert (log.noted, log.files(), log.rows, log.schema) == (NOTED, [], 0, SCHEMA)
    log = merge(log)
    assert (log.noted, len(log.files()), log.rows) == (NOTED, 1, 3)
    wide = schema(id="long", v="string", w="double")
    rows = ROWS.set_column(0, "id", ROWS["id"].cast("int64")).append_column("w", pa.array([0.5, None, 1.5]))
    log = merge(log, rows, wide)
    assert (log.schema, log.noted) == (wide, NOTED)
    assert DeltaTable(path).to_pyarrow_table().to_pylist() == rows.to_pylist()
    before = DeltaTable(path, log.version - 1)
    assert before.to_pyarrow_table().to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("predicate", [("id", "=", 2), ("v", "=", "a"), ("b", "=", False), ("t", ">", 0)])
def test_delta_rs_finds_rows_by_any_column(tmp_path: Path, predicate: Any) -> None:
    """It would not if the log had bounds of some columns, and none of the others."""
    path, types = tmp_path / "table", {"id": "integer", "v": "string", "b": "boolean", "t": "long"}
    log = DeltaLog.create(str(path), schema(**types))
    rows = ROWS.append_column("b", pa.array([True, False, False])).append_column(
        "t", pa.array([1, None, 0], pa.int64())
    )
    merge(log, rows, schema(**types))
    column, operator, value = predicate
    expected = [
        row for row in rows.to_pylist() if row[column] is not None and (row[column] == value) == (operator == "=")
    ]
    found = DeltaTable(path).to_pyarrow_dataset().to_table(filter=pq.filters_to_expression([predicate]))
    assert found.to_pylist() == expected != []


STEPS: dict[str, Callable[[DeltaLog], object]] = {
    "a merge": merge,
    "a property": lambda log: log.note({**NOTED, "table": "other"}),
    "a feature": lambda log: log.allow_local_times(),
}


@pytest.mark.parametrize("second", STEPS)
@pytest.mark.parametrize("first", STEPS)
def test_the_second_of_two_commits_from_one_version_is_refused(log: DeltaLog, first: str, second: str) -> None:
    """delta-rs itself would repeat some of them on top of the first one."""
    early, late = opened(log.path), opened(log.path)
    STEPS[first](early)
    expected = opened(log.path)
    with pytest.raises(WriteConflictError, match=r"another job writes to .*table: .* Run this merge again"):
        STEPS[second](late)
    found = opened(log.path)
    assert (found.version, found.files(), found.noted) == (expected.version, expected.files(), expected.noted)


def test_one_of_many_merges_at_once_wins(tmp_path: Path) -> None:
    log = created(tmp_path / "table")
    for _ in range(5):
        logs, barrier, results = [opened(log.path) for _ in range(4)], Barrier(4), list[int | None]()

        def run(log: DeltaLog, barrier: Barrier = barrier, results: list[int | None] = results) -> None:
            barrier.wait()
            try:
                results.append(merge(log).version)
            except WriteConflictError:
                results.append(None)

        threads = [Thread(target=run, args=(one,)) for one in logs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results.count(None) == 3
        assert len(opened(log.path).files()) == 1


def test_one_of_two_creations_wins(tmp_path: Path) -> None:
    DeltaLog.create(f"{tmp_path}/table", SCHEMA)
    with pytest.raises(WriteConflictError, match="another job has created"):
        DeltaLog.create(f"{tmp_path}/table", SCHEMA)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda file: file.unlink(), "has lost the file {name}, which its log names"),
    "empty": (lambda file: file.write_bytes(b""), "the file {name} of .* has 0 bytes, and {size} by the table's log"),
    "short": (lambda file: file.write_bytes(file.read_bytes()[:-1]), "the file {name} of .* has {less} bytes"),
    "long": (lambda file: file.write_bytes(file.read_bytes() + b"x"), "the file {name} of .* has {more} bytes"),
    "elsewhere": (lambda file: file.rename(f"{file}.moved"), "has lost the file {name}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_file_has_the_size_that_the_log_says(log: DeltaLog, damage: str) -> None:
    name = log.files()[-1]
    file, (cause, message) = Path(log.path, name), DAMAGES[damage]
    size = file.stat().st_size
    cause(file)
    expected = message.format(name=name, size=size, less=size - 1, more=size + 1)
    with pytest.raises(ValueError, match=f"{expected}.*: restore the table from a backup"):
        opened(log.path).files()


def test_files_that_the_log_does_not_name_do_not_count(log: DeltaLog) -> None:
    named = log.files()
    for name in ("part-9.parquet", f"{Path(named[0]).parent}/part-9.parquet", "merge-0/_temporary/0/part-0.parquet"):
        Path(log.path, name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(ROWS, Path(log.path, name))
    assert opened(log.path).files() == named


def test_a_vacuum_deletes_what_killed_merges_left(log: DeltaLog) -> None:
    """And the files of earlier versions."""
    named = log.files()
    left = Path(log.path, "merge-0", "_temporary", "0", "part-0.parquet")
    left.parent.mkdir(parents=True)
    pq.write_table(ROWS, left)
    log.table.vacuum(retention_hours=0, enforce_retention_duration=False, full=True, dry_run=False)
    assert sorted(Path(log.path).rglob("*.parquet")) == sorted(Path(log.path, name) for name in named)
    assert opened(log.path).files() == named


def test_a_log_without_its_last_entry_is_the_table_before(tmp_path: Path) -> None:
    first = merge(created(tmp_path / "table"))
    entry(merge(first)).unlink()
    assert opened(first.path).files() == first.files()


def test_the_last_entry_is_cut(tmp_path: Path) -> None:
    """The table after it, or an error; never the rows of both. At the end of a line, delta-rs notices nothing."""
    first = merge(created(tmp_path / "table"))
    last = merge(first, parts=2)
    whole, errors = entry(last).read_bytes(), 0
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    sizes = sorted(
        {0, 1, *(max(0, end + k) for end in (*ends, len(whole)) for k in (-99, -1, 0, 1) if end + k < len(whole))}
    )
    for size in sizes:
        entry(last).write_bytes(whole[:size])
        try:
            files = opened(first.path).files()
        except ValueError as error:
            assert "the log of" in str(error)  # noqa: PT017
            assert "restore the table from a backup" in str(error)  # noqa: PT017
            errors += 1
        else:
            assert files == last.files()
    assert errors == len(sizes) - (0 if whole.endswith(b"}") else 1)  # the last line break is no part of the entry
    assert len(sizes) > 12


@pytest.mark.parametrize("lost", ["00000000000000000000.json", "00000000000000000002.json"])
def test_a_log_without_an_earlier_entry(log: DeltaLog, lost: str) -> None:
    Path(log.path, "_delta_log", lost).unlink()
    before = content(log.path)
    with pytest.raises(
        ValueError, match=r"the log of the Delta table .* cannot be read \(.*\): restore the table from a backup"
    ):
        DeltaLog.of(log.path)
    assert content(log.path) == before


def test_a_log_whose_checkpoint_is_corrupt(log: DeltaLog) -> None:
    log.table.create_checkpoint()
    for name in range(log.version + 1):
        Path(log.path, "_delta_log", f"{name:020}.json").unlink()
    assert opened(log.path).files() == log.files()
    [checkpoint] = Path(log.path, "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"")
    with pytest.raises(ValueError, match=r"the log of the Delta table .* cannot be read"):
        DeltaLog.of(log.path)


def test_a_log_that_is_gone_is_no_new_table(log: DeltaLog) -> None:
    shutil.rmtree(f"{log.path}/_delta_log")
    before = content(log.path)
    assert DeltaLog.of(log.path) is None
    with pytest.raises(
        ValueError, match=r"the directory .* has merge-.*, and no log of a Delta table: .* restore its _delta_log"
    ):
        DeltaLog.create(log.path, SCHEMA)
    assert content(log.path) == before


def test_a_log_without_an_entry_is_a_new_table(tmp_path: Path) -> None:
    """A job that began to create it was killed."""
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    assert merge(created(tmp_path / "table")).rows == 3


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"keys": "id", "deletes": "keep"}', "[" * 9999])
def test_a_corrupt_property(log: DeltaLog, text: str) -> None:
    for corrupt in (text, text.encode().hex()):
        log.table.alter.set_table_properties({"sparkwire.merge": corrupt}, raise_if_not_exists=False)
        with pytest.raises(ValueError, match=r"has a corrupt property sparkwire\.merge: restore the table"):
            _ = opened(log.path).noted


def crafted(
    path: Path, reader: list[str], writer: list[str], configuration: dict[str, str], partitions: list[str], **add: Any
) -> DeltaLog:
    """A table that another program made, with one file."""
    path.joinpath("_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), path / "x.parquet")
    columns = schema(id="integer")
    if "typeWidening" in reader:
        columns["fields"][0] |= {
            "type": "long",
            "metadata": {"delta.typeChanges": [{"toType": "long", "fromType": "integer"}]},
        }
    if "columnMapping" in reader:
        columns["fields"][0]["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": reader,
        "writerFeatures": [*reader, *writer],
    }
    metadata = {
        "id": "debc95cc-87ae-44cb-bbd8-fd8d5ab2d286",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(columns),
        "partitionColumns": partitions,
        "configuration": configuration,
        "createdTime": 1,
    }
    size = (path / "x.parquet").stat().st_size
    file = {
        "path": "x.parquet",
        "partitionValues": dict.fromkeys(partitions),
        "size": size,
        "modificationTime": 1,
    } | add
    actions = [{"protocol": protocol}, {"metaData": metadata}, {"add": {**file, "dataChange": True}}]
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return opened(path)


def test_the_rules_of_columns_need_delta_in_the_session(tmp_path: Path) -> None:
    """Also of a table with an old protocol, which names no features."""
    path = tmp_path / "table"
    rule = {"delta.invariants": json.dumps({"expression": {"expression": "id > 0"}})}
    DeltaTable.create(path, Schema([Field("id", PrimitiveType("integer"), metadata=rule)]))
    with pytest.raises(ValueError, match="table has invariants, which needs a session with Delta"):
        opened(path).check_writable()


VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 1,
}


@pytest.mark.parametrize(
    ("reader", "writer", "configuration", "partitions", "add", "unread", "unwritten"),
    [
        ([], ["appendOnly", "invariants"], {}, [], {}, "", ""),
        (["typeWidening"], [], {"delta.enableTypeWidening": "true"}, [], {}, "", "typeWidening"),
        (["deletionVectors"], [], {"delta.enableDeletionVectors": "true"}, [], {}, "", ""),
        (["deletionVectors"], [], {}, [], {"deletionVector": VECTOR}, "deletionVectors", ""),
        (["v2Checkpoint"], [], {}, [], {}, "", ""),
        (["columnMapping"], [], {"delta.columnMapping.mode": "name"}, [], {}, "columnMapping", "columnMapping"),
        ([], [], {}, ["id"], {}, "partitions", ""),
        ([], ["rowTracking", "domainMetadata"], {}, [], {}, "", "domainMetadata, rowTracking"),
        ([], ["appendOnly"], {"delta.appendOnly": "true"}, [], {}, "", "appendOnly"),
        ([], ["checkConstraints"], {}, [], {}, "", ""),
        ([], ["checkConstraints"], {"delta.constraints.positive": "id > 0"}, [], {}, "", "checkConstraints"),
    ],
)  # fmt: skip
def test_what_needs_delta_in_the_session(
    tmp_path: Path, reader: Any, writer: Any, configuration: Any, partitions: Any, add: Any, unread: str, unwritten: str
) -> None:
    """What is writable for us, delta-rs commits, too."""
    log = crafted(tmp_path / "table", reader, writer, configuration, partitions, **add)
    for needed, check in ((unread, log.files), (unwritten, log.check_writable)):
        if needed:
            with pytest.raises(ValueError, match=f"table has {needed}, which needs a session with Delta"):
                check()
        else:
            check()
    if not unwritten and not unread:
        log.note(NOTED)
        assert merge(log, pa.table({"id": pa.array([7], pa.int32())}), log.schema).rows == 1


def test_an_unknown_feature_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be read .*'newer' is not supported"):
        crafted(tmp_path / "table", ["newer"], [], {}, [])


@pytest.mark.parametrize("name", ["a b", "[a]", "{a,b}", "a*?#", "a%b", "day=1", "ü", "a;b'\"`"])
def test_a_path_may_have_most_characters(tmp_path: Path, name: str) -> None:
    assert merge(created(tmp_path / name)).rows == 3
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a%20b", "a\\b", "a\nb"])
def test_a_path_that_delta_rs_takes_for_another(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        ValueError, match=r"delta-rs cannot open the path .*, because it has .*: name another directory"
    ):
        DeltaLog.of(f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_local_times_need_a_feature_of_the_table(log: DeltaLog) -> None:
    """Without it, delta-rs would make a table that nobody can read."""
    log.allow_local_times()
    log.allow_local_times()
    assert log.version == opened(log.path).version
    types = {"id": "integer", "v": "string", "t": "timestamp_ntz"}
    times = {"a": {"type": "array", "elementType": "timestamp_ntz", "containsNull": True}}
    rows = ROWS.append_column("t", pa.array([1, 2, 3], pa.timestamp("us")))
    rows = rows.append_column("a", pa.array([[1], None, []], pa.list_(pa.timestamp("us"))))
    assert merge(log, rows, schema(**types, **times)).rows == 3
    assert DeltaTable(log.path).to_pyarrow_table().to_pylist() == rows.to_pylist()


def test_a_property_of_a_table_with_features(log: DeltaLog) -> None:
    """delta-rs adds a feature, and the table stays ours."""
    log.allow_local_times()
    log.note({**NOTED, "table": "other"})
    log = merge(log)
    log.check_writable()
    assert len(log.files()) == 1


def test_a_commit_whose_last_step_fails_is_a_commit(
    log: DeltaLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    commit = DeltaTable.create_write_transaction

    def failing(table: DeltaTable, *arguments: Any, **options: Any) -> None:
        commit(table, *arguments, **options)
        raise DeltaError("no space left for the checkpoint")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", failing)
    after = merge(log)
    assert after.version == log.version + 1
    assert "is committed, and a step after it failed: " in caplog.text


def test_a_commit_that_fails_changes_nothing(log: DeltaLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise DeltaError("no space left\n   0: <unknown>")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", failing)
    with pytest.raises(
        ValueError, match=r"delta-rs cannot commit to .*table: no space left. The table has not changed$"
    ):
        merge(log)
    assert opened(log.path).files() == log.files()


def test_files_of_a_failed_writer_are_deleted(log: DeltaLog) -> None:
    before = content(log.path)
    folders = []

    def write() -> None:
        with new_folder(log.path) as folder:
            folders.append(folder)
            Path(log.path, folder, "_temporary").mkdir(parents=True)
            Path(log.path, folder, "_temporary", "part-0.parquet").write_bytes(b"PAR1")
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write()
    assert content(log.path) == before
    assert not Path(log.path, folders[0]).exists()
    delete_folder(log.path, folders[0])  # of a writer that wrote nothing


def test_without_delta_rs_a_sentence_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ModuleNotFoundError, match="install the extra 'delta' of sparkwire, or start the session"):
        DeltaLog.of(f"{tmp_path}/table")


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_full_disk(log: DeltaLog, size: int) -> None:
    """The entry of the log does not fit. The commit fails, and a later one succeeds."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with new_folder(log.path) as folder:
        Path(log.path, folder).mkdir()
        pq.write_table(ROWS, Path(log.path, folder, "part-0.parquet"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        with pytest.raises(
            OSError, match=r"delta-rs cannot commit to .*: File too large .* The table has not changed$"
        ):
            opened(log.path).commit(folder, SCHEMA)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    found = opened(log.path)
    assert (found.version, found.files()) == (log.version, log.files())
    assert merge(found).version == log.version + 1
