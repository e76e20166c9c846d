"""A function of the catalogue as a Spark UDF: Arrow where client and server have it, pandas below that and on request.

Spark pickles a ``Call`` as a reference to its class and the function's name, nothing else: the
package has to be on the executors, and no state of the driver goes there.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pyspark.sql.functions as F
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from sparkwire.catalogue import FUNCTIONS
from sparkwire.spark.garbage import freeze_gc
from sparkwire.spark.memory import explain_oom

Interface = Literal["arrow", "pandas"]

TIME_ZONE = "spark.sql.session.timeZone"
_ARROW_SINCE = (4, 1)
_PIPELINES_SINCE = (4, 1)


def best_interface(spark: SparkSession | None = None) -> Interface:
    """ "arrow" where both this PySpark and the session's server are 4.1 or later, "pandas" below.

    Without a session: the active one's.
    """
    if not hasattr(F, "arrow_udf"):
        return "pandas"
    spark = spark or SparkSession.getActiveSession()
    return "arrow" if spark is None or _version(spark) >= _ARROW_SINCE else "pandas"


def _version(spark: SparkSession) -> tuple[int, ...]:
    """Of the server, which on Connect may be another than this PySpark's."""
    try:
        version = spark.version
    except AnalysisException as error:
        if "IN_PIPELINE_QUERY_FUNCTION" not in str(error):
            raise
        return _PIPELINES_SINCE  # which do not let their functions ask the server
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def udf(name: str, interface: Interface) -> Any:
    """The UDF of a function, to be called on columns or registered. A new one each time: it holds on to its session.

    ValueError where PySpark does not have the interface, or there is no such interface.
    """
    # Without the fields' docs as comments: Spark compares metadata too, and rejects what comes back (ARROW_TYPE_MISMATCH).
    returns = from_arrow_type(FUNCTIONS[name].return_type)
    if interface == "pandas":
        return F.pandas_udf(PandasCall(name), returns)
    if interface != "arrow":
        raise ValueError(f"interface is 'arrow' or 'pandas', got {interface!r}")
    if not hasattr(F, "arrow_udf"):
        raise ValueError("interface 'arrow' needs PySpark 4.1 or later: take 'pandas'")
    return F.arrow_udf(Call(name), returns)


class Call:
    """What a worker calls: Arrow arrays in, an Arrow array out."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def result(self, *args: Any, **named: Any) -> Any:
        return FUNCTIONS[self.__name__].decode(*args, **named)

    # Unannotated: PySpark would read hints as the signature, and reject a callable object's.
    def __call__(self, *args, **named):  # type: ignore[no-untyped-def]
        with explain_oom(self.__name__):
            result = self.result(*args, **named)
        freeze_gc()
        return result


class PandasCall(Call):
    """The same over pandas: Series of Python values in, a Series (a DataFrame for a STRUCT) out."""

    def result(self, *args: Any, **named: Any) -> Any:
        from sparkwire.spark.series import call  # a worker of the Arrow interface need not load pandas

        return call(FUNCTIONS[self.__name__], args, named, session_time_zone())


def session_time_zone() -> str | None:
    """As the query set it; None where the session has never set it."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(TIME_ZONE)
