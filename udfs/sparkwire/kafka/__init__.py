"""Apache Kafka: log bytes as a broker stores and sends them, magic 0, 1 and 2 in any mix, and its index files.

    log      entry entry …                          a segment file is nothing but entries; so is what producers send
    entry    i64 offset, i32 size, message | batch  `layout.ENTRY`; the magic is byte 16 of either
    message  header  key  value                     magic 0 and 1, `layout.MESSAGE_0`, `MESSAGE_1`; key and value are
                                                    i32 size and bytes, a negative size is null
    batch    header  record record …                magic 2, `layout.BATCH`
    record   varint size, i8 attributes (0), varlong timestamp delta, varint offset delta,
             varint size, key, varint size, value, varint count, header …
    header   varint size, key (UTF-8), varint size, value

Varints are zigzag; a negative size of a key or a value is null. With a codec in its attributes a message is a *wrapper*,
its value a compressed log of messages; of a batch all that follows the header is compressed.

    CRC-32 (zlib's)   message: magic … value                  offset, size and the CRC itself are not covered
    CRC-32C           batch: attributes … last record         nor are the leader epoch and the magic

- An inner message's offset is absolute in magic 0. In magic 1 it is relative, and the wrapper has the absolute offset of
  the last one: offset = wrapper's - last inner + inner. A wrapper's offset of 0 means a base of 0 (librdkafka).
- With log append time the wrapper's timestamp, in magic 2 the batch's largest, is that of all its records.
- Compaction leaves gaps and batches without records; a batch then keeps its first and last offset.
- In a control batch a record's key is i16 version, i16 type; `layout.CONTROL_TYPES` has the types.
- What codecs accept is written in `framings`.

Readable is what Kafka 3.8 reads from a file. Stricter are

- an unknown magic, `BAD_MAGIC`: Kafka takes it for 2, and as no checksum covers the magic, even calls it valid;
- the checksum of a wrapper, `CRC_MISMATCH`: Kafka's consumer checks inner messages only;
- an inner message with a wrong checksum (a row with its fields and `CRC_MISMATCH`), a magic of 2 or more (`BAD_MAGIC`), an
  inner set that ends within a message (one row `BAD_RECORD` after the whole ones): Kafka reads them, or drops the rest;
- counts and lengths beyond the bytes, `BAD_RECORD`: Kafka allocates what they say first;
- a payload longer than max_batch_bytes, and what is compressed in a row once it comes to more than max_value_bytes, `TOO_LARGE`:
  its payloads and `ROW_BYTES` for each record, those included that are too large by themselves. So is what the rows that
  Spark hands over together become beyond 2 GiB of content, or 4 GiB counted so: no Arrow column holds more, and the
  alternative is a query that fails. Nowhere else does an answer depend on the rows around it;

Laxer are

- corruption: Kafka stops at it, in some cases without a word. Here one row says what is wrong, and reading goes on as
  `framing` describes. Torn and zeroed tails are such a row, too;
- a batch in which a record cannot be read gives the records before it, and one row `BAD_RECORD`, compressed or not: Kafka's
  consumer does the same, its file reader gives none of a compressed one. As in Kafka, when the count is too small the
  record at which that shows is not given. A payload that cannot be decompressed to its end gives no record;
- nested wrappers, `BAD_RECORD` for the inner one only: Kafka refuses the outer one with it, when it gets there.

A row with an error has the position, and what the entry's header tells if it can be read: the offset is that in the header,
NULL where it is about one record of a batch. A batch without records gives no row and its payload is not looked at.
A first wrong code wins, in the order size, magic, checksum, codec, payload, records.

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
