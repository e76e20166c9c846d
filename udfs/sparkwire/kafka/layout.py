"""The wire formats of Kafka's log as tables, and the constants that follow from them.

The formats with Kafka's own names (``DefaultRecordBatch``, ``DefaultRecord``), and on the right the tables' names if they differ:

    RecordBatch =>
        BaseOffset => Int64                 offset
        Length => Int32                     size
        PartitionLeaderEpoch => Int32
        Magic => Int8                       2
        CRC => Uint32                       CRC-32C of Attributes ... Records
        Attributes => Int16                 3 bits codec, timestamp type, transactional, control, delete horizon
        LastOffsetDelta => Int32
        BaseTimestamp => Int64              with delete horizon: that time instead
        MaxTimestamp => Int64
        ProducerId => Int64
        ProducerEpoch => Int16
        BaseSequence => Int32
        RecordsCount => Int32               record_count
        Records => [Record]                 compressed together

    Record =>
        Length => Varint
        Attributes => Int8                  0
        TimestampDelta => Varlong
        OffsetDelta => Varint
        Key => Varint size, bytes           -1 for null
        Value => Varint size, bytes         -1 for null
        Headers => [Key => Varint size, text; Value => Varint size, bytes]

    MessageSet => [Offset => Int64, MessageSize => Int32, Message]

    Message =>
        Crc => Uint32                       CRC-32 of Magic ... Value
        Magic => Int8                       0 or 1
        Attributes => Int8                  3 bits codec, timestamp type
        Timestamp => Int64                  only in magic 1
        Key => Int32 size, bytes            -1 for null
        Value => Int32 size, bytes          -1 for null; with a codec a MessageSet, compressed

The CRC of a batch does not cover PartitionLeaderEpoch, so a broker can set the epoch without computing the CRC again.
"""

from __future__ import annotations

from sparkwire.base.grammar import Covered, Field, Layout, Part, PresentIf, Repeated, Sized, Struct, Varint, size_of

_ENTRY = (
    Field("offset", "i64", "offset of the message, of a wrapper's last message, or of a batch's first record"),
    Field("size", "i32", "size of the rest of the entry [bytes]"),
)
_MESSAGE_0 = (
    Field("crc", "u32", "CRC-32 of everything after it"),
    Field("magic", "i8", "0"),
    Field("attributes", "i8", "bits 0-2: codec"),
    Field("key_size", "i32", "negative for a null key [bytes]"),
)
_MESSAGE_1 = (
    Field("crc", "u32", "CRC-32 of everything after it"),
    Field("magic", "i8", "1"),
    Field("attributes", "i8", "bits 0-2: codec; bit 3: timestamp type"),
    Field("timestamp", "i64", "-1 for none [ms since epoch]"),
    Field("key_size", "i32", "negative for a null key [bytes]"),
)
ENTRY = Layout("log entry prefix", *_ENTRY)
MESSAGE_0 = Layout("message of magic 0", *_MESSAGE_0)
MESSAGE_1 = Layout("message of magic 1", *_MESSAGE_1)
MESSAGE_ENTRY_0 = Layout("entry of magic 0", *_ENTRY, *_MESSAGE_0)
MESSAGE_ENTRY_1 = Layout("entry of magic 1", *_ENTRY, *_MESSAGE_1)
BATCH = Layout(
    "record batch",
    *_ENTRY,
    Field("partition_leader_epoch", "i32", "set by the broker, not covered by the CRC"),
    Field("magic", "i8", "2"),
    Field("crc", "u32", "CRC-32C of everything after it"),
    Field("attributes", "i16", "0-2: codec; 3: timestamp type; 4: transactional; 5: control; 6: delete horizon"),
    Field("last_offset_delta", "i32", "last offset written, relative to base_offset"),
    Field(
        "base_timestamp",
        "i64",
        "base of the timestamp deltas; with attribute bit 6 also the delete horizon [ms since epoch]",
    ),
    Field(
        "max_timestamp",
        "i64",
        "largest timestamp of the batch; with log append time, the timestamp of all records [ms since epoch]",
    ),
    Field("producer_id", "i64", "-1 for none"),
    Field("producer_epoch", "i16", "-1 for none"),
    Field("base_sequence", "i32", "sequence of the first record, -1 for none"),
    Field("record_count", "i32", "number of records"),
)
OFFSET_INDEX = Layout(
    "entry of an offset index",
    Field("relative_offset", "i32", "offset, relative to the segment's base offset"),
    Field("position", "i32", "position of the entry with this offset [bytes]"),
)
TIME_INDEX = Layout(
    "entry of a time index",
    Field("timestamp", "i64", "largest timestamp so far [ms since epoch]"),
    Field("relative_offset", "i32", "offset, relative to the segment's base offset"),
)

BATCH_SIZE = BATCH.size
"""size of a batch's header [bytes]"""
LENGTH = ENTRY["size"].field.width
"""width of the size of a key or a value [bytes]"""
OVERHEAD = ENTRY.size
"""part of an entry that ``size`` does not count [bytes]"""
MAGIC = BATCH["magic"].offset
"""position of the magic byte, the same in every entry"""
CODEC_MASK = 7
LOG_APPEND_TIME = 8
TRANSACTIONAL = 16
CONTROL = 32
DELETE_HORIZON = 64

NONE = 0
"""the codec of uncompressed payloads; `codecs` has all codecs"""

# The parts after the fixed fields.
HEADER = Struct(
    "header",
    Sized("key", Varint("key_size", "[bytes]"), nullable=False),
    Sized("value", Varint("value_size", "-1 for null [bytes]")),
    title="header of a record",
)
RECORD = Struct(
    "record",
    Varint("length", "size of the rest of the record [bytes]"),
    Field("attributes", "i8", "none in use"),
    Varint("timestamp_delta", "from base_timestamp [ms]", 64),
    Varint("offset_delta", "from base_offset"),
    Sized("key", Varint("key_size", "-1 for null [bytes]")),
    Sized("value", Varint("value_size", "-1 for null [bytes]")),
    Repeated(HEADER, Varint("header_count", "number of headers")),
    title="record of a batch",
    ends="length",
    counts_rest=True,
)
_RECORDS = Repeated(RECORD, "record_count", "after the last record")
WHOLE_BATCH = Struct(
    "batch",
    *BATCH.fields,
    PresentIf("attributes", CODEC_MASK, {NONE: [_RECORDS]}, [Sized("payload", holds=_RECORDS)]),
    title="record batch with its records",
    ends="size",
    counts_rest=True,
    covered=[Covered("crc", "crc32c", last=["batch"])],
)


def _message(payload: Sized) -> list[Part]:
    """The parts of a message; ``payload`` is a compressed value."""
    crc, magic, *_, key_size = _MESSAGE_0
    of_magic = {0: _MESSAGE_0[2:-1], 1: _MESSAGE_1[2:-1]}
    return [
        crc,
        magic._replace(doc="0 or 1"),
        PresentIf("magic", 0xFF, of_magic, None, title="magic"),
        key_size,
        Sized("key", "key_size"),
        Field("value_size", "i32", "negative for a null value [bytes]"),
        PresentIf("attributes", CODEC_MASK, {NONE: [Sized("value", "value_size")]}, [payload]),
    ]


def _message_entry(name: str, title: str, payload: Sized) -> Struct:
    return Struct(
        name,
        *_ENTRY,
        *_message(payload),
        title=title,
        ends="size",
        counts_rest=True,
        unclaimed="after the value: no error",
        covered=[Covered("crc", "crc32", last=[name])],
    )


_NESTED = Sized("payload", "value_size", "a set inside of a set: not decompressed", nullable=False, opaque=True)
INNER = _message_entry("inner", "entry of a compressed set", _NESTED)
_SET = Sized("payload", "value_size", nullable=False, holds=Repeated(INNER))
MESSAGE_ENTRY = _message_entry("message", "entry of a message set", _SET)
MESSAGE = Struct(
    "message",
    *_message(_SET),
    title="message with key and value",
    covered=[Covered("crc", "crc32", last=["message"])],
)

# Constants that follow from the tables.
SMALLEST_HEADER = size_of(HEADER, {})
"""smallest size of a record [bytes]"""
SMALLEST_RECORD = size_of(RECORD, {})
"""[bytes]"""
LONGEST_DELTAS = size_of(RECORD, {"timestamp_delta": -(1 << 63), "offset_delta": -(1 << 31)}) - SMALLEST_RECORD
"""largest size of a record's deltas, beyond their size if all are 0 [bytes]"""
MESSAGE_SIZES = tuple(size_of(MESSAGE, {"magic": magic}) for magic in (0, 1))
"""size of a message without key and value, by its magic [bytes]"""
SMALLEST = (*MESSAGE_SIZES, size_of(WHOLE_BATCH, {}) - OVERHEAD)
"""smallest ``size`` of an entry by its magic [bytes]"""
LEAST_SIZE = min(SMALLEST)

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
CONTROL_TYPES = (
    "ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS", "UNKNOWN",
)  # fmt: skip
NO_TIMESTAMP = -1
