"""Reading files as Arrow tables without Spark, and the command ``dump``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka.record import MemoryRecords

import sparkwire
from sparkwire.__main__ import main
from sparkwire.catalogue import file_tables
from sparkwire.kernels.cache import COMPILING
from tests.support import ROOT

SAMPLES = sparkwire.samples()
ORDERS = SAMPLES / "kafka" / "orders-0"


def dumped(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["dump", *words]) == 0
    return capsys.readouterr().out.splitlines()


def rejected(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["dump", *words]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    return error


def by_another_reader(segment: Path) -> list[tuple[int, bytes | None, bytes | None]]:
    """The records of a segment, read by kafka-python, without control records."""
    batches, result = MemoryRecords(segment.read_bytes()), []
    while (batch := batches.next_batch()) is not None:
        if not getattr(batch, "is_control_batch", False):
            result += [(record.offset, record.key, record.value) for record in batch]
    return result


def test_read_gives_the_records_of_a_segment() -> None:
    expected = by_another_reader(SAMPLES / "kafka" / "orders.log")
    table = sparkwire.read(SAMPLES / "kafka" / "orders.log", columns="offset, key, value").read_all()
    assert [tuple(row.values()) for row in table.to_pylist()] == expected


def test_read_takes_options_as_python_values() -> None:
    rows = sparkwire.read(
        str(ORDERS), startingOffset=5, endingOffset=9, columns=["offset"], controlRecords=True
    ).read_all()
    assert rows.column_names == ["offset"]
    assert rows.column("offset").to_pylist() == [5, 6, 7, 8]


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("kafka/orders-0", "kafka_log"),
        ("kafka/orders.log", "kafka_log"),
        ("cluster/bucket", "kafka_log"),
        ("databus/relay_v1.bin", "databus"),
        ("databus/damaged_v1.bin", "databus"),
        ("databus/espresso_v2.bin", "databus"),
    ],
)
def test_the_bytes_decide_the_format(path: str, format: str) -> None:
    rows, named = sparkwire.read(SAMPLES / path), sparkwire.read(SAMPLES / path, format)  # type: ignore[arg-type]
    assert rows.schema == named.schema
    assert rows.read_all() == named.read_all()


def test_a_first_batch_larger_than_the_bytes_that_are_checked(tmp_path: Path) -> None:
    value = b"v" * 10_000
    row = {"key": b"k", "value": value, "timestamp_ms": 1, "headers": []}
    writer = sparkwire.FUNCTIONS["to_kafka_records"]
    records = pa.array([[row]], writer.arguments[0].type)
    (tmp_path / "export").write_bytes(
        writer.decode(records, pa.array([7]), pa.array(["none"]), pa.array([2], pa.int32()))[0].as_py()
    )
    assert sparkwire.read(tmp_path / "export").read_all().column("value").to_pylist() == [value]


def test_the_hint_about_the_format_works(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Bytes that are only corrupt say nothing about their format, but the hint names an option that the command has."""
    (tmp_path / "file").write_bytes(b"\1" * 100)
    error = rejected(capsys, str(tmp_path / "file"))
    assert error.endswith("If there are any, pass the format, kafka_log or databus\n")
    for format in ("kafka_log", "databus"):
        [row] = [json.loads(line) for line in dumped(capsys, str(tmp_path / "file"), "--format", format, "--json")]
        assert row["error"] is not None
    assert len(dumped(capsys, str(tmp_path / "file"), "--format", "databus", "--from", "1")) == 2
    index = next(ORDERS.glob("*.index"))
    assert dumped(capsys, str(index), "--format", "kafka_log") != dumped(capsys, str(index))


def test_standard_input_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert rejected(capsys, "-") == "dump does not read standard input: write it to a file, and name that file\n"


def test_an_unknown_format_gives_a_clear_error() -> None:
    with pytest.raises(ValueError, match="has neither Kafka segments nor Databus events"):
        sparkwire.read(SAMPLES / "kafka" / "README.md")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        sparkwire.read(SAMPLES / "nowhere")
    with pytest.raises(ValueError, match="has no option startingOfset"):
        sparkwire.read(ORDERS, startingOfset=1)


def test_dump_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    head, *rows = dumped(capsys, str(ORDERS), "--head", "3")
    assert head.split() == ["topic", "partition", "offset", "timestamp", "key", "value", "headers", "error"]
    assert [row.split()[:3] for row in rows] == [["orders", "0", str(offset)] for offset in range(3)]


def test_dump_prints_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    keys = {offset: key for file in ORDERS.glob("*.log") for offset, key, _ in by_another_reader(file)}
    [row] = map(json.loads, dumped(capsys, str(ORDERS), "--json", "--offset", "2"))
    assert row["offset"] == 2
    assert bytes.fromhex(row["key"].removeprefix("0x")) == keys[2]
    assert row["timestamp"].endswith("Z")
    first, *_ = dumped(capsys, str(ORDERS), "--json", "--key", row["key"])
    assert json.loads(first)["offset"] == 2


def test_dump_starts_at_an_offset_or_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    def offsets(start: str) -> list[int]:
        lines = dumped(capsys, str(ORDERS), "--json", "--columns", "offset", "--head", "2", "--from", start)
        return [json.loads(line)["offset"] for line in lines]

    assert offsets("5") == [5, 6]
    assert offsets("2020-09-13T12:00:00Z") == [0, 1]


def test_dump_shows_only_corrupt_rows(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        json.loads(line) for line in dumped(capsys, str(SAMPLES / "databus" / "damaged_v1.bin"), "--corrupt", "--json")
    ]
    assert [row["error"] for row in rows] == [
        "VALUE_CRC_MISMATCH", "HEADER_CRC_MISMATCH", "HEADER_CRC_MISMATCH", "BAD_LENGTH", "HEADER_CRC_MISMATCH", "TRUNCATED",
    ]  # fmt: skip


def test_dump_reads_the_other_files_of_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    payments = SAMPLES / "cluster" / "disk" / "payments-0"
    assert dumped(capsys, str(payments / "leader-epoch-checkpoint"))[1:] == ["0      0", "2      574"]
    index = min(payments.glob("*.index"))
    function = sparkwire.FUNCTIONS["kafka_offset_index"]
    expected = function.decode(pa.array([index.read_bytes()], pa.binary()), pa.array([int(index.stem)]))[0].as_py()
    assert list(map(json.loads, dumped(capsys, str(index), "--json"))) == expected


def test_dump_reads_batches_and_json_messages(capsys: pytest.CaptureFixture[str]) -> None:
    head, *batches = dumped(capsys, str(SAMPLES / "kafka" / "orders.log"), "--batches")
    assert "base_offset" in head
    assert len(batches) == len(sparkwire.read(SAMPLES / "kafka" / "orders.log", rows="batches").read_all())
    head, *changes = dumped(capsys, str(SAMPLES / "datahub" / "messages.jsonl"))
    assert changes[0].startswith("INSERT")


def test_dump_reads_lines_in_blocks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = SAMPLES / "datahub" / "messages.jsonl"
    whole = dumped(capsys, str(lines), "--json")
    assert len(whole) == len(lines.read_bytes().splitlines()) > 1
    for size in (1, 7, 1000):
        monkeypatch.setattr(file_tables, "_BLOCK", size)
        assert dumped(capsys, str(lines), "--json") == whole


def test_dump_takes_no_file_of_any_size_into_memory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / f"{0:020}.index"
    with index.open("wb") as file:
        file.truncate(8 << 30)
    assert "has 8,589,934,592 bytes, and kafka_offset_index reads files of up to" in rejected(capsys, str(index))
    monkeypatch.setattr(file_tables, "_BLOCK", 16)
    monkeypatch.setattr(file_tables, "_LARGEST", 40)
    lines = tmp_path / "lines.json"
    lines.write_bytes(b'{"a": "' + b"-" * 100)
    assert "lines.json has a line of more than 40 bytes: is it JSON lines?" in rejected(capsys, str(lines))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl"])
def test_dump_writes_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"orders{suffix}"
    assert dumped(capsys, str(ORDERS), "--output", str(target)) == []
    expected = sparkwire.read(ORDERS).read_all()
    if suffix == ".parquet":
        assert pq.read_table(target).equals(expected)
    elif suffix == ".arrow":
        assert pa.ipc.open_file(target).read_all() == expected
    else:
        assert len(target.read_text().splitlines()) == len(expected)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "does not exist"),
        ((str(ORDERS), "--output", "orders.txt"), "--output takes a .parquet"),
        ((str(ORDERS), "--option", "x"), "--option takes NAME=VALUE"),
        ((str(ORDERS), "--option", "x=1"), "has no option x"),
        ((str(ORDERS), "--columns", "offsets"), "offsets"),
        ((str(SAMPLES / "datahub" / "messages.jsonl"), "--columns", "offset"), "there is no column 'offset'"),
        (
            (str(SAMPLES / "cluster/disk/payments-0/leader-epoch-checkpoint"), "--corrupt"),
            "--corrupt needs a column error",
        ),
    ],
)
def test_a_wrong_call_gives_a_clear_error(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in rejected(capsys, *words)


@pytest.mark.process
def test_a_reader_that_stops_early_is_no_error() -> None:
    command = [sys.executable, "-m", "sparkwire", "dump", str(ORDERS), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump:
        assert dump.stdout is not None
        assert dump.stderr is not None
        dump.stdout.readline()
        dump.stdout.close()
        assert dump.stderr.read().replace(f"{COMPILING}\n".encode(), b"") == b""
        assert dump.wait() == 0


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "output", "code", "sentence"),
    [
        (["dump", str(ORDERS)], "/dev/full", 2, "cannot use the standard output: No space left on device"),
        (["publish", "a.b", "w"], "/dev/full", 2, "cannot use the standard output: No space left on device"),
        (["warm", str(ROOT / "README.md")], os.devnull, 2, "README.md: File exists"),
        (["publish", "a.b", "w", "--environment-version", "\x1b"], os.devnull, 2, r"as a number, got '\x1b'"),
        (
            ["dump", str(ORDERS), "--output", "/nowhere/x.jsonl"],
            os.devnull,
            2,
            "cannot use /nowhere/x.jsonl: No such",
        ),
        (["dump", str(ORDERS), "--head", "1"], os.devnull, 0, ""),
    ],
)
def test_the_last_line_is_a_sentence(words: list[str], output: str, code: int, sentence: str) -> None:
    with Path(output).open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "sparkwire", *words], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )
    *_, last = ["", *done.stderr.splitlines()]
    assert (done.returncode, sentence in last, "Traceback" in done.stderr) == (code, True, False)


@pytest.mark.process
@pytest.mark.parametrize("words", [["dump", str(ORDERS), "--head", "3"], ["dump", "--help"]])
def test_an_encoding_without_the_characters(words: list[str]) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "sparkwire", *words]
    done = subprocess.run(command, capture_output=True, env=environment, text=True, check=False)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) > 3


def test_the_code_of_its_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/without-spark.md").read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "without-spark.md", "exec"), names)
        assert len(capsys.readouterr().out.splitlines()) == 4
    assert len(blocks) == 2


def test_dump_distinguishes_debezium_from_datahub(capsys: pytest.CaptureFixture[str]) -> None:
    [messages] = (SAMPLES / "debezium").glob("*.jsonl")
    head, *changes = dumped(capsys, str(messages))
    assert head.split()[:2] == ["operation", "table"]
    assert {change.split()[0] for change in changes} & {"READ", "INSERT", "UPDATE"}
