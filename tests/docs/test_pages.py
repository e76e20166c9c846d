"""The pages of the documentation are complete and readable, and Spark returns the results that they show."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire.base.error_codes import ERRORS
from sparkwire.catalogue import FORMATS
from sparkwire.core.function import Format
from tests.support import ROOT
from tools import pages

DOCS = ROOT / "docs"
NAMES_AND_TYPES = ("datahub_columns", "debezium_columns")
"""functions whose fields need no explanation"""


def test_every_error_code_has_an_entry_with_its_example(spark: SparkSession) -> None:
    """The query of each entry returns the error code of the entry."""
    page = (DOCS / "errors.md").read_text("utf-8")
    entries = dict(re.findall(r"^## ([A-Z_]+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    assert set(entries) == set(ERRORS)
    queries = {}
    for code, text in entries.items():
        assert f"[`{code}`](#{code.lower()})" in page
        [[language, query]] = re.findall("```(sql|python)\n(.*?)```", text, re.DOTALL)
        if language == "python":
            names = {"spark": spark, "sparkwire": sparkwire}
            exec(query, names)
            names["errors"].createOrReplaceTempView(code)
            query = f"SELECT error FROM {code}"
        queries[code] = query
    union = " UNION ALL ".join(f"SELECT '{code}' AS code, error FROM ({query})" for code, query in queries.items())
    assert {row["code"]: row["error"] for row in spark.sql(union).collect()} == {code: code for code in ERRORS}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_declarations_are_the_signatures_broken_over_lines(name: str) -> None:
    function = FUNCTIONS[name]
    broken = pages.declaration(function)
    assert re.sub(r"\s", "", broken) == re.sub(r"\s", "", function.signature)
    assert max(map(len, broken.splitlines())) <= 2 * pages.WIDTH


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_structs_are_explained_field_by_field(format: Format) -> None:
    page = pages.functions(format)
    for function in format.functions:
        section = page.partition(f"\n## {function.name}\n")[2].partition("\n## ")[0]
        for name, doc in function.field_docs.items():
            assert f"| `{name}` | " in section
            assert doc, f"{function.name}.{name}"


def test_one_to_many_functions_explain_their_fields() -> None:
    """`inline()` turns these fields into columns, so each needs a description."""
    for function in FUNCTIONS.values():
        result = function.return_type
        struct = result.value_type if pa.types.is_list(result) else result
        if pa.types.is_struct(struct) and function.name not in NAMES_AND_TYPES:
            assert list(function.field_docs) == [field.name for field in struct], function.name
