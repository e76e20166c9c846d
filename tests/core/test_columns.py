"""Column functions in Python: plain values, real signatures, and clear error messages."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import Column, SparkSession

from sparkwire import FUNCTIONS
from sparkwire import sql_functions as W
from sparkwire.catalogue import FORMATS
from sparkwire.core.arguments import counted


def one(spark: SparkSession, column: Column) -> Any:
    """The column's value over the samples."""
    row = spark.table("sparkwire_samples").select(column).first()
    assert row is not None
    return row[0]


def test_a_number_is_a_value(spark: SparkSession) -> None:
    result = one(spark, W.kafka_search_offset("segment", 1200))
    assert result == one(spark, F.expr("kafka_search_offset(segment, 1200)"))
    assert result["position"] == 43


@pytest.mark.parametrize("given", [str, str.upper, F.lit])
def test_a_codec_is_a_value(spark: SparkSession, given: Callable[[str], Any]) -> None:
    """Plain numbers, columns and a codec's name in any case, in one call."""
    records = F.array(F.struct(F.col("message").alias("value")))
    log = W.to_kafka_records(records, 7, given("zstd"), F.lit(2))
    assert one(spark, W.kafka_next_offset(log)) == 8
    assert one(spark, W.kafka_batches(log))[0]["compression"] == "zstd"


def test_bytes_are_a_value(spark: SparkSession) -> None:
    assert one(spark, W.kafka_value(W.to_kafka_message(b"key", b"value"))) == b"value"


def test_a_text_names_a_column(spark: SparkSession) -> None:
    assert one(spark, W.dbus_from_json(W.dbus_to_json("event"))) == one(spark, F.col("event"))


@pytest.mark.parametrize("given", [bool, F.lit])
def test_a_constant_by_name(spark: SparkSession, given: Callable[[bool], Any]) -> None:
    assert one(spark, F.size(W.kafka_records("segment", verify_crc=given(False)))) == 3


def test_help_explains_fields() -> None:
    """The docstring explains the fields of a STRUCT, because Spark does not allow comments in a function's type."""
    for name, function in FUNCTIONS.items():
        doc = inspect.getdoc(getattr(W, name)) or ""
        for field, meaning in function.field_docs.items():
            assert f"{field}: {meaning}" in doc, name


def test_help_explains_arguments() -> None:
    """Each argument has its type. The format describes arguments once for all its functions."""
    for format in FORMATS:
        used = set[str]()
        for function in format.functions:
            doc = inspect.getdoc(getattr(W, function.name)) or ""
            for argument in function.arguments:
                used.add(format.meaning(argument))
                described = (
                    rf"^{argument.name} : {re.escape(counted(argument.declared_type))}(, .* by default)?\n    (.*)$"
                )
                match = re.search(described, doc, re.MULTILINE)
                assert match is not None, (function.name, argument.name)
                assert match[2] == format.meaning(argument)
        assert used == set(format.arguments.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_is_a_summary_arguments_and_the_result(name: str) -> None:
    """The rules and examples are on the pages."""
    doc = inspect.getdoc(getattr(W, name)) or ""
    assert re.findall(r"^(\w+)\n-+$", doc, re.MULTILINE) == ["Parameters", "Returns"]
    summary, _, _ = doc.partition("\n\nParameters\n")
    assert FUNCTIONS[name].doc.startswith(summary)
    assert "\n" not in summary


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_is_that_of_the_function(name: str) -> None:
    """``help()`` and editors show it."""
    parameters = inspect.signature(getattr(W, name)).parameters
    arguments = FUNCTIONS[name].arguments
    assert list(parameters) == [argument.name for argument in arguments]
    for parameter, argument in zip(parameters.values(), arguments, strict=True):
        assert (parameter.default is inspect.Parameter.empty) == argument.required
        assert argument.required or parameter.default == argument.default


def test_they_are_functions_of_their_module() -> None:
    """Editors find them, and pickles refer to them."""
    for name in FUNCTIONS:
        function = getattr(W, name)
        assert function.__module__ == "sparkwire.sql_functions"
        assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'target'"):
        W.kafka_search_offset("segment")  # type: ignore[call-arg]
