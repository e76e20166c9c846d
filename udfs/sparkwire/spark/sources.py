"""The data sources: options, filters and tasks handed to `sparkwire.files`, its record batches handed to Spark.

Spark makes a source in a Python process of its own for planning, and pickles what it plans for its workers: everything here is
plain data and the names of this package's classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from sparkwire.files import databus, kafka_log


def register(spark: SparkSession) -> None:
    """Make the sources known by their names."""
    for source in SOURCES:
        spark.dataSource.register(source)


class Task(InputPartition):  # type: ignore[misc]  # PySpark is not typed
    """Parts of files that one task reads."""

    def __init__(self, parts: Sequence[Any]) -> None:
        super().__init__(parts)
        self.parts = parts


class KafkaLog(DataSource):  # type: ignore[misc]
    """Kafka's segments as a table; see `sparkwire.files.kafka_log`."""

    @classmethod
    def name(cls) -> str:
        return kafka_log.NAME

    def schema(self) -> StructType:
        asked = kafka_log.query(self.options)
        kafka_log.find(asked.paths)
        return from_arrow_schema(kafka_log.schema(asked))

    def reader(self, schema: StructType) -> DataSourceReader:
        return KafkaLogReader(with_schema(kafka_log, self.options, schema), schema)


class KafkaLogReader(DataSourceReader):  # type: ignore[misc]
    """One query."""

    def __init__(self, asked: kafka_log.Query, schema: StructType) -> None:
        self.asked = asked
        self.types = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> list[Task]:
        return [Task(parts) for parts in kafka_log.plan(self.asked)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Task):  # Spark's stand-in for no partition at all
            return iter(())
        return typed(kafka_log.read(self.asked, partition.parts), self.types)


class Databus(DataSource):  # type: ignore[misc]
    """Databus event files as a table; see `sparkwire.files.databus`."""

    @classmethod
    def name(cls) -> str:
        return databus.NAME

    def schema(self) -> StructType:
        asked = databus.query(self.options)
        databus.find(asked.paths)
        return from_arrow_schema(databus.schema(asked))

    def reader(self, schema: StructType) -> DataSourceReader:
        return DatabusReader(with_schema(databus, self.options, schema), schema)


class DatabusReader(DataSourceReader):  # type: ignore[misc]
    """One query."""

    def __init__(self, asked: databus.Query, schema: StructType) -> None:
        self.asked = asked
        self.types = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> list[Task]:
        return [Task(parts) for parts in databus.plan(self.asked)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Task):
            return iter(())
        return typed(databus.read(self.asked, partition.parts), self.types)


def with_schema(source: Any, options: Mapping[str, str], schema: StructType) -> Any:
    """The query of options, for the columns of a schema that the user may have given.

    Raises
    ------
    ValueError
        where the schema has a column that the source does not have, or has with another type.
    """
    asked = source.query(options)
    types = source.types(asked)
    known = from_arrow_schema(pa.schema(list(types.items())))
    for field in schema:
        if field.name not in types:
            raise ValueError(f"{source.NAME} has no column {field.name!r}: it has {', '.join(types)}")
        if field.dataType != known[field.name].dataType:
            is_, given = known[field.name].dataType.simpleString(), field.dataType.simpleString()
            raise ValueError(f"{source.NAME} has {field.name} {is_.upper()}, and the schema says {given.upper()}")
    return asked._replace(columns=tuple(schema.names))


def typed(batches: Iterable[pa.RecordBatch], types: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same with Spark's own names of what is inside types."""
    for batch in batches:
        yield batch.cast(types)


SOURCES = (KafkaLog, Databus)
