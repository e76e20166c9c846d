"""Times of `kafka_log`: with a zone as written, without one in the session's, which only tasks know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from sparkwire.kafka.files import kafka_log, seek
from tests.support.log_files import CREATED, entry, segment

HOURS = range(200)
START = datetime(2020, 9, 13, 12, 26, 40)  # CREATED, in UTC


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record each hour, over several segments."""
    folder = tmp_path_factory.mktemp("hours") / "orders-0"
    for base in range(0, 200, 16):
        hours = range(base, min(base + 16, 200))
        segment(folder, base, [entry(k, [b"v" * 50], time=CREATED + 3_600_000 * k) for k in hours])
    return folder


def offsets(path: Path, zone: str | None, **options: str) -> list[int]:
    query = kafka_log.query({"path": str(path), "columns": "offset", **options})
    return [
        offset
        for task in kafka_log.plan(query)
        for batch in kafka_log.read(query, task, zone)
        for offset in batch["offset"].to_pylist()
    ]


ZONES = {"UTC": 0, "Z": 0, "+05:30": 5.5, "-18:00": -18, "+18:00": 18, "GMT-2": -2, "UTC+01:30": 1.5, "Asia/Tokyo": 9}


@pytest.mark.parametrize(
    ("zone", "size"), [*((zone, "128m") for zone in ZONES), ("UTC", "1"), ("+05:30", "1"), ("-18:00", "1")]
)
def test_times_without_a_zone(zone: str, size: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seek, "PAGE", 512)
    east = timedelta(hours=ZONES[zone])
    for day in (0, 2.4, 8.2):
        moment = START + timedelta(days=day)
        first, last = (
            next((k for k in HOURS if START + timedelta(hours=k) + east >= at), 200)
            for at in (moment, moment + timedelta(hours=30))
        )
        text, until = moment.isoformat(), (moment + timedelta(hours=30)).isoformat(sep=" ")
        assert offsets(folder, zone, startingTimestamp=text, maxSplitBytes=size) == list(HOURS)[first:]
        assert offsets(folder, zone, endingTimestamp=text, maxSplitBytes=size) == list(HOURS)[:first]
        assert offsets(folder, zone, startingTimestamp=text, endingTimestamp=until) == list(HOURS)[first:last]


def test_a_zone_that_is_written(folder: Path) -> None:
    moment = (START + timedelta(hours=50)).replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=-7)))
    assert offsets(folder, "Asia/Tokyo", startingTimestamp=moment.isoformat()) == list(HOURS)[50:]


def test_a_zone_that_nobody_knows(folder: Path) -> None:
    with pytest.raises(
        ValueError, match=r"Python does not know the session's time zone Europe/Atlantis: install tzdata"
    ):
        offsets(folder, "Europe/Atlantis", startingTimestamp="2020-09-14")
