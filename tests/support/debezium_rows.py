"""The rows of `sparkwire.debezium.rows` without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from sparkwire.changes.formats import Read, decoder, in_json
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.survey import Survey, survey_debezium
from sparkwire.core.names import Table, table_of
from sparkwire.debezium.layout import UNAVAILABLE
from sparkwire.kernels import Ints

ORDERS = table_of("orders")


class Rows(NamedTuple):
    """Rows with names such as ``op``, and the index of each one's message."""

    rows: Ints
    batch: pa.RecordBatch

    def to_pylist(self) -> list[dict[str, Any]]:
        return list(self.batch.to_pylist())


def survey(
    records: MessageRecords, table: Table, read_values: Read = in_json, read_keys: Read = in_json, **columns: str
) -> Survey:
    """What a batch of messages says of a table."""
    keys = None if records.keys is None else read_keys(records.keys, None)
    facts = survey_debezium(read_values(records.values, None), keys, records, table, columns)
    return Survey.of(facts, "debezium", table)


def debezium_rows(
    messages: pa.Array,
    columns: Mapping[str, str],
    table: Table = ORDERS,
    *,
    keys: pa.Array | None = None,
    topics: pa.Array | None = None,
    placeholder: str = UNAVAILABLE,
    read_values: Read = in_json,
    read_keys: Read = in_json,
) -> Rows:
    """The rows of a batch of messages."""
    records = MessageRecords(messages, keys, topics=topics)
    found = survey(records, table, read_values, read_keys, **columns)
    plan = ReadPlan(
        table,
        columns,
        whole_before=True,
        placeholder=placeholder,
        topics=found.topics,
        enveloped=found.enveloped,
        flattened=found.flattened,
        only_table=found.only_table,
    )
    result = decoder("debezium", plan, read_values=read_values, read_keys=read_keys, with_images=True)(records)
    result.batch.validate(full=True)
    return Rows(result.rows, result.batch.rename_columns([name.strip("_") for name in result.batch.schema.names]))
