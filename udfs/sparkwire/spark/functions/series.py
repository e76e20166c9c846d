"""Call functions with pandas Series, for Spark before 4.1 and for functions of Unity Catalog. It does not import pyspark.

Spark's conversion to pandas loses information: integers beside NULLs become floating point, an instant becomes a local time,
a NULL STRUCT becomes a row of NULLs, structs in arrays become dicts. `call` converts all this back to Arrow columns of the
declared types, and raises a clear error if the value is ambiguous. Results stay in Arrow, without a copy.
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

from sparkwire.base.printable import value_error
from sparkwire.core.column import bools_of, lists, maps
from sparkwire.core.function import Function

_EXACT: Final = 2**53
"""from this number on, a DOUBLE may represent several integers"""


class ArgumentPlace(NamedTuple):
    """The path of an argument for error messages, and the time zone of its timestamps."""

    function: str
    path: str
    zone: str | None
    """the session's time zone; None if unknown"""

    def field(self, name: str) -> ArgumentPlace:
        return self._replace(path=f"{self.path}.{name}")


def call(
    function: Function, args: Sequence[Any], named: Mapping[str, Any], zone: str | None
) -> pd.Series | pd.DataFrame:
    """Call ``function`` with Series, or with a DataFrame for a STRUCT. The result has the same form.

    Parameters
    ----------
    zone
        the session's time zone, in which Spark passes TIMESTAMPs; None if it is unknown, so that TIMESTAMPs are rejected

    Raises
    ------
    TypeError, ValueError
        as ``Function.decode``; also if the conversion to pandas has lost a value.
    """
    declared = {argument.name: argument for argument in function.arguments}

    def as_arrow(name: str, series: Any) -> pa.Array:
        return column(
            series, declared[name].type if name in declared else None, ArgumentPlace(function.name, name, zone)
        )

    # `decode` rejects extra arguments and unknown names.
    names = [*declared, *(f"argument {k + 1}" for k in range(len(declared), len(args)))]
    arrays = [as_arrow(name, series) for name, series in zip(names, args, strict=False)]
    return to_pandas(function.decode(*arrays, **{name: as_arrow(name, series) for name, series in named.items()}))


class ArrowColumn(pd.arrays.ArrowExtensionArray):
    """A result for pandas. Spark would convert a Series value by value to Arrow; here it gets the Arrow array directly."""

    def map(self, mapper: Any, na_action: Any = None) -> ArrowColumn:
        return _Converted(self.__arrow_array__())

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.ChunkedArray:
        column = super().__arrow_array__()
        return column if type is None or column.type == type else column.cast(type)


class _Converted(ArrowColumn):
    """A result after `map`. Pandas then checks the type of the first value; it gets None, because the value may be large."""

    def __getitem__(self, item: Any) -> Any:
        return None if isinstance(item, int) else super().__getitem__(item)


def to_pandas(result: pa.Array) -> pd.Series | pd.DataFrame:
    """A Series with the array, or a DataFrame for a STRUCT. A NULL STRUCT becomes a row of NULLs."""
    if pa.types.is_struct(result.type):
        columns = zip(result.type, result.flatten(), strict=True)
        return pd.DataFrame({field.name: pd.Series(ArrowColumn(column)) for field, column in columns})
    return pd.Series(ArrowColumn(result))


class _Latest:
    """Caches the column of the last Series of Python objects while that Series exists."""

    def __init__(self) -> None:
        self._converted: tuple[weakref.ref[pd.Series], pa.Array] | None = None

    def array(self, series: pd.Series) -> pa.Array:
        converted = self._converted  # always replaced as one object, because several threads may use it
        if converted is None or converted[0]() is not series:
            converted = self._converted = weakref.ref(series, self._forget), pa.Array.from_pandas(series)
        return converted[1]

    def _forget(self, reference: weakref.ref[pd.Series]) -> None:
        if self._converted is not None and self._converted[0] is reference:
            self._converted = None


_LATEST: Final = _Latest()


def column(series: pd.Series | pd.DataFrame, declared: pa.DataType | None, place: ArgumentPlace) -> pa.Array:
    """Convert Spark's Series or DataFrame to an Arrow column of the declared type, if the kinds match."""
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
    """A column of Python objects, converted once for all functions of a query, because Spark passes each the same Series."""
    return _LATEST.array(series)


def _values(values: Sequence[Any], declared: pa.DataType | None, place: ArgumentPlace) -> pa.Array:
    """Convert Python values of a nested column to the declared type; values of another kind are not converted."""
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
    """STRUCTs. If ``present`` is None, those with only NULL fields become NULL."""
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
    """Undo the changes of pandas to a plain column. `decode` rejects types that do not match."""
    if declared is None:
        return array
    if pa.types.is_integer(declared) and pa.types.is_floating(array.type):
        return _integers(array, declared, place)
    if pa.types.is_timestamp(declared) and pa.types.is_timestamp(array.type) and array.type.tz is None:
        return _instants(array, place)
    return array


def _integers(floats: pa.Array, declared: pa.DataType, place: ArgumentPlace) -> pa.Array:
    """Convert floating point back to integers, which pandas converts if a column has NULLs."""
    if not floats.null_count:
        return floats  # a real DOUBLE column
    values = np.asarray(floats.fill_null(0.0))
    if (values != np.floor(values)).any():
        return floats
    if (np.abs(values) >= _EXACT).any():
        [beyond, *_] = values[np.abs(values) >= _EXACT]
        raise value_error(
            f"{place.function}() expected {place.path} BIGINT, and the pandas interface passes integers and NULLs as DOUBLE, "
            f"which cannot hold {beyond:.0f} exactly: coalesce() the NULLs"
        )
    return floats.cast(pa.int64()).cast(declared)


def _instants(clock: pa.Array, place: ArgumentPlace) -> pa.Array:
    """Convert local times of the session back to instants."""
    utc = pa.timestamp("us", tz="UTC")
    if clock.null_count == len(clock):
        return pa.nulls(len(clock), utc)
    if place.zone is None:
        raise value_error(
            f"{place.function}() expected {place.path} TIMESTAMP, and the pandas interface passes a clock's reading without "
            "its time zone: set spark.sql.session.timeZone, or pass the field in ms or ns instead"
        )
    read = clock.cast(pa.timestamp("us"), safe=False).to_pandas()
    instants = pa.Array.from_pandas(read.dt.tz_localize(place.zone, ambiguous="NaT", nonexistent="NaT"))
    lost = pc.and_(clock.is_valid(), instants.is_null())
    if pc.any(lost).as_py():
        raise value_error(
            f"{place.function}() expected {place.path} TIMESTAMP, and the pandas interface passes "
            f"{clock.filter(lost)[0].as_py()}, which clocks in {place.zone} show twice or never: "
            "set spark.sql.session.timeZone to UTC, or pass the field in ms or ns instead"
        )
    return instants.cast(utc)
