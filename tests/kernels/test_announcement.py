"""If compilation takes long, it is announced to the user once."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkwire.kernels import cache


def reported(caplog: pytest.LogCaptureFixture, *times: float) -> list[str]:
    announcement = cache.Announcement()
    with caplog.at_level(logging.WARNING, "sparkwire"):
        for now in times:
            announcement.compiling(now)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("times", "lines"), [((), 0), ((100.0,), 0), ((100.0, 102.9), 0), ((100.0, 103.1), 1), ((100.0, 104.0, 120.0), 1)]
)
def test_compilation_of_more_than_three_seconds_is_announced_once(
    caplog: pytest.LogCaptureFixture, times: tuple[float, ...], lines: int
) -> None:
    assert reported(caplog, *times) == [cache.COMPILING] * lines


@pytest.mark.parametrize("module", ["pyspark.daemon", "pyspark.worker", "pyspark.worker_util"])
def test_workers_of_spark_announce_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    for name in cache._WORKERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, module, sys)
    assert reported(caplog, 0.0, 60.0) == []


def test_a_driver_announces(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in cache._WORKERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert reported(caplog, 0.0, 60.0) == [cache.COMPILING]


def test_the_message_names_an_existing_command() -> None:
    from sparkwire.__main__ import arguments

    assert "`python -m sparkwire warm`" in cache.COMPILING
    assert arguments().parse_args(["warm"]).command == "warm"


def test_a_machine_is_cold_until_a_kernel_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "directories", lambda: ())
    none, some = (cache.CachedKernels(Path(), files, files, True) for files in (0, 3))
    for cached, cold in ((None, True), (none, True), (some, False)):
        monkeypatch.setattr(cache, "cached_kernels", lambda cached=cached: cached)
        assert cache.is_cold() is cold


def test_warm_shows_its_progress_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sparkwire.__main__ import main
    from sparkwire.catalogue import warm

    def two_calls(progress: Callable[[int, int], None]) -> int:
        for done in range(3):
            progress(done, 2)
        return 2

    monkeypatch.setattr(warm, "warm", two_calls)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("sys.argv", ["sparkwire", "warm"])
    main()
    assert "] 1 of 2 calls\r[" in capsys.readouterr().err
