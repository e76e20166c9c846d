"""The table as it was: ``as_of`` a time, or ``until`` an order."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import DataType, IntegralType, NumericType, StringType, StructType

from sparkwire.base.printable import printable
from sparkwire.base.sqltype import raised, sql_string
from sparkwire.changes.columns import OP, ORDER, READ, TIME
from sparkwire.changes.orders import SEPARATE, integer, named_parts
from sparkwire.spark.frames import quoted


def moment(as_of: Any, schema: StructType) -> Column:
    """The time ``as_of``. Raises ValueError if it is no time, or the changes have none."""
    time = _parsed(as_of) if isinstance(as_of, str) else as_of
    if not isinstance(time, date) or time != time:  # such as pandas.NaT
        raise _no_time(as_of)
    if TIME not in schema.names:
        raise ValueError(
            f"current() expected changes with the column {TIME} for as_of, got none: pass an order as until"
        )
    if (
        isinstance(as_of, str) and isinstance(time, datetime) and time.tzinfo is None
    ):  # as in SQL: of the session's time zone
        return F.lit(time.isoformat(" ")).cast("timestamp")
    return F.lit(time if isinstance(time, datetime) else time.isoformat()).cast("timestamp")


def _parsed(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise _no_time(text) from None
    if text.isdigit():  # such as 20240131, which may be an order
        raise _no_time(text)
    return time


def _no_time(value: Any) -> ValueError:
    return ValueError(
        f'current() expected as_of to be a datetime, a date or an ISO text such as "2024-01-31 12:00:00", got {value!r}: '
        "pass an order as until"
    )


def until_order(until: Any, schema: StructType) -> str:
    """The condition for a change up to and including an order, as SQL. Raises ValueError if it is no such order.

    It compares the parts that ``until`` names, in the order's own sequence. A part that is NULL decides only for a snapshot's
    row, which is before all changes. Two partitions or logs are not compared: the query fails.
    """
    type = schema[ORDER].dataType
    if not isinstance(type, StructType):
        return f"{ORDER} <= {_literal(until, ORDER, type)}"
    condition = "TRUE"
    for name, value in reversed(named_parts(until, type.names).items()):
        condition = _compared(name, _literal(value, name, type[name].dataType), condition)
    return condition


def _compared(name: str, value: str, then: str) -> str:
    """Compare a part of the order; ``then`` is the condition if it is equal."""
    part = f"{ORDER}.{quoted(name)}"
    no_value = f"until names {name}, and a change has no {name} in its {ORDER}: leave {name} out of until"
    start = f"CASE WHEN {part} IS NULL THEN if({OP} <=> {sql_string(READ)}, TRUE, raise_error({sql_string(no_value)}))"
    if name not in SEPARATE:
        return f"{start} WHEN {part} < {value} THEN TRUE WHEN {part} > {value} THEN FALSE ELSE {then} END"
    other = (
        f"until is in the {name} %s, and a change is in the {name} %s, which have no common order: leave {name} out of until, "
        f"or filter the changes by {ORDER}.{name}"
    )
    apart = f"format_string({sql_string(other)}, {value}, {part})"
    return f"{start} WHEN {part} = {value} THEN {then} ELSE {raised(apart)} END"


def _literal(value: Any, name: str, type: DataType) -> str:
    """A value of ``until`` for one part of the order."""
    if isinstance(type, IntegralType):
        return str(integer(value, name))
    if isinstance(type, StringType) and isinstance(value, str):
        return sql_string(value)
    if isinstance(type, NumericType) and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return f"CAST({sql_string(str(value))} AS {type.simpleString()})"
    raise ValueError(printable(f"current() expected {type.simpleString().upper()} for {name} in until, got {value!r}"))
