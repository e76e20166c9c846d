"""Interrupted jobs: readers, streams, check, and the operator's command."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sparkwire
from sparkwire.core.sources.follow import Follower
from sparkwire.core.sources.job_file import Process, this_process
from sparkwire.databus.files import databus_table
from sparkwire.databus.files.follow_events import EventFollower
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.files.follow_log import LogFollower
from tests.support.faults import quick_path
from tests.support.unfinished import DEAD, interrupted_at, steps_of_the_swap
from tests.support.writer_chaos import FORMATS, WriterChaos

__all__ = ["quick_path"]

ELSEWHERE = DEAD._replace(host="elsewhere")


def sentence(top: Path, owner: Process = DEAD) -> str:
    how = "was interrupted" if owner == DEAD else "runs, or was interrupted,"
    return (
        rf"{top}: job \w+ \(since 20\S+, {re.escape(str(owner))}\) {how} while it replaced .*\. "
        rf"Run: python -m sparkwire recover {top}"
    )


def half_done(top: Path, form: str, step: float, exchanges: bool = True, owner: Process = DEAD) -> WriterChaos:
    """A job that ended between two of its swaps; ``step`` is its progress from 0 to 1."""
    chaos = WriterChaos(top, 1, form)
    first, second = chaos.restore(), chaos.restore()
    chaos.write(first)
    chaos.is_now(first.after({}, {}))
    steps = steps_of_the_swap(chaos, second, exchanges)
    interrupted_at(chaos, second, steps[int(step * (len(steps) - 1))], exchanges, owner)
    chaos.is_now(second.after(chaos.now, chaos.ends))
    return chaos


def latest(follower: Follower[Any, Any]) -> object:
    return follower.latest(follower.initial())


READERS: dict[str, Callable[[str], object]] = {
    "a batch of kafka_log": lambda path: kafka_log.plan(kafka_log.query({"path": path})),
    "a stream of kafka_log": lambda path: latest(LogFollower(kafka_log.query({"path": path}))),
    "a batch of databus": lambda path: databus_table.plan(databus_table.query({"path": path})),
    "a stream of databus": lambda path: latest(
        EventFollower(databus_table.query({"path": path, "stream": "directory"}))
    ),
}


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
@pytest.mark.parametrize("step", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("form", FORMATS)
def test_a_reader_gets_an_error(form: str, step: float, exchanges: bool, quick_path: Path) -> None:
    """Readers of the directory, of each partition, and of a glob over partitions."""
    chaos = half_done(quick_path, form, step, exchanges)
    for source, reader in READERS.items():
        if form.partition(",")[0] in source:
            globs = [quick_path / "o*"] if "" not in chaos.form.names else []
            for path in {quick_path, *(quick_path / name for name in chaos.form.names), *globs}:
                with pytest.raises(ValueError, match=sentence(quick_path)):
                    reader(str(path))


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
def test_check_reports_it(exchanges: bool, quick_path: Path) -> None:
    half_done(quick_path, "kafka_log", 0.4, exchanges)
    match = [
        one for one in sparkwire.kafka.check(str(quick_path)).findings if re.search(sentence(quick_path), f"{one}")
    ]
    assert len(match) == 1


def recover(*arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    command = [sys.executable, "-m", "sparkwire", "recover", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.process
@pytest.mark.parametrize(("form", "exchanges"), [("kafka_log", True), ("databus", False)])
def test_the_command_finishes_it(form: str, exchanges: bool, quick_path: Path) -> None:
    chaos = half_done(quick_path, form, 0.4, exchanges)
    code, out, _ = recover(quick_path)
    assert code == 0
    assert re.fullmatch(rf"job \w+ \(since 20\S+, {re.escape(str(DEAD))}\) is finished\n", out)
    chaos.check()
    assert recover(quick_path) == (0, f"{quick_path} has no unfinished job\n", "")


@pytest.mark.process
def test_the_command_undoes_an_undecided_job(quick_path: Path) -> None:
    chaos = WriterChaos(quick_path, 1)
    job = chaos.restore()
    chaos.write(job)
    chaos.is_now(job.after({}, {}))
    interrupted_at(chaos, chaos.restore(), 12, True, DEAD)
    code, out, _ = recover(quick_path)
    assert code == 0
    assert re.fullmatch(r"job \w+ \(since .*\) had changed nothing: its files are deleted\n", out)
    chaos.check()


@pytest.mark.process
def test_the_command_leaves_a_job_of_another_machine_alone(quick_path: Path) -> None:
    """Unless an option states that the machine is gone."""
    chaos = half_done(quick_path, "kafka_log", 0.4, owner=ELSEWHERE)
    code, out, _ = recover(quick_path)
    assert code == 0
    reported = re.fullmatch(
        r"job (\w+) \(since .*, process \d+ on elsewhere\) is unchanged, because it may still run\. "
        r"If its process has ended, add --job (\w+)\n",
        out,
    )
    assert reported
    assert reported[1] == reported[2]
    code, out, _ = recover(quick_path, "--job", reported[1])
    assert code == 0
    assert out.endswith(" is finished\n")
    chaos.check()


@pytest.mark.process
def test_errors_of_the_command(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert recover(missing) == (1, "", f"path {missing} does not exist: name the directory of the write\n")
    assert not missing.exists()
    chaos = half_done(tmp_path / "top", "kafka_log", 0.4)
    [file] = chaos.top.rglob("job.json")
    file.write_text("{")
    code, out, errors = recover(chaos.top)
    assert (code, out) == (1, "")
    assert errors.startswith(f"{file} is corrupt (")
    assert errors.count("\n") == 1


def test_a_reader_during_a_job_of_another_machine(quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits, because that job may be running, and then raises an error."""
    monkeypatch.setattr("sparkwire.core.sources.job._PATIENCE", 0.0)
    half_done(quick_path, "kafka_log", 0.4, owner=ELSEWHERE)
    with pytest.raises(ValueError, match=sentence(quick_path, ELSEWHERE)):
        READERS["a batch of kafka_log"](str(quick_path))


def test_a_job_that_cannot_continue_is_reported_immediately(quick_path: Path) -> None:
    """Its process exists, but the job is not running: a reader does not wait."""
    half_done(quick_path, "kafka_log", 0.4, owner=this_process())
    with pytest.raises(ValueError, match=r"was interrupted while it replaced"):
        READERS["a batch of kafka_log"](str(quick_path))
