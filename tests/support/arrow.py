"""Ask a function on Arrow, as Spark does, and get plain Python answers."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sparkwire import FUNCTIONS

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def ask(function: str, rows: Sequence[bytes | None], type: pa.DataType | None = None) -> list[Any]:
    """One answer a row; a timestamp in microseconds since the epoch."""
    return plain(FUNCTIONS[function].decode(pa.array(rows, type or pa.binary())))


def plain(answers: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(answers.type):
        answers = answers.cast(pa.int64())
    return [whole(answer) for answer in answers.to_pylist()]


def whole(answer: Any) -> Any:
    """Timestamps inside structs and lists, in microseconds too."""
    if isinstance(answer, datetime.datetime):
        return (answer - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(answer, dict):
        return {name: whole(field) for name, field in answer.items()}
    if isinstance(answer, list):
        return [whole(item) for item in answer]
    return answer


def enlarged(array: pa.Array) -> pa.Array:
    """The same with 64-bit offsets in its strings and bytes, as Spark sends them under useLargeVarTypes."""
    return pa.array(array.to_pylist(), large(array.type))


def large(type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type):
        return pa.struct([(field.name, large(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(large(type.value_type))
    if pa.types.is_map(type):
        return pa.map_(large(type.key_type), large(type.item_type))
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(type, type)
