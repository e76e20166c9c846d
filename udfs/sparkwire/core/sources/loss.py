"""What a stream does where something that it has to read is gone."""

from __future__ import annotations

import logging

from sparkwire.errors import DataLossError

_log = logging.getLogger("sparkwire")


class Lost(Exception):
    """What is there in place of what a query has to continue with."""


def report_loss(name: str, resume_at: str, lost: Lost, fails: bool) -> None:
    """Fail, or say it in the log; DataLossError where it fails."""
    sentence = f"data loss in {name}: the query continues at {resume_at}, but {lost}"
    if fails:
        raise DataLossError(f"{sentence}. Set failOnDataLoss=false to continue with what is there") from None
    _log.warning("%s; failOnDataLoss is false: it continues with what is there", sentence)
