"""Apache Kafka: log bytes as a broker stores and sends them, magic 0, 1 and 2 in any mix, and its index files.

    log      entry entry …                          a segment file is nothing but entries; so is what producers send
    entry    i64 offset, i32 size, message | batch  `layout.ENTRY`; the magic is byte 16 of either
    message  header  key  value                     magic 0 and 1, `layout.MESSAGE_0`, `MESSAGE_1`; key and value are
                                                    i32 size and bytes, a negative size is null
    batch    header  record record …                magic 2, `layout.BATCH`
    record   varint size, i8 attributes (0), varlong timestamp delta, varint offset delta,
             varint size, key, varint size, value, varint count, header …
    header   varint size, key (UTF-8), varint size, value

Varints are zigzag; a negative size of a key or a value is null. A message with a codec in its attributes is a *wrapper*: its
value is a compressed log of messages. In a batch, everything after the header is compressed.

    CRC-32 (zlib's)   message: magic … value                  offset, size and the CRC itself are not covered
    CRC-32C           batch: attributes … last record         nor are the leader epoch and the magic

- An inner message's offset is absolute in magic 0. In magic 1 it is relative, and the wrapper has the absolute offset of
  the last one: offset = wrapper's - last inner + inner. A wrapper's offset of 0 means a base of 0 (librdkafka).
- With log append time the wrapper's timestamp, in magic 2 the batch's largest, is that of all its records.
- Compaction leaves gaps and batches without records; a batch then keeps its first and last offset.
- In a control batch a record's key is i16 version, i16 type; `layout.CONTROL_TYPES` has the types.
- `framings` states what codecs accept.

sparkwire reads what Kafka 3.8 reads from a file. It is stricter about

- an unknown magic, `BAD_MAGIC`: Kafka takes it for 2, and as no checksum covers the magic, even calls it valid;
- the checksum of a wrapper, `CRC_MISMATCH`: Kafka's consumer checks inner messages only;
- inner messages: a wrong checksum is a row with the fields and `CRC_MISMATCH`, a magic of 2 or more is `BAD_MAGIC`. An inner
  set that ends within a message has a row `BAD_RECORD` after the complete ones. Kafka reads them, or drops the rest;
- counts and lengths beyond the bytes, `BAD_RECORD`: Kafka allocates what they say first;
- size, `TOO_LARGE`: a payload larger than max_batch_bytes, and the compressed payloads of a row beyond max_value_bytes. The
  latter counts payloads and `ROW_BYTES` for each record, and includes payloads that are too large alone. The rows that Spark
  passes together have limits, too: 2 GiB of content, or 4 GiB in this count, because an Arrow column holds no more. Only in
  this case does a result depend on other rows;

sparkwire is more lenient about

- corruption: Kafka stops, in some cases silently. Here one row has the error, and reading continues as `framing` describes.
  Torn and zeroed tails are such a row, too;
- a batch with an unreadable record: it returns the records before it, and one row `BAD_RECORD`, compressed or not. Kafka's
  consumer does the same; its file reader returns none of a compressed batch. As in Kafka, a count that is too small hides the
  record that proves it. A payload that does not decompress to its end returns no record;
- nested wrappers: only the inner one is `BAD_RECORD`. Kafka rejects the outer one as well, when it gets there.

A row with an error has the position, and the fields of the entry's header if it is readable. The offset is the header's; it is
NULL in a row about one record of a batch. A batch without records returns no row, and its payload is not read. The first error
wins, in the order size, magic, checksum, codec, payload, records.

Source: apache/kafka, `org.apache.kafka.common.record`, `org.apache.kafka.storage.internals.log`.
"""

from __future__ import annotations

# Packages that share a name with a function are loaded first: a later import would put the package in its place.
from sparkwire.kafka import cluster as _cluster  # noqa: F401
from sparkwire.kafka import write as _write  # noqa: F401
from sparkwire.kafka.api import check, cluster, picture, write

__all__ = ["check", "cluster", "picture", "write"]


def __dir__() -> list[str]:
    return list(__all__)
