"""Combined versions of a schema: every value equals fastavro's with the writer's schema, or its row has an error."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from fastavro.read import SchemaResolutionError

from sparkwire.avro import payloads, typed_rows
from sparkwire.avro.schemas import schemas_of
from sparkwire.avro.typed_rows import RowsReader
from tests.support.arrow import with_dicts
from tests.support.avro_versions import Versions, differences, random_value, read_by_fastavro, written


def named(error: str | None) -> set[str]:
    """The fields in an error."""
    return set((error or "").partition(": ")[2].split(", "))


def covered(path: str, error: str | None) -> bool:
    """Whether the error names the field, or a field that contains it."""
    return any(path == name or path.startswith((f"{name}.", f"{name}[]")) for name in named(error) if name)


def compared(reader: RowsReader, schemas: list[Any], rows: list[tuple[int, bytes]]) -> int:
    """Compare rows, each with the number of its schema, with fastavro. Returns the number of errors."""
    return judged(reader, schemas, rows, [read_by_fastavro(data, schemas[k]) for k, data in rows])


def judged(reader: RowsReader, schemas: list[Any], rows: list[tuple[int, bytes]], expected: list[Any]) -> int:
    """Compare rows with the values of another reader. Returns the number of errors."""
    ids = pa.array([k for k, _ in rows], pa.int64())
    columns, errors = reader.rows(payloads.of_column(pa.array([data for _, data in rows], pa.binary()), ids))
    result = pa.StructArray.from_arrays(columns, fields=reader.fields)
    result.validate(full=True)
    bad = 0
    reported = with_dicts(result)
    for value, row, error in zip(expected, reported, errors.to_pylist(), strict=True):
        wrong = differences(value, row, result.type)
        silent = [path for path in wrong if not covered(path, error)]
        assert not silent, (silent, error, value, row, schemas)
        assert bool(wrong) == (error is not None), (wrong, error, value, row, schemas)
        bad += len(wrong)
    return bad


def run_pairs(seeds: range, mixed: float) -> tuple[int, int]:
    """Check random pairs of versions in both orders, with all fields and with those of the last. Returns rows and errors."""
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


def read_as(writer: Any, reader: Any, data: list[bytes]) -> tuple[pa.StructArray, list[str | None]]:
    """Read data of one schema as a reader's schema. Returns the rows and their errors."""
    wanted = typed_rows.reader(schemas_of({0: writer}), reader)
    columns, errors = wanted.rows(payloads.of_column(pa.array(data, pa.binary()), pa.array([0] * len(data))))
    result = pa.StructArray.from_arrays(columns, fields=wanted.fields)
    result.validate(full=True)
    return result, errors.to_pylist()


def run_readers(seeds: range, mixed: float) -> Counter[str]:
    """Check random writers and readers. Returns the numbers of equal rows, of errors, and of rows that only one side reads."""
    kinds: Counter[str] = Counter()
    for seed in seeds:
        chance = Random(seed)
        writer, reader = Versions(chance, mixed).writer_and_reader()
        data = [written(writer, random_value(chance, writer)) for _ in range(6)]
        values, errors = read_as(writer, reader, data)
        for datum, row, error in zip(data, with_dicts(values), errors, strict=True):
            reported = (seed, error, row, writer, reader)
            try:
                expected = read_by_fastavro(datum, writer, reader)
            except SchemaResolutionError:
                expected = None
            if expected is None:
                assert error or is_empty_there(row), reported
                kinds["error in both" if error else "empty"] += 1
                continue
            wrong = differences(expected, row, values.type)
            assert all(covered(path, error) for path in wrong), (wrong, expected, reported)
            assert bool(wrong) == (error is not None), (wrong, expected, reported)
            kinds["named error" if wrong else "equal"] += 1
    return kinds


def is_empty_there(value: Any) -> bool:
    """Whether a value contains an empty array or map: fastavro rejects some of these by their items' types, Java does not."""
    if isinstance(value, dict):
        return not value or any(map(is_empty_there, value.values()))
    return isinstance(value, list) and (not value or any(map(is_empty_there, value)))


@pytest.mark.parametrize("part", range(4))
def test_a_reader_of_another_version(part: int) -> None:
    kinds = run_readers(range(100 * part, 100 * part + 100), mixed=0.0)
    assert kinds.total() == 600
    assert kinds["equal"] > 150
    assert kinds["named error"] > 20
    assert kinds["empty"] < 10


@pytest.mark.parametrize("part", range(4))
def test_a_pair_of_versions(part: int) -> None:
    """The types are of one family, so few values are lost."""
    rows, bad = run_pairs(range(100 * part, 100 * part + 100), mixed=0.0)
    assert rows == 1600
    assert bad < 160


@pytest.mark.parametrize("part", range(4))
def test_a_pair_of_versions_of_any_types(part: int) -> None:
    rows, _ = run_pairs(range(10_000 + 100 * part, 10_000 + 100 * part + 100), mixed=0.6)
    assert rows == 1600
    assert json.dumps(rows)
