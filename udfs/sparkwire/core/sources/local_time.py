"""Times without a zone, as Spark reads them: in the session's time zone. Spark tells it to tasks, not to who plans them.

So what is planned is what such a time may mean in any zone, and the task that reads it leaves out the rest.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_WIDEST = timedelta(hours=18)  # of a zone from UTC
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


class LocalTime(NamedTuple):
    """A time of day, wherever."""

    moment: datetime

    @property
    def earliest(self) -> int:
        """[ms since epoch]"""
        return millis(self.moment.replace(tzinfo=UTC) - _WIDEST)

    @property
    def latest(self) -> int:
        """[ms since epoch]"""
        return millis(self.moment.replace(tzinfo=UTC) + _WIDEST)

    def in_zone(self, name: str | None) -> int:
        """[ms since epoch] in a zone as Spark names it, in this machine's without a name."""
        return millis(self.moment.astimezone() if name is None else self.moment.replace(tzinfo=_zone(name)))


def millis(moment: datetime) -> int:
    """[ms since epoch], rounded up: nothing older is meant."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return -(-micros // 1000)


def _zone(name: str) -> tzinfo:
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        sign, hours, minutes, seconds = found.groups()
        size = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        return timezone(size if sign == "+" else -size)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(
            f"Python does not know the session's time zone {name}: install tzdata on the workers, or write "
            "startingTimestamp and endingTimestamp with a zone (2024-05-01T12:00:00Z)"
        ) from None
