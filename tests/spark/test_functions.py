"""Functions in Spark SQL: the same results, and Spark's names, errors, plans and views."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire import FUNCTIONS
from sparkwire import sql_functions as W
from sparkwire.catalogue import SAMPLES
from sparkwire.core.arguments import counted
from sparkwire.core.function import Function
from sparkwire.spark.functions.udf import best_interface
from tests.support import ROOT, databus_cases
from tests.support.arrow import plain_rows
from tests.support.cases import Case, cases_of

CASES = sorted(path.stem.removesuffix("_cases") for path in (ROOT / "tests" / "support").glob("*_cases.py"))


def ask_sql(spark: SparkSession, cases: list[Case]) -> list[dict[str, Any]]:
    """The results of all functions over all cases, in one SELECT, in the order of the cases."""
    names = sorted({name for case in cases for name in case.answers})
    rows = [(i, case.data) for i, case in enumerate(cases)]
    frame = spark.createDataFrame(rows, "id INT, data BINARY").repartition(2)
    results = frame.selectExpr("id", *(f"{name}(data) AS {name}" for name in names)).orderBy("id")
    return [{name: row[name] for name in names} for row in plain_rows(results.toArrow().to_batches())]


@pytest.mark.parametrize("format", CASES)
def test_cases(spark: SparkSession, format: str) -> None:
    cases = cases_of(format)
    for case, got in zip(cases, ask_sql(spark, cases), strict=True):
        expected = {name: got[name] if name not in case.answers else case.answers[name] for name in got}
        assert got == expected, case.name


@pytest.fixture(scope="session")
def examples(spark: SparkSession) -> dict[str, str | None]:
    """Every example's result, all from one query."""
    columns = [f"CAST({f.example_expression} AS STRING) AS {f.name}" for f in FUNCTIONS.values()]
    row = spark.table("sparkwire_samples").selectExpr(*columns).first()
    assert row is not None
    results: dict[str, str | None] = row.asDict()
    return results


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)
def test_example(examples: dict[str, str | None], function: Function) -> None:
    result = examples[function.name]
    assert ("NULL" if result is None else result) == function.example_result


def test_functions_view(spark: SparkSession) -> None:
    rows = spark.table("sparkwire_functions").collect()
    described = [(f.name, f.signature, f.doc, f.example) for f in FUNCTIONS.values()]
    assert [tuple(row) for row in rows] == described


def test_register_asks_for_two_statements_and_each_function_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registration delays the start of a session: one statement for each view, one call for each function, no query."""
    statements, udf = Mock(wraps=spark.sql), Mock(wraps=spark.udf)
    monkeypatch.setattr(spark, "sql", statements)
    monkeypatch.setattr(type(spark), "udf", property(lambda _: udf))
    sparkwire.register(spark)
    views = [f"CREATE OR REPLACE TEMPORARY VIEW {name}" for name in ("sparkwire_functions", "sparkwire_samples")]
    assert [call.args[0].split(" AS ")[0] for call in statements.call_args_list] == views
    assert [call.args[0] for call in udf.register.call_args_list] == list(FUNCTIONS)


def test_register_twice(spark: SparkSession) -> None:
    sparkwire.register(spark)
    assert one(spark.sql("SELECT dbus_opcode(event) FROM sparkwire_samples")) == "UPSERT"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("dbus_opcode('text')", "dbus_opcode() expected (event BINARY), got (STRING)"),
        ("dbus_opcode(1)", "dbus_opcode() expected (event BINARY), got (INT)"),
        ("dbus_opcode()", "dbus_opcode() expected (event BINARY), got no argument"),
        ("dbus_opcode(event, 1)", "dbus_opcode() expected (event BINARY), got (BINARY, INT)"),
        ("dbus_opcode(evnt => event)", "dbus_opcode() expected (event BINARY), got (evnt => BINARY)"),
    ],
)
def test_wrong_arguments(spark: SparkSession, call: str, sentence: str) -> None:
    with pytest.raises(PythonException) as rejected:
        spark.sql(f"SELECT {call} FROM sparkwire_samples").collect()
    lines = [line for line in str(rejected.value).splitlines() if line.strip()]
    assert lines[-1] == f"TypeError: {sentence}"


def test_named_argument(spark: SparkSession) -> None:
    assert one(spark.sql("SELECT dbus_sequence(event => event) FROM sparkwire_samples")) == 77


def test_null_literal(spark: SparkSession) -> None:
    assert one(spark.sql("SELECT dbus_error(NULL)")) is None
    assert one(spark.sql("SELECT dbus_event(CAST(NULL AS BINARY)) IS NULL")) is True


def test_one_round_trip(spark: SparkSession) -> None:
    """Several functions of one column share one round trip to Python."""
    query = spark.sql(
        "SELECT max(dbus_sequence(event)), max(dbus_src_id(event)), max(dbus_length(event)) FROM sparkwire_samples"
    )
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1


def test_column_functions(spark: SparkSession) -> None:
    samples = spark.table("sparkwire_samples")
    assert one(samples.select(W.dbus_opcode("event"))) == "UPSERT"
    assert one(samples.select(W.dbus_sequence(samples.event))) == 77
    assert samples.select(W.dbus_opcode("event")).columns == ["dbus_opcode(event)"]
    with pytest.raises(TypeError, match="dbus_opcode"):
        W.dbus_opcode()  # type: ignore[call-arg]


def test_column_functions_are_documented() -> None:
    for name, function in FUNCTIONS.items():
        column_function = getattr(W, name)
        documented = column_function.__doc__
        assert function.doc.partition(". ")[0].rstrip(".") in documented
        assert f"Returns\n    -------\n    {counted(function.returns)}\n" in documented
        for argument in function.arguments:
            assert f"\n    {argument.name} : {counted(argument.declared_type)}" in documented, name
        assert column_function.__name__ == name


def test_pandas_interface(spark: SparkSession) -> None:
    """The same functions with the pandas interface. A pandas UDF cannot return a NULL STRUCT."""
    sparkwire.register(spark, interface="pandas")
    try:
        cases = databus_cases.cases()[::9]
        arrow = [case.answers for case in cases]
        assert [{n: got[n] for n in known} for got, known in zip(ask_sql(spark, cases), arrow, strict=True)] == arrow
        assert one(spark.sql("SELECT size(dbus_events(stream)) FROM sparkwire_samples")) == 4
        assert one(spark.sql("SELECT dbus_event(event).sequence FROM sparkwire_samples")) == 77
        stored = "(SELECT kafka_records(segment) AS stored FROM sparkwire_samples)"
        given = "named_struct('key', r.key, 'value', r.value, 'timestamp_ms', r.timestamp_ms, 'headers', r.headers)"
        again = f"to_kafka_records(transform(stored, r -> {given}), 0, 'none', 2)"
        assert one(spark.sql(f"SELECT size(kafka_records({again})) = size(stored) FROM {stored}")) is True
    finally:
        sparkwire.register(spark)


def test_pandas_instants(spark: SparkSession) -> None:
    """A TIMESTAMP in a STRUCT is the same instant in both interfaces and in every time zone of the session."""
    instants = "VALUES (TIMESTAMP '2024-07-01 12:34:56.789Z'), (NULL), (TIMESTAMP '1970-01-01 00:00:00Z') AS v(t)"
    query = (
        f"SELECT dbus_timestamp_nanos(to_dbus_event(named_struct('timestamp', t, 'src_id', 1))) AS n FROM {instants}"
    )
    sparkwire.register(spark, interface="pandas")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert [row.n for row in spark.sql(query).collect()] == [1719837296789000000, 0, 0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        sparkwire.register(spark)


def test_timestamp_ntz_must_be_cast(spark: SparkSession) -> None:
    with pytest.raises(
        PythonException, match=r"to_dbus_event\(\) expected event.timestamp TIMESTAMP, got TIMESTAMP_NTZ"
    ):
        one(spark.sql("SELECT to_dbus_event(named_struct('timestamp', TIMESTAMP_NTZ '2024-07-01 12:34:56'))"))


@pytest.mark.parametrize(
    ("server", "interface"),
    [("3.5.9", "pandas"), ("4.0.5", "pandas"), ("4.1.0", "arrow"), ("4.10.0-preview1", "arrow")],
)
def test_the_server_chooses_the_interface(server: str, interface: str) -> None:
    """A server before 4.1 has no Arrow UDFs, even if the client's PySpark has them."""
    assert best_interface(SimpleNamespace(version=server)) == interface


def test_interface_is_one_of_two(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="interface is 'arrow' or 'pandas', got 'rdd'"):
        sparkwire.register(spark, interface="rdd")  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "statement"), [(0, 0), (2, 1)])
def test_native_sql_equivalents(spark: SparkSession, version: int, statement: int) -> None:
    """Plain SQL and the functions read the same fields from valid big-endian events."""
    query = (ROOT / "sql" / "native" / "databus.sql").read_text("utf-8").split(";\n")[statement]
    known = [case for case in databus_cases.cases() if case.answers["dbus_byte_order"] == "BIG_ENDIAN"]
    rows = [(case.data,) for case in known if case.answers["dbus_version"] == version and len(case.data) >= 61]
    spark.createDataFrame(rows, "event BINARY").createOrReplaceTempView("events")
    native = spark.sql(query)
    # The native SQL equivalent of key_long reads every key as a LONG.
    names = [name for name in native.columns if name != "key_long"]
    functions = spark.sql(f"SELECT {', '.join(f'dbus_{name}(event) AS {name}' for name in names)} FROM events")
    assert native.select(names).dtypes == functions.dtypes
    assert native.select(names).collect() == functions.collect()


def test_samples_are_binary() -> None:
    assert pa.array(list(SAMPLES.values()), pa.binary()).null_count == 0


def one(frame: DataFrame) -> Any:
    row = frame.first()
    assert row is not None
    return row[0]
