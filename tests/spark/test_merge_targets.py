"""The two kinds of targets, without a JVM: names, properties, columns and statements."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import types as T

from sparkwire.changes.columns import MISSING_IS_UNKNOWN
from sparkwire.changes.delta_log import NOTED, noted_in, noted_text
from sparkwire.spark.changes.changed_table import ChangedTable
from sparkwire.spark.changes.merge_batch import BatchFacts
from sparkwire.spark.changes.merge_names import TableName, has_delta, target_of
from sparkwire.spark.changes.merge_path import check_storable
from sparkwire.spark.changes.merge_statement import EXACT, REBASE, written_exactly
from sparkwire.spark.changes.merge_table import TableTarget, features, types_in
from sparkwire.spark.changes.merge_types import Traits, stored_schema, visible

DELTA = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
ICEBERG = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}
ORDER = T.StructType().add("epoch", "integer").add("partition", "integer").add("offset", "long")


class Rows(list[Any]):
    """The rows that a statement returns."""

    def collect(self) -> list[Any]:
        return self


class Session:
    """What a target asks of a session: settings, and tables by their names in SQL. It notes other statements."""

    def __init__(self, conf: dict[str, str], **tables: tuple[T.StructType, dict[str, str]]) -> None:
        self.conf, self.tables, self.version = conf, {f"`{name}`": one for name, one in tables.items()}, "4.2.0"
        self.statements: list[str] = []
        self.read = self.catalog = self
        self.current = "lake" if "spark.sql.catalog.lake" in conf else "spark_catalog"

    def currentCatalog(self) -> str:  # noqa: N802
        return self.current

    def option(self, *_: str) -> Session:
        return self

    def table(self, name: str) -> Any:
        return type("Table", (), {"schema": self._found(name)[0]})

    def sql(self, text: str) -> Rows:
        if text.startswith("SHOW TBLPROPERTIES "):
            properties = self._found(text.removeprefix("SHOW TBLPROPERTIES "))[1]
            return Rows({"key": key, "value": value} for key, value in properties.items())
        self.statements.append(text)
        return Rows()

    def _found(self, name: str) -> tuple[T.StructType, dict[str, str]]:
        if name not in self.tables:
            raise AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] it does not exist")
        return self.tables[name]


def changed(**types: T.DataType) -> ChangedTable:
    schema = T.StructType().add("_op_", "string").add("_order_", ORDER).add("_time_", "timestamp")
    for name, one in types.items():
        schema.add(name, one)
    return ChangedTable(list(types), ["id"], schema)


TABLE = changed(id=T.IntegerType(), v=T.IntegerType())


def made(deletes: str, keys: list[str] | None = None) -> dict[str, str]:
    noted = {"keys": keys or ["id"], "deletes": deletes, "table": "t", "traits": {"columns": ["id", "v"]}}
    return {NOTED: noted_text(noted), "delta.minReaderVersion": "1"}


def noted_of(statement: str) -> Any:
    """What the property in a statement says."""
    return noted_in(statement.rpartition(" = '")[2].removesuffix("')"))


def target(session: Session, name: str, *, keep: bool = True) -> TableTarget:
    return TableTarget(session, TableName.of(name), keep)


# -- names


@pytest.mark.parametrize(
    ("text", "with_delta", "without"),
    [
        ("lake.shop.orders", "`lake`.`shop`.`orders`", "`lake`.`shop`.`orders`"),
        ("`a b`.c", "`a b`.`c`", "`a b`.`c`"),
        ("/lake/orders/", "`delta`.`/lake/orders`", "/lake/orders"),
        ("/lake/../lake/orders", "`delta`.`/lake/orders`", "/lake/orders"),
        ("file:/lake/orders", "`delta`.`/lake/orders`", "/lake/orders"),
        ("delta.`/lake/orders`", "`delta`.`/lake/orders`", "/lake/orders"),
        ("s3a://bucket/orders/", "`delta`.`s3a://bucket/orders`", "s3a://bucket/orders"),
    ],
)
def test_a_path_is_a_table_of_delta(text: str, with_delta: str, without: str) -> None:
    """Spark merges into it if the session has Delta."""
    assert str(target_of(Session(DELTA), text)) == with_delta
    assert str(target_of(Session(ICEBERG), text)) == without


def test_sessions_with_delta() -> None:
    found = [has_delta(Session(conf)) for conf in (DELTA, ICEBERG, {})]
    assert found == [True, False, False]


def test_the_table_and_its_view() -> None:
    session = Session(DELTA)
    for name, keep, rows, has_view in (
        ("a.orders", True, "`a`.`orders`", False),
        ("a.orders", False, "`a`.`orders__rows`", True),
        ("delta.`/lake/orders`", False, "`delta`.`/lake/orders`", False),
    ):
        one = target(session, name, keep=keep)
        assert (str(one.rows), one.has_view, one.exists) == (rows, has_view, False)


# -- properties and columns


def test_a_new_table_has_its_property_and_the_columns() -> None:
    session = Session(DELTA)
    one = target(session, "orders")
    assert one.agree(TABLE, False) == stored_schema(TABLE)
    with one.prepared(session, "shop.orders") as relation:
        assert relation == "`orders`"
    [create] = session.statements
    assert create.startswith(
        "CREATE TABLE `orders` (`id` int, `v` int, `_order_` struct<`epoch`: int, `partition`: int, "
    )
    assert " USING delta TBLPROPERTIES ('sparkwire.merge' = '" in create
    noted = {"keys": ["id"], "deletes": "keep", "table": "shop.orders", "traits": {"columns": ["id", "v"]}}
    assert noted_of(create) == noted


def test_spark_hides_nothing_of_the_property() -> None:
    """`SHOW TBLPROPERTIES` does not show a value with one of these words."""
    columns = ["id", "url", "password", "access_token", "secretKey"]
    noted = {"keys": ["id"], "deletes": "keep", "table": "shop.tokens", "traits": {"columns": columns}}
    assert not re.search("(?i)secret|password|token|access[.]?key|url", noted_text(noted))
    assert noted_in(noted_text(noted)) == noted


def test_a_time_is_one_with_a_time_zone_whatever_the_session_says() -> None:
    session = Session(DELTA)
    one = target(session, "orders")
    one.agree(changed(id=T.IntegerType(), t=T.ArrayType(T.TimestampType())), False)
    with one.prepared(session, None):
        pass
    assert "`t` array<timestamp_ltz>" in session.statements[0]
    assert "`_time_` timestamp_ltz" in session.statements[0]


def test_a_new_view_shows_the_rows_that_exist() -> None:
    session = Session(ICEBERG)
    one = target(session, "orders", keep=False)
    schema = one.agree(TABLE, False)
    with one.prepared(session, None):
        pass
    table, view = session.statements
    assert " USING iceberg TBLPROPERTIES " in table
    columns = ", ".join(f"`{name}`" for name in visible(schema, keep=False))
    assert view.startswith("CREATE OR REPLACE VIEW `orders` TBLPROPERTIES ('sparkwire.view' = 'true') ")
    assert view.endswith(f" AS SELECT {columns} FROM `orders__rows` WHERE NOT _deleted_")


def test_new_columns_and_wider_types() -> None:
    session = Session(DELTA, orders=(stored_schema(TABLE), made("keep")))
    one = target(session, "orders")
    wide = changed(id=T.IntegerType(), v=T.LongType(), n=T.TimestampNTZType())
    assert one.agree(wide, False)["v"].dataType == T.LongType()
    assert (one.table_name, one.is_delta, one.tells_changed) == ("t", True, True)
    with one.prepared(session, "t"):
        pass
    property, *others = session.statements
    assert property.startswith("ALTER TABLE `orders` SET TBLPROPERTIES ('sparkwire.merge' = '")
    assert noted_of(property)["traits"]["columns"] == ["id", "v", "n"]
    assert others == [
        "ALTER TABLE `orders` SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')",
        "ALTER TABLE `orders` ADD COLUMNS (`n` timestamp_ntz)",
        "ALTER TABLE `orders` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE `orders` ALTER COLUMN `v` TYPE bigint",
    ]


def test_the_name_of_the_table_changes_the_property() -> None:
    session = Session(DELTA, orders=(stored_schema(TABLE), made("keep")))
    one = target(session, "orders")
    one.agree(TABLE, False)
    with one.prepared(session, "u"):
        pass
    [statement] = session.statements
    assert noted_of(statement)["table"] == "u"


@pytest.mark.parametrize(
    "traits",
    [
        Traits(),
        Traits(truncates=True, partial=True, departures=True, epoch=7, untold=("w",), columns=("id", "v", "w")),
        Traits(epoch=0),
        Traits(columns=()),
    ],
)
def test_traits_come_back_as_they_were_noted(traits: Traits) -> None:
    session = Session(DELTA, orders=(stored_schema(TABLE), made("keep")))
    one = target(session, "orders")
    one.agree(TABLE, False)
    one.note("t", traits)
    noted = noted_of(session.statements[-1])
    session.tables["`orders`"][1][NOTED] = noted_text(noted)
    assert one.refreshed() == traits


def test_a_column_of_the_owner_is_new_when_changes_have_it() -> None:
    """The owner has added w. v came with a merge that was killed before the table had the column."""
    schema = T.StructType([*TABLE.schema, T.StructField("w", T.IntegerType())])
    schema.add("_unavailable_", T.ArrayType(T.StringType()), metadata={MISSING_IS_UNKNOWN: True})
    table = ChangedTable(["id", "v", "w"], ["id"], schema)
    stored = T.StructType().add("id", "integer").add("w", "integer")
    assert Traits(columns=("id", "v")).with_columns(table, stored).untold == ("v", "w")
    assert Traits(columns=("id", "v", "w")).with_columns(table, stored.add("v", "integer")).untold == ()


@pytest.mark.parametrize(
    ("tables", "keep", "table", "message"),
    [
        (
            {"orders": (stored_schema(TABLE), made("keep", ["v"]))},
            True,
            TABLE,
            "has the key v, and the changes have id",
        ),
        ({"orders": (stored_schema(TABLE), made("remove"))}, True, TABLE, 'was made with deletes="remove"'),
        ({"orders": (stored_schema(TABLE), {})}, True, TABLE, "merge did not create orders: name another target"),
        ({"orders": (stored_schema(TABLE), made("keep"))}, False, TABLE, 'was made with deletes="keep"'),
        ({"orders__rows": (stored_schema(TABLE), made("remove"))}, True, TABLE, 'was made with deletes="remove"'),
        ({"orders": (T.StructType(), {"sparkwire.view": "true"})}, True, TABLE, 'was made with deletes="remove"'),
        (
            {"orders": (T.StructType(), {"sparkwire.view": "true"})},
            False,
            TABLE,
            "orders__rows does not exist, and its view",
        ),
        (
            {"orders": (T.StructType().add("id", "integer"), {})},
            False,
            TABLE,
            "orders exists, and merge did not create it",
        ),
        ({}, True, changed(id=T.IntegerType(), i=T.DayTimeIntervalType()), "have no type INTERVAL: cast the column i"),
        (
            {"orders": (stored_schema(TABLE), made("keep"))},
            True,
            changed(id=T.StringType()),
            "column id of orders is INT, and the changes have STRING",
        ),
    ],
)
def test_targets_that_do_not_fit(tables: Any, keep: bool, table: ChangedTable, message: str) -> None:
    session = Session(DELTA, **tables)
    with pytest.raises(ValueError, match=message):
        target(session, "orders", keep=keep).agree(table, False)
    assert session.statements == []


def test_a_catalog_without_merge() -> None:
    with pytest.raises(ValueError, match=r"its catalog has neither Delta nor Iceberg: .*, or name a path"):
        target(Session({}), "orders").agree(TABLE, False)


def test_the_catalog_that_a_session_uses() -> None:
    """Also after ``USE``: the setting of the default catalog stays."""
    session = Session(DELTA | ICEBERG)
    for current, provider in (("lake", "iceberg"), ("spark_catalog", "delta")):
        session.current = current
        one = target(session, "orders")
        one.agree(TABLE, False)
        assert one.provider == provider


def test_features_of_a_delta_table() -> None:
    plain = T.StructType().add("id", "integer")
    assert features(plain) == {}
    nested = T.ArrayType(T.MapType(T.StringType(), T.StructType().add("t", T.TimestampNTZType())))
    assert features(T.StructType().add("a", nested)) == {"delta.feature.timestampNtz": "supported"}
    names = features(T.StructType().add("s", T.StructType().add("unit price", "integer")))
    assert names["delta.columnMapping.mode"] == "name"
    assert [one.typeName() for one in types_in(nested)] == ["array", "map", "string", "struct", "timestamp_ntz"]


# -- what delta-rs and Spark's writer of Parquet do not have


GOOD: list[T.DataType] = [
    *(one() for one in (T.ByteType, T.ShortType, T.LongType, T.FloatType, T.DoubleType, T.BooleanType, T.BinaryType)),
    *(one() for one in (T.StringType, T.DateType, T.TimestampType, T.TimestampNTZType)),
    T.DecimalType(38, 18),
    T.ArrayType(T.MapType(T.StringType(), T.StructType().add("a.b", T.TimestampNTZType()))),
]


@pytest.mark.parametrize("type", GOOD, ids=str)
def test_types_that_a_path_can_have(type: T.DataType) -> None:
    check_storable(T.StructType().add("x.y", type))


@pytest.mark.parametrize(
    "type",
    [
        T.NullType(),
        T.ArrayType(T.NullType()),
        T.DayTimeIntervalType(),
        T.YearMonthIntervalType(),
        T.MapType(T.StringType(), T.CalendarIntervalType()),
        T.CharType(3),
        T.StructType().add("v", T.VarcharType(3)),
    ],
    ids=str,
)
def test_types_that_a_path_cannot_have(type: T.DataType) -> None:
    with pytest.raises(
        ValueError, match=r"column x has the type [A-Z]+.*, which a path cannot have: cast it in the changes"
    ):
        check_storable(T.StructType().add("x", type))


def test_names_that_a_path_cannot_have() -> None:
    for name in ("unit price", "a,b", "a;b", "a{b", "a)b", "a=b", "a\nb", "a\tb", ""):
        for schema in (
            T.StructType().add(name, "integer"),
            T.StructType().add("x", T.StructType().add(name, "integer")),
        ):
            with pytest.raises(ValueError, match=r"of a column has characters that a path cannot have: rename it"):
                check_storable(schema)
    for schema in (
        T.StructType().add("a", "integer").add("A", "integer"),
        T.StructType().add("x", T.ArrayType(T.StructType().add("a", "integer").add("A", "integer"))),
    ):
        with pytest.raises(ValueError, match="Delta takes the columns a and A for one: rename one"):
            check_storable(schema)
    with pytest.raises(ValueError, match="column x has a STRUCT without fields"):
        check_storable(T.StructType().add("x", T.StructType()))


# -- settings of the session


class Conf(dict[str, str]):
    """The settings of a session, of which one may not change."""

    def set(self, name: str, value: str) -> None:
        if self.get("fixed") == name:
            raise AnalysisException("[CANNOT_MODIFY_CONFIG] it is fixed")
        self[name] = value

    def unset(self, name: str) -> None:
        del self[name]


def test_settings_come_back_after_the_last_of_two_merges() -> None:
    conf = Conf({REBASE: "LEGACY"})
    session: Any = Session(conf)
    with written_exactly(session, EXACT):
        with written_exactly(session, EXACT):
            assert conf == EXACT
        assert conf == EXACT
    assert conf == {REBASE: "LEGACY"}


def test_a_setting_that_may_not_change_leaves_the_others() -> None:
    conf = Conf(fixed=REBASE)
    session: Any = Session(conf)
    with pytest.raises(AnalysisException), written_exactly(session, EXACT):
        pass
    assert conf == {"fixed": REBASE}
    del conf["fixed"]
    with written_exactly(session, EXACT):
        assert conf == EXACT
    assert conf == {}


def test_a_table_needs_a_setting_of_the_oldest_spark_alone() -> None:
    session = Session(DELTA)
    assert target(session, "orders").exact_settings == ()
    session.version = "3.5.4"
    assert target(session, "orders").exact_settings == (REBASE,)


def test_a_range_of_keys_lets_a_table_skip_files_only_if_they_fill_half_of_it() -> None:
    counts: dict[str, Any] = dict.fromkeys(
        ("changes", "errors", "opened", "moves", "unknown", "unexpected", "null_keys"), 0
    )
    days = {"id": (0, 8), "day": (0, 8)}
    facts = BatchFacts(**counts, keys=5, truncated=None, epochs=None, table_name=None, ranges=days)
    assert facts.narrow_range("id", T.LongType()) == ("CAST('0' AS bigint)", "CAST('8' AS bigint)")
    assert facts.narrow_range("day", T.DateType()) == ("date_from_unix_date(0)", "date_from_unix_date(8)")
    assert facts.narrow_range("name", T.StringType()) is None
    assert facts._replace(keys=4).narrow_range("id", T.LongType()) is None
