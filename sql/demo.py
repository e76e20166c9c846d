"""Run the example queries over the example data and print each with its answer: ``make demo``.

Every ``sql/examples/<format>.sql`` begins with a comment that says which view it reads; the view is made
here, from the files that come with the package (``sparkwire.samples()``). Recipes named ``<format>_….sql`` go on from there.
"""

from __future__ import annotations

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

EXAMPLES = Path(__file__).parent / "examples"
RECIPES = Path(__file__).parent / "recipes"
ROWS = 30  # of an answer that are printed
WIDTH = 44  # of a column [characters]


class Statement(NamedTuple):
    """A query and the comment above it."""

    title: str
    sql: str


class Example(NamedTuple):
    """The queries of a format and the recipes that go on from there."""

    name: str

    @property
    def view(self) -> str:
        """The view that the queries read: the first name in backquotes."""
        found = re.search("`(\\w+)`", (EXAMPLES / f"{self.name}.sql").read_text(encoding="utf-8"))
        assert found is not None
        return found[1]

    def frame(self, spark: SparkSession) -> DataFrame:
        """One file a row: path STRING, content BINARY."""
        folder = sparkwire.samples() / self.name
        files = [str(file) for file in folder.iterdir() if file.is_file() and file.name != "README.md"]
        return spark.read.format("binaryFile").load(files).select("path", "content")

    @property
    def statements(self) -> list[Statement]:
        files = [EXAMPLES / f"{self.name}.sql", *sorted(RECIPES.glob(f"{self.name}_*.sql"))]
        return [statement for file in files for statement in split(file.read_text(encoding="utf-8"))]


EXAMPLE_FILES = tuple(Example(format.name) for format in FORMATS if (EXAMPLES / f"{format.name}.sql").exists())


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
        yield Statement(title, "\n".join(lines[first:]).strip().removesuffix(";"))


def session() -> SparkSession:
    """A local Spark that says nothing but answers."""
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


def main() -> None:
    """Print every query of every example with its answer."""
    spark = session()
    sparkwire.register(spark)
    for example in EXAMPLE_FILES:
        example.frame(spark).createOrReplaceTempView(example.view)
        for statement in example.statements:
            print(f"\n── {example.name} ── {statement.title}\n")
            print(textwrap.indent(statement.sql, "    "), "\n")
            answer = spark.sql(statement.sql)
            if answer.columns:
                answer.show(ROWS, truncate=WIDTH)
    spark.stop()


if __name__ == "__main__":
    main()
