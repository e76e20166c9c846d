"""A column of messages with schema ids: extract the ids, and find the schemas."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from sparkwire.avro.payloads import Payloads, ids_as_text, of_column
from sparkwire.avro.registry import Registry
from sparkwire.avro.schema import text_of
from sparkwire.avro.schemas import Schemas
from sparkwire.avro.typed_rows import MAX_IDS, LiveReader, RowsReader, as_id, check_number, reader
from sparkwire.base.printable import value_error
from sparkwire.catalogue.wire_formats import WIRE_FORMATS, check_fit
from sparkwire.spark.frames import check_binary, others
from sparkwire.spark.functions.worker import explain_oom

Arrays = Sequence[pa.Array]
Taken = tuple[pa.Array | None, list[pa.Array]]
"""the indexes of the selected rows, None for all; and the new columns"""
_PREFIX: Final = 5
"""[bytes] size of Confluent's wire format header"""


class PayloadColumn(NamedTuple):
    """A BINARY column, with the source of its schemas."""

    df: DataFrame
    column: str
    registry: Registry
    by: str | None
    """the column with the schema ids of bare data"""
    wire_format: str
    headers: str | None
    """the column of the records' headers"""

    @classmethod
    def of(
        cls,
        df: DataFrame,
        column: str,
        registry: Registry,
        by: str | None,
        wire: str,
        headers: str | None,
    ) -> PayloadColumn:
        """Check the arguments. Raises ValueError if the format is unknown, and TypeError if the column is not BINARY."""
        check_binary(df, column)
        if wire not in WIRE_FORMATS:
            raise ValueError(f"wire_format is one of {', '.join(WIRE_FORMATS)}, got {wire!r}")
        if headers is not None and WIRE_FORMATS[wire].with_headers is None:
            by_headers = " or ".join(name for name, format in WIRE_FORMATS.items() if format.with_headers)
            raise value_error(f"headers= works with wire_format {by_headers}, got {wire}")
        if wire == "confluent_header" and headers is None:
            raise ValueError("wire_format confluent_header takes headers: the column with the headers of the records")
        if WIRE_FORMATS[wire].named_by_text is not None and registry.ids() is None:
            raise value_error(
                f"in wire_format {wire} a fingerprint identifies the schema, but this registry finds schemas by id: "
                "pass subjects=[…] to it, so that it has their schemas"
            )
        ids = registry.ids()
        by_id = WIRE_FORMATS[wire].named_by_text is None and by is None
        if by_id and ids and all(isinstance(id, bytes) for id in ids):
            raise value_error(
                f"in wire_format {wire} an id identifies the schema, but these schemas have no ids: name the files of a "
                "folder <id>.avsc, such as 1.avsc, or pass a mapping from ids to schemas. For Databus events, pass "
                "wire_format='databus'"
            )
        if wire == "apicurio" and headers is None and by is None:
            registry = registry.of_doubtful_ids()
        return cls(df, column, registry, by, wire, headers)

    @property
    def other_names(self) -> list[str]:
        """The names of the other columns."""
        return [field.name for field in others(self.df, self.column)[0]]

    @property
    def columns(self) -> list[Column]:
        """The columns that a worker needs."""
        of_ids = self.by or self.headers
        return [F.col(self.column).alias("value"), *([F.col(of_ids).alias("ids")] if of_ids else [])]

    @property
    def payloads(self) -> Callable[[Arrays], Payloads]:
        """The function with which a worker extracts payloads. It contains only names, because Spark pickles it."""
        by, wire, headers = self.by, self.wire_format, self.headers
        of = "key" if self.column.strip("`").lower() == "key" else "value"

        def taken_apart(columns: Arrays) -> Payloads:
            format = WIRE_FORMATS[wire]
            if by is not None:
                return of_column(columns[0], columns[1])
            return format.split(columns[0], None if headers is None else columns[1], of)

        return taken_apart

    def map_rows(
        self,
        new_columns: StructType,
        take: Callable[[Arrays], Taken],
        *,
        keep_payload: bool,
        ids: Iterable[Hashable] | None = None,
    ) -> DataFrame:
        """Map each message, or some of them, to a row: the existing columns, and the new columns from ``take``.

        ``ids`` has the schema ids of the messages that ``take`` needs; None means all messages.
        """
        schema, other_columns = others(self.df, self.column)
        needed, names = self.columns, self.df.columns if keep_payload else schema.names
        width = len(needed)
        # Send the payload to the worker only once; it returns in the payload's column.
        places = [width + schema.names.index(name) if name in schema.names else 0 for name in names]

        def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                with explain_oom("rows"):
                    selected, columns = take(batch.columns[:width])
                existing = [batch.column(place) for place in places]
                if selected is not None:
                    existing = [array.filter(selected) for array in existing]
                yield pa.RecordBatch.from_arrays([*existing, *columns], names=[*names, *new_columns.names])

        df = self.df if ids is None else self.with_ids(ids)
        returns = StructType([*(self.df.schema[name] for name in names), *new_columns])
        return df.select(*needed, *other_columns).mapInArrow(decode, returns)

    @property
    def check(self) -> Callable[[pa.Array, pa.Array], None]:
        """See ``check_fit``. Ids in a column or in headers are not checked."""
        wire, is_checkable = self.wire_format, self.by is None and self.headers is None
        return lambda values, errors: check_fit(wire, values, errors) if is_checkable else None

    def schemas(self) -> Schemas:
        """The Avro schemas that the data may need; empty if the data contain no ids yet."""
        return WIRE_FORMATS[self.wire_format].with_names(self.registry.schemas(self.ids()))

    def ids(self) -> Sequence[Hashable]:
        """The ids of the schemas that the data may need: all ids of a registry, or those in the data, which this reads once.

        Raises ValueError for a stream if only the data contain the ids.
        """
        ids = self.registry.ids()
        if ids is not None:
            return ids
        if self.df.isStreaming:
            raise ValueError(
                "rows() of a stream must know its columns before it has data: pass subjects=[…] to the registry, "
                "or a reader_schema to avro.rows"
            )
        return self._ids_of_data()

    def reader(self, reader_schema: Any) -> RowsReader | LiveReader:
        """Create the reader. With a reader's schema, it fetches no schema in advance."""
        if reader_schema is not None and self.registry.ids() is None:
            return LiveReader(self.registry, text_of(reader_schema), self.framed)
        return reader(self.schemas(), reader_schema, framed=self.framed)

    @property
    def framed(self) -> bool:
        """Whether a top-level ``bytes`` has its size before it. Confluent's serializers leave it out."""
        return self.by is not None or not WIRE_FORMATS[self.wire_format].bytes_without_size

    def _ids_of_data(self) -> list[Hashable]:
        distinct = self._distinct_prefixes() if self._has_plain_prefix else self._distinct_ids()
        ids = [as_id(key) for key in distinct if key is not None]
        check_number(ids)
        return sorted(ids, key=lambda key: (str(type(key)), key))

    def _distinct_prefixes(self) -> list[Any]:
        """The ids in Confluent's wire format headers, extracted in the JVM."""
        prefix = F.substring(F.col(self.column), 1, _PREFIX).alias("prefix")
        some = self.df.select(prefix).where(F.substring("prefix", 1, 1) == F.lit(bytes(1))).distinct()
        prefixes = [bytes(row[0]) for row in some.limit(MAX_IDS + 1).collect()]
        ids: list[Any] = self.payloads([pa.array(prefixes, pa.binary())]).ids.to_pylist()
        return ids

    def _distinct_ids(self) -> list[Any]:
        payloads = self.payloads

        def distinct(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield pa.RecordBatch.from_arrays([ids_as_text(payloads(batch.columns).ids.unique())], names=["id"])

        some = self.df.select(*self.columns).mapInArrow(distinct, "id STRING").distinct()
        return [row[0] for row in some.limit(MAX_IDS + 2).collect()]

    def with_ids(self, keys: Iterable[Hashable]) -> DataFrame:
        """Filter rows by schema id if the JVM can extract the ids. The result may contain other rows, too."""
        if not self._has_plain_prefix:
            return self.df
        prefixes = [bytes(1) + key.to_bytes(_PREFIX - 1, "big", signed=True) for key in keys if isinstance(key, int)]
        return self.df.where(F.substring(F.col(self.column), 1, _PREFIX).isin(prefixes))

    @property
    def _has_plain_prefix(self) -> bool:
        return self.wire_format == "confluent" and self.by is None and self.headers is None
