"""Decode golden records to changes without Spark, with the arguments of ``sparkwire.changes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from sparkwire.changes.formats import decoder
from sparkwire.changes.records import Plan, Records
from sparkwire.core.table_names import table_of
from sparkwire.debezium.layout import UNAVAILABLE
from tests.support.arrow import with_dicts
from tests.support.cdc_golden import Record, arrow
from tests.support.table_replay import Change


class Decoded(NamedTuple):
    schema: pa.Schema
    lines: list[int]
    """the place of each row's message"""
    rows: list[dict[str, Any]]


def changes_of(
    records: Sequence[Record],
    format: str,
    table: str,
    *,
    columns: Mapping[str, str] | None = None,
    keys: Sequence[str] | None = None,
    order: str = "offset",
    before: str = "key",
    nulls: str = "written",
    topics: Mapping[str, str] | None = None,
    only_table: bool = False,
) -> Decoded:
    """The change table of records, with the options of ``sparkwire.changes``."""
    batch = arrow(records)
    named = (batch[name] for name in ("value", "key", "headers", "topic", "partition", "offset"))
    if columns is None:
        from tests.support.wip import declared

        columns = declared(records, format, table)
    plan = Plan(
        table_of(table),
        columns,
        None if keys is None else tuple(keys),
        by_source=order == "source",
        whole_before=before == "full",
        placeholder=UNAVAILABLE,
        absent_nulls=nulls == "absent",
        topics=topics,
        only_table=only_table,
    )
    decode = decoder(format, plan, with_headers=True)
    changes = decode(Records(*named))
    return Decoded(decode.schema, list(map(int, changes.rows)), with_dicts(changes.batch.to_struct_array()))


def changes_by_table(records: Sequence[Record], format: str, **options: Any) -> dict[str, Decoded]:
    """The change tables of all tables in the records."""
    from tests.support.wip import tables

    return {table: changes_of(records, format, table, **options) for table in tables(records, format)}


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
                row.get("_event_"),
            )
        )
    return result
