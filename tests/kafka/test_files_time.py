"""Time options of `kafka_log`: each has a time zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from sparkwire.core.sources import options
from sparkwire.kafka.files import kafka_log, seek
from tests.support.log_files import CREATED, entry, segment

HOURS = list(range(200))
START = datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC)  # CREATED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record each hour, over several segments."""
    folder = tmp_path_factory.mktemp("hours") / "orders-0"
    for base in range(0, 200, 16):
        hours = range(base, min(base + 16, 200))
        segment(folder, base, [entry(k, [b"v" * 50], time=CREATED + 3_600_000 * k) for k in hours])
    return folder


def offsets(path: Path, **given: str) -> list[int]:
    query = kafka_log.query({"path": str(path), "columns": "offset", **given})
    return [
        offset
        for task in kafka_log.plan(query)
        for batch in kafka_log.read(query, task)
        for offset in batch["offset"].to_pylist()
    ]


@pytest.mark.parametrize("size", ["128m", "1"])
@pytest.mark.parametrize("hours", [0, 5.5, -18, 9])
def test_times_of_any_zone(hours: float, size: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seek, "PAGE", 512)
    zone = timezone(timedelta(hours=hours))
    for first in (0, 58, 197):
        moment = (START + timedelta(hours=first)).astimezone(zone)
        text, until = moment.isoformat(), (moment + timedelta(hours=29.5)).isoformat(sep=" ")
        assert offsets(folder, startingTimestamp=text, maxSplitBytes=size) == HOURS[first:]
        assert offsets(folder, endingTimestamp=text, maxSplitBytes=size) == HOURS[:first]
        assert offsets(folder, startingTimestamp=text, endingTimestamp=until) == HOURS[first : first + 30]


@pytest.mark.parametrize(
    ("text", "millis"),
    [("1970-01-01T00:00:00.000001Z", 1), ("1969-12-31T23:59:59.999001Z", 0), ("1969-12-31T23:59:59Z", -1000)],
)
def test_parts_of_a_millisecond_round_up(text: str, millis: int) -> None:
    assert options.instant(text) == millis


@pytest.mark.parametrize(
    ("text", "shown"),
    [("2020-09-14", "2020-09-14T00:00:00Z"), ("2020-09-14 20:30:00.5", "2020-09-14T20:30:00.500000Z")],
)
@pytest.mark.parametrize("option", ["startingTimestamp", "endingTimestamp"])
def test_a_time_without_a_zone(option: str, text: str, shown: str) -> None:
    sentence = f"kafka_log takes {option} with a time zone ({shown}), got {text!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        kafka_log.query({"path": "/logs", option: text})
