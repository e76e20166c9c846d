"""Golden messages of Canal, Maxwell and Debezium through Spark: the current table equals that of the database."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from tests.changes import test_golden_debezium, test_golden_maxwell
from tests.support import cdc_golden as golden
from tests.support.oracles import mysql_truth, postgres_truth
from tests.support.table_replay import Row, compare_table

RECORDS = "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>"
SAME = {"canal": mysql_truth.same, "maxwell": mysql_truth.same, "postgres2": postgres_truth.same}


def records(spark: SparkSession, system: str, variant: str, topic: str | None = None) -> DataFrame:
    """The messages of a variant, or of one of its topics, the newest first."""
    given = [tuple(record) for record in golden.records(system, variant) if topic in (None, record.topic)]
    return spark.createDataFrame(given[::-1], RECORDS).coalesce(1)


def differences(table: DataFrame, system: str, variant: str, name: str, point: int) -> list[golden.Loss]:
    """What differs from the table of the database at a point, without known losses."""
    truth = golden.points(system)[point].tables[name]
    rows = []
    for row in table.collect():
        values = row.asDict(recursive=True)
        unexpected = values.get("_unexpected_") or {}
        rows.append(Row(values, unexpected))
    found, _, losses = compare_table(rows, truth, variant, SAME[system])
    assert found == len(truth.rows)
    known = {loss for loss in golden.known_losses(system) if loss.variant == variant}
    shortened = [
        loss._replace(text=f"{loss.text[:200]}…") if loss.text and len(loss.text) > 200 else loss for loss in losses
    ]
    return [loss for loss in shortened if loss not in known and loss._replace(variant="flat") not in known]


@pytest.mark.parametrize(("table", "point"), [("shopdb.customers", 6), ("shopdb.staging", 5), ("shopdb.rates", 4)])
def test_canal(spark: SparkSession, table: str, point: int) -> None:
    changes = sparkwire.changes(records(spark, "canal", "flat-plain"), format="canal", table=table)
    last = golden.points("canal")[point].sent["flat-plain"] - 1
    current = sparkwire.current(changes, until={"offset": last})
    assert differences(current, "canal", "flat-plain", table, point) == []


def test_maxwell_by_the_order_of_the_source(spark: SparkSession) -> None:
    """The changes of a key are in three partitions."""
    table = "shopdb.customers"
    changes = sparkwire.changes(
        records(spark, "maxwell", "full"),
        format="maxwell",
        table=table,
        key="key",
        columns=test_golden_maxwell.columns()[table],
        order="source",
    )
    assert differences(sparkwire.current(changes), "maxwell", "full", table, 9) == []


@pytest.mark.parametrize(
    ("variant", "name", "point"), [("two-partitions", "wide_docs", 4), ("cloudevents-schemas", "order items", 7)]
)
def test_debezium(spark: SparkSession, variant: str, name: str, point: int) -> None:
    """Unchanged TOAST values come from the old row, also after a change of its key in another partition."""
    topic, table = f"shop2.app.{name}".replace(" ", "_"), f"app.`{name}`"
    given: dict[str, Any] = {}
    if not variant.endswith("schemas"):
        given["columns"] = test_golden_debezium.columns(variant, f"app.{name}")
    changes = sparkwire.changes(
        records(spark, "postgres2", variant, topic),
        format="debezium",
        table=table,
        key="key",
        headers="headers",
        **given,
    )
    within = [
        f"(_order_.partition = {k} AND _order_.offset <= {end})" for k, end in ends(variant, topic, point).items()
    ]
    current = sparkwire.current(changes.where(" OR ".join(within)))
    assert differences(current, "postgres2", variant, f"app.{name}", point) == []


def ends(variant: str, topic: str, point: int) -> dict[int, int]:
    """The last offset before a point, by partition."""
    sent = golden.points("postgres2")[point].sent[variant]
    given = golden.records("postgres2", variant)[:sent]
    return {record.partition: record.offset for record in given if record.topic == topic}


def test_a_key_in_two_partitions_is_an_error(spark: SparkSession) -> None:
    """Canal's partitionHash puts the old and the new key of an UPDATE in two partitions."""
    df = records(spark, "canal", "flat-hash", "shopdb_customers")
    changes = sparkwire.changes(df, format="canal", table="shopdb.customers")
    with pytest.raises(Exception, match="partition"):
        sparkwire.current(changes).collect()
