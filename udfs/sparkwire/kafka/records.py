"""``kafka_records``: every record of log bytes, with compressed batches decompressed.

It reads log bytes once, a cacheful at a time. `framing` finds the entries, `batch_headers` reads their headers, `entry_payloads`
locates their contents, `inflate` decompresses them, and `parse` appends the records to columns. This module makes Arrow columns
of these. It stores a value that all records of an entry share only once, and repeats it at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, argument_error
from sparkwire.core.builders import ColumnTable
from sparkwire.core.column import INT32_MAX, Binary, binary_of, from_codes, lists, primitive, struct, timestamps
from sparkwire.kafka import record_columns
from sparkwire.kafka.batch_headers import Batches, HeaderBlock, Nullable
from sparkwire.kafka.codecs import NAMES, READ_NAMES
from sparkwire.kafka.entry_payloads import EVERY_OFFSET, OffsetRange
from sparkwire.kafka.framing import BELIEVED, EVERYTHING, REPORTED, Framing, framing_of
from sparkwire.kafka.inflate import MAX_ANSWER_BYTES, MAX_BATCH_BYTES, MAX_VALUE_BYTES, Inflater
from sparkwire.kafka.layout import CONTROL_TYPES, TIMESTAMP_TYPES
from sparkwire.kafka.parse import parse_log
from sparkwire.kafka.record_columns import GrowingColumns, RecordColumns, SelectedColumns, binary, text
from sparkwire.kafka.search import ANYTHING, SearchPattern
from sparkwire.kernels import Bools

_NO_ROWS = np.empty(0, np.int32)


RECORDS_TABLE: Final = ColumnTable["Records"]()
"""The columns of ``kafka_records``."""


class Records:
    """All records of a column of log bytes.

    Parameters
    ----------
    source
        the column
    entries
        all entries of the column
    rows_of_entries
        number of rows of each entry: records or errors
    columns
        the records
    """

    def __init__(
        self, source: Binary, entries: Batches, rows_of_entries: npt.NDArray[np.int32], columns: RecordColumns
    ) -> None:
        self.source = source
        self.entries = entries
        self._rows_of_entries = rows_of_entries
        self._columns = columns
        self.rows = int(columns.used[record_columns.RECORDS])

    def _present(self, bit: int) -> Bools | None:
        """Rows in which a field is not NULL, None for all rows."""
        if self._columns.used[record_columns.COMMON] & bit:
            return None
        present: Bools = self._columns.present[: self.rows] & bit != 0
        return present

    def entry_of_row(self) -> npt.NDArray[np.int64]:
        """The index of each record's entry."""
        return np.repeat(np.arange(len(self._rows_of_entries)), self._rows_of_entries)

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A value of each entry, repeated for its records."""
        return values.repeat(self._rows_of_entries)

    def _nullable(self, column: Nullable) -> pa.Array:
        valid = None if np.logical_and.reduce(column.valid) else self.spread(column.valid)
        return primitive(self.spread(column.values), valid)

    def header_field(self, name: str) -> pa.Array:
        """A field of the entry's header."""
        return self._nullable(self.entries.field(name))

    @property
    def timestamp_types(self) -> npt.NDArray[np.int8]:
        """Kafka's number of each record's timestamp type; -1 for none."""
        return self._columns.timestamp_type[: self.rows]

    @cached_property
    def ends(self) -> npt.NDArray[np.int32]:
        """The start of each row's records, and the end of the last row's records."""
        entries = np.searchsorted(self.entries.frames.row, np.arange(self.source.rows + 1))
        ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(self._rows_of_entries, dtype=np.int32)])
        return ends[entries]

    def lists(self, entries: pa.Array) -> pa.Array:
        return lists(self.ends, entries)

    @RECORDS_TABLE.column("BIGINT")
    def offset(self) -> pa.Array:
        """The record's offset; NULL for a row about bytes without a header or about one record of a batch."""
        return primitive(self._columns.offset[: self.rows], self._present(record_columns.HAS_OFFSET))

    @RECORDS_TABLE.column("TIMESTAMP")
    def timestamp(self) -> pa.Array:
        """When the producer created or the broker appended it; NULL in magic 0, if none is stored, and beyond Spark's range."""
        return timestamps(self._columns.timestamp[: self.rows], "ms", self._present(record_columns.HAS_TIME))

    @RECORDS_TABLE.column("BIGINT")
    def timestamp_ms(self) -> pa.Array:
        """The timestamp as stored [ms since epoch]."""
        return primitive(self._columns.timestamp[: self.rows], self._present(record_columns.HAS_TIME))

    @RECORDS_TABLE.column("STRING")
    def timestamp_type(self) -> pa.Array:
        """CreateTime or LogAppendTime; NULL in magic 0."""
        return from_codes(self.timestamp_types, TIMESTAMP_TYPES)

    @RECORDS_TABLE.column("BINARY")
    def key(self) -> pa.Array:
        """The key; NULL for a null key."""
        return binary(self._columns.key_ends[: self.rows + 1], self._columns.key, self._present(record_columns.HAS_KEY))

    @RECORDS_TABLE.column("BINARY")
    def value(self) -> pa.Array:
        """The value; NULL for a tombstone."""
        return binary(
            self._columns.value_ends[: self.rows + 1], self._columns.value, self._present(record_columns.HAS_VALUE)
        )

    @RECORDS_TABLE.column("ARRAY<STRUCT<key STRING, value BINARY>>")
    def headers(self) -> pa.Array:
        """Headers in order; keys may repeat. Empty for a record of magic 2 without headers, NULL in magic 0 and 1."""
        columns = self._columns
        n = int(columns.used[record_columns.HEADERS])
        keys = binary(columns.header_key_ends[: n + 1], columns.header_key, None)
        values = binary(columns.header_value_ends[: n + 1], columns.header_value, columns.header_valid[:n])
        return lists(
            columns.header_ends[: self.rows + 1],
            struct({"key": text(keys), "value": values}),
            self._present(record_columns.HAS_HEADERS),
        )

    @RECORDS_TABLE.column("INT")
    def position(self) -> pa.Array:
        """Position of its batch, or of its outermost message, in the log bytes [bytes]."""
        return primitive(self.spread(self.entries.position))

    @RECORDS_TABLE.column("TINYINT")
    def magic(self) -> pa.Array:
        """Version of that batch's format: 0, 1 or 2; any other value is returned unchanged."""
        return self.header_field("magic")

    @RECORDS_TABLE.column("STRING", doc=f"Codec of that batch: {', '.join(READ_NAMES)}; NULL for an unknown one.")
    def compression(self) -> pa.Array:
        return from_codes(self.spread(self.entries.readable_codec), NAMES)

    @RECORDS_TABLE.column("BIGINT")
    def producer_id(self) -> pa.Array:
        """Id of the producer, if it uses sequences or transactions, else -1; NULL in magic 0 and 1."""
        return self.header_field("producer_id")

    @RECORDS_TABLE.column("SMALLINT")
    def producer_epoch(self) -> pa.Array:
        """The producer's epoch, -1 for none; NULL in magic 0 and 1."""
        return self.header_field("producer_epoch")

    @RECORDS_TABLE.column("INT")
    def sequence(self) -> pa.Array:
        """The producer's number of the record, -1 for none; 0 follows 2^31 - 1; NULL in magic 0 and 1."""
        return primitive(self._columns.sequence[: self.rows], self._present(record_columns.HAS_SEQUENCE))

    @RECORDS_TABLE.column("INT")
    def partition_leader_epoch(self) -> pa.Array:
        """Epoch of the leader that appended the batch; no checksum covers it. NULL in magic 0 and 1."""
        return self.header_field("partition_leader_epoch")

    @RECORDS_TABLE.column("BOOLEAN")
    def is_transactional(self) -> pa.Array:
        """Whether the record belongs to a transaction."""
        return self._nullable(self.entries.is_transactional())

    @RECORDS_TABLE.column("BOOLEAN")
    def is_control(self) -> pa.Array:
        """Whether it is a control record, such as the end of a transaction."""
        return self._nullable(self.entries.is_control())

    @RECORDS_TABLE.column("STRING")
    def control_type(self) -> pa.Array:
        """ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS or UNKNOWN; NULL for
        other records."""
        return from_codes(self._columns.control[: self.rows], CONTROL_TYPES)

    @RECORDS_TABLE.column("STRING")
    def error(self) -> pa.Array:
        """Why the batch or record is unreadable; NULL for a valid one."""
        return from_codes(self._columns.error[: self.rows], ERRORS)


EVERY_COLUMN = tuple(column.name for column in RECORDS_TABLE)


def scan_records(
    data: pa.Array,
    verify_crc: bool = True,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    max_value_bytes: int = MAX_VALUE_BYTES,
    columns: Collection[str] = EVERY_COLUMN,
) -> Records:
    """All records of a column of log bytes.

    Parameters
    ----------
    verify_crc
        whether an entry, or an inner message, with a wrong checksum is an error
    max_batch_bytes
        largest decompressed size of one entry [bytes]
    max_value_bytes
        limit for all compressed entries of one row: their content, and ``ROW_BYTES`` for each record [bytes]
    columns
        the columns to return; key, value and headers are copied only if they are among them
    """
    for name, bound in (("max_batch_bytes", max_batch_bytes), ("max_value_bytes", max_value_bytes)):
        if bound < 1:
            raise argument_error("kafka_records", f"{name} BIGINT of 1 or more", bound)
    source = binary_of(data)
    framing = framing_of(source, REPORTED if verify_crc else BELIEVED)
    # The limits guarantee that all records fit into one Arrow column, including the uncompressed ones.
    content = INT32_MAX - int(source.offsets[-1] - source.offsets[0])
    inflater = Inflater(max_batch_bytes, max_value_bytes, content, MAX_ANSWER_BYTES)
    return next(records_of(source, framing, verify_crc, inflater, columns, EVERY_OFFSET))


def records_of(
    source: Binary,
    framing: Framing,
    verify_crc: bool,
    inflater: Inflater,
    columns: Collection[str],
    offsets: OffsetRange,
    piece: int = EVERYTHING,
    pattern: SearchPattern = ANYTHING,
) -> Iterator[Records]:
    """The records of a column of log bytes, in pieces of about ``piece`` bytes; one piece without entries if it has none.

    Entries without a record in ``offsets`` are not decompressed and have no row. Records that do not match ``pattern`` have no
    row, except control records. A piece is valid until you take the next one.
    """
    selected = SelectedColumns("key" in columns, "value" in columns, "headers" in columns, pattern)
    growing = GrowingColumns(source)
    parsed = parse_log(source, framing, verify_crc, inflater, selected, offsets, growing, piece)
    is_first = True
    while True:
        entries, rows, more = list[HeaderBlock](), [_NO_ROWS], False
        for some, rows_of_some in parsed:
            entries.append(some)
            rows.append(rows_of_some)
            if more := growing.size >= piece:
                break
        rows_of_entries = np.concatenate(rows)
        if is_first or len(rows_of_entries):
            yield Records(source, Batches(source, entries), rows_of_entries, growing.columns)
        if not more:
            return
        is_first = False
        growing.begin()
