"""Memory does not grow with a file: peak memory of a separate process."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from tests.kafka.test_damage import batch, record
from tests.support import kafka_cases as golden
from tests.support.child import run_python
from tests.support.databus_cases import golden_bytes

MIB = 1 << 20
CHILD = """
import sys
from sparkwire.databus.files import databus_table
from sparkwire.kafka.files import kafka_log
def peak():  # not getrusage's, which begins with that of the process that started this one
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
def read(source, path, **options):
    asked = source.query({"path": path, "maxSplitBytes": "1t", **options})
    return sum(batch.num_rows for task in source.plan(asked) for batch in source.read(asked, task))
source, options = {
    "kafka_log": (kafka_log, {}),
    "databus": (databus_table, {"columns": "opcode, sequence, src_id, key, window_scn"}),
}[sys.argv[1]]
for path in sys.argv[2:]:
    rows = read(source, path, **options)
    print(rows, peak())
"""


def repeated(path: Path, data: bytes, size: int) -> str:
    with path.open("wb") as out:
        for _ in range(size // len(data)):
            out.write(data)
    return str(path)


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiling takes more memory than reading, so a separate process fills the cache."""
    folder = tmp_path_factory.mktemp("first")
    data = golden.archive("segments_v2")["v2_mixed_codecs/" + segment("v2_mixed_codecs")]
    peaks("kafka_log", repeated(folder / "segment.log", data, len(data)))
    events = golden_bytes("window_stream")
    peaks("databus", repeated(folder / "events.bin", events, len(events)))


def peaks(source: str, *paths: str) -> tuple[list[int], list[int]]:
    """Rows and the peak of the process after each file [MiB]."""
    lines = [line.split() for line in run_python("-c", CHILD, source, *paths).splitlines()]
    return [int(rows) for rows, _ in lines], [int(peak) for _, peak in lines]


@pytest.mark.process
def test_a_long_segment(tmp_path: Path) -> None:
    data = golden.archive("segments_v2")["v2_mixed_codecs/" + segment("v2_mixed_codecs")]
    small, large = repeated(tmp_path / "small.log", data, 24 * MIB), repeated(tmp_path / "large.log", data, 120 * MIB)
    rows, (first, second) = peaks("kafka_log", small, large)
    assert rows[1] >= 4 * rows[0] > 0
    assert second - first < 32


def segment(folder: str) -> str:
    return next(
        p.split("/")[1] for p in golden.archive("segments_v2") if p.startswith(f"{folder}/") and p.endswith(".log")
    )


@pytest.mark.process
def test_batches_with_a_compression_ratio_of_a_thousand(tmp_path: Path) -> None:
    """Two gigabytes of records in two megabytes."""
    dense = batch(zstandard.compress(record(bytes(MIB))), codec=4)
    path = repeated(tmp_path / "dense.log", dense, 2000 * len(dense))
    rows, (peak,) = peaks("kafka_log", path)
    assert rows == [2000]
    assert peak < 500


@pytest.mark.process
def test_long_corruption(tmp_path: Path) -> None:
    data = golden.archive("segments_v2")["v2_none/" + segment("v2_none")]
    path = tmp_path / "damaged.log"
    with path.open("wb") as out:
        out.write(data)
        out.truncate(200 * MIB)  # a hole: zeros
        out.seek(200 * MIB)
        out.write(data)
    rows, (peak,) = peaks("kafka_log", str(path))
    assert rows[0] > 2
    assert peak < 450


@pytest.mark.process
@pytest.mark.parametrize("name", ["window_stream"])
def test_a_long_event_file(name: str, tmp_path: Path) -> None:
    data = golden_bytes(name)
    small, large = repeated(tmp_path / "small.bin", data, 12 * MIB), repeated(tmp_path / "large.bin", data, 60 * MIB)
    rows, (first, second) = peaks("databus", small, large)
    assert rows[1] >= 4 * rows[0] > 0
    assert second - first < 32
