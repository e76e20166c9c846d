"""The formats of `sparkwire.changes` whose messages are JSON: how each reads a batch of records.

`read_messages` reads a system by its declaration. Debezium has separate code for flattened rows, tombstones and placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.changes.columns import ChangeBatch
from sparkwire.changes.datahub import column_type
from sparkwire.changes.datahub_rows import datahub_rows, row_schema
from sparkwire.changes.debezium_rows import debezium_rows, rows_schema
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.read_debezium import read_debezium
from sparkwire.changes.read_messages import identifies_changes, position_type, read_messages
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.systems import Fields
from sparkwire.changes.table_rows import change_batch, schema_of, typed_rows
from sparkwire.core.names import Table
from sparkwire.debezium.positions import POSITION
from sparkwire.debezium.table_columns import MessageSide, json_side, typed
from sparkwire.json.types import Type

MAX_COLUMNS: Final = 20_000
"""of a table; no database has a tenth of it"""
_CELLS: Final = 1 << 20
"""values that are in memory at once"""
Read = Callable[[pa.Array, pa.Array | None], MessageSide]
"""decodes values or keys of Debezium, from their column and the records' headers"""


class Decoder(NamedTuple):
    """The decoder of a table's changes. Contains only plain data and functions, which Spark pickles for workers."""

    plan: ReadPlan
    format: str
    schema: pa.Schema
    types: Mapping[str, Type]
    read_values: Read | None = None
    read_keys: Read | None = None
    with_images: bool = False
    """whether rows show images and no order: those of `sparkwire.debezium.rows` and `sparkwire.datahub.rows`"""

    def __call__(self, records: MessageRecords) -> ChangeBatch:
        rows, step = len(records.values), max(_CELLS // max(len(self.types), 1), 1)
        if rows <= step:
            return self._decoded(records)
        # Each column takes memory for each row, also where few messages have it. So many columns need few rows at once.
        parts = [
            (
                first,
                self._decoded(MessageRecords(*(part if part is None else part.slice(first, step) for part in records))),
            )
            for first in range(0, rows, step)
        ]
        table = pa.Table.from_batches([part.batch for _, part in parts], self.schema).combine_chunks()
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], self.schema)]
        return ChangeBatch(np.concatenate([first + part.rows for first, part in parts]), batches[0])

    def _decoded(self, records: MessageRecords) -> ChangeBatch:
        if self.format != "debezium":
            fields = Fields(SYSTEMS[self.format].with_names(self.plan.renamed), records.values)
            said = read_messages(fields, records, self.plan)
            if self.with_images:
                return datahub_rows(fields, said, self.types, self.schema, self.plan)
        else:
            values = (self.read_values or in_json)(records.values, records.headers)
            keys = None if records.keys is None else (self.read_keys or in_json)(records.keys, records.headers)
            said = read_debezium(values, keys, records, self.plan, self.types)
        rows = typed_rows(said, self.types, self.plan)
        if self.with_images:
            return debezium_rows(rows, self.types, self.schema)
        return change_batch(rows, self.types, self.schema, self.plan, records)


def in_json(messages: pa.Array, headers: pa.Array | None) -> MessageSide:
    """Values or keys of Debezium in JSON."""
    return json_side(messages)


def decoder(
    format: str,
    plan: ReadPlan,
    *,
    with_headers: bool = False,
    read_values: Read | None = None,
    read_keys: Read | None = None,
    with_images: bool = False,
) -> Decoder:
    """The decoder of a table's changes. Raises ValueError if the type of a column is invalid."""
    types = types_of(format, plan.columns)
    if with_images:
        return Decoder(plan, format, rows_schema(types), types, read_values, read_keys, with_images)
    position = position_of(format, plan.text_offsets) if plan.by_source else None
    with_row = format in SYSTEMS and SYSTEMS[format].in_arrays
    with_event = with_headers if format == "debezium" else not plan.by_source and identifies_changes(SYSTEMS[format])
    schema = schema_of(types, position, with_row=with_row, with_event=with_event, text_offsets=plan.text_offsets)
    return Decoder(plan, format, schema, types, read_values, read_keys)


def decoder_of_datahub_rows(table: Table, columns: Mapping[str, str], taken_names: Sequence[str] = ()) -> Decoder:
    """The decoder of `sparkwire.datahub.rows`. The names of its columns are distinct from ``taken_names``."""
    types = {name: column_type(type) for name, type in columns.items()}
    plan = ReadPlan(table, columns, whole_before=True)
    return Decoder(plan, "datahub", row_schema(types, taken_names), types, with_images=True)


def position_of(format: str, text_offsets: bool = False) -> pa.DataType | None:
    """The type of a position in the source; None if the format has none."""
    return POSITION if format == "debezium" else position_type(SYSTEMS[format], text_offsets)


def types_of(format: str, columns: Mapping[str, str]) -> dict[str, Type]:
    """Parse the types of columns. Raises ValueError if one is invalid, or if there are too many."""
    if len(columns) > MAX_COLUMNS:
        raise ValueError(
            f"the table has {len(columns)} columns, and changes reads at most {MAX_COLUMNS}: pass those that you need as columns="
        )
    if format == "debezium":
        return typed(columns)
    types = {}
    for name, text in columns.items():
        try:
            types[name] = SYSTEMS[format].type_of(text)
        except ValueError as error:
            raise value_error(f"column {name}: {error}") from None
    return types
