"""Call functions with Arrow arrays, like Spark, and convert results to Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from sparkwire import FUNCTIONS


def ask(function: str, rows: Sequence[bytes | None], type: pa.DataType | None = None) -> list[Any]:
    """One result for each row; timestamps are microseconds since the epoch."""
    return plain(FUNCTIONS[function].decode(pa.array(rows, type or pa.binary())))


def plain(answers: pa.Array | pa.ChunkedArray) -> list[Any]:
    return list(answers.cast(with_integers(answers.type)).to_pylist())


def plain_rows(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """The rows of a query's batches."""
    result = [batch.to_struct_array() for batch in batches]
    return plain(pa.concat_arrays(result)) if result else []


def with_dicts(column: pa.Array) -> list[Any]:
    """The rows with each map as a dict; a key that a map has twice fails."""

    def converted(value: Any, type: pa.DataType) -> Any:
        if value is None:
            return None
        if pa.types.is_map(type):
            assert len({key for key, _ in value}) == len(value), value
            return {key: converted(item, type.item_type) for key, item in value}
        if pa.types.is_list(type):
            return [converted(item, type.value_type) for item in value]
        if pa.types.is_struct(type):
            return {field.name: converted(value[field.name], field.type) for field in type}
        return value

    return [converted(value, column.type) for value in column.to_pylist()]


def with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    """The batch and the column, which replaces one of the same name."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | {name: column}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def with_integers(type: pa.DataType) -> pa.DataType:
    """The type with integers (microseconds) instead of timestamps."""
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(with_integers(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(with_integers(type.value_type)))
    if pa.types.is_map(type):
        return pa.map_(with_integers(type.key_type), with_integers(type.item_type))
    return pa.int64() if pa.types.is_timestamp(type) else type


def enlarged(array: pa.Array) -> pa.Array:
    """The array with 64-bit offsets in strings and bytes, as Spark sends them with useLargeVarTypes."""
    return pa.array(array.to_pylist(), large(array.type))


def large(type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type):
        return pa.struct([(field.name, large(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(large(type.value_type))
    if pa.types.is_map(type):
        return pa.map_(large(type.key_type), large(type.item_type))
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(type, type)
