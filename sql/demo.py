"""Run example queries over the example files and print each with its result.

    make demo                       an index of all questions, and a tour of some
    python sql/demo.py kafka        all questions about Kafka
    python sql/demo.py kafka 3 8    two of them

Every ``sql/examples/<format>.sql`` begins with a comment that says which view it reads; the view is made
here, from the bundled sample data (``sparkwire.samples()``, in a query ``$SAMPLES``). Recipes named
``<format>_….sql`` continue from there. ``kafka_log.sql`` reads a directory by the data source of that name.
A title that begins with a star is part of the tour.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

import sparkwire
from sparkwire.catalogue import FORMATS
from sparkwire.databus import Consumer, DataEvent, Result, consume

EXAMPLES = Path(__file__).parent / "examples"
RECIPES = Path(__file__).parent / "recipes"
SOURCE = "kafka_log"
ROWS = 12  # of a result that are printed
WIDTH = 44  # of a column [characters]


class Statement(NamedTuple):
    """A query and the comment above it."""

    title: str
    sql: str
    in_tour: bool

    @property
    def is_view(self) -> bool:
        return self.sql.startswith("CREATE")


class Example(NamedTuple):
    """The queries of a format and the recipes that continue from there."""

    name: str

    @property
    def view(self) -> str:
        """The view that the queries read: the first name in backquotes."""
        match = re.search("`(\\w+)`", (EXAMPLES / f"{self.name}.sql").read_text(encoding="utf-8"))
        assert match is not None
        return match[1]

    @property
    def folder(self) -> Path:
        """The format's folder, or that of the format whose examples the comment names."""
        other = re.search(r"file of the (\w+) examples", (EXAMPLES / f"{self.name}.sql").read_text(encoding="utf-8"))
        return sparkwire.samples() / (other[1] if other else self.name)

    def frame(self, spark: SparkSession) -> DataFrame:
        """A directory by its source; otherwise a row for each file: path STRING, content BINARY."""
        if self.name == SOURCE:
            return spark.read.format(SOURCE).load(f"{sparkwire.samples()}/kafka/orders-0")
        folder = self.folder
        files = [str(file) for file in folder.iterdir() if file.is_file() and file.name != "README.md"]
        return spark.read.format("binaryFile").load(files).select("path", "content")

    @property
    def statements(self) -> list[Statement]:
        files = [EXAMPLES / f"{self.name}.sql", *sorted(RECIPES.glob(f"{self.name}_*.sql"))]
        texts = [file.read_text(encoding="utf-8").replace("$SAMPLES", str(sparkwire.samples())) for file in files]
        return [statement for text in texts for statement in split(text)]


EXAMPLE_FILES = (
    Example(SOURCE),
    *(Example(format.name) for format in FORMATS if (EXAMPLES / f"{format.name}.sql").exists()),
)


def split(text: str) -> Iterator[Statement]:
    """The statements of a SQL file: each ends with a semicolon at a line's end, its title stands above it."""
    for part in text.split(";\n"):
        # A comment set off by an empty line speaks of the file, not of the statement below.
        paragraph = part.strip().rpartition("\n\n-- ")[2] if "\n\n-- " in part else part.strip()
        lines = paragraph.removeprefix("-- ").splitlines()
        if not lines:
            continue
        first = next(k for k, line in enumerate(lines) if k > 0 and not line.startswith("--"))
        title = " ".join(line.removeprefix("-- ") for line in lines[:first])
        yield Statement(
            title.removeprefix("* "), "\n".join(lines[first:]).strip().removesuffix(";"), title.startswith("* ")
        )


def session() -> SparkSession:
    """A local Spark that prints nothing but results."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[2]")
        .appName("sparkwire demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def main(arguments: list[str]) -> None:
    """See the module."""
    name, numbers = (arguments[0] if arguments else None), [int(number) for number in arguments[1:]]
    if name is None:
        show_index()
    elif name not in (example.name for example in EXAMPLE_FILES):
        sys.exit(f"There are examples of {', '.join(example.name for example in EXAMPLE_FILES)}, not of {name!r}.")
    spark = session()
    sparkwire.register(spark)
    for example in EXAMPLE_FILES:
        if name in (None, example.name):
            example.frame(spark).createOrReplaceTempView(example.view)
            if example.name == SOURCE and not numbers:
                show_source()
            for number, statement in enumerate(example.statements, 1):
                wanted = statement.in_tour if name is None else not numbers or number in numbers
                run(spark, f"{example.name} {number}", statement, wanted)
            if example.name == "databus" and not numbers:
                show_consumer(spark)
    spark.stop()


def show_source() -> None:
    """How the directory became a table."""
    print("\n── kafka_log ── A directory of Kafka segments is a table, in two lines\n")
    print(
        '    sparkwire.register(spark)\n    spark.read.format("kafka_log").load(f"{sparkwire.samples()}/kafka/orders-0")'
    )


class FailsOnce(Consumer):
    """Fails at its tenth change, to simulate a database outage."""

    def __init__(self) -> None:
        self.changes = 0

    def on_data_event(self, event: DataEvent) -> Result:
        self.changes += 1
        return Result.ERROR if self.changes == 10 else Result.SUCCESS


def show_consumer(spark: SparkSession) -> None:
    """A Databus consumer over the relay's stream."""
    print("\n── databus ── A Databus consumer: it fails once, is rolled back, and gets that window again\n")
    print(textwrap.indent(f"{inspect.getsource(FailsOnce)}\nconsume(events, FailsOnce())", "    "), "\n")
    events = spark.table("events").where("file = 'relay_v1.bin'").select("stream", "position", "event")
    report = consume(events, FailsOnce())
    report.select("scn", "events", "rollbacks", "checkpoint").show(ROWS, truncate=WIDTH)


def show_index() -> None:
    """Every question with its number, those of the tour with a star."""
    for example in EXAMPLE_FILES:
        print(f"\n{example.name}: python sql/demo.py {example.name} [numbers]")
        for number, statement in enumerate(example.statements, 1):
            print(f"{'*' if statement.in_tour else ' '}{number:3}  {statement.title}")


def run(spark: SparkSession, label: str, statement: Statement, wanted: bool) -> None:
    """Views are made in any case: what follows reads them."""
    if wanted:
        print(f"\n── {label} ── {statement.title}\n")
        print(textwrap.indent(statement.sql, "    "), "\n")
    if wanted or statement.is_view:
        answer = spark.sql(statement.sql)
        if answer.columns:
            answer.show(ROWS, truncate=WIDTH)


if __name__ == "__main__":
    main(sys.argv[1:])
