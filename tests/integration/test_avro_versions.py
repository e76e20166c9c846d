"""Thousands of versions of schemas: every value equals that of fastavro or Avro's Java, or its row has an error.

Avro's Java is version 1.12, from Spark. It ignores the writer's unit and reads a number in the reader's. So units are compared
with the writer's schema, and the rules of resolution without logical types.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyspark

from sparkwire.avro import typed_rows
from sparkwire.avro.schemas import schemas_of
from tests.avro.test_versions import covered, judged, read_as, run_pairs, run_readers
from tests.support.arrow import with_dicts
from tests.support.avro_versions import Versions, differences, random_value, without_units, written

PAIRS = 10_000
OF_JAVA = 2_000
JAVA_CANNOT = "Not an array: ["
"""Java's error for a default ``[]`` of a union whose first branch is an array; it accepts ``{}`` for a map"""


def test_pairs_of_versions_equal_fastavro() -> None:
    rows, bad = run_pairs(range(PAIRS // 2), mixed=0.0)
    others, no_common_type = run_pairs(range(PAIRS // 2, PAIRS), mixed=0.6)
    assert rows + others == 16 * PAIRS
    print(
        f"avro versions: {rows} rows of {PAIRS // 2} pairs of one family: {bad} values are a named error, none differs"
    )
    print(
        f"avro versions: {others} rows of {PAIRS // 2} pairs of any types: {no_common_type} named errors, none differs"
    )


def test_readers_schemas_equal_fastavro() -> None:
    kinds = run_readers(range(PAIRS), mixed=0.0)
    assert kinds.total() == 6 * PAIRS
    print(f"avro versions: {kinds.total()} rows of {PAIRS} writers and readers: {dict(kinds)}, none differs")


def java(pairs: list[tuple[Any, Any, list[bytes]]]) -> list[list[Any]]:
    """The data of each pair of a writer's and a reader's schema, read by Avro's Java; an ``Exception`` if Java fails."""
    jars = Path(pyspark.__file__).parent / "jars"
    home = os.environ.get("JAVA_HOME")
    program = [str(Path(home, "bin", "java")) if home else "java", "-cp", f"{jars}/*"]
    lines = [
        {"writer": writer, "reader": reader, "data": [base64.b64encode(datum).decode() for datum in data]}
        for writer, reader, data in pairs
    ]
    ran = subprocess.run(
        [*program, str(Path(__file__).with_name("ReadAvro.java"))],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [json.loads(line, object_hook=value_of) for line in ran.stdout.splitlines()]


TAGS: dict[str, Callable[[Any], Any]] = {
    "object": dict,
    "value": lambda value: value,
    "error": Exception,
    "bytes": base64.b64decode,
    "BigDecimal": Decimal,
    "UUID": str,
    "Float": lambda text: float(np.float32(text)),
    "Double": float,
    "LocalDate": datetime.date.fromisoformat,
    "LocalTime": datetime.time.fromisoformat,
    "LocalDateTime": datetime.datetime.fromisoformat,
    "Instant": datetime.datetime.fromisoformat,
}


def value_of(tagged: dict[str, Any]) -> Any:
    """Convert the tagged output of ``ReadAvro`` to a value."""
    if len(tagged) == 1:
        [(tag, value)] = tagged.items()
        if tag in TAGS:
            return TAGS[tag](value)
    return tagged


def test_versions_equal_java() -> None:
    """With the writer's schema and its logical types."""
    pairs, data = [], []
    for seed in range(OF_JAVA // 2):
        chance = Random(seed)
        schemas = Versions(chance, 0.3).pair()
        for schema in schemas:
            pairs.append(schemas)
            data.append((schema, schema, [written(schema, random_value(chance, schema)) for _ in range(4)]))
    rows = bad = 0
    for k, (schemas, (_, _, written_data), values) in enumerate(zip(pairs, data, java(data), strict=True)):
        reader = typed_rows.reader(schemas_of(dict(enumerate(schemas))))
        bad += judged(reader, list(schemas), [(k % 2, datum) for datum in written_data], values)
        rows += len(written_data)
    assert rows == 4 * OF_JAVA
    print(f"avro versions: {rows} rows as Avro's Java reads them, {bad} values are a named error, none differs")


def test_readers_schemas_equal_java() -> None:
    """The rules of resolution: defaults, promotions, unions."""
    pairs = []
    for seed in range(OF_JAVA):
        chance = Random(seed)
        writer, reader = map(without_units, Versions(chance, 0.2).writer_and_reader())
        pairs.append((writer, reader, [written(writer, random_value(chance, writer)) for _ in range(6)]))
    kinds: Counter[str] = Counter()
    for (writer, reader, data), values in zip(pairs, java(pairs), strict=True):
        result, errors = read_as(writer, reader, data)
        for expected, row, error in zip(values, with_dicts(result), errors, strict=True):
            reported = (error, expected, row, writer, reader)
            if isinstance(expected, Exception):
                kinds["error in both" if error else "array that is a union's default"] += 1
                assert error or JAVA_CANNOT in str(expected), reported
                continue
            wrong = differences(expected, row, result.type)
            assert all(covered(path, error) for path in wrong), (wrong, reported)
            kinds["named error" if wrong else "equal"] += 1
    print(f"avro versions: {kinds.total()} rows of {OF_JAVA} writers and readers in Avro's Java: {dict(kinds)}")
