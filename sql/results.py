"""The results of the example queries, in a plain file for each file of queries: ``sql/results/<format>.txt``.

    python sql/results.py           write them again; then look at the difference
    python sql/results.py kafka     those of one format

Each query has its number in ``sql/demo.py``, the names of its columns, and its rows, with a tab between two values. BINARY is
hexadecimal, a time is in UTC. The rows of a query without ORDER BY are sorted by their texts.
``tests/docs/test_sql_examples.py`` compares them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyspark.sql.functions as F
from demo import EXAMPLE_FILES, Example, session
from pyspark.sql import DataFrame, SparkSession

import sparkwire

RESULTS = Path(__file__).parent / "results"
_ESCAPED = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029]")  # as in Python's texts


def text_of(spark: SparkSession, example: Example) -> str:
    """Every query of an example that returns rows, and these."""
    example.frame(spark).createOrReplaceTempView(example.view)
    parts = []
    for number, statement in enumerate(example.statements, 1):
        result = spark.sql(statement.sql)
        if result.columns:
            rows = rows_of(result)
            is_ordered = re.search("^ORDER +BY", statement.sql, re.MULTILINE)
            lines = [f"-- {example.name} {number}", "\t".join(result.columns), *(rows if is_ordered else sorted(rows))]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def rows_of(result: DataFrame) -> list[str]:
    """The rows as Spark writes them, a line each."""
    numbered = result.toDF(*(f"_{k}" for k in range(len(result.columns))))
    texts = (F.hex(name) if type == "binary" else F.col(name).cast("string") for name, type in numbered.dtypes)
    return ["\t".join(map(_cell, row)) for row in numbered.select(*texts).collect()]


def _cell(text: str | None) -> str:
    return "NULL" if text is None else _ESCAPED.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def main(names: list[str]) -> None:
    """See the module."""
    spark = session()
    sparkwire.register(spark)
    RESULTS.mkdir(exist_ok=True)
    for example in EXAMPLE_FILES:
        if not names or example.name in names:
            (RESULTS / f"{example.name}.txt").write_text(text_of(spark, example), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
