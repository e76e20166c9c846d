"""``kafka_txn_index``: a `.txnindex` file, the aborted transactions whose abort marker is in the segment.

The file consists of entries, without a header or a checksum. A broker does not allocate it in advance, unlike the other indexes,
so every complete entry counts. Bytes after the last complete entry are ignored, as in `kafka_offset_index`.

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
    Field("first_offset", "i64", "First offset of the transaction"),
    Field("last_offset", "i64", "Last offset of the transaction, that of its abort marker"),
    Field("last_stable_offset", "i64", "The last stable offset at the abort: no transaction was open below it"),
)

aborted_txns = entries_scan(TXN_INDEX)
COLUMNS: Final = entries_columns(TXN_INDEX)
