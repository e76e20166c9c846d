"""The setting that `docs/errors.md` recommends: an exception begins with the message, not with a worker's traceback."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import sparkwire
from tests.support import ROOT
from tests.support.pages import blocks_of, lines_of

SETTING = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"
BLOCK = blocks_of(ROOT / "docs" / "errors.md")[0]


@pytest.fixture
def quiet(spark: SparkSession) -> SparkSession:
    """A session with the setting of the page."""
    session = spark.newSession()
    sparkwire.register(session)
    assert SETTING in BLOCK.code
    exec(BLOCK.code, {"spark": session})
    return session


def message_of(query: str, spark: SparkSession) -> list[str]:
    with pytest.raises(PySparkException) as caught:
        spark.sql(query).collect()
    return lines_of(str(caught.value))


def test_a_function_shows_what_the_page_shows(quiet: SparkSession) -> None:
    assert message_of("SELECT dbus_opcode('x')", quiet) == lines_of(BLOCK.printed)


def test_by_default_the_message_is_the_last_line(spark: SparkSession) -> None:
    """`register` leaves the setting to the user."""
    lines = message_of("SELECT dbus_opcode('x')", spark)
    assert lines[1].startswith("Traceback")
    assert lines[-1] == lines_of(BLOCK.printed)[-1]


def test_a_data_source_shows_its_message_first(quiet: SparkSession) -> None:
    """An option that the driver rejects, and corrupt bytes that a task finds."""
    path = sparkwire.samples() / "kafka" / "damaged_crc.log"
    options = f"OPTIONS (path '{path}', mode 'FAILFAST'"
    quiet.sql(f"CREATE OR REPLACE TEMPORARY VIEW strict_log USING kafka_log {options})")
    assert "damaged_crc.log cannot be read at byte 1159" in message_of("SELECT * FROM strict_log", quiet)[1]
    [first, *_] = message_of(f"CREATE TEMPORARY VIEW other_log USING kafka_log {options}, nope '1')", quiet)
    assert "ValueError: kafka_log has no option nope" in first
