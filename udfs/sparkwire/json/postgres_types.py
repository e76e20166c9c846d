"""PostgreSQL's types: the type of a column as `format_type` writes it, and how wal2json writes its values.

    declared                            SQL type                 values, as JSON
    smallint, integer, bigint, oid      SMALLINT ... BIGINT      a number
    numeric(p,s)                        DECIMAL(p,s)             a number with all its digits; STRING beyond 38 digits
    numeric                             STRING                   the same: every value has its own scale
    real, double precision              FLOAT, DOUBLE            a number; NaN and infinities are null
    boolean                             BOOLEAN                  true, false
    bytea                               BINARY                   hexadecimal digits
    date                                DATE                     ``yyyy-MM-dd``
    timestamp without time zone         TIMESTAMP_NTZ            ``yyyy-MM-dd HH:mm:ss.ffffff``
    timestamp with time zone            TIMESTAMP                the same, with the offset
    all others                          STRING                   PostgreSQL's own text

A date of another era, and an infinite one, is NULL and unexpected.
"""

from __future__ import annotations

import re
from typing import Final

from sparkwire.base.text_cache import text_cache
from sparkwire.json.mysql_types import of_sql
from sparkwire.json.types import Type

_NUMERIC: Final = re.compile(r"numeric\((\d{1,4}),(-?\d{1,4})\)")
_PRECISION: Final = re.compile(r"\(\d+\)")
_NAMES: Final = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "oid": "bigint",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "bytea": "binary_hex",
    "date": "date",
    "timestamp without time zone": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}


@text_cache(4096)
def of_postgres(text: str) -> Type:
    """The type of a column as PostgreSQL names it, such as ``numeric(12,3)``."""
    decimal = _NUMERIC.fullmatch(text)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2])
        return Type("text", "decimal", (max(precision - min(scale, 0), scale), max(scale, 0)))
    return Type("text", _NAMES.get(_PRECISION.sub("", text), "string"))


def of_hex_sql(text: str) -> Type:
    """The type of a column that the user gives as a SQL type, with hexadecimal digits for BINARY. Raises ValueError."""
    type = of_sql(text)
    return Type("text", "binary_hex") if type.logical == "binary" else type
