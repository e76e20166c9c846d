"""The functions of the catalogue as column functions for DataFrame code."""

from __future__ import annotations

from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column

from sparkwire.catalogue import FUNCTIONS
from sparkwire.core.parameters import Parameter, parameters
from sparkwire.spark.functions.udf import best_interface, udf


def column_of(name: str, *values: Any) -> Column:
    """Call a function over columns. Each argument is a column's name, a Column, or a Python value for a literal."""
    taken = parameters(FUNCTIONS[name])
    # Pass all arguments up to the last one given, because UDFs in old versions of PySpark have no defaults.
    last = max(k for k, one in enumerate(taken) if one.required or values[k] is not one.default)
    given = [_column(*pair) for pair in zip(taken[: last + 1], values, strict=False)]
    column: Column = udf(name, best_interface())(*given)
    return column


def _column(parameter: Parameter, value: Any) -> Column | str:
    """Names and Columns are unchanged; other values become literals."""
    if isinstance(value, Column) or (isinstance(value, str) and not parameter.literal):
        return value
    return F.lit(value)
