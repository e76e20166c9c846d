"""The pandas interface, which Spark before 4.1 has alone, against the Arrow interface: the same functions, the same query."""

from __future__ import annotations

import tempfile

from benchmarks.kafka_sql import RECORDS, write_segments
from benchmarks.report import Row, no_slower
from benchmarks.sql import SIX, discarded, local_spark, query, write_events
from benchmarks.timing import interleave
from sparkwire.spark.functions.udf import udf


def rows() -> list[Row]:
    """The claims about pandas Series."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        for name in (*SIX, "kafka_records"):
            spark.udf.register(f"arrow_{name}", udf(name, "arrow"))
            spark.udf.register(f"pandas_{name}", udf(name, "pandas"))
        spark.read.parquet(write_events(folder)).createOrReplaceTempView("events")
        write_segments(spark, folder)
        records = {
            i: RECORDS.format(view="few").replace("kafka_records", f"{i}_kafka_records") for i in ("arrow", "pandas")
        }
        times = interleave(
            {
                f"{i}, six": query(spark, ", ".join(f"max({i}_{name}(value))" for name in SIX))
                for i in ("arrow", "pandas")
            }
            | {f"{i}, records": discarded(spark.sql(records[i])) for i in ("arrow", "pandas")},
            rounds=5,
        )
        return [
            no_slower("pandas, 1 M events: six functions", times["pandas, six"], "Arrow", times["arrow, six"], 2),
            no_slower("pandas, 128 MB: kafka_records", times["pandas, records"], "Arrow", times["arrow, records"], 2),
        ]
