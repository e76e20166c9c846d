"""A slow and simple oracle for the changes in Canal's flat messages, as ``sparkwire.changes`` returns them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from sparkwire.core.names import table_name
from tests.support.cdc_golden import Record
from tests.support.oracles.mysql_truth import kind
from tests.support.oracles.mysql_values import canal_value
from tests.support.table_replay import Change, Statement

_LEFT_OUT = ("QUERY", "CREATE", "ALTER", "ERASE", "RENAME", "CINDEX", "DINDEX", "XACOMMIT", "XAROLLBACK")


def changes(records: Sequence[Record]) -> Iterator[Change | Statement]:
    """The changes of all tables, and the statements between them."""
    texts = _texts(records)
    for line, record in enumerate(records):
        message = json.loads(record.value or b"null")
        database, operation = message["database"], message["type"]
        table = table_name(database, message["table"])
        if operation == "TRUNCATE":
            yield Change(line, table, operation, None, None, {}, (), {})
        elif message["isDdl"]:
            yield Statement(line, database, message["sql"])
        elif operation not in _LEFT_OUT:
            olds = message["old"] or [None] * len(message["data"])
            is_mariadb = message["gtid"].count("-") == 2
            for row, old in zip(message["data"], olds, strict=True):
                types = message["mysqlType"] | texts.get(table, {})
                values, unexpected = _typed(row, types, is_mariadb)
                before = _typed({**row, **(old or {})}, types, is_mariadb)[0] if operation != "INSERT" else None
                yield Change(line, table, operation, message["pkNames"], before, values, (), unexpected)


def _texts(records: Sequence[Record]) -> dict[str, dict[str, str]]:
    """The columns of each table that become texts: they are texts from the beginning."""
    result: dict[str, dict[str, str]] = {}
    for record in records:
        message = json.loads(record.value or b"null")
        for name, type in (message["mysqlType"] or {}).items():
            if kind(type) == "varchar":
                result.setdefault(table_name(message["database"], message["table"]), {})[name] = type
    return result


def _typed(
    row: Mapping[str, str | None], types: Mapping[str, str], is_mariadb: bool
) -> tuple[dict[str, object], dict[str, str]]:
    read = {name: canal_value(types[name], text, is_mariadb=is_mariadb) for name, text in row.items()}
    return (
        {name: value.value for name, value in read.items()},
        {name: value.unexpected for name, value in read.items() if value.unexpected is not None},
    )
