"""Apache Kafka: log bytes as a broker stores and sends them, magic 0, 1 and 2 in any mix, and the files beside a segment.

Grammar
-------

    log      entry entry …                          a segment file consists of entries; so do the bytes that producers send
    entry    i64 offset, i32 size, message | batch  `layout.ENTRY`; the magic is byte 16 of either
    message  header  key  value                     magic 0 and 1, `layout.MESSAGE_0`, `MESSAGE_1`; key and value are
                                                    i32 size and bytes; a negative size means null
    batch    header  record record …                magic 2, `layout.BATCH`
    record   varint size, i8 attributes (0), varlong timestamp delta, varint offset delta,
             varint size, key, varint size, value, varint count, header …
    header   varint size, key (UTF-8), varint size, value

- Varints are zigzag. A negative size of a key or a value means null.
- A message with a codec in its attributes is a *wrapper*: its value is a compressed log of *inner messages*.
- In a compressed batch, everything after the header is compressed.
- In a control batch, the key of a record is i16 version, i16 type. `layout.CONTROL_TYPES` has the types.
- `framings` lists the frames that each codec accepts.

Checksums
---------

    CRC-32 (zlib's)   message   covers magic … value                not offset, size and the CRC itself
    CRC-32C           batch     covers attributes … last record     not the leader epoch and the magic either

Offsets and times
-----------------

- In magic 0, an inner message has its absolute offset.
- In magic 1, the offset of an inner message is relative. The wrapper has the absolute offset of the last inner message:
  offset = wrapper's offset - last inner offset + inner offset. A wrapper's offset of 0 means a base of 0 (librdkafka).
- With log append time, all records have one timestamp: that of the wrapper, or in magic 2 the batch's largest.
- Compaction leaves gaps, and batches without records. Such a batch keeps its first and its last offset.

Where sparkwire is stricter than Kafka
--------------------------------------

sparkwire reads what Kafka 3.8 reads from a file, with these exceptions:

| the bytes | sparkwire | Kafka |
|---|---|---|
| an unknown magic | `BAD_MAGIC` | takes it for 2, even as valid: no checksum covers the magic |
| a wrapper with a wrong checksum | `CRC_MISMATCH` | the consumer checks only inner messages |
| an inner message with a wrong checksum | its fields, and `CRC_MISMATCH` | reads it, or drops the rest |
| an inner message with a magic of 2 or more | `BAD_MAGIC` | reads it, or drops the rest |
| inner messages, the last one truncated | the complete ones, then `BAD_RECORD` | reads them, or drops the rest |
| a count or a length beyond the bytes | `BAD_RECORD` | allocates that much memory first |
| more bytes than a limit allows | `TOO_LARGE` | has no such limit |

There are three limits:

- `max_batch_bytes` limits the payload of one entry.
- `max_value_bytes` limits the compressed entries of one row together. Each counts with its decompressed size and 100 bytes
  for each record. A payload that is too large alone counts as well.
- The rows that Spark passes together have at most 2 GiB of content, and at most 4 GiB in the same count. An Arrow column
  holds no more. Only this limit makes a result depend on other rows.

Where sparkwire is more lenient than Kafka
------------------------------------------

| the bytes | sparkwire | Kafka |
|---|---|---|
| corrupt bytes; a torn or zeroed end | one row with an error, then the next valid entry | stops, in some cases silently |
| a batch with an unreadable record | the records before it, then `BAD_RECORD` | the same in the consumer |
| the same, compressed | the same | the file reader returns no record |
| a wrapper in a wrapper | `BAD_RECORD` for the inner one | rejects the outer one as well, when it gets there |

A record count that is too small hides the record that proves it, in Kafka too. A payload that does not decompress to its end
returns no record. `framing` describes how reading finds the next valid entry.

Rows with an error
------------------

- The row has the position. It also has the fields of the entry's header, if that is readable.
- `offset` is the header's. It is NULL in a row about one record of a batch.
- A row has the first error in this order: size, magic, checksum, codec, payload, records.
- A batch without records returns no row, and sparkwire does not read its payload.

Source: apache/kafka, `org.apache.kafka.common.record`, `org.apache.kafka.storage.internals.log`.
"""

from sparkwire.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, packages=("cluster", "write"))
