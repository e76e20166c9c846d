"""The pandas border: Series in and out, for Spark before 4.1 and for the functions of a catalog. No pyspark.

What Spark passes as pandas has lost something: integers beside NULLs are floating point, an instant is a clock's
reading, a NULL STRUCT is a row of NULLs, structs in arrays are dicts. `call` makes Arrow columns of the declared types out of it
again, and rejects with a clear error message what cannot be known any more. Results stay Arrow's, without a copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bools_of, lists, maps
from sparkwire.core.function import Function

_EXACT: Final = 2**53
"""From here on a DOUBLE stands for several integers."""


class ArgumentPlace(NamedTuple):
    """Which argument it is, for the sentence of an error, and the clock of its timestamps."""

    function: str
    path: str
    zone: str | None
    """the session's time zone, None where nobody knows it"""

    def field(self, name: str) -> ArgumentPlace:
        return self._replace(path=f"{self.path}.{name}")


def call(
    function: Function, args: Sequence[Any], named: Mapping[str, Any], zone: str | None
) -> pd.Series | pd.DataFrame:
    """``function`` over Series, a DataFrame for each STRUCT; its result likewise.

    Parameters
    ----------
    zone
        the session's time zone, in which TIMESTAMPs come; None if it is unknown: they are rejected then

    Raises
    ------
    TypeError, ValueError
        as ``Function.decode``; and where pandas no longer holds what the query gave.
    """
    declared = {argument.name: argument for argument in function.arguments}

    def given(name: str, series: Any) -> pa.Array:
        return column(
            series, declared[name].type if name in declared else None, ArgumentPlace(function.name, name, zone)
        )

    # Too many arguments and unknown names are for `decode` to reject.
    names = [*declared, *(f"argument {k + 1}" for k in range(len(declared), len(args)))]
    arrays = [given(name, series) for name, series in zip(names, args, strict=False)]
    return to_pandas(function.decode(*arrays, **{name: given(name, series) for name, series in named.items()}))


class ArrowColumn(pd.arrays.ArrowExtensionArray):
    """A result as pandas takes it. Spark converts Series value by value to what this is already: it gets it as it is."""

    def map(self, mapper: Any, na_action: Any = None) -> ArrowColumn:
        return _Converted(self.__arrow_array__())

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.ChunkedArray:
        column = super().__arrow_array__()
        return column if type is None or column.type == type else column.cast(type)


class _Converted(ArrowColumn):
    """After `map`, pandas asks whether the first value is a Series: that of ``kafka_records`` is a file of records."""

    def __getitem__(self, item: Any) -> Any:
        return None if isinstance(item, int) else super().__getitem__(item)


def to_pandas(result: pa.Array) -> pd.Series | pd.DataFrame:
    """A Series over the array, a DataFrame for a STRUCT: what is a NULL STRUCT has NULL in all fields then."""
    if pa.types.is_struct(result.type):
        columns = zip(result.type, result.flatten(), strict=True)
        return pd.DataFrame({field.name: pd.Series(ArrowColumn(column)) for field, column in columns})
    return pd.Series(ArrowColumn(result))


class _Latest:
    """The column of the last Series of Python objects, as long as there is that Series."""

    def __init__(self) -> None:
        self._kept: tuple[weakref.ref[pd.Series], pa.Array] | None = None

    def array(self, series: pd.Series) -> pa.Array:
        kept = self._kept  # replaced in full: threads may request several Series at once
        if kept is None or kept[0]() is not series:
            kept = self._kept = weakref.ref(series, self._forget), pa.Array.from_pandas(series)
        return kept[1]

    def _forget(self, gone: weakref.ref[pd.Series]) -> None:
        if self._kept is not None and self._kept[0] is gone:
            self._kept = None


_LATEST: Final = _Latest()


def column(series: pd.Series | pd.DataFrame, declared: pa.DataType | None, place: ArgumentPlace) -> pa.Array:
    """What Spark passes, as an Arrow column of the declared type where it is of its kind."""
    if isinstance(series, pd.DataFrame):
        types = _field_types(declared)
        columns = {str(name): column(series[name], types.get(str(name)), place.field(str(name))) for name in series}
        return _structs(columns, None)
    if series.dtype != object:
        return _as_declared(pa.Array.from_pandas(series), declared, place)
    if declared is not None and pa.types.is_nested(declared):
        return _values(series.tolist(), declared, place)
    return _as_declared(_objects(series), declared, place)


def _objects(series: pd.Series) -> pa.Array:
    """A column of Python objects, made once for all functions that a query calls on it: Spark hands each the same Series."""
    return _LATEST.array(series)


def _values(values: Sequence[Any], declared: pa.DataType | None, place: ArgumentPlace) -> pa.Array:
    """Python values, as they are inside of nested columns; where they are of another kind than declared, as they are."""
    if declared is not None and pa.types.is_nested(declared):
        kinds = {type(value) for value in values if not _missing(value)}
        if kinds and pa.types.is_struct(declared) and kinds == {dict}:
            return _dicts(values, _field_types(declared), place)
        if kinds and pa.types.is_list(declared) and kinds <= {list, tuple, np.ndarray}:
            offsets, valid = _offsets(values)
            return lists(offsets, _values(_flat(values), declared.value_type, place), valid)
        if kinds and pa.types.is_map(declared) and kinds <= {dict, list}:
            return _pairs([v.items() if isinstance(v, dict) else v for v in values], declared, place)
    return _as_declared(pa.array(values, from_pandas=True), declared, place)


def _dicts(values: Sequence[Any], types: Mapping[str, pa.DataType], place: ArgumentPlace) -> pa.Array:
    present = np.array([not _missing(value) for value in values], np.bool_)
    names = dict.fromkeys(chain.from_iterable(value for value in values if not _missing(value)))
    rows = [{} if _missing(value) else value for value in values]
    columns = {n: _values([row.get(n) for row in rows], types.get(n), place.field(n)) for n in names}
    return _structs(columns, present)


def _structs(columns: Mapping[str, pa.Array], present: Any) -> pa.Array:
    """STRUCTs; where nobody says which are NULL, those whose fields are all NULL."""
    if present is None:
        present = np.logical_or.reduce([bools_of(column.is_valid()) for column in columns.values()])
    return pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=pa.array(~present))


def _pairs(values: Sequence[Any], declared: pa.MapType, place: ArgumentPlace) -> pa.Array:
    offsets, valid = _offsets(values)
    pairs = _flat(values)
    keys = _values([key for key, _ in pairs], declared.key_type, place.field("key"))
    items = _values([item for _, item in pairs], declared.item_type, place.field("value"))
    return maps(offsets, keys, items, valid)


def _offsets(values: Sequence[Any]) -> tuple[Any, Any]:
    valid = np.array([not _missing(value) for value in values], np.bool_)
    sizes = [0 if _missing(value) else len(value) for value in values]
    return np.cumsum([0, *sizes], dtype=np.int32), valid


def _flat(values: Sequence[Any]) -> list[Any]:
    return list(chain.from_iterable(value for value in values if not _missing(value)))


def _missing(value: Any) -> bool:
    return value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value)


def _field_types(declared: pa.DataType | None) -> dict[str, pa.DataType]:
    return {} if declared is None or not pa.types.is_struct(declared) else {f.name: f.type for f in declared}


def _as_declared(array: pa.Array, declared: pa.DataType | None, place: ArgumentPlace) -> pa.Array:
    """What pandas has changed of a plain column, undone; types that do not fit are for `decode` to reject."""
    if declared is None:
        return array
    if pa.types.is_integer(declared) and pa.types.is_floating(array.type):
        return _integers(array, declared, place)
    if pa.types.is_timestamp(declared) and pa.types.is_timestamp(array.type) and array.type.tz is None:
        return _instants(array, place)
    return array


def _integers(floats: pa.Array, declared: pa.DataType, place: ArgumentPlace) -> pa.Array:
    """Integers that came as floating point, because of NULLs among them."""
    if not floats.null_count:
        return floats  # a DOUBLE column then
    values = np.asarray(floats.fill_null(0.0))
    if (values != np.floor(values)).any():
        return floats
    if (np.abs(values) >= _EXACT).any():
        [beyond, *_] = values[np.abs(values) >= _EXACT]
        raise ValueError(
            f"{place.function}() expected {place.path} BIGINT, and the pandas interface passes integers and NULLs as DOUBLE, "
            f"which cannot hold {beyond:.0f} exactly: coalesce() the NULLs"
        )
    return floats.cast(pa.int64()).cast(declared)


def _instants(clock: pa.Array, place: ArgumentPlace) -> pa.Array:
    """TIMESTAMPs that came as the session's clock shows them."""
    utc = pa.timestamp("us", tz="UTC")
    if clock.null_count == len(clock):
        return pa.nulls(len(clock), utc)
    if place.zone is None:
        raise ValueError(
            f"{place.function}() expected {place.path} TIMESTAMP, and the pandas interface passes a clock's reading without "
            "its time zone: set spark.sql.session.timeZone, or give the field in ms or ns instead"
        )
    read = clock.cast(pa.timestamp("us"), safe=False).to_pandas()
    instants = pa.Array.from_pandas(read.dt.tz_localize(place.zone, ambiguous="NaT", nonexistent="NaT"))
    lost = pc.and_(clock.is_valid(), instants.is_null())
    if pc.any(lost).as_py():
        raise ValueError(
            f"{place.function}() expected {place.path} TIMESTAMP, and the pandas interface passes "
            f"{clock.filter(lost)[0].as_py()}, which clocks in {place.zone} show twice or never: "
            "set spark.sql.session.timeZone to UTC, or give the field in ms or ns instead"
        )
    return instants.cast(utc)
