"""Report data that a stream must read but that no longer exist."""

from __future__ import annotations

import logging

from sparkwire.base.printable import printable
from sparkwire.errors import DataLossError

_log = logging.getLogger("sparkwire")


class Lost(Exception):
    """Data are lost. The message describes what exists instead of the data with which the query must continue."""


def report_loss(name: str, resume_at: str, lost: Lost, fails: bool) -> None:
    """Raise DataLossError, or write a warning to the log if ``fails`` is false."""
    sentence = f"data loss in {name}: the query continues at {resume_at}, but {lost}"
    if fails:
        raise DataLossError(
            f"{sentence}. Set failOnDataLoss=false to continue with the remaining data. For a topic that was created again, use "
            "a new checkpoint, and for sparkwire.changes a greater epoch, too"
        ) from None
    _log.warning("%s; failOnDataLoss is false: it continues with the remaining data", printable(sentence))
