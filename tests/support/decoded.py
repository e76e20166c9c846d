"""Decode golden records to changes without Spark, with the arguments of ``sparkwire.changes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from sparkwire.changes.formats import Decoder, decoder, in_json
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.survey import Survey, survey_debezium, survey_messages
from sparkwire.core.names import Table, table_of
from sparkwire.debezium.layout import UNAVAILABLE
from tests.support.arrow import with_dicts
from tests.support.cdc_golden import Record, arrow
from tests.support.table_replay import Change


class Decoded(NamedTuple):
    schema: pa.Schema
    lines: list[int]
    """the place of each row's message"""
    rows: list[dict[str, Any]]


def changes_of(records: Sequence[Record], format: str, table: str, **options: Any) -> Decoded:
    """The change table of records, with the options of ``sparkwire.changes``."""
    given = _given(records)
    decode = _decoder(given, format, table, **options)
    changes = decode(given)
    return Decoded(decode.schema, list(map(int, changes.rows)), with_dicts(changes.batch.to_struct_array()))


def schema_of(records: Sequence[Record], format: str, table: str, **options: Any) -> pa.Schema:
    """The schema of the change table."""
    return _decoder(_given(records), format, table, **options).schema


def _decoder(
    records: MessageRecords,
    format: str,
    table: str,
    *,
    columns: Mapping[str, str] | None = None,
    keys: Sequence[str] | None = None,
    order: str = "offset",
    before: str = "key",
    nulls: str = "written",
    renamed: Mapping[str, str] | None = None,
) -> Decoder:
    source = table_of(table)
    known = _survey(records, format, source)
    own = known.columns if columns is None else dict(columns)
    plan = ReadPlan(
        source,
        own,
        _own_keys(known, own) if keys is None else tuple(keys),
        by_source=order == "source",
        whole_before=format != "debezium" or before == "full",
        placeholder=UNAVAILABLE,
        nulls=nulls,
        renamed=renamed or {},
        topics=known.topics,
        enveloped=known.enveloped,
        flattened=known.flattened,
        only_table=known.only_table,
        has_given_keys=keys is not None,
    )
    return decoder(format, plan, with_headers=True)


def _own_keys(known: Survey, columns: Mapping[str, str]) -> tuple[str, ...] | None:
    """The key that the messages name, if it is the same in all. Maxwell writes its names in lower case."""
    spelling = {name.lower(): name for name in columns}
    names = tuple(name if name in columns else spelling.get(name.lower(), name) for name in known.keys or ())
    return names if names and set(names) <= set(columns) else None


def changes_by_table(records: Sequence[Record], format: str, **options: Any) -> dict[str, Decoded]:
    """The change tables of all tables in the records."""
    tables = _survey(_given(records), format, None).tables
    return {table: changes_of(records, format, table, **options) for table in tables}


def _given(records: Sequence[Record]) -> MessageRecords:
    batch = arrow(records)
    return MessageRecords(*(batch[name] for name in ("value", "key", "headers", "topic", "partition", "offset")))


def _survey(records: MessageRecords, format: str, table: Table | None) -> Survey:
    if format != "debezium":
        return Survey.of(survey_messages(format, records, table), format, table)
    values, keys = in_json(records.values, records.headers), in_json(records.keys, records.headers)
    return Survey.of(survey_debezium(values, keys, records, table), format, table)


def _pair(event: str | None) -> str | None:
    """The event of a change of the key, if two messages report it."""
    return event if event is not None and "\n" in event else None


def as_changes(decoded: Decoded, table: str) -> list[Change]:
    """The rows of a change table, in the form of the oracles."""
    known = {field.name for field in decoded.schema.field("_before_").type}
    result = []
    for line, row in zip(decoded.lines, decoded.rows, strict=True):
        assert row["_error_"] is None, row
        values = {name: value for name, value in row.items() if name in known}
        unexpected = {name: text for name, text in (row["_unexpected_"] or {}).items() if name in known}
        result.append(
            Change(
                line,
                table,
                row["_op_"],
                row["_keys_"],
                row["_before_"],
                {} if row["_op_"] == "TRUNCATE" else values,
                row["_unavailable_"] or (),
                unexpected,
                _pair(row.get("_event_")),
            )
        )
    return result
