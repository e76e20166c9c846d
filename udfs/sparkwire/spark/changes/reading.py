"""How the changes of a table are read, and the query that reads them. Each format gives its `Reading`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from sparkwire.base.printable import printable, value_error
from sparkwire.changes.columns import (
    BEFORE,
    COLUMN,
    KEYS,
    KEYS_KNOWN,
    MISSING_IS_UNKNOWN,
    NEVER,
    ORDER,
    REPLACES_EPOCHS,
    TOPIC,
    UNAVAILABLE,
    ChangeBatch,
    table_columns,
)
from sparkwire.spark.changes.request import Request, is_case_sensitive
from sparkwire.spark.frames import from_arrow_schema, is_name_in, quoted

Arrays = Mapping[str, pa.Array]


class Reading(NamedTuple):
    """How the changes of a table are read."""

    schema: pa.Schema
    decode: Callable[[Arrays], ChangeBatch]
    """decodes changes from the needed columns, by their roles"""
    needs: Mapping[str, str]
    """the name of each needed column, by its role"""
    keys: Sequence[str] | None
    never: Sequence[str]
    """columns that are NULL in every row"""
    topic: str | None = None
    """the column of topics, if any"""
    missing_is_unknown: bool = False
    """whether a column that a row does not have has an unknown value, instead of NULL"""


def with_rows(request: Request, reading: Reading) -> DataFrame:
    """The DataFrame with the changes instead of its messages: one ``mapInArrow`` over the columns that the format needs."""
    df, new_columns = request.df, from_arrow_schema(reading.schema)
    others = StructType([field for field in df.schema if not is_name_in(request.column, [field.name])])
    _check_names(others, new_columns, is_case_sensitive(df))
    epochs = request.epoch_column()
    decode, needed = reading.decode, [*reading.needs, *(["epochs"] if epochs is not None else [])]
    width, names = len(needed), [*others.names, *new_columns.names]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = dict(zip(needed, batch.columns[:width], strict=True))
            changes = decode(arrays)
            places = pa.array(changes.rows)
            columns = [column.take(places) for column in batch.columns[width:]]
            yield pa.RecordBatch.from_arrays([*columns, *changes.batch.columns], names=names)

    inputs = [F.col(name).alias(f"needed_{k}") for k, name in enumerate(reading.needs.values())]
    inputs += [] if epochs is None else [epochs.alias("needed_epoch")]
    inputs += [F.col(quoted(name)).alias(f"kept_{k}") for k, name in enumerate(others.names)]
    rows = df.select(*inputs).mapInArrow(read, StructType([*others, *new_columns]))
    marks: dict[str, dict[str, Any]] = {name: {NEVER: True} for name in reading.never}
    marks |= {name: {COLUMN: name} for name in _columns(new_columns)}
    if reading.missing_is_unknown:
        marks.setdefault(UNAVAILABLE, {})[MISSING_IS_UNKNOWN] = True
    if reading.keys is not None:
        marks[KEYS] = {KEYS_KNOWN: list(reading.keys)}
    of_order: dict[str, Any] = {} if reading.topic is None else {TOPIC: reading.topic}
    if request.epochs == "replace":
        of_order[REPLACES_EPOCHS] = True
    if of_order:
        marks[ORDER] = of_order
    return rows.select(*(_with_metadata(name, marks) for name in names))


def _columns(schema: StructType) -> list[str]:
    """The columns of the table."""
    return table_columns(schema.names, schema[BEFORE].dataType.names)


def _with_metadata(name: str, marks: Mapping[str, dict[str, Any]]) -> Column:
    column = F.col(quoted(name))
    return column.alias(name, metadata=marks[name]) if name in marks else column


def _check_names(others: StructType, new: StructType, case_sensitive: bool) -> None:
    """Raise ValueError if two columns of the result have one name, by Spark's rule."""
    by_rule = (lambda name: name) if case_sensitive else str.lower
    of_input = {by_rule(name) for name in others.names}
    for name in new.names:
        if by_rule(name) in of_input:
            shown = printable(name)
            raise value_error(
                f"the table's column {shown} has the name of a column of the input: rename that column, "
                f"and pass its new name if it is the record's topic, partition, offset, key or headers, such as "
                f'df.withColumnRenamed("{shown}", "record_{shown}")'
            )
    counts = Counter(map(by_rule, new.names))
    same = [name for name in new.names if counts[by_rule(name)] > 1]
    if same:
        raise value_error(
            f"the columns {' and '.join(same[:2])} of the table have one name for Spark: set "
            "spark.sql.caseSensitive to true, or name the columns to read with columns="
        )
