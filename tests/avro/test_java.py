"""Data that Avro's Java wrote, and the values that it read from them (tests/data/avro)."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import math
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.avro.arrow_columns import decode, plan
from sparkwire.avro.schema import parse
from sparkwire.avro.schemas import java_text
from sparkwire.avro.to_avro import encode
from sparkwire.core.column import spans_of
from tests.support import DATA as DATA_FOLDER

DATA = DATA_FOLDER / "avro"


@cache
def golden() -> list[dict[str, Any]]:
    """One entry for each schema, or for each pair of a writer's and a reader's schema."""
    text = lzma.decompress((DATA / "golden.jsonl.xz").read_bytes()).decode()
    return [json.loads(line) for line in text.split("\n") if line]


every_entry = pytest.mark.parametrize("k", range(len(golden())))


@every_entry
def test_as_java(k: int) -> None:
    """Check decoding with the reader's schema, encoding, and JSON."""
    entry = golden()[k]
    writer = parse(entry["schema"])
    reader = entry.get("reader", entry["schema"])
    column = pa.array([base64.b64decode(data) for data, _ in entry["data"]], pa.binary())
    java = [expected for _, expected in entry["data"]]
    if "reader" not in entry:
        assert same(as_json(column, reader), java)
    if "Node" not in reader:
        decoded = decode(plan([writer], parse(reader)), spans_of(column)).column
        decoded.validate(full=True)
        assert same(as_json(encode(decoded, parse(reader)), reader), java)


def as_json(column: pa.Array, schema: str) -> list[Any]:
    texts = FUNCTIONS["avro_json"].decode(column, schema=schema).to_pylist()
    errors = FUNCTIONS["avro_error"].decode(column, schema=schema)
    assert errors.null_count == len(column)
    return [json.loads(text) for text in texts]


def same(got: Any, java: Any) -> bool:
    """Whether both are equal. Java 17 writes more digits of a FLOAT than necessary."""
    if isinstance(java, list):
        return len(got) == len(java) and all(map(same, got, java))
    if isinstance(java, dict):
        return set(got) == set(java) and all(same(got[name], java[name]) for name in java)
    if isinstance(java, float):
        return math.isclose(got, java, rel_tol=1e-7)
    return type(got) is type(java) and bool(got == java)


@every_entry
def test_a_schemas_text_is_javas(k: int) -> None:
    entry = golden()[k]
    assert java_text(entry["schema"]) == entry["java"]
    assert hashlib.md5(java_text(entry["schema"]).encode()).hexdigest() == entry["md5"]
