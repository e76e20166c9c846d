"""Check a Spark session for ``sparkwire.doctor``: its server and its executors."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkwire.catalogue.diagnosis import Diagnosis, ProcessFacts, examine, facts_from, report
from sparkwire.spark.functions.udf import best_interface

_TASKS = 8
"""the number of tasks, enough to reach several executors"""


def doctor(spark: SparkSession | None = None) -> Diagnosis:
    """Report the versions and settings of this session, and what to do about them. Paste the report into an issue.

    It reports versions on driver and executors, the interface, the compile cache, and the checksum implementation. It measures
    the first round trip of each format. It runs one small job, by default in the session that PySpark's settings define.

    Examples
    --------
    >>> sparkwire.doctor(spark)
    """
    spark = spark or SparkSession.builder.getOrCreate()
    mode = "Connect" if "connect" in type(spark).__module__ else "classic"
    header = [f"Spark {spark.version}, {mode}, interface {best_interface(spark)}"]
    here = examine()
    try:
        others = _executors(spark)
    except PySparkException as failed:
        reason = next((line for line in reversed(str(failed).splitlines()) if "Error" in line), str(failed)[:300])
        return report(
            [*header, f"executors: {reason.strip()}"],
            here,
            [],
            "make the package known to the executors' Python (docs/cluster.md).",
        )
    return report(header, here, others)


def _executors(spark: SparkSession) -> list[ProcessFacts]:
    """The facts about one process of each executor host: the slowest, which has compiled the most."""

    def examine_executor(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch([pa.array([json.dumps(examine()._asdict())])], names=["facts"])

    rows = spark.range(0, _TASKS, 1, _TASKS).mapInArrow(examine_executor, "facts STRING").collect()
    executors = [facts_from(json.loads(row["facts"])) for row in rows]
    slowest_first = sorted(executors, key=lambda facts: -sum(facts.trips.values()))
    return list({facts.host: facts for facts in reversed(slowest_first)}.values())
