"""Streams of events as DataFrames."""

from __future__ import annotations

from random import Random

from pyspark.sql import DataFrame, SparkSession

from sparkwire.databus.client.buffer import split

SCHEMA = "stream STRING, position LONG, event BINARY"


def rows(streams: dict[str, bytes]) -> list[tuple[str, int, bytes]]:
    """The events of the streams, in order."""
    return [(name, k, e.as_py()) for name, data in streams.items() for k, e in enumerate(split(data).events)]


def frame(spark: SparkSession, streams: dict[str, bytes], seed: int = 1) -> DataFrame:
    """The events of the streams, in random order."""
    shuffled = rows(streams)
    Random(seed).shuffle(shuffled)
    return spark.createDataFrame(shuffled, SCHEMA).repartition(3)
