"""A slow and simple oracle for the changes in Maxwell's messages, as ``sparkwire.changes`` returns them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from sparkwire.core.names import table_name
from tests.support.cdc_golden import Record
from tests.support.oracles.mysql_values import maxwell_value
from tests.support.table_replay import Change, Statement

_OPERATIONS = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE", "bootstrap-insert": "READ"}
_DECODER = json.JSONDecoder(parse_float=Decimal)


def changes(records: Iterable[Record], types: Mapping[str, Mapping[str, str]]) -> Iterator[Change | Statement]:
    """The changes of the tables with known column types, and the statements between them."""
    for line, record in enumerate(records):
        text = (record.value or b"null").decode()
        message = json.loads(text)
        database, operation = message["database"], message["type"]
        table = table_name(database, message.get("table"))
        if "sql" in message:
            yield Statement(line, database, message["sql"])
        elif operation in _OPERATIONS and table in types:
            members = raw_members(text)
            data = raw_members(members["data"])
            values, unexpected = _typed(data, types[table])
            old = raw_members(members["old"]) if "old" in members else {}
            before = _typed({**data, **old}, types[table])[0] if operation in ("update", "delete") else None
            yield Change(line, table, _OPERATIONS[operation], keys(message, record), before, values, (), unexpected)


def keys(message: Mapping[str, Any], record: Record) -> list[str]:
    """The names of the primary key's columns. Kafka's keys have them in lower case."""
    if "primary_key_columns" in message:
        return list(message["primary_key_columns"])
    names = {name.lower(): name for name in message["data"]}
    key = json.loads(record.key or b"null")
    if isinstance(key, list):
        return [names.get(name, name) for column in key[2] for name in column]
    return [names.get(name[3:], name[3:]) for name in key if name.startswith("pk.")]


def raw_members(text: str) -> dict[str, str]:
    """The members of a JSON object as they are written."""
    members, place = {}, 1
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place + (text[place] == ","))
        _, end = _DECODER.raw_decode(text, place + 1)
        members[name] = text[place + 1 : end]
        place = end
    return members


def _typed(row: Mapping[str, str], types: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    read = {name: maxwell_value(types[name], text, _DECODER.decode(text)) for name, text in row.items()}
    return (
        {name: value.value for name, value in read.items()},
        {name: value.unexpected for name, value in read.items() if value.unexpected is not None},
    )
