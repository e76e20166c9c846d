"""``kafka_txn_index``: a `.txnindex` file, the aborted transactions whose marker is in the segment.

Entries are one after the other, without a header or a checksum. Unlike the other indexes' files this one is not allocated in
advance: every whole entry counts. Bytes after the last one have no effect, as in `kafka_offset_index`.

Source: apache/kafka, `AbortedTxn`.
"""

from __future__ import annotations

from typing import Final

from sparkwire.base.wire import Field, Layout
from sparkwire.kafka.fixed_entries import entries_columns, entries_scan

TXN_INDEX: Final = Layout(
    "entry of a transaction index",
    Field("version", "i16", "0"),
    Field("producer_id", "i64", "Producer id of the transaction"),
    Field("first_offset", "i64", "Of the transaction"),
    Field("last_offset", "i64", "Of the transaction: that of its abort marker"),
    Field("last_stable_offset", "i64", "The last stable offset at the abort: no transaction was open below it"),
)

aborted_txns = entries_scan(TXN_INDEX)
COLUMNS: Final = entries_columns(TXN_INDEX)
