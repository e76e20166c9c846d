"""Create Spark UDFs from functions of the catalogue, with the Arrow interface if client and server support it, else pandas.

Spark pickles a ``Call`` only as a reference to its class and the function's name. So the executors need the package,
and get no state of the driver.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pyspark.sql.functions as F
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession

from sparkwire.catalogue import FUNCTIONS
from sparkwire.core.function import Parameter, parameters
from sparkwire.spark.frames import from_arrow_type
from sparkwire.spark.functions.worker import explain_oom, freeze_gc

Interface = Literal["arrow", "pandas"]

TIME_ZONE = "spark.sql.session.timeZone"
_ARROW_SINCE = (4, 1)
_PIPELINES_SINCE = (4, 1)


def best_interface(spark: SparkSession | None = None) -> Interface:
    """ "arrow" if both this PySpark and the session's server are version 4.1 or later, else "pandas".

    Without ``spark``, the active session counts.
    """
    if not hasattr(F, "arrow_udf"):
        return "pandas"
    spark = spark or SparkSession.getActiveSession()
    return "arrow" if spark is None or _version(spark) >= _ARROW_SINCE else "pandas"


def _version(spark: SparkSession) -> tuple[int, ...]:
    """The version of the server. With Connect, it may differ from that of PySpark."""
    try:
        version = spark.version
    except AnalysisException as error:
        if "IN_PIPELINE_QUERY_FUNCTION" not in str(error):
            raise
        return _PIPELINES_SINCE  # pipelines do not allow their functions to query the server
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def udf(name: str, interface: Interface) -> Any:
    """Create the UDF of a function, to call on columns or to register. It is not cached, because it refers to its session.

    Raises ValueError if the interface is unknown, or this PySpark does not support it.
    """
    # The type has no comments: Spark also compares metadata, and would reject the result (ARROW_TYPE_MISMATCH).
    returns = from_arrow_type(FUNCTIONS[name].return_type)
    if interface == "pandas":
        return F.pandas_udf(PandasCall(name), returns)
    if interface != "arrow":
        raise ValueError(f"interface is 'arrow' or 'pandas', got {interface!r}")
    if not hasattr(F, "arrow_udf"):
        raise ValueError("interface 'arrow' needs PySpark 4.1 or later: use 'pandas'")
    return F.arrow_udf(Call(name), returns)


def column_of(name: str, *values: Any) -> Column:
    """Call a function over columns. Each argument is a column's name, a Column, or a Python value for a literal."""
    taken = parameters(FUNCTIONS[name])
    # Pass all arguments up to the last that is not a default, because UDFs in old versions of PySpark have no defaults.
    last = max(k for k, parameter in enumerate(taken) if parameter.required or values[k] is not parameter.default)
    arguments = [_column(*pair) for pair in zip(taken[: last + 1], values, strict=False)]
    column: Column = udf(name, best_interface())(*arguments)
    return column


def _column(parameter: Parameter, value: Any) -> Column | str:
    """Names and Columns are unchanged; other values become literals."""
    if isinstance(value, Column) or (isinstance(value, str) and not parameter.literal):
        return value
    return F.lit(value)


class Call:
    """The callable of a worker, from Arrow arrays to an Arrow array."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def result(self, *args: Any, **named: Any) -> Any:
        return FUNCTIONS[self.__name__].decode(*args, **named)

    # No annotations: PySpark would interpret them as the signature, and reject those of a callable object.
    def __call__(self, *args, **named):  # type: ignore[no-untyped-def]
        with explain_oom(self.__name__):
            result = self.result(*args, **named)
        freeze_gc()
        return result


class PandasCall(Call):
    """The callable for pandas, from Series of Python values to a Series, or to a DataFrame for a STRUCT."""

    def result(self, *args: Any, **named: Any) -> Any:
        from sparkwire.spark.functions.series import call  # workers of the Arrow interface do not load pandas

        return call(FUNCTIONS[self.__name__], args, named, session_time_zone())


def session_time_zone() -> str | None:
    """The session's time zone in the query; None if it was never set."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(TIME_ZONE)
