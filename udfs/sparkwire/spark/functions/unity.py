"""Publish the catalogue in Unity Catalog: the statements for a SQL warehouse, and the Python code that they call.

A function that returns a struct or rows, or that writes, becomes a Python function over pandas batches. A function that returns
one field of a struct function becomes a SQL function that calls it. The reason is that a query may call only a few Python
functions of a catalog, but any number of SQL functions. The grammar is that of "CREATE FUNCTION (SQL and Python)" in Databricks'
SQL reference, with "Batch Python UDFs in Unity Catalog".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from sparkwire.base.printable import printable, value_error
from sparkwire.base.sqltype import sql_string
from sparkwire.catalogue import FUNCTIONS
from sparkwire.core.arguments import Argument
from sparkwire.core.function import Function
from sparkwire.spark.functions.series import call

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENVIRONMENT_VERSION: Final = "5"
"""Databricks' serverless environment with Python 3.12; wheels of the kernels' libraries exist for it"""

_SCHEMA = re.compile(r"(?:\w+|`[^`]+`)\.(?:\w+|`[^`]+`)")


def results(name: str, batches: Iterator[Any]) -> Iterator[Any]:
    """The handler of a published function: yields one result for each batch.

    Parameters
    ----------
    batches
        Series (DataFrames for a STRUCT), or tuples of these if the function has several arguments
    """
    for batch in batches:
        # A handler does not know the session's time zone, so a TIMESTAMP inside a STRUCT raises a clear error.
        yield call(FUNCTIONS[name], batch if isinstance(batch, tuple) else (batch,), {}, None)


def statements(schema: str, wheel: str, environment_version: str = ENVIRONMENT_VERSION) -> Iterator[str]:
    """``CREATE OR REPLACE FUNCTION`` statements for all functions of the catalogue, in an order in which they can be created.

    Parameters
    ----------
    schema
        ``catalog.schema``
    wheel
        the package to install in the functions' environment: ``/Volumes/…/sparkwire-….whl``, or ``sparkwire==…``

    Raises
    ------
    ValueError
        if ``schema`` does not have two parts, or has characters that are not printable, or if
        ``environment_version`` is not a number.
    """
    if not _SCHEMA.fullmatch(schema) or printable(schema) != schema:
        raise ValueError(f"publish takes schema as 'catalog.schema', got {schema!r}")
    if not (environment_version.isascii() and environment_version.isdigit()):
        raise value_error(f"publish takes environment_version as a number, got {environment_version!r}")
    environment = {"dependencies": json.dumps([wheel]), "environment_version": environment_version}
    over = {name: struct for struct in FUNCTIONS.values() for name in _fields(struct)}
    for name, function in FUNCTIONS.items():
        if name not in over:
            yield _python(schema, function, environment)
    for name, struct in over.items():
        yield _sql(schema, FUNCTIONS[name], struct)


def _fields(struct: Function) -> list[str]:
    """The functions that return one field of the struct function ``struct``."""
    if not pa.types.is_struct(struct.return_type) or len(struct.arguments) != 1:
        return []
    prefix = struct.name.partition("_")[0]
    types = {f"{prefix}_{field.name}": field.type for field in struct.return_type}
    same = (FUNCTIONS[name] for name in types if name in FUNCTIONS)
    return [f.name for f in same if f.arguments == struct.arguments and f.return_type == types[f.name]]


def _python(schema: str, function: Function, environment: dict[str, str]) -> str:
    settings = ", ".join(f"{key} = {sql_string(value)}" for key, value in environment.items())
    return (
        f"{_head(schema, function)}\n"
        f"LANGUAGE PYTHON\nDETERMINISTIC\nCOMMENT {sql_string(function.doc)}\nPARAMETER STYLE PANDAS\nHANDLER 'handler'\n"
        f"ENVIRONMENT ({settings})\n"
        "AS $$\n"
        "from sparkwire.spark.functions.unity import results\n\n\n"
        f"def handler(batches):\n    yield from results({function.name!r}, batches)\n"
        "$$"
    )


def _sql(schema: str, function: Function, struct: Function) -> str:
    field = function.name.partition("_")[2]
    [argument] = struct.arguments
    return (
        f"{_head(schema, function)}\n"
        f"LANGUAGE SQL\nDETERMINISTIC\nCOMMENT {sql_string(function.doc)}\n"
        f"RETURN {schema}.{struct.name}({argument.name}).`{field}`"
    )


def _head(schema: str, function: Function) -> str:
    arguments = ", ".join(_argument(argument) for argument in function.arguments)
    return f"CREATE OR REPLACE FUNCTION {schema}.{function.name}({arguments})\nRETURNS {function.returns}"


def _argument(argument: Argument) -> str:
    declared = f"{argument.name} {argument.sql}"
    return declared if argument.required else f"{declared} DEFAULT {_literal(argument.default)}"


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    return sql_string(value) if isinstance(value, str) else str(value)


def publish(spark: SparkSession, schema: str, *, wheel: str, environment_version: str = "5") -> None:
    """Create every function as a permanent function in a schema of Unity Catalog.

    Functions that return structs or rows, and functions that write, become Python functions over pandas batches. The others
    become SQL functions that call these. ``python -m sparkwire publish`` prints the same statements. See docs/publish.md.

    Parameters
    ----------
    schema
        ``catalog.schema``
    wheel
        the package to install in the functions' environment: ``/Volumes/.../sparkwire-....whl``, or a requirement
    environment_version
        the version of Databricks' serverless environment in which the functions run

    Raises
    ------
    ValueError
        if ``schema`` does not have two parts.
    NotImplementedError
        in open-source Spark, whose catalogs have no Python functions.

    Examples
    --------
    >>> sparkwire.publish(spark, "main.tools", wheel="/Volumes/main/tools/wheels/sparkwire-0.1.0-py3-none-any.whl")
    """
    from pyspark.errors import ParseException

    for statement in statements(schema, wheel, environment_version):
        try:
            spark.sql(statement)
        except ParseException as failure:
            raise NotImplementedError(
                printable(
                    f"publish needs Unity Catalog, and Spark {spark.version} does not parse its CREATE FUNCTION ... LANGUAGE "
                    "PYTHON: in open-source Spark functions last as long as a session, sparkwire.register(spark) at its start"
                )
            ) from failure
