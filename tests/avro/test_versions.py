"""Versions of a schema that meet: every value is the one that fastavro reads by its writer's schema, or its row says so."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from sparkwire.avro import payloads, typed_rows
from sparkwire.avro.schemas import schemas_of
from sparkwire.avro.typed_rows import RowsReader
from tests.support.avro_versions import Versions, differences, random_value, read_by_fastavro, written


def named(error: str | None) -> set[str]:
    """The fields that an error names."""
    return set((error or "").partition(": ")[2].split(", "))


def covered(path: str, error: str | None) -> bool:
    """Whether the error names the field, or one that it is in."""
    return any(path == name or path.startswith((f"{name}.", f"{name}[]")) for name in named(error) if name)


def compared(reader: RowsReader, schemas: list[Any], rows: list[tuple[int, bytes]]) -> int:
    """Rows, each with the number of its schema, against fastavro; how many values are errors."""
    ids = pa.array([k for k, _ in rows], pa.int64())
    columns, errors = reader.rows(payloads.of_column(pa.array([data for _, data in rows], pa.binary()), ids))
    found = pa.StructArray.from_arrays(columns, fields=reader.fields)
    found.validate(full=True)
    bad = 0
    for (k, data), row, error in zip(rows, found.to_pylist(maps_as_pydicts="strict"), errors.to_pylist(), strict=True):
        expected = read_by_fastavro(data, schemas[k])
        wrong = differences(expected, row, found.type)
        silent = [path for path in wrong if not covered(path, error)]
        assert not silent, (silent, error, expected, row, schemas)
        assert bool(wrong) == (error is not None), (wrong, error, expected, row, schemas)
        bad += len(wrong)
    return bad


def run_pairs(seeds: range, mixed: float) -> tuple[int, int]:
    """Random pairs of versions, both orders of their rows, all fields and those of the last; rows and errors."""
    rows = bad = 0
    for seed in seeds:
        chance = Random(seed)
        schemas = list(Versions(chance, mixed).pair())
        data = [
            (k, written(schemas[k], random_value(chance, schemas[k])))
            for k in (0, 1, 1, 0, *chance.choices((0, 1), k=4))
        ]
        given = schemas_of(dict(enumerate(schemas)))
        for reader in (typed_rows.reader(given), typed_rows.by_name(given)["R"]):
            bad += compared(reader, schemas, data)
            rows += len(data)
    return rows, bad


@pytest.mark.parametrize("part", range(4))
def test_a_pair_of_versions(part: int) -> None:
    """Types of one family: few values cannot be kept."""
    rows, bad = run_pairs(range(100 * part, 100 * part + 100), mixed=0.0)
    assert rows == 1600
    assert bad < 160


@pytest.mark.parametrize("part", range(4))
def test_a_pair_of_versions_of_any_types(part: int) -> None:
    rows, _ = run_pairs(range(10_000 + 100 * part, 10_000 + 100 * part + 100), mixed=0.6)
    assert rows == 1600
    assert json.dumps(rows)
