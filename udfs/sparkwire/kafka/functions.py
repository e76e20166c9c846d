"""The table of Kafka's functions: registration, documentation and tests read it."""

from __future__ import annotations

from typing import Final

from sparkwire.core.builders import Shared, rows_function, scalar_functions, struct_function
from sparkwire.core.explain import FIELD_DOCS, RETURNS, explained
from sparkwire.core.function import Format, Function
from sparkwire.kafka import (
    codecs,
    explain,
    framing,
    leader_epochs,
    producer_snapshot,
    to_records,
)
from sparkwire.kafka.batch_headers import BATCHES, scan_batches
from sparkwire.kafka.cluster import internal_json
from sparkwire.kafka.cluster.internal_records import (
    GROUP_COLUMNS,
    TRANSACTION_COLUMNS,
    TransactionRecords,
    group_records,
    record_function,
)
from sparkwire.kafka.indexes import (
    OFFSET_INDEX_COLUMNS,
    TIME_INDEX_COLUMNS,
    TXN_INDEX_COLUMNS,
    aborted_txns,
    offset_index,
    time_index,
)
from sparkwire.kafka.inflate import MAX_BATCH_BYTES, MAX_VALUE_BYTES
from sparkwire.kafka.messages import MESSAGE_COLUMNS, MessageColumn
from sparkwire.kafka.record_columns import decode_headers_map
from sparkwire.kafka.records import RECORDS_TABLE, scan_records

_MESSAGE: Final = bytes.fromhex(
    "e9f469b4010000000174876e815f000000096b65792d3030303433000000407b226964223a302c2275736572223a22616c69"
    "6365222c226576656e74223a2276696577222c22616d6f756e74223a3639392e36332c226f6b223a747275657d"
)
_SEGMENT: Final = bytes.fromhex(
    "000000000000046c0000001fc7d68f70010000000174876e8489000000096b65792d3030313333ffffffff00000000000004"
    "f3000000940000000402bc8b45b600030000000000000174876e86b800000174876e86b8000000000000000100000000002f"
    "0000000104224d1860408254000080a401000000126b65792d303031353284017b226964223a34372c2275736572223a226a"
    "756479222c226576656e74223a226c6f676f7574222c22616d6f756e74223a3139322e38362c226f6b223a747275657d0000"
    "000000000000000000000f000000420000000002906f185c00300000000000000174876e85dc00000174876e85dc00000000"
    "0000000b0000ffffffff000000012000000008000000000c00000000002800"
)
_OFFSET_INDEX: Final = bytes.fromhex("000000230000125900000041000022c700000000000000000000000000000000")
_TIME_INDEX: Final = bytes.fromhex("00000174876e8d2a0000002300000174876e95e70000003e000000000000000000000000")
_TXN_INDEX: Final = bytes.fromhex(
    "0000000000000000000b0000000000000000000000000000000f00000000000000030000000000000000001600000000000000200000000000000028"
    "0000000000000029"
)
_PRODUCER_SNAPSHOT: Final = bytes.fromhex(
    "0001f0d2b5630000000200000000000003e800000000007d000000000000017e0000000200000174876eb85cffffffffffffffffffffffff00000000"
    "000003e9000100000091000000000000017b0000001500000174876eb819ffffffffffffffffffffffff"
)
_LEADER_EPOCHS: Final = b"0\n3\n0 100\n1 109\n5 124\n"
SAMPLES: Final = {
    "message": _MESSAGE,
    "segment": _SEGMENT,
    "offset_index": _OFFSET_INDEX,
    "time_index": _TIME_INDEX,
    "txn_index": _TXN_INDEX,
    "producer_snapshot": _PRODUCER_SNAPSHOT,
    "leader_epochs": _LEADER_EPOCHS,
}
"""Bytes written by Kafka. A message of magic 1; log bytes (a tombstone of magic 1, a batch of one record compressed with lz4,
an abort marker). Two entries and zeros of each index; two entries of a transaction index and of a snapshot; a checkpoint."""


_messages_of = Shared(MessageColumn)


FUNCTIONS: Final = (
    rows_function(
        f"kafka_records(log BINARY, verify_crc BOOLEAN = true, max_batch_bytes BIGINT = {MAX_BATCH_BYTES}, "
        f"max_value_bytes BIGINT = {MAX_VALUE_BYTES})",
        RECORDS_TABLE,
        scan_records,
        "Every record of log bytes, decompressed if necessary, with control records. An unreadable batch or entry, or one with "
        "a wrong CRC, is one row with an error, its position [bytes] and its header's fields. verify_crc => false ignores "
        "wrong CRCs. max_batch_bytes limits the decompressed size of one batch. max_value_bytes limits that of all compressed "
        "batches of one value, counting 100 bytes and the content for each record [bytes]. Larger ones are TOO_LARGE.",
        "transform(kafka_records(segment), r -> r.offset) -> [1132, 1267, 15]",
    ),
    rows_function(
        "kafka_batches(log BINARY)",
        BATCHES,
        scan_batches,
        "The headers of log bytes, without decompressing: a row for each batch of magic 2 and each entry of magic 0 "
        "and 1. Position and size are in bytes, timestamps in ms since epoch. Truncated, zeroed or skipped bytes are one row "
        "without a size.",
        "transform(kafka_batches(segment), b -> b.compression) -> [none, lz4, none]",
    ),
    Function(
        "kafka_headers_map(headers ARRAY<STRUCT<key STRING, value BINARY>>) -> MAP<STRING, BINARY>",
        "The headers of a record as a MAP. If a key repeats, its last value counts; map_from_entries fails on such headers.",
        decode_headers_map,
        "CAST(kafka_headers_map(array(named_struct('key', 'a', 'value', X'31'), named_struct('key', 'a', 'value', X'32')))['a'] "
        "AS STRING) -> 2",
    ),
    Function(
        "kafka_next_offset(log BINARY) -> BIGINT",
        "The offset after the last entry within kafka_valid_bytes; NULL if there is none.",
        framing.decode_next_offset,
        "kafka_next_offset(segment) -> 16",
    ),
    Function(
        "kafka_valid_bytes(log BINARY) -> INT",
        "Size of the valid entries at the beginning, which a broker keeps when it recovers [bytes].",
        framing.decode_valid_bytes,
        "kafka_valid_bytes(segment) -> 281",
    ),
    rows_function(
        "kafka_offset_index(file BINARY, base_offset BIGINT)",
        OFFSET_INDEX_COLUMNS,
        offset_index,
        "An .index file: absolute offsets and the positions of their entries in the segment [bytes].",
        "transform(kafka_offset_index(offset_index, 100), e -> e.offset) -> [135, 165]",
    ),
    rows_function(
        "kafka_time_index(file BINARY, base_offset BIGINT)",
        TIME_INDEX_COLUMNS,
        time_index,
        "A .timeindex file: timestamps [ms since epoch] and their absolute offsets.",
        "transform(kafka_time_index(time_index, 100), e -> e.offset) -> [135, 162]",
    ),
    rows_function(
        "kafka_txn_index(file BINARY)",
        TXN_INDEX_COLUMNS,
        aborted_txns,
        "A .txnindex file: the aborted transactions whose abort marker is in the segment, with their first and last offset.",
        "transform(kafka_txn_index(txn_index), t -> concat_ws(' ', t.producer_id, t.first_offset, t.last_offset)) -> "
        "[11 0 15, 22 32 40]",
    ),
    rows_function(
        "kafka_producer_snapshot(file BINARY)",
        producer_snapshot.COLUMNS,
        producer_snapshot.Producers,
        "A .snapshot file of a partition: the state of each producer at the offset in the file's name. error is the result for "
        "the whole file. Complete entries are rows in any case; a file without any is one row with an error.",
        "transform(kafka_producer_snapshot(producer_snapshot), p -> concat_ws(' ', p.producer_id, p.last_offset)) -> "
        "[1000 382, 1001 379]",
    ),
    rows_function(
        "kafka_leader_epochs(file BINARY)",
        leader_epochs.COLUMNS,
        leader_epochs.Epochs,
        "A leader-epoch-checkpoint file: the offset at which each leader's records begin. Corrupt lines are rows of NULLs. Use "
        "CAST(file AS BINARY) for a STRING.",
        "transform(kafka_leader_epochs(leader_epochs), e -> concat_ws(' ', e.epoch, e.start_offset)) -> [0 100, 1 109, 5 124]",
    ),
    record_function(
        "kafka_group_record(key BINARY, value BINARY)",
        GROUP_COLUMNS,
        group_records,
        "A record of __consumer_offsets, all versions: a group's committed OFFSET, or the state of a GROUP. Records of the newer "
        "group protocols are OTHER, with the key's version only. A tombstone (NULL value) has its key's fields.",
        "kafka_group_record(X'0001000267310006726f7574657300000002', X'0003000000000000002a000000050000000001746b8a4800').offset "
        "-> 42",
    ),
    record_function(
        "kafka_transaction_record(key BINARY, value BINARY)",
        TRANSACTION_COLUMNS,
        TransactionRecords,
        "A record of __transaction_state in any version: the state of a transactional id, and the partitions to which its "
        "transaction writes. A tombstone (NULL value) has the field of its key.",
        "kafka_transaction_record(X'0000000474782d31', NULL).transactional_id -> tx-1",
    ),
    Function(
        f"kafka_internal_record(topic STRING, key BINARY, value BINARY) -> {internal_json.RETURNS}",
        "A record of __consumer_offsets, __transaction_state, __share_group_state, __cluster_metadata or __remote_log_metadata: "
        "key and value as the JSON that Kafka's own dump prints, in every version from Kafka 2.0 to 4.4. Also the offset syncs, "
        "checkpoints and heartbeats of MirrorMaker 2. An unknown message or version returns an error. "
        "NULL if no argument identifies a message.",
        internal_json.decode_internal_record,
        "kafka_internal_record('__cluster_metadata', NULL, X'010c00116d657461646174612e76657273696f6e001300').value -> "
        '{"name":"metadata.version","featureLevel":19}',
        called_on_null=True,
        field_docs=internal_json.FIELD_DOCS,
    ),
    Function(
        "kafka_search_offset(log BINARY, target BIGINT) -> STRUCT<offset BIGINT, position INT>",
        "The first entry whose last offset is at least the target: this offset and the position of the entry [bytes]. NULL if "
        "there is none. It verifies no checksums.",
        framing.decode_search_offset,
        "kafka_search_offset(segment, 1200).position -> 43",
        field_docs={"offset": "The entry's last offset.", "position": "Position of the entry [bytes]."},
    ),
    Function(
        f"kafka_explain(log BINARY) -> {RETURNS}",
        "Explains log bytes: a row for each field in order, with position and size [bytes], value and error. The records of a "
        "compressed batch follow its payload, marked as decompressed, with positions in the decompressed payload. Intended for "
        "inspecting a handful of batches; it is slow.",
        explained(explain.explain),
        "filter(kafka_explain(segment), line -> line.field = 'batch[1].record_count')[0].value -> 1",
        field_docs=FIELD_DOCS,
    ),
    *scalar_functions("kafka_{}(message BINARY)", MESSAGE_COLUMNS, _messages_of),
    struct_function(
        "kafka_message(message BINARY)",
        MESSAGE_COLUMNS,
        MessageColumn,
        "All fields above as one STRUCT, decoded in a single pass.",
        "kafka_message(message).key_size -> 9",
    ),
    Function(
        "to_kafka_message(key BINARY, value BINARY, timestamp_ms BIGINT = NULL, magic INT = NULL) -> BINARY",
        "One message of magic 0 or 1 with its CRC. The default is 1, or 0 without a timestamp [ms since epoch]. A NULL key is a "
        "null key, a NULL value a tombstone. In magic 1, a NULL timestamp is -1; magic 0 has none.",
        to_records.encode_message,
        "CAST(kafka_value(to_kafka_message(kafka_key(message), X'686921', 1600000000351)) AS STRING) -> hi!",
        called_on_null=True,
    ),
    Function(
        "to_kafka_records(records ARRAY<STRUCT<key BINARY, value BINARY, timestamp_ms BIGINT, headers ARRAY<STRUCT<key STRING, "
        "value BINARY>>, offset BIGINT>>, base_offset BIGINT, compression STRING, magic INT, leader_epoch INT = NULL, "
        "timestamp_type STRING = NULL) -> BINARY",
        "Log bytes: a record batch (magic 2) or a message set (0, 1) of these records. It numbers them from base_offset on; "
        "records with an offset keep it, in ascending order. compression is "
        f"{codecs.listed(codecs.writable(1))}, for magic 2 {codecs.listed(codecs.writable())}, in upper or lower case. You may "
        "leave fields out. A NULL timestamp [ms since epoch] is -1; magic 0 has none. Only magic 2 has headers. timestamp_type "
        "LogAppendTime gives all records the latest of their timestamps. No records give no bytes.",
        to_records.encode_records,
        "transform(kafka_records(to_kafka_records(array(named_struct('value', X'6131'), named_struct('value', X'6232')), 100, "
        "'zstd', 2)), r -> concat_ws(' ', r.offset, CAST(r.value AS STRING))) -> [100 a1, 101 b2]",
        literals=("compression",),
    ),
)

ARGUMENTS: Final = {
    "log": "Log bytes: concatenated entries and record batches, as in a segment file.",
    "message": "One message of magic 0 or 1, from its CRC on.",
    "file": "A whole file of the partition directory: an index, a snapshot or a checkpoint.",
    "key": "A record's key; NULL for a null key.",
    "value": "A record's value; NULL for a tombstone.",
    "headers": "A record's headers, in order.",
    "records": "The records to write, in order; fields may be missing.",
    "topic": "The internal topic of the record.",
    "base_offset": "The base offset of the segment, which is its file name; for `to_kafka_records`, the first record's offset.",
    "target": "The offset to look for.",
    "verify_crc": "Whether a wrong checksum is an error; the same for all rows.",
    "max_batch_bytes": "Maximum size of a compressed batch after decompression [bytes]; the same for all rows.",
    "max_value_bytes": "Maximum size of all compressed batches of one value, as records [bytes]; the same for all rows.",
    "timestamp_ms": "The timestamp [ms since epoch].",
    "magic": "Version of the format to write: 0 or 1 for a message, 0, 1 or 2 for records.",
    "compression": f"The codec: {codecs.listed(codecs.writable(1))}; with magic 2 {codecs.listed(codecs.writable())}.",
    "leader_epoch": "Epoch of the leader that appended the batch, in magic 2; -1 by default.",
    "timestamp_type": "CreateTime, the default, or LogAppendTime.",
}
FORMAT: Final = Format("kafka", "Kafka", "kafka_", FUNCTIONS, SAMPLES, "kafka_message", arguments=ARGUMENTS)
