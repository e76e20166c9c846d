"""Functions for Unity Catalog: the grammar of the statements, and their Python code. No catalog runs them here."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire.spark.functions.unity import statements
from tests.support.child import run_python

WHEEL = "/Volumes/main/tools/wheels/sparkwire-0.1.0-py3-none-any.whl"
STATEMENTS = list(statements("main.tools", WHEEL))

# The grammar of CREATE FUNCTION in Databricks' documentation, as far as these statements use it.
NAME = r"(?:\w+|`[^`]+`)"
TEXT = r"'(?:[^'\\]|\\.)*'"
ARGUMENT = rf"{NAME} (?P<type>[A-Z]\w*(?:<.*>)?)(?: DEFAULT (?:TRUE|FALSE|NULL|-?\d+|{TEXT}))?"
HEAD = r"CREATE OR REPLACE FUNCTION main\.tools\.(?P<name>\w+)\((?P<arguments>.*)\)\nRETURNS (?P<returns>[^\n]+)\n"
PYTHON = re.compile(
    HEAD + rf"LANGUAGE PYTHON\nDETERMINISTIC\nCOMMENT (?P<comment>{TEXT})\nPARAMETER STYLE PANDAS\nHANDLER 'handler'\n"
    rf"ENVIRONMENT \(dependencies = '\[\"{re.escape(WHEEL)}\"\]', environment_version = '5'\)\nAS \$\$\n(?P<body>[^$]+)\$\$",
    re.DOTALL,
)
SQL = re.compile(
    HEAD
    + rf"LANGUAGE SQL\nDETERMINISTIC\nCOMMENT (?P<comment>{TEXT})\n"
    + r"RETURN main\.tools\.(?P<struct>\w+)\((\w+)\)\.`(?P<field>\w+)`",
    re.DOTALL,
)
BY_NAME = {match["name"]: match for s in STATEMENTS if (match := PYTHON.fullmatch(s) or SQL.fullmatch(s))}
PYTHONS = [name for name, match in BY_NAME.items() if match.re is PYTHON]


def test_every_function_is_published_in_order() -> None:
    assert set(BY_NAME) == set(FUNCTIONS)
    assert len(STATEMENTS) == len(FUNCTIONS)
    assert [name for name, match in BY_NAME.items() if match.re is PYTHON] == list(BY_NAME)[: len(PYTHONS)]
    assert {match["struct"] for match in BY_NAME.values() if match.re is SQL} <= set(PYTHONS)


def test_fields_are_sql_functions() -> None:
    for name in ("dbus_opcode", "kafka_timestamp", "datahub_primary_key"):
        assert BY_NAME[name].re is SQL
    for name in ("dbus_event", "kafka_records", "to_dbus_event", "datahub_tuple", "kafka_search_offset"):
        assert BY_NAME[name].re is PYTHON


@pytest.mark.parametrize("name", FUNCTIONS)
def test_typed(name: str) -> None:
    function, match = FUNCTIONS[name], BY_NAME[name]
    assert match["returns"] == function.returns
    declared = [f"{a.name} {a.sql}" for a in function.arguments]
    assert [text.partition(" DEFAULT")[0] for text in split(match["arguments"])] == declared
    for text, argument in zip(split(match["arguments"]), function.arguments, strict=True):
        assert re.fullmatch(ARGUMENT, text, re.DOTALL)
        assert (" DEFAULT " in text) is not argument.required
    assert match["comment"].replace("\\'", "'").replace("\\\\", "\\")[1:-1] == function.doc


def split(arguments: str) -> list[str]:
    """Split at commas that are not inside angle brackets."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character == "<") - (character == ">")
        parts[-1] += character
        if depth == 0 and parts[-1].endswith(", "):
            parts[-1] = parts[-1][:-2]
            parts.append("")
    return parts


def test_sparks_own_parser(spark: SparkSession) -> None:
    """Spark parses everything except Unity Catalog's clauses: types, arguments, defaults, comments and the SQL functions."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    for statement in STATEMENTS:
        own = re.sub(r"PARAMETER STYLE PANDAS\n.*\$\$", "RETURN NULL", statement, flags=re.DOTALL)
        parser.parsePlan(own.replace("LANGUAGE PYTHON", "LANGUAGE SQL"))


def test_handlers_without_pyspark() -> None:
    """Every handler returns the function's results, in a separate Python process that cannot import pyspark."""
    decoders = [n for n in PYTHONS if FUNCTIONS[n].arguments[0].type == pa.binary() and one_argument(n)]
    lines = [
        "import sys; sys.modules['pyspark'] = None",
        "import pandas as pd, pyarrow as pa",
        "from sparkwire import FUNCTIONS",
        "from sparkwire.catalogue import SAMPLES",
        "rows = [*SAMPLES.values(), None, b'', b'no such bytes'] * 3",
        f"for name, body in {[(name, BY_NAME[name]['body']) for name in decoders]!r}:",
        "    scope = {}",
        "    exec(body, scope)",
        "    batches = iter([pd.Series(rows), (pd.Series(rows[:5]),)])",
        "    whole = FUNCTIONS[name].decode(pa.array(rows, pa.binary()))",
        "    for result, known in zip(scope['handler'](batches), [whole, whole[:5]], strict=True):",
        "        columns = [result[n] for n in result] if isinstance(result, pd.DataFrame) else [result]",
        "        arrays = known.flatten() if isinstance(result, pd.DataFrame) else [known]",
        "        assert all(pa.Array.from_pandas(c).equals(a) for c, a in zip(columns, arrays, strict=True)), name",
        "    print(name)",
    ]
    assert run_python("-c", "\n".join(lines)).split() == decoders
    assert len(decoders) > 8


def one_argument(name: str) -> bool:
    return sum(argument.required for argument in FUNCTIONS[name].arguments) == 1


def test_a_handler_writes() -> None:
    scope: dict[str, Any] = {}
    exec(BY_NAME["to_dbus_event"]["body"], scope)
    [event] = scope["handler"](iter([arrow_frame([{"src_id": 7, "sequence": 77}, None])]))
    assert FUNCTIONS["dbus_sequence"].decode(pa.Array.from_pandas(event)).to_pylist() == [77, None]


def arrow_frame(rows: list[Any]) -> Any:
    array = pa.array(rows)
    return pa.table(array.flatten(), [field.name for field in array.type]).to_pandas()


def test_script_prints_the_statements() -> None:
    assert run_python("-m", "sparkwire", "publish", "main.tools", WHEEL) == "".join(f"{s};\n\n" for s in STATEMENTS)


def test_a_schema_has_two_parts() -> None:
    with pytest.raises(ValueError, match=r"publish takes schema as 'catalog\.schema', got 'tools'"):
        list(statements("tools", WHEEL))
    command = [sys.executable, "-m", "sparkwire", "publish", "tools", WHEEL]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stderr.splitlines()[-1].endswith("publish takes schema as 'catalog.schema', got 'tools'")


def test_open_source_spark_gives_a_clear_error(spark: SparkSession) -> None:
    with pytest.raises(NotImplementedError, match=r"publish needs Unity Catalog"):
        sparkwire.publish(spark, "main.tools", wheel=WHEEL)
