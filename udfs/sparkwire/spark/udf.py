"""A function of the catalogue as a Spark UDF: Arrow where PySpark has it, pandas below that and on request.

Spark pickles a ``Call`` as a reference to its class and the function's name, nothing else: the
package has to be on the executors, and no state of the driver goes there.
"""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql.pandas.types import from_arrow_type

from sparkwire.catalogue import FUNCTIONS
from sparkwire.function import Function

Interface = Literal["arrow", "pandas"]


def best_interface() -> Interface:
    """ "arrow" from PySpark 4.1 on, "pandas" below."""
    return "arrow" if hasattr(F, "arrow_udf") else "pandas"


def udf(name: str, interface: Interface) -> Any:
    """The UDF of a function, to be called on columns or registered. A new one each time: it holds on to its session.

    Raises
    ------
    ValueError
        where PySpark does not have the interface, or there is no such interface.
    """
    function = FUNCTIONS[name]
    returns = from_arrow_type(function.return_type)
    if interface == "pandas":
        return F.pandas_udf(PandasCall(name), returns)
    if interface != "arrow":
        raise ValueError(f"interface is 'arrow' or 'pandas', got {interface!r}")
    if best_interface() != "arrow":
        raise ValueError("interface 'arrow' needs PySpark 4.1 or later: take 'pandas'")
    return F.arrow_udf(Call(name), returns)


class Call:
    """What a worker calls: Arrow arrays in, an Arrow array out."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    @property
    def function(self) -> Function:
        return FUNCTIONS[self.__name__]

    # Unannotated: PySpark would read hints as the signature, and refuse a callable object's.
    def __call__(self, *args, **named):  # type: ignore[no-untyped-def]
        return self.function.decode(*args, **named)


class PandasCall(Call):
    """The same over pandas: Series of Python values in, a Series (a DataFrame for a STRUCT) out."""

    def __call__(self, *args, **named):  # type: ignore[no-untyped-def]
        arguments = self.function.arguments
        columns = [_array(series, arguments[k].type if k < len(arguments) else None) for k, series in enumerate(args)]
        types = {argument.name: argument.type for argument in arguments}
        by_name = {name: _array(series, types.get(name)) for name, series in named.items()}
        answer = self.function.decode(*columns, **by_name)
        return _frame(answer) if pa.types.is_struct(answer.type) else _series(answer)


def _array(series: pd.Series | pd.DataFrame, expected: pa.DataType | None) -> pa.Array:
    if isinstance(series, pd.DataFrame):  # a STRUCT
        types = {} if expected is None else {field.name: field.type for field in expected}
        columns = [_array(series[name], types.get(name)) for name in series]
        return pa.StructArray.from_arrays(columns, list(series))
    if expected is not None and pa.types.is_map(expected):
        return pa.array([pairs if pairs is None else list(pairs.items()) for pairs in series], expected)
    array = pa.Array.from_pandas(series)
    if expected is not None and pa.types.is_integer(expected) and pa.types.is_floating(array.type):
        # Integers with a NULL among them come as floats.
        return array.cast(expected)
    return array


def _frame(answer: pa.StructArray) -> pd.DataFrame:
    columns = zip(answer.type, answer.flatten(), strict=True)
    return pd.DataFrame({field.name: _series(column) for field, column in columns})


def _series(answer: pa.Array) -> pd.Series:
    # Objects where integers have NULLs: a float holds no BIGINT.
    return answer.to_pandas(integer_object_nulls=True, maps_as_pydicts="lossy")
