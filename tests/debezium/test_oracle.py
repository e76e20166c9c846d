"""Compare Debezium's functions with Python's ``json``, on the golden messages, and on truncated and mutated ones."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from tests.support import debezium_golden as golden
from tests.support.debezium_golden import DATABASES

VARIANTS = ("json", "json-schemas", "json-nulls-kept", "alt-json", "alt-json-schemas", "ext-json", "ext-json-schemas")
OPERATIONS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "r": "READ", "t": "TRUNCATE", "m": "MESSAGE"}
STEP = {"ms": 1, "us": 1000, "ns": 1_000_000}


class Twice(ValueError):
    """A repeated member; ``json`` keeps the last one."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise Twice
    return result


def reject(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def document(value: bytes) -> Any:
    """The JSON value of a message. Raises ValueError if it is not JSON."""
    result = json.loads(value.decode("utf-8"), object_pairs_hook=unique, parse_constant=reject, parse_float=str)
    return without_halves(result)


def without_halves(value: Any) -> Any:
    """The value with U+FFFD for each half of a surrogate pair, which UTF-8 cannot encode."""
    if isinstance(value, str):
        return value if value.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {without_halves(name): without_halves(one) for name, one in value.items()}
    return [without_halves(one) for one in value] if isinstance(value, list) else value


def time_ms(holder: dict[str, Any]) -> int | None:
    numbers = ((holder.get(f"ts_{unit}"), per) for unit, per in STEP.items())
    return next((number // per for number, per in numbers if type(number) is int and abs(number) < 2**63), None)


def text(holder: dict[str, Any], *names: str) -> Any:
    """The first of these members that exists. If it is not a string, which only corruption causes, any result is accepted."""
    value = next((holder[name] for name in names if holder.get(name) is not None), None)
    return value if value is None or isinstance(value, str) else ANY


def expected(whole: dict[str, Any]) -> dict[str, Any]:
    """The expected results for an envelope."""
    envelope = whole["payload"] if set(whole) == {"schema", "payload"} else whole
    source, transaction = envelope["source"], envelope.get("transaction")
    transaction = transaction if isinstance(transaction, dict) else {}
    fields: list[dict[str, Any]] = whole.get("schema", {}).get("fields", [])
    row = next((field.get("fields") for field in fields if field["field"] == "after"), None)
    return {
        "op": envelope["op"],
        "operation": OPERATIONS[envelope["op"]],
        "connector": text(source, "connector"),
        "database": text(source, "db", "keyspace", "database_id"),
        "schema_name": text(source, "schema"),
        "table": text(source, "table", "collection"),
        "snapshot": text(source, "snapshot"),
        "before": envelope.get("before"),
        "after": envelope.get("after"),
        "source": source,
        "event_time_ms": time_ms(source),
        "processed_time_ms": time_ms(envelope),
        "transaction_id": text(transaction, "id"),
        "columns": row and [{"name": f["field"], "type": f["type"], "logical": f.get("name")} for f in row],
        "error": None,
    }


def answers(values: list[bytes]) -> list[dict[str, Any]]:
    column = pa.array(values, pa.binary())
    rows = FUNCTIONS["debezium_change"].decode(column).to_pylist()
    errors = FUNCTIONS["debezium_error"].decode(column).to_pylist()
    return [row | {"error": error} for row, error in zip(rows, errors, strict=True)]


def compared(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The known fields of a result, with parsed JSON."""
    documents = {name: row[name] and document(row[name].encode()) for name in ("before", "after", "source")}
    return {name: (row | documents)[name] for name in wanted}


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_field(database: str, variant: str) -> None:
    values = [m.value for m in golden.messages(database, variant) if m.value]
    seen = 0
    for value, row in zip(values, answers(values), strict=True):
        whole = document(value)
        payload = whole.get("payload", whole)
        if not {"op", "source"} <= payload.keys():
            continue  # a message about a transaction or a schema, or a heartbeat
        wanted = expected(whole)
        assert compared(row, wanted) == wanted
        seen += 1
    assert seen > 200


def damaged(value: bytes, random: Random) -> bytes:
    place = random.randrange(len(value))
    if random.random() < 0.3:
        return value[:place]
    byte = random.choice([random.randrange(256), *b'",:{}[]\\0'])
    return value[:place] + bytes([byte]) + value[place + (random.random() < 0.7) :]


@pytest.mark.parametrize("database", DATABASES)
def test_damaged(database: str) -> None:
    """A message that is no longer JSON has an error. If it is still JSON, every field equals that of the text."""
    random = Random(database)
    sound = [m.value for m in golden.messages(database, "json") if m.value and b'"op"' in m.value]
    values = [damaged(value, random) for value in sound for _ in range(4)]
    broken = kept = 0
    for value, row in zip(values, answers(values), strict=True):
        try:
            whole = document(value)
        except Twice:
            continue
        except ValueError:
            assert row["error"] == "BAD_JSON", value
            broken += 1
            continue
        if row["error"] is None and row["op"] in OPERATIONS and isinstance(whole, dict):
            wanted = expected(whole)
            assert compared(row, wanted) == wanted, value
            kept += 1
    assert broken > 500
    assert kept > 500
