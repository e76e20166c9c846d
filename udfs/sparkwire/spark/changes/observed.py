"""Compute an aggregate of rows in the job that stores the rows."""

from __future__ import annotations

import logging
from threading import Thread
from typing import Any, Final

from pyspark.errors import PySparkNotImplementedError
from pyspark.sql import Column, DataFrame, Observation

_PATIENCE: Final = 10  # [s] for a metric after its job
_log = logging.getLogger("sparkwire")


def stored_with(rows: DataFrame, aggregate: Column) -> tuple[DataFrame, Any]:
    """Store the rows on the workers, so that every read returns the same ones, and compute an aggregate of them.

    If a worker is lost, a query over the stored rows fails. A task may run twice, and then its rows count twice in the aggregate.
    """
    observation = Observation()
    try:
        stored = rows.observe(observation, aggregate.alias("aggregate")).localCheckpoint()
    except PySparkNotImplementedError as error:
        raise NotImplementedError("merge into a table on Spark Connect needs Spark 4.0 or later") from error
    metrics = _metrics(observation)
    return stored, metrics["aggregate"] if metrics else stored.agg(aggregate).collect()[0][0]


def _metrics(observation: Observation) -> dict[str, Any]:
    """The metrics; empty if Spark does not report them.

    Spark Connect does not report those of a checkpoint. A busy driver may drop them, and then Spark would wait without an end.
    """
    found: list[dict[str, Any]] = []
    thread = Thread(target=lambda: found.append(observation.get), daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if not found:
        _log.info("Spark has not reported an observed metric within %d s", _PATIENCE)
    return found[0] if found else {}
