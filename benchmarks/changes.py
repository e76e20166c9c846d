"""Changes out of messages against ``from_json``, the table now against one aggregate, the table kept against ``MERGE``."""

from __future__ import annotations

import json
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from benchmarks.changes_merge import ROUNDS, STEPS, keys_of
from benchmarks.debezium import COLUMNS, IN_SQL, by_hand, messages
from benchmarks.report import Row, no_slower, table
from benchmarks.sql import discarded, local_spark
from benchmarks.timing import Timing, interleave
from sparkwire.spark.changes.states import exchanged
from tests.integration.packages import DELTA, run_python

KEYS = IN_SQL // 4
"""of the table: each has four changes"""
PARTITIONS = 4
"""of the topic"""


def rows() -> list[Row]:
    """The claims about change tables."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        result = [*message_rows(spark, folder), *current_rows(spark, folder)]
    return [*result, *(row for changes in ROUNDS for row in merge_rows(changes))]


def message_rows(spark: SparkSession, folder: str) -> list[Row]:
    path = f"{folder}/messages.parquet"
    values = pa.table({"offset": pa.array(range(IN_SQL)), "value": messages(IN_SQL)})
    pq.write_table(values, path, row_group_size=IN_SQL // 8, compression="none", use_dictionary=False)
    records = spark.read.parquet(path)
    records.createOrReplaceTempView("messages")
    changes = sparkwire.changes(records, format="debezium", table="public.orders", columns=COLUMNS, keys="id")
    times = interleave({"ours": discarded(changes), "from_json": discarded(by_hand(spark))}, rounds=5, warm=1)
    work = "SQL, 1 M messages of Debezium: the changes of one table"
    return [no_slower(work, times["ours"], "from_json", times["from_json"], 1)]


def typed_changes(spark: SparkSession, changes: int) -> DataFrame:
    """Four changes of each key, the last of which deletes every eighth row; as `sparkwire.changes` gives them."""
    return spark.range(changes).selectExpr(
        f"CASE WHEN id < {KEYS} THEN 'INSERT' WHEN id >= {3 * KEYS} AND id % 8 = 0 THEN 'DELETE' ELSE 'UPDATE' END AS _op_",
        f"named_struct('epoch', 0, 'partition', CAST(id % {KEYS} % {PARTITIONS} AS INT), 'offset', id) AS _order_",
        "timestamp_micros(1714557600000000 + id) AS _time_",
        "'public.orders' AS _table_",
        f"id % {KEYS} AS id",
        "concat('customer ', id) AS name",
        "id % 9973 / 100D AS amount",
        "timestamp_micros(1590315269000000 + id) AS created",
    )


def current_rows(spark: SparkSession, folder: str) -> list[Row]:
    typed_changes(spark, IN_SQL).write.parquet(f"{folder}/changes")
    changes = spark.read.parquet(f"{folder}/changes")
    bare = changes.selectExpr("id", "_order_", "struct(_op_, name, amount, created, _order_, _time_) AS row")
    bare = (
        bare.groupBy("id")
        .agg(F.max_by("row", "_order_").alias("newest"))
        .selectExpr("id", "newest.*")
        .where("_op_ <> 'DELETE'")
    )
    work, once = "SQL, 1 M typed changes: the table now", "max_by, its rows exchanged once"
    bounds = {work: 1.5, f"{work}, if values may be missing": 2, f"{work}, if a tenth of the updates lacks a value": 5}
    no_names, a_name = "CAST(NULL AS ARRAY<STRING>)", "if(_op_ = 'UPDATE' AND id % 10 = 0, array('amount'), NULL)"
    ours = [changes, *(changes.withColumn("_unavailable_", F.expr(names)) for names in (no_names, a_name))]
    contenders = {name: sparkwire.current(df, "id") for name, df in zip(bounds, ours, strict=True)}
    checked = "max_by, and a look for a TRUNCATE and a second table"
    contenders |= {"max_by alone": bare, once: bare.repartition("id"), checked: with_facts(changes)}
    times = interleave({name: discarded(df) for name, df in contenders.items()}, rounds=5, warm=1)
    result = [no_slower(name, times[name], once, times[once], bound) for name, bound in bounds.items()]
    result += [no_slower(work, times[work], checked, times[checked], 1.2)]
    return [no_slower(work, times[work], "max_by alone", times["max_by alone"], bounds[work]), *result]


def with_facts(changes: DataFrame) -> DataFrame:
    """max_by by hand, after a look at all changes of the same exchange: a TRUNCATE and a second table decide which rows exist."""
    row = F.struct("_op_", "name", "amount", "created", "_order_", "_time_").alias("row")
    rows = exchanged(changes.select("id", "_op_", "_order_", "_table_", row), ["id"])
    facts = rows.selectExpr(
        "struct(max(CASE WHEN _op_ = 'TRUNCATE' THEN _order_ END) AS truncated, min(_table_) <> max(_table_) AS are_two) AS facts"
    )
    newest = rows.groupBy("id").agg(F.max_by("row", "_order_").alias("newest")).withColumn("facts", facts.scalar())
    exists = "newest._op_ <> 'DELETE' AND (facts.truncated IS NULL OR newest._order_ > facts.truncated)"
    return newest.where(f"CASE WHEN facts.are_two THEN raise_error('two tables') ELSE {exists} END").select(
        "id", "newest.*"
    )


def merge_rows(changes: int) -> list[Row]:
    """Into a table of Delta, by a process whose Spark has it."""
    printed = run_python(DELTA, "-m", "benchmarks.changes_merge", str(changes))
    [said] = [line for line in printed.splitlines() if line[:1] == "{"]
    times = {name: Timing(tuple(samples)) for name, samples in json.loads(said).items()}
    work = f"{changes:,} changes into a table of Delta with {keys_of(changes):,} rows"
    peers = "a MERGE by hand that keeps deletes", "one that forgets them"
    result = [no_slower(work, times["ours"], peer, times[peer], 1.2) for peer in peers]
    # What of ours takes how long, as a part of the MERGE by hand.
    steps = {f"of {changes:,} changes: {step}": times[step] for *_, step in STEPS}
    return result + [no_slower(step, taken, peers[0], times[peers[0]], 1) for step, taken in steps.items()]


def main() -> None:
    print(table(rows()))


if __name__ == "__main__":
    main()
