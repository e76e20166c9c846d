"""The values and keys of Debezium's records in Avro, with schemas in a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from sparkwire.avro.registry import Registry
from sparkwire.avro.typed_rows import LiveSchemas
from sparkwire.catalogue.wire_formats import WIRE_FORMATS
from sparkwire.core.names import table_of, unknown_table
from sparkwire.debezium.avro_messages import avro_columns, avro_side, avro_tables
from sparkwire.debezium.table_columns import MessageSide
from sparkwire.spark.rows.payload_column import PayloadColumn

Read = Callable[[pa.Array, pa.Array | None], MessageSide]
"""decodes messages in a worker, from their column and the records' headers"""


class AvroMessages:
    """A column of values or keys in Avro."""

    def __init__(
        self, df: DataFrame, column: str, schemas: Any, wire_format: str, headers: str | None, of: str
    ) -> None:
        by_headers = wire_format in WIRE_FORMATS and WIRE_FORMATS[wire_format].with_headers is not None
        named = headers if by_headers else None
        self._payloads = PayloadColumn.of(df, column, Registry.of(schemas), None, wire_format, named)
        self._of = of

    def columns(self, table: str) -> Mapping[str, str]:
        """The columns of a table from the schemas of the registry.

        Raises ValueError if the registry has no schema of the table, or if the columns of a stream are known only from its data.
        """
        if self._payloads.df.isStreaming and self._payloads.registry.ids() is None:
            raise ValueError("changes() of a stream expected columns, or a registry with subjects=[…]; got neither")
        texts = self._payloads.schemas().texts
        columns = avro_columns(texts, table_of(table))
        if not columns:
            raise unknown_table(table, avro_tables(texts), "the registry's schemas")
        return columns

    @property
    def read(self) -> Read:
        """The decoder. It fetches schemas while it reads data, so that a stream continues after a change of the table."""
        wire, of, registry = self._payloads.wire_format, self._of, self._payloads.registry
        named_by_text = WIRE_FORMATS[wire].named_by_text is not None
        known = self._payloads.schemas() if named_by_text else None
        live = LiveSchemas(registry)

        def side(messages: pa.Array, headers: pa.Array | None) -> MessageSide:
            payloads = WIRE_FORMATS[wire].split(messages, headers, of)
            return avro_side(payloads, live.of(payloads.ids) if known is None else known)

        return side
