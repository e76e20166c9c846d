"""Kill writers (tasks and drivers): each file is complete or absent, and the next run succeeds."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import sparkwire
from sparkwire.core.sources.job import recover
from sparkwire.core.sources.job_file import SIDE
from sparkwire.kafka.files import kafka_log
from tests.integration.segments_writer import ROWS

SEGMENTS = 100
KILLED_DRIVERS, KILLED_WORKERS, KILLED_AT_ONCE = 4, 4, 4
_WITHIN = 120  # [s]


def start(path: Path) -> subprocess.Popen[str]:
    """Start a writer, and wait until it has begun."""
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYSPARK_PYTHON": sys.executable}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.segments_writer", str(path)],
        env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "writing\n"
    return child


def wait_for_files(path: Path, child: subprocess.Popen[str]) -> None:
    """Wait until its tasks write."""
    deadline = time.monotonic() + _WITHIN
    before = set(path.rglob("*"))
    while not set(path.rglob("*")) - before and child.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers(child: subprocess.Popen[str]) -> list[int]:
    """The processes of its tasks, which Spark's daemon has forked."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,sid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()]
    daemons = {row[0] for row in rows if row[2] == str(child.pid) and "pyspark.daemon" in row[3]}
    return [
        int(row[0]) for row in rows if row[1] in daemons and row[0] not in {d for d in daemons if row[1] not in daemons}
    ]


def check_files(path: Path) -> None:
    """Check that each file with its final name is complete: a broker that scans every batch accepts it."""
    names = [file.name for file in path.rglob("*") if file.is_file() and SIDE not in str(file)]
    assert all(
        name.endswith((".log", ".index", ".timeindex", ".snapshot"))
        or name == "leader-epoch-checkpoint"
        or name.startswith(".sparkwire-")
        for name in names
    )
    if any(path.glob("orders-0/*.log")):
        report = sparkwire.kafka.check(str(path), clean=False)
        wrong = [one for one in report.findings if one.action not in ("stray", "rebuild") and one.partition != SIDE]
        assert wrong == []


def check_rows(path: Path) -> None:
    query = kafka_log.query({"path": str(path), "columns": "offset,value,error"})
    batches = [batch for task in kafka_log.plan(query) for batch in kafka_log.read(query, task)]
    offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    assert offsets == list(range(ROWS))
    assert sum(batch.column("error").null_count for batch in batches) == ROWS
    assert len(list(path.rglob("*.log"))) >= SEGMENTS
    assert not (path / SIDE).exists()


def test_drivers_are_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(24)
    top, interrupted = tmp_path / "0", 0
    for number in range(KILLED_DRIVERS):
        child = start(top)
        wait_for_files(top, child)
        time.sleep(chance.uniform(0, 2))
        os.killpg(child.pid, signal.SIGKILL)
        assert child.stdout is not None
        done = "written\n" in child.stdout.read()
        child.wait()
        check_files(top)
        interrupted += any(top.rglob("*"))
        if done or is_whole(top):
            top = tmp_path / f"{number + 1}"
    child = start(top)
    assert child.wait() == 0
    check_rows(top)
    with capsys.disabled():
        print(
            f"\n{KILLED_DRIVERS} drivers killed, {interrupted} of them with files on disk; the next try wrote {ROWS} rows"
        )


def is_whole(top: Path) -> bool:
    """Whether all files have their final names, so that another run would be rejected."""
    recover(str(top))
    return len(list(top.glob("orders-0/*.log"))) >= SEGMENTS


def test_tasks_are_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(25)
    killed = failed = runs = 0
    top = tmp_path / "0"
    while killed < KILLED_WORKERS or runs == 0:
        child = start(top)
        wait_for_files(top, child)
        for _ in range(KILLED_AT_ONCE):
            time.sleep(chance.uniform(0, 0.7))
            for worker in workers(child)[-1:]:
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(worker, signal.SIGKILL)
                    killed += 1
        check_files(top)
        if child.wait() != 0:  # it was planning, or renaming files
            failed += 1
            top = tmp_path / f"failed {failed}" if is_whole(top) else top
            continue
        check_rows(top)
        runs += 1
        top = tmp_path / f"{runs}"
    with capsys.disabled():
        print(f"\n{killed} workers killed, {failed} of them with their job; {runs} jobs wrote {ROWS} rows each")
