"""``kafka_txn_index``: a `.txnindex` file, the aborted transactions whose marker is in the segment.

Entries lie one after the other, without a header or a checksum. Unlike the other indexes' files this one is not allocated in
advance: every whole entry counts. Bytes after the last one are ignored, as in `kafka_offset_index`.

Source: apache/kafka, `AbortedTxn`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.builders import Column
from sparkwire.column import binary_of, lists, primitive
from sparkwire.formats.kafka.fixed_entries import entry_reader, spread
from sparkwire.wire import Field, Layout

TXN_INDEX: Final = Layout(
    "entry of a transaction index",
    Field("version", "i16", "0"),
    Field("producer_id", "i64", "Whose transaction it was"),
    Field("first_offset", "i64", "Of the transaction"),
    Field("last_offset", "i64", "Of the transaction: that of its abort marker"),
    Field("last_stable_offset", "i64", "When it was aborted: below it no transaction was open"),
)

_read = entry_reader(TXN_INDEX)


class AbortedTxns:
    """The entries of a column of files."""

    def __init__(self, data: pa.Array) -> None:
        source = binary_of(data)
        offsets = source.offsets.astype(np.int64)
        self._ends, starts = spread(offsets[:-1], np.diff(offsets) // TXN_INDEX.size, TXN_INDEX.size)
        self.fields = _read(source.data, starts, np.full(len(starts), TXN_INDEX.size))

    def lists(self, found: pa.Array) -> pa.Array:
        return lists(self._ends, found)


def _stored(name: str) -> Callable[[AbortedTxns], pa.Array]:
    return lambda entries: primitive(entries.fields[name])


COLUMNS: Final = tuple(
    Column(name, place.field.sql, f"{place.field.doc}.", _stored(name)) for name, place in TXN_INDEX.places.items()
)
