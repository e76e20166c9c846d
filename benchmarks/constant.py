"""A data source that decodes nothing: what Spark takes for rows of a Python source, whatever they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

KEY, VALUE, OTHER = 8, 1000, 8  # sizes of binary and text columns [bytes]


class Constant(DataSource):  # type: ignore[misc]  # PySpark is not typed
    """As many tasks, batches and rows as its options say, the same batch again and again."""

    @classmethod
    def name(cls) -> str:
        return "constant_rows"

    def schema(self) -> str:
        return str(self.options["ddl"])

    def reader(self, schema: StructType) -> ConstantReader:
        sizes = (int(self.options[name]) for name in ("tasks", "batches", "rows", "keySize", "valueSize"))
        return ConstantReader(to_arrow_schema(schema), *sizes)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return ConstantStream(self.reader(schema))


class ConstantReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, types: pa.Schema, tasks: int, batches: int, rows: int, key: int, value: int) -> None:
        self.types = types
        self.tasks = tasks
        self.batches = batches
        self.rows = rows
        self.sizes = {"key": key, "value": value}

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(k) for k in range(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = pa.RecordBatch.from_arrays([self._column(field) for field in self.types], schema=self.types)
        return iter([batch] * self.batches)

    def _column(self, field: pa.Field) -> pa.Array:
        if not (pa.types.is_binary(field.type) or pa.types.is_string(field.type)):
            return pa.array(np.zeros(self.rows, field.type.to_pandas_dtype()))
        size = self.sizes.get(field.name, OTHER)
        offsets = np.arange(self.rows + 1, dtype=np.int32) * size
        return pa.Array.from_buffers(
            field.type, self.rows, [None, pa.py_buffer(offsets), pa.py_buffer(bytes(size * self.rows))]
        )


class ConstantStream(DataSourceStreamReader):  # type: ignore[misc]
    """The same rows once."""

    def __init__(self, rows: ConstantReader) -> None:
        self.rows = rows

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"read": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"read": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return self.rows.partitions() if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.rows.read(partition)


def constant(
    spark: SparkSession,
    ddl: str,
    answers: list[str],
    rows: int,
    tasks: int,
    batches: int,
    key: int = KEY,
    value: int = VALUE,
) -> Callable[[], object]:
    """A query over ``rows`` constant rows in ``batches`` batches, both shared among ``tasks``."""
    shares = {"tasks": tasks, "batches": batches // tasks, "rows": rows // batches}
    options = {"ddl": ddl, **shares, "keySize": key, "valueSize": value}
    return lambda: spark.read.format("constant_rows").options(**options).load().selectExpr(*answers).collect()
