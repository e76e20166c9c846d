"""``kafka_producer_snapshot``: a `.snapshot` file of a partition, the state of each producer.

    file   header  entry entry …        named by the offset after the last offset that it covers
    header i16 version (1), u32 CRC, i32 count
    CRC-32C                             count … the end of the file

All rows of a file have the same `error`: TRUNCATED (less than a header, or fewer entries than its count), BAD_MAGIC (another
version), BAD_LENGTH (a negative count) or CRC_MISMATCH. Complete entries are rows even then. A corrupt file without a complete
entry is one row with only the error. Kafka rejects a corrupt file, and rebuilds it from the log.

Source: apache/kafka, `ProducerStateManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import BAD_LENGTH, BAD_MAGIC, CRC_MISMATCH, ERRORS, OK, TRUNCATED
from sparkwire.base.grammar import Field, Layout
from sparkwire.core.builders import Column
from sparkwire.core.column import binary_of, empty, from_codes, lists, primitive
from sparkwire.kafka.indexes import entry_reader, spread
from sparkwire.kernels import Bytes, Ints, crc32c, i16, i32, int64, kernel, u32

SNAPSHOT: Final = Layout(
    "header of a producer snapshot",
    Field("version", "i16", "1"),
    Field("crc", "u32", "CRC-32C of everything after it"),
    Field("count", "i32", "Number of entries"),
)
PRODUCER: Final = Layout(
    "entry of a producer snapshot",
    Field("producer_id", "i64", "Id of the producer"),
    Field("producer_epoch", "i16", "Epoch of the producer"),
    Field("last_sequence", "i32", "Sequence of the last record of the producer's last batch, -1 for none"),
    Field("last_offset", "i64", "Offset of that record, -1 for none"),
    Field("offset_delta", "i32", "Difference between the last and the first offset of that batch"),
    Field("timestamp_ms", "i64", "Timestamp of the producer's last batch or marker [ms since epoch]"),
    Field("coordinator_epoch", "i32", "Epoch of the coordinator that wrote the producer's last marker, -1 for none"),
    Field("current_txn_first_offset", "i64", "First offset of the producer's open transaction"),
)
_VERSION = 1
_VERSION_AT, _CRC_AT, _COUNT_AT = (SNAPSHOT[name].offset for name in ("version", "crc", "count"))
_HEADER, _ENTRY = SNAPSHOT.size, PRODUCER.size
NO_PRODUCERS: Final = bytes.fromhex("0001 48674bc7 00000000")
"""a file without producers"""
# -1 means none. All other fields return -1 as stored.
_NULLABLE = ("timestamp_ms", "current_txn_first_offset")
_NONE = -1

_read = entry_reader(PRODUCER)


@kernel
def check_files(data: Bytes, offsets: npt.NDArray[Any], counts: Ints, errors: npt.NDArray[np.int8]) -> None:
    """The number of complete entries of each file, and the file's error."""
    for row in range(counts.size):
        start = int64(offsets[row])
        size = int64(offsets[row + 1]) - start
        counts[row] = 0
        if size < _HEADER:
            errors[row] = TRUNCATED
        elif i16(data, start + _VERSION_AT, False) != _VERSION:
            errors[row] = BAD_MAGIC
        else:
            count = int64(i32(data, start + _COUNT_AT, False))
            counts[row] = max(min(count, (size - _HEADER) // _ENTRY), 0)
            if count < 0:
                errors[row] = BAD_LENGTH
            elif count > counts[row]:
                errors[row] = TRUNCATED
            else:
                computed = crc32c(data, start + _COUNT_AT, size - _COUNT_AT)
                errors[row] = OK if computed == u32(data, start + _CRC_AT, False) else CRC_MISMATCH


class Producers:
    """The entries of a column of files."""

    def __init__(self, data: pa.Array) -> None:
        source = binary_of(data)
        counts, verdicts = empty(source.rows, np.int64), empty(source.rows, np.int8)
        check_files(source.data, source.offsets, counts, verdicts)
        rows = np.maximum(counts, verdicts != OK)
        self._ends, starts = spread(source.offsets[:-1].astype(np.int64) + _HEADER, rows, _ENTRY)
        self.present = np.repeat(counts > 0, rows)
        self.errors = np.repeat(verdicts, rows)
        self.fields = _read(source.data, starts, np.where(self.present, _ENTRY, 0))

    def lists(self, entries: pa.Array) -> pa.Array:
        return lists(self._ends, entries)


def _stored(name: str) -> Callable[[Producers], pa.Array]:
    return lambda entries: primitive(entries.fields[name], entries.present)


def _unless_none(name: str) -> Callable[[Producers], pa.Array]:
    return lambda entries: primitive(entries.fields[name], entries.present & (entries.fields[name] != _NONE))


COLUMNS: Final[tuple[Column[Producers], ...]] = (
    *(
        Column(name, place.field.sql, f"{place.field.doc}.", (_unless_none if name in _NULLABLE else _stored)(name))
        for name, place in PRODUCER.places.items()
    ),
    Column(
        "error",
        "STRING",
        "Error of the whole file, the same in all its rows; NULL for a valid file.",
        lambda entries: from_codes(entries.errors, ERRORS),
    ),
)
