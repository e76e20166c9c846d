"""Column types equal those of Spark's `from_avro` (tests/data/avro/spark_types.json.xz)."""

from __future__ import annotations

import json
import lzma

import pyarrow as pa
import pytest

from sparkwire.avro.schema import parse
from sparkwire.avro.targets import Slots, target_of
from sparkwire.errors import SchemaError
from sparkwire.spark.frames import from_arrow_type
from tests.support import DATA as DATA_FOLDER

FILE = DATA_FOLDER / "avro" / "spark_types.json.xz"
TYPES: dict[str, str | None] = json.loads(lzma.decompress(FILE.read_bytes()))


def test_there_are_types_to_compare() -> None:
    assert len(TYPES) > 50
    assert sum(type is None for type in TYPES.values()) == 2


@pytest.mark.parametrize("schema", [schema for schema, type in TYPES.items() if type is not None])
def test_types_are_sparks(schema: str) -> None:
    ours: pa.DataType = target_of(parse(schema), Slots()).type
    assert from_arrow_type(ours).simpleString() == TYPES[schema]


@pytest.mark.parametrize("schema", [schema for schema, type in TYPES.items() if type is None])
def test_schemas_that_spark_rejects_are_rejected(schema: str) -> None:
    with pytest.raises(SchemaError, match="is recursive, which no column can be: read it as JSON, with avro_json"):
        target_of(parse(schema), Slots())
