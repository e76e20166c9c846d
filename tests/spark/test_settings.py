"""Change settings of a session, and restore them."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql import SparkSession

from sparkwire.spark.settings import changed_settings

SET, UNSET, STATIC = "spark.sql.shuffle.partitions", "sparkwire.test.unset", "spark.sql.warehouse.dir"


def test_settings_are_restored(spark: SparkSession) -> None:
    old = spark.conf.get(SET)
    with changed_settings(spark, {SET: "3", UNSET: "x"}):
        assert (spark.conf.get(SET), spark.conf.get(UNSET)) == ("3", "x")
    assert (spark.conf.get(SET), spark.conf.get(UNSET, None)) == (old, None)


def test_a_session_may_not_allow_a_change(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    old = spark.conf.get(STATIC)
    with caplog.at_level(logging.INFO, "sparkwire"), changed_settings(spark, {STATIC: "elsewhere", SET: "3"}):
        assert (spark.conf.get(STATIC), spark.conf.get(SET)) == (old, "3")
    assert f"the session does not allow to set {STATIC}" in caplog.text
