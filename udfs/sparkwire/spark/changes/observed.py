"""Store rows on the workers, and compute an aggregate of rows in the job that reads them."""

from __future__ import annotations

import logging
from threading import Thread
from typing import Any, Final, NamedTuple

from pyspark.errors import PySparkNotImplementedError
from pyspark.sql import Column, DataFrame, Observation

from sparkwire.base.printable import printable

_PATIENCE: Final = 10  # [s] for a metric after its job
_log = logging.getLogger("sparkwire")


class Observed(NamedTuple):
    """An aggregate that Spark computes while it reads the rows."""

    rows: DataFrame
    """read these"""
    aggregate: Column
    observation: Observation

    @classmethod
    def of(cls, rows: DataFrame, aggregate: Column) -> Observed:
        observation = Observation()
        return cls(rows.observe(observation, aggregate.alias("aggregate")), aggregate, observation)

    def result(self, rows: DataFrame) -> Any:
        """The aggregate, after the job. If Spark does not report it, it is computed from ``rows``."""
        metrics = _metrics(self.observation)
        return metrics["aggregate"] if metrics else rows.agg(self.aggregate).collect()[0][0]


def stored(rows: DataFrame) -> DataFrame:
    """Store the rows on the workers, so that every read returns the same ones. If a worker is lost, a query over them fails."""
    try:
        return rows.localCheckpoint()
    except PySparkNotImplementedError as error:
        raise NotImplementedError("merge into a table on Spark Connect needs Spark 4.0 or later") from error


def _metrics(observation: Observation) -> dict[str, Any]:
    """The metrics; empty if Spark does not report them.

    Spark Connect does not report those of a checkpoint, and Spark none of rows that its optimizer found to be none. A busy
    driver may drop them, and then Spark would wait without an end.
    """
    found: list[dict[str, Any]] = []

    def get() -> None:
        try:
            found.append(observation.get)
        except Exception as error:  # noqa: BLE001 PySpark has no class for it
            _log.info("Spark has no observed metric: %s", printable(str(error)))
            found.append({})

    thread = Thread(target=get, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if not found:
        _log.info("Spark has not reported an observed metric within %d s", _PATIENCE)
    return found[0] if found else {}
