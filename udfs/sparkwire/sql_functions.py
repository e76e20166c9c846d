"""Every function as a column function, for DataFrame code.

    from sparkwire import sql_functions as W

    df.select(W.dbus_opcode("value"), W.dbus_sequence("value"))

A column is named or given as a Column, a constant as a Python value. They need no registration. The pages of the functions
(docs/functions) have the rules and an example of each. Generated from the catalogue by `make docs`.
"""

from __future__ import annotations

from pyspark.sql import Column

from sparkwire.spark.functions.udf import column_of


def dbus_version(event: Column | str | bytes) -> Column:
    """Version of the format: 0 (V1) or 2 (V2).

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    TINYINT
    """
    return column_of('dbus_version', event)


def dbus_byte_order(event: Column | str | bytes) -> Column:
    """BIG_ENDIAN or LITTLE_ENDIAN, NULL for an unknown version.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_byte_order', event)


def dbus_header_crc(event: Column | str | bytes) -> Column:
    """The header's checksum, as stored.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BIGINT
    """
    return column_of('dbus_header_crc', event)


def dbus_value_crc(event: Column | str | bytes) -> Column:
    """The value's checksum, as stored; of V2 the body's checksum.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BIGINT
    """
    return column_of('dbus_value_crc', event)


def dbus_header_crc_computed(event: Column | str | bytes) -> Column:
    """The header's checksum, computed over the bytes that exist.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BIGINT
    """
    return column_of('dbus_header_crc_computed', event)


def dbus_value_crc_computed(event: Column | str | bytes) -> Column:
    """The value's checksum (V2: the body's), computed over the bytes that exist.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BIGINT
    """
    return column_of('dbus_value_crc_computed', event)


def dbus_header_crc_valid(event: Column | str | bytes) -> Column:
    """Whether the header's checksum is right; NULL if bytes of its range are missing.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('dbus_header_crc_valid', event)


def dbus_value_crc_valid(event: Column | str | bytes) -> Column:
    """Whether the value's checksum is right; NULL if bytes of its range are missing.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('dbus_value_crc_valid', event)


def dbus_length(event: Column | str | bytes) -> Column:
    """Length of the whole event, as stored [bytes].

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    INT
    """
    return column_of('dbus_length', event)


def dbus_attributes(event: Column | str | bytes) -> Column:
    """The 16 attribute bits.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    INT
    """
    return column_of('dbus_attributes', event)


def dbus_opcode(event: Column | str | bytes) -> Column:
    """UPSERT or DELETE; NULL if no opcode bit is set.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_opcode', event)


def dbus_is_trace(event: Column | str | bytes) -> Column:
    """Whether the event is traced.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('dbus_is_trace', event)


def dbus_is_replicated(event: Column | str | bytes) -> Column:
    """Whether the event comes from external replication.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('dbus_is_replicated', event)


def dbus_key_type(event: Column | str | bytes) -> Column:
    """LONG, BYTES or (V2 only) SCHEMA.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_key_type', event)


def dbus_is_end_of_period(event: Column | str | bytes) -> Column:
    """Whether the event ends a window: source id -2.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('dbus_is_end_of_period', event)


def dbus_sequence(event: Column | str | bytes) -> Column:
    """Sequence number of the window (SCN).

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BIGINT
    """
    return column_of('dbus_sequence', event)


def dbus_physical_partition_id(event: Column | str | bytes) -> Column:
    """Physical partition; of V2 the event's only partition id.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    SMALLINT
    """
    return column_of('dbus_physical_partition_id', event)


def dbus_logical_partition_id(event: Column | str | bytes) -> Column:
    """Logical partition; of V2 the event's only partition id.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    SMALLINT
    """
    return column_of('dbus_logical_partition_id', event)


def dbus_timestamp_nanos(event: Column | str | bytes) -> Column:
    """Creation time [ns since epoch].

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BIGINT
    """
    return column_of('dbus_timestamp_nanos', event)


def dbus_timestamp(event: Column | str | bytes) -> Column:
    """Creation time, rounded toward the past to microseconds.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    TIMESTAMP
    """
    return column_of('dbus_timestamp', event)


def dbus_src_id(event: Column | str | bytes) -> Column:
    """Source id.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    INT
    """
    return column_of('dbus_src_id', event)


def dbus_source_range(event: Column | str | bytes) -> Column:
    """Range of the source id: DATA (> 0), GLOBAL_SYSTEM (-19999 to 0) or PRIVATE_SYSTEM.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_source_range', event)


def dbus_event_type(event: Column | str | bytes) -> Column:
    """Kind of event by the full source id: DATA, END_OF_PERIOD, CHECKPOINT (-3), SCN_REGRESS (-51), ERROR (-49 to -5), PRIVATE (<= -20000) or SYSTEM (any other <= 0).

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_event_type', event)


def dbus_schema_id(event: Column | str | bytes) -> Column:
    """Id of the payload's schema, 16 bytes.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BINARY
    """
    return column_of('dbus_schema_id', event)


def dbus_schema_version(event: Column | str | bytes) -> Column:
    """Version of the payload's schema.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    SMALLINT
    """
    return column_of('dbus_schema_version', event)


def dbus_key(event: Column | str | bytes) -> Column:
    """The key as text: a LONG in decimal, BYTES and a SCHEMA key's data as UTF-8.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_key', event)


def dbus_key_long(event: Column | str | bytes) -> Column:
    """The key, if it is a LONG.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BIGINT
    """
    return column_of('dbus_key_long', event)


def dbus_key_bytes(event: Column | str | bytes) -> Column:
    """The bytes of a BYTES key, or the data of a SCHEMA key; NULL for a LONG key.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BINARY
    """
    return column_of('dbus_key_bytes', event)


def dbus_value(event: Column | str | bytes) -> Column:
    """The payload; NULL for V2 without one, X'' for an empty one.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BINARY
    """
    return column_of('dbus_value', event)


def dbus_value_size(event: Column | str | bytes) -> Column:
    """Size of the payload, as stored in the event [bytes].

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    INT
    """
    return column_of('dbus_value_size', event)


def dbus_metadata(event: Column | str | bytes) -> Column:
    """Data of V2's metadata part.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BINARY
    """
    return column_of('dbus_metadata', event)


def dbus_metadata_schema_id(event: Column | str | bytes) -> Column:
    """Digest of the metadata's schema, 16 or 4 bytes.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BINARY
    """
    return column_of('dbus_metadata_schema_id', event)


def dbus_metadata_schema_version(event: Column | str | bytes) -> Column:
    """Version of the metadata's schema.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    SMALLINT
    """
    return column_of('dbus_metadata_schema_version', event)


def dbus_key_schema_id(event: Column | str | bytes) -> Column:
    """Digest of a SCHEMA key's schema, 16 or 4 bytes.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BINARY
    """
    return column_of('dbus_key_schema_id', event)


def dbus_key_schema_version(event: Column | str | bytes) -> Column:
    """Version of a SCHEMA key's schema.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    SMALLINT
    """
    return column_of('dbus_key_schema_version', event)


def dbus_status(event: Column | str | bytes) -> Column:
    """OK, PARTIAL (bytes are missing) or ERR, as in Databus's own scan, but stricter where that scan is unsafe.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_status', event)


def dbus_error(event: Column | str | bytes) -> Column:
    """The first error in the order of the bytes; NULL for a valid event.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRING
    """
    return column_of('dbus_error', event)


def dbus_is_valid(event: Column | str | bytes) -> Column:
    """Whether the event has no error.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('dbus_is_valid', event)


def dbus_event(event: Column | str | bytes) -> Column:
    """All fields above as one STRUCT, decoded in a single pass.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    STRUCT<38 fields>
        version: Version of the format: 0 (V1) or 2 (V2). Any other value is returned unchanged.
        byte_order: BIG_ENDIAN or LITTLE_ENDIAN, NULL for an unknown version. The first of these that determines it counts: V2's magic word, a stored length that equals the size of the bytes, a header checksum that is right. The default is BIG_ENDIAN.
        header_crc: The header's checksum, as stored.
        value_crc: The value's checksum, as stored; of V2 the body's checksum.
        header_crc_computed: The header's checksum, computed over the bytes that exist.
        value_crc_computed: The value's checksum (V2: the body's), computed over the bytes that exist.
        header_crc_valid: Whether the header's checksum is right; NULL if bytes of its range are missing.
        value_crc_valid: Whether the value's checksum is right; NULL if bytes of its range are missing.
        length: Length of the whole event, as stored [bytes].
        attributes: The 16 attribute bits.
        opcode: UPSERT or DELETE; NULL if no opcode bit is set.
        is_trace: Whether the event is traced.
        is_replicated: Whether the event comes from external replication.
        key_type: LONG, BYTES or (V2 only) SCHEMA.
        is_end_of_period: Whether the event ends a window: source id -2.
        sequence: Sequence number of the window (SCN).
        physical_partition_id: Physical partition; of V2 the event's only partition id.
        logical_partition_id: Logical partition; of V2 the event's only partition id.
        timestamp_nanos: Creation time [ns since epoch]. Control events have Java's nanoTime instead.
        timestamp: Creation time, rounded toward the past to microseconds.
        src_id: Source id.
        source_range: Range of the source id: DATA (> 0), GLOBAL_SYSTEM (-19999 to 0) or PRIVATE_SYSTEM.
        event_type: Kind of event by the full source id: DATA, END_OF_PERIOD, CHECKPOINT (-3), SCN_REGRESS (-51), ERROR (-49 to -5), PRIVATE (<= -20000) or SYSTEM (any other <= 0).
        schema_id: Id of the payload's schema, 16 bytes. V2: the payload part's digest, 16 or 4 bytes, NULL without a payload.
        schema_version: Version of the payload's schema. V1: the first two bytes of the schema id, as REPL_DBUS uses them.
        key: The key as text: a LONG in decimal, BYTES and a SCHEMA key's data as UTF-8. NULL if they are not UTF-8.
        key_long: The key, if it is a LONG.
        key_bytes: The bytes of a BYTES key, or the data of a SCHEMA key; NULL for a LONG key.
        value: The payload; NULL for V2 without one, X'' for an empty one.
        value_size: Size of the payload, as stored in the event [bytes].
        metadata: Data of V2's metadata part.
        metadata_schema_id: Digest of the metadata's schema, 16 or 4 bytes.
        metadata_schema_version: Version of the metadata's schema.
        key_schema_id: Digest of a SCHEMA key's schema, 16 or 4 bytes.
        key_schema_version: Version of a SCHEMA key's schema.
        status: OK, PARTIAL (bytes are missing) or ERR, as in Databus's own scan, but stricter where that scan is unsafe.
        error: The first error in the order of the bytes; NULL for a valid event.
        is_valid: Whether the event has no error.
    """
    return column_of('dbus_event', event)


def dbus_events(stream: Column | str | bytes) -> Column:
    """Splits concatenated events, V1 and V2 mixed.

    Parameters
    ----------
    stream : BINARY
        Concatenated events, V1 and V2 mixed: a file, or a relay's buffer.

    Returns
    -------
    ARRAY<STRUCT<position INT, event BINARY, status STRING, error STRING>>
        position: Position of the row in the stream [bytes].
        event: The row's bytes: an event, a truncated event, or skipped bytes.
        status: OK, PARTIAL (bytes are missing) or ERR, as dbus_status.
        error: The first error, as dbus_error; NULL for a valid event.
    """
    return column_of('dbus_events', stream)


def dbus_explain(event: Column | str | bytes) -> Column:
    """Explains every byte of an event, in order: the field, its position and size [bytes], its value, and its error.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.

    Returns
    -------
    ARRAY<STRUCT<position INT, size INT, field STRING, hex STRING, value STRING, note STRING>>
        position: Where the bytes begin [bytes].
        size: How many there are [bytes].
        field: Which field they are.
        hex: The bytes themselves; NULL for very many.
        value: The value of the field as text, as the function of that name returns it.
        note: The error code, if any, and then the explanation of the field.
    """
    return column_of('dbus_explain', event)


def dbus_key_partition(event: Column | str | bytes, n: Column | str | int) -> Column:
    """The client, 0 to n - 1, to which Databus's key filter assigns the event: abs(key) % n.

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.
    n : INT
        Number of partitions, 1 or more.

    Returns
    -------
    INT
    """
    return column_of('dbus_key_partition', event, n)


def dbus_to_json(event: Column | str | bytes, encoding: Column | str = 'JSON') -> Column:
    """The JSON text that Databus writes for the event: the value is Base64 with encoding JSON, text with JSON_PLAIN_VALUE (also spelled JSON_PLAIN).

    Parameters
    ----------
    event : BINARY
        One serialized event, from its version byte on.
    encoding : STRING, JSON by default
        Encoding of the value: JSON for Base64, JSON_PLAIN_VALUE for text; the same for all rows.

    Returns
    -------
    STRING
    """
    return column_of('dbus_to_json', event, encoding)


def dbus_from_json(json: Column | str) -> Column:
    """Encodes a V1 event, big-endian, with both checksums, from Databus's JSON.

    Parameters
    ----------
    json : STRING
        The JSON that Databus writes for one event.

    Returns
    -------
    BINARY
    """
    return column_of('dbus_from_json', json)


def to_dbus_event(event: Column | str) -> Column:
    """Encodes an event from any of the fields of dbus_event: V1 or V2, in either byte order.

    Parameters
    ----------
    event : STRUCT<38 fields>
        The fields to write: any of the fields of `dbus_event`.

    Returns
    -------
    BINARY
    """
    return column_of('to_dbus_event', event)


def kafka_records(log: Column | str | bytes, verify_crc: Column | bool = True, max_batch_bytes: Column | int = 268435456, max_value_bytes: Column | int = 2147483648) -> Column:
    """Every record of log bytes, decompressed if necessary, with control records.

    Parameters
    ----------
    log : BINARY
        Log bytes: concatenated entries and record batches, as in a segment file.
    verify_crc : BOOLEAN, true by default
        Whether a wrong checksum is an error; the same for all rows.
    max_batch_bytes : BIGINT, 268435456 by default
        Maximum size of a compressed batch after decompression [bytes]; the same for all rows.
    max_value_bytes : BIGINT, 2147483648 by default
        Maximum size of all compressed batches of one value, as records [bytes]; the same for all rows.

    Returns
    -------
    ARRAY<STRUCT<18 fields>>
        offset: The record's offset; NULL for a row about bytes without a header or about one record of a batch.
        timestamp: When the producer created or the broker appended it; NULL in magic 0, if none is stored, and beyond Spark's range.
        timestamp_ms: The timestamp as stored [ms since epoch].
        timestamp_type: CreateTime or LogAppendTime; NULL in magic 0.
        key: The key; NULL for a null key.
        value: The value; NULL for a tombstone.
        headers: Headers in order; keys may repeat. Empty for a record of magic 2 without headers, NULL in magic 0 and 1.
        position: Position of its batch, or of its outermost message, in the log bytes [bytes].
        magic: Version of that batch's format: 0, 1 or 2; any other value is returned unchanged.
        compression: Codec of that batch: none, gzip, snappy, lz4, zstd; NULL for an unknown one.
        producer_id: Id of the producer, if it uses sequences or transactions, else -1; NULL in magic 0 and 1.
        producer_epoch: The producer's epoch, -1 for none; NULL in magic 0 and 1.
        sequence: The producer's number of the record, -1 for none; 0 follows 2^31 - 1; NULL in magic 0 and 1.
        partition_leader_epoch: Epoch of the leader that appended the batch; no checksum covers it. NULL in magic 0 and 1.
        is_transactional: Whether the record belongs to a transaction.
        is_control: Whether it is a control record, such as the end of a transaction.
        control_type: ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS or UNKNOWN; NULL for other records.
        error: Why the batch or record is unreadable; NULL for a valid one.
    """
    return column_of('kafka_records', log, verify_crc, max_batch_bytes, max_value_bytes)


def kafka_batches(log: Column | str | bytes) -> Column:
    """The headers of log bytes, without decompressing: a row for each batch of magic 2 and each entry of magic 0 and 1.

    Parameters
    ----------
    log : BINARY
        Log bytes: concatenated entries and record batches, as in a segment file.

    Returns
    -------
    ARRAY<STRUCT<21 fields>>
        position: Position of the entry in the log bytes [bytes].
        size: Size of the whole entry, including its offset and size field [bytes]; NULL for bytes that are not a credible entry.
        base_offset: Offset of the first record; NULL for a compressed message of magic 0 or 1, whose header does not have it.
        last_offset: Offset of the last record that was written; compaction may have removed that record.
        magic: Version of the format: 0, 1 or 2; any other value is returned unchanged.
        crc: The checksum as stored: CRC-32 in magic 0 and 1, CRC-32C in magic 2.
        crc_valid: Whether the checksum is right; NULL if bytes are missing.
        compression: Codec: none, gzip, snappy, lz4, zstd; NULL for an unknown one.
        timestamp_type: CreateTime or LogAppendTime; NULL in magic 0.
        base_timestamp_ms: Base of the records' timestamps, which may also be a delete horizon [ms since epoch].
        max_timestamp_ms: Largest timestamp of the batch; in magic 1, the timestamp of the message [ms since epoch].
        record_count: Number of records that the batch still has; 1 for a plain message, NULL for a compressed message of magic 0 or 1.
        partition_leader_epoch: Set by the broker, not covered by the CRC.
        producer_id: -1 for none.
        producer_epoch: -1 for none.
        base_sequence: Sequence of the first record, -1 for none.
        last_sequence: Sequence of the last record that was written, -1 for none; 0 follows 2^31 - 1.
        is_transactional: Whether the batch belongs to a transaction.
        is_control: Whether it is a control batch, which a broker writes, for example at the end of a transaction.
        delete_horizon_ms: Time from which on compaction may remove the batch's tombstones; NULL if none is set [ms since epoch].
        error: Why the entry cannot be read; NULL for a valid entry.
    """
    return column_of('kafka_batches', log)


def kafka_headers_map(headers: Column | str) -> Column:
    """The headers of a record as a MAP.

    Parameters
    ----------
    headers : ARRAY<STRUCT<key STRING, value BINARY>>
        A record's headers, in order.

    Returns
    -------
    MAP<STRING, BINARY>
    """
    return column_of('kafka_headers_map', headers)


def kafka_next_offset(log: Column | str | bytes) -> Column:
    """The offset after the last entry within kafka_valid_bytes; NULL if there is none.

    Parameters
    ----------
    log : BINARY
        Log bytes: concatenated entries and record batches, as in a segment file.

    Returns
    -------
    BIGINT
    """
    return column_of('kafka_next_offset', log)


def kafka_valid_bytes(log: Column | str | bytes) -> Column:
    """Size of the valid entries at the beginning, which a broker keeps when it recovers [bytes].

    Parameters
    ----------
    log : BINARY
        Log bytes: concatenated entries and record batches, as in a segment file.

    Returns
    -------
    INT
    """
    return column_of('kafka_valid_bytes', log)


def kafka_offset_index(file: Column | str | bytes, base_offset: Column | str | int) -> Column:
    """An .index file: absolute offsets and the positions of their entries in the segment [bytes].

    Parameters
    ----------
    file : BINARY
        A whole file of the partition directory: an index, a snapshot or a checkpoint.
    base_offset : BIGINT
        The base offset of the segment, which is its file name; for `to_kafka_records`, the first record's offset.

    Returns
    -------
    ARRAY<STRUCT<offset BIGINT, position INT>>
        offset: The last offset of the batch that begins at position.
        position: Position of that batch in the segment [bytes].
    """
    return column_of('kafka_offset_index', file, base_offset)


def kafka_time_index(file: Column | str | bytes, base_offset: Column | str | int) -> Column:
    """A .timeindex file: timestamps [ms since epoch] and their absolute offsets.

    Parameters
    ----------
    file : BINARY
        A whole file of the partition directory: an index, a snapshot or a checkpoint.
    base_offset : BIGINT
        The base offset of the segment, which is its file name; for `to_kafka_records`, the first record's offset.

    Returns
    -------
    ARRAY<STRUCT<timestamp_ms BIGINT, offset BIGINT>>
        timestamp_ms: Largest timestamp so far [ms since epoch].
        offset: Offset of the batch with this timestamp.
    """
    return column_of('kafka_time_index', file, base_offset)


def kafka_txn_index(file: Column | str | bytes) -> Column:
    """A .txnindex file: the aborted transactions whose abort marker is in the segment, with their first and last offset.

    Parameters
    ----------
    file : BINARY
        A whole file of the partition directory: an index, a snapshot or a checkpoint.

    Returns
    -------
    ARRAY<STRUCT<version SMALLINT, producer_id BIGINT, first_offset BIGINT, last_offset BIGINT, last_stable_offset BIGINT>>
        version: 0.
        producer_id: Producer id of the transaction.
        first_offset: First offset of the transaction.
        last_offset: Last offset of the transaction, that of its abort marker.
        last_stable_offset: The last stable offset at the abort: no transaction was open below it.
    """
    return column_of('kafka_txn_index', file)


def kafka_producer_snapshot(file: Column | str | bytes) -> Column:
    """A .snapshot file of a partition: the state of each producer at the offset in the file's name. error is the result for the whole file. Complete entries are rows in any case; a file without any is one row with an error.

    Parameters
    ----------
    file : BINARY
        A whole file of the partition directory: an index, a snapshot or a checkpoint.

    Returns
    -------
    ARRAY<STRUCT<9 fields>>
        producer_id: Id of the producer.
        producer_epoch: Epoch of the producer.
        last_sequence: Sequence of the last record of the producer's last batch, -1 for none.
        last_offset: Offset of that record, -1 for none.
        offset_delta: Difference between the last and the first offset of that batch.
        timestamp_ms: Timestamp of the producer's last batch or marker [ms since epoch].
        coordinator_epoch: Epoch of the coordinator that wrote the producer's last marker, -1 for none.
        current_txn_first_offset: First offset of the producer's open transaction.
        error: Error of the whole file, the same in all its rows; NULL for a valid file.
    """
    return column_of('kafka_producer_snapshot', file)


def kafka_leader_epochs(file: Column | str | bytes) -> Column:
    """A leader-epoch-checkpoint file: the offset at which each leader's records begin.

    Parameters
    ----------
    file : BINARY
        A whole file of the partition directory: an index, a snapshot or a checkpoint.

    Returns
    -------
    ARRAY<STRUCT<epoch INT, start_offset BIGINT>>
        epoch: The leader's epoch.
        start_offset: Offset of the first record that the leader wrote.
    """
    return column_of('kafka_leader_epochs', file)


def kafka_group_record(key: Column | str | bytes, value: Column | str | bytes) -> Column:
    """A record of __consumer_offsets, all versions: a group's committed OFFSET, or the state of a GROUP.

    Parameters
    ----------
    key : BINARY
        A record's key; NULL for a null key.
    value : BINARY
        A record's value; NULL for a tombstone.

    Returns
    -------
    STRUCT<16 fields>
        kind: OFFSET, GROUP or OTHER, from the key.
        version: Version of the value; for OTHER, version of the key.
        group: The group's id.
        topic: Topic of the committed offset.
        partition: Partition of the committed offset.
        offset: The committed offset, which is that of the next record to read.
        leader_epoch: Leader epoch of the previous record, -1 for none; from version 3 on.
        metadata: Metadata that the consumer committed with the offset.
        commit_timestamp_ms: Time of the commit [ms since epoch].
        expire_timestamp_ms: Time at which the offset expires [ms since epoch]; only in version 1.
        protocol_type: Protocol type, such as consumer or connect.
        generation: Generation of the group.
        protocol: The assignor in use.
        leader: The member that assigns partitions.
        members: Number of members of the group.
        error: Error of the key, else of the value; NULL if both are valid.
    """
    return column_of('kafka_group_record', key, value)


def kafka_transaction_record(key: Column | str | bytes, value: Column | str | bytes) -> Column:
    """A record of __transaction_state in any version: the state of a transactional id, and the partitions to which its transaction writes.

    Parameters
    ----------
    key : BINARY
        A record's key; NULL for a null key.
    value : BINARY
        A record's value; NULL for a tombstone.

    Returns
    -------
    STRUCT<10 fields>
        version: Version of the value.
        transactional_id: The producer's transactional id.
        producer_id: Producer id of the transactional id.
        producer_epoch: Epoch of the producer; it fences earlier producers.
        timeout_ms: Timeout of a transaction, after which a broker aborts it [ms].
        state: State of the transaction.
        partitions: Partitions to which the transaction writes.
        last_update_timestamp_ms: Time of the last change of the state [ms since epoch].
        start_timestamp_ms: Start time of the transaction [ms since epoch].
        error: Error of the key, else of the value; NULL if both are valid.
    """
    return column_of('kafka_transaction_record', key, value)


def kafka_internal_record(topic: Column | str, key: Column | str | bytes, value: Column | str | bytes) -> Column:
    """A record of __consumer_offsets, __transaction_state, __share_group_state, __cluster_metadata or __remote_log_metadata: key and value as the JSON that Kafka's own dump prints, in every version from Kafka 2.0 to 4.4.

    Parameters
    ----------
    topic : STRING
        The internal topic of the record.
    key : BINARY
        A record's key; NULL for a null key.
    value : BINARY
        A record's value; NULL for a tombstone.

    Returns
    -------
    STRUCT<type STRING, version INT, key STRING, value STRING, error STRING>
        type: The message's name in Kafka's definitions, such as OffsetCommitValue or TopicRecord; also of a tombstone.
        version: Version of the value; NULL for a tombstone, and for an offset sync, which has no version.
        key: The key as JSON.
        value: The value as JSON; NULL for a tombstone.
        error: The error of the key, else of the value. BAD_MAGIC is a message or version that no release of Kafka has, BAD_FIELD any other topic.
    """
    return column_of('kafka_internal_record', topic, key, value)


def kafka_search_offset(log: Column | str | bytes, target: Column | str | int) -> Column:
    """The first entry whose last offset is at least the target: this offset and the position of the entry [bytes].

    Parameters
    ----------
    log : BINARY
        Log bytes: concatenated entries and record batches, as in a segment file.
    target : BIGINT
        The offset to look for.

    Returns
    -------
    STRUCT<offset BIGINT, position INT>
        offset: The entry's last offset.
        position: Position of the entry [bytes].
    """
    return column_of('kafka_search_offset', log, target)


def kafka_explain(log: Column | str | bytes) -> Column:
    """Explains log bytes: a row for each field in order, with position and size [bytes], value and error.

    Parameters
    ----------
    log : BINARY
        Log bytes: concatenated entries and record batches, as in a segment file.

    Returns
    -------
    ARRAY<STRUCT<position INT, size INT, field STRING, hex STRING, value STRING, note STRING>>
        position: Where the bytes begin [bytes].
        size: How many there are [bytes].
        field: Which field they are.
        hex: The bytes themselves; NULL for very many.
        value: The value of the field as text, as the function of that name returns it.
        note: The error code, if any, and then the explanation of the field.
    """
    return column_of('kafka_explain', log)


def kafka_crc(message: Column | str | bytes) -> Column:
    """The message's CRC-32, as stored.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    BIGINT
    """
    return column_of('kafka_crc', message)


def kafka_crc_computed(message: Column | str | bytes) -> Column:
    """The CRC-32, computed over the bytes that exist.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    BIGINT
    """
    return column_of('kafka_crc_computed', message)


def kafka_crc_valid(message: Column | str | bytes) -> Column:
    """Whether the stored and the computed CRC-32 are equal; NULL if bytes are missing.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('kafka_crc_valid', message)


def kafka_magic(message: Column | str | bytes) -> Column:
    """Version of the format: 0 or 1.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    TINYINT
    """
    return column_of('kafka_magic', message)


def kafka_attributes(message: Column | str | bytes) -> Column:
    """The attribute bits: 0-2 codec, 3 timestamp type.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    INT
    """
    return column_of('kafka_attributes', message)


def kafka_compression(message: Column | str | bytes) -> Column:
    """Codec of the message set in the value: none, gzip, snappy, lz4; NULL for an unknown codec.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    STRING
    """
    return column_of('kafka_compression', message)


def kafka_timestamp(message: Column | str | bytes) -> Column:
    """Creation or append time of the message; NULL for magic 0 and for -1.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    TIMESTAMP
    """
    return column_of('kafka_timestamp', message)


def kafka_timestamp_ms(message: Column | str | bytes) -> Column:
    """Creation or append time of the message, as stored [ms since epoch]; NULL for magic 0 and for -1.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    BIGINT
    """
    return column_of('kafka_timestamp_ms', message)


def kafka_timestamp_type(message: Column | str | bytes) -> Column:
    """CreateTime or LogAppendTime; NULL for magic 0.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    STRING
    """
    return column_of('kafka_timestamp_type', message)


def kafka_key(message: Column | str | bytes) -> Column:
    """The key; NULL for a null key.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    BINARY
    """
    return column_of('kafka_key', message)


def kafka_key_size(message: Column | str | bytes) -> Column:
    """The key's size as stored, -1 for null [bytes].

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    INT
    """
    return column_of('kafka_key_size', message)


def kafka_value(message: Column | str | bytes) -> Column:
    """The value; NULL for a null value (tombstone).

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    BINARY
    """
    return column_of('kafka_value', message)


def kafka_value_size(message: Column | str | bytes) -> Column:
    """The value's size as stored, -1 for null [bytes].

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    INT
    """
    return column_of('kafka_value_size', message)


def kafka_error(message: Column | str | bytes) -> Column:
    """Why the message cannot be read: TRUNCATED, BAD_MAGIC (also for a record batch), BAD_LENGTH (a size beyond bytes that are complete by their checksum), CRC_MISMATCH, UNKNOWN_CODEC.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    STRING
    """
    return column_of('kafka_error', message)


def kafka_is_valid(message: Column | str | bytes) -> Column:
    """Whether kafka_error is NULL.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    BOOLEAN
    """
    return column_of('kafka_is_valid', message)


def kafka_message(message: Column | str | bytes) -> Column:
    """All fields above as one STRUCT, decoded in a single pass.

    Parameters
    ----------
    message : BINARY
        One message of magic 0 or 1, from its CRC on.

    Returns
    -------
    STRUCT<15 fields>
        crc: The message's CRC-32, as stored.
        crc_computed: The CRC-32, computed over the bytes that exist.
        crc_valid: Whether the stored and the computed CRC-32 are equal; NULL if bytes are missing.
        magic: Version of the format: 0 or 1. Any other value is returned unchanged.
        attributes: The attribute bits: 0-2 codec, 3 timestamp type.
        compression: Codec of the message set in the value: none, gzip, snappy, lz4; NULL for an unknown codec.
        timestamp: Creation or append time of the message; NULL for magic 0 and for -1.
        timestamp_ms: Creation or append time of the message, as stored [ms since epoch]; NULL for magic 0 and for -1.
        timestamp_type: CreateTime or LogAppendTime; NULL for magic 0.
        key: The key; NULL for a null key.
        key_size: The key's size as stored, -1 for null [bytes].
        value: The value; NULL for a null value (tombstone). The value of a compressed message is a compressed message set.
        value_size: The value's size as stored, -1 for null [bytes].
        error: Why the message cannot be read: TRUNCATED, BAD_MAGIC (also for a record batch), BAD_LENGTH (a size beyond bytes that are complete by their checksum), CRC_MISMATCH, UNKNOWN_CODEC. NULL for a valid message.
        is_valid: Whether kafka_error is NULL.
    """
    return column_of('kafka_message', message)


def to_kafka_message(key: Column | str | bytes, value: Column | str | bytes, timestamp_ms: Column | str | int | None = None, magic: Column | str | int | None = None) -> Column:
    """One message of magic 0 or 1 with its CRC.

    Parameters
    ----------
    key : BINARY
        A record's key; NULL for a null key.
    value : BINARY
        A record's value; NULL for a tombstone.
    timestamp_ms : BIGINT, NULL by default
        The timestamp [ms since epoch].
    magic : INT, NULL by default
        Version of the format to write: 0 or 1 for a message, 0, 1 or 2 for records.

    Returns
    -------
    BINARY
    """
    return column_of('to_kafka_message', key, value, timestamp_ms, magic)


def to_kafka_records(records: Column | str, base_offset: Column | str | int, compression: Column | str, magic: Column | str | int, leader_epoch: Column | str | int | None = None, timestamp_type: Column | str | None = None) -> Column:
    """Log bytes: a record batch (magic 2) or a message set (0, 1) of these records.

    Parameters
    ----------
    records : ARRAY<STRUCT<key BINARY, value BINARY, timestamp_ms BIGINT, headers ARRAY<STRUCT<key STRING, value BINARY>>, offset BIGINT>>
        The records to write, in order; fields may be missing.
    base_offset : BIGINT
        The base offset of the segment, which is its file name; for `to_kafka_records`, the first record's offset.
    compression : STRING
        The codec: none, gzip, snappy or lz4; with magic 2 none, gzip, snappy, lz4 or zstd.
    magic : INT
        Version of the format to write: 0 or 1 for a message, 0, 1 or 2 for records.
    leader_epoch : INT, NULL by default
        Epoch of the leader that appended the batch, in magic 2; -1 by default.
    timestamp_type : STRING, NULL by default
        CreateTime, the default, or LogAppendTime.

    Returns
    -------
    BINARY
    """
    return column_of('to_kafka_records', records, base_offset, compression, magic, leader_epoch, timestamp_type)


def datahub_op(blob: Column | str | bytes) -> Column:
    """payload.op, as written.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_op', blob)


def datahub_operation(blob: Column | str | bytes) -> Column:
    """Kind of operation: INSERT, UPDATE_BEFORE, UPDATE_AFTER (also for UPDATE), DELETE, TRANSACTION, DDL or HEARTBEAT.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_operation', blob)


def datahub_sequence_id(blob: Column | str | bytes) -> Column:
    """payload.sequenceId with all its digits, quoted or not in the JSON.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_sequence_id', blob)


def datahub_event_time(blob: Column | str | bytes) -> Column:
    """When the record changed in the source database.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    TIMESTAMP
    """
    return column_of('datahub_event_time', blob)


def datahub_event_time_ms(blob: Column | str | bytes) -> Column:
    """When the record changed in the source database [ms since epoch].

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    BIGINT
    """
    return column_of('datahub_event_time_ms', blob)


def datahub_system_time(blob: Column | str | bytes) -> Column:
    """When the synchronization handled the message; not every source has it.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    TIMESTAMP
    """
    return column_of('datahub_system_time', blob)


def datahub_system_time_ms(blob: Column | str | bytes) -> Column:
    """When the synchronization handled the message [ms since epoch].

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    BIGINT
    """
    return column_of('datahub_system_time_ms', blob)


def datahub_checkpoint_time(blob: Column | str | bytes) -> Column:
    """Checkpoint from which a synchronization may restart; not every source has it.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    TIMESTAMP
    """
    return column_of('datahub_checkpoint_time', blob)


def datahub_checkpoint_time_ms(blob: Column | str | bytes) -> Column:
    """Checkpoint from which a synchronization may restart [ms since epoch].

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    BIGINT
    """
    return column_of('datahub_checkpoint_time_ms', blob)


def datahub_db_type(blob: Column | str | bytes) -> Column:
    """Kind of the source database, as written.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_db_type', blob)


def datahub_db_version(blob: Column | str | bytes) -> Column:
    """Version of the source database.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_db_version', blob)


def datahub_database(blob: Column | str | bytes) -> Column:
    """Name of the source database.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_database', blob)


def datahub_schema_name(blob: Column | str | bytes) -> Column:
    """Name of the schema within the database, if the database has schemas (PostgreSQL, SQL Server).

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_schema_name', blob)


def datahub_table(blob: Column | str | bytes) -> Column:
    """Name of the source table.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_table', blob)


def datahub_primary_key(blob: Column | str | bytes) -> Column:
    """Names of the primary key's columns; NULL for a table without a key.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    ARRAY<STRING>
    """
    return column_of('datahub_primary_key', blob)


def datahub_columns(blob: Column | str | bytes) -> Column:
    """Names and types of the table's columns: LONG, DOUBLE, BOOLEAN, STRING, DATE or BYTES.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    ARRAY<STRUCT<name STRING, type STRING>>
    """
    return column_of('datahub_columns', blob)


def datahub_before(blob: Column | str | bytes) -> Column:
    """The row before the change as JSON text, as written, for from_json and parse_json.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_before', blob)


def datahub_after(blob: Column | str | bytes) -> Column:
    """The row after the change as JSON text, as written, for from_json and parse_json.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_after', blob)


def datahub_before_map(blob: Column | str | bytes) -> Column:
    """The row before the change, with values as text: numbers as written, BYTES in Base64, null as NULL.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    MAP<STRING, STRING>
    """
    return column_of('datahub_before_map', blob)


def datahub_after_map(blob: Column | str | bytes) -> Column:
    """The row after the change, with values as text: numbers as written, BYTES in Base64, null as NULL.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    MAP<STRING, STRING>
    """
    return column_of('datahub_after_map', blob)


def datahub_ddl_text(blob: Column | str | bytes) -> Column:
    """The statement of a DDL message.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_ddl_text', blob)


def datahub_ddl_meta(blob: Column | str | bytes) -> Column:
    """The serialized statement of a DDL message; NULL if it is not Base64 as java.util.Base64 decodes it.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    BINARY
    """
    return column_of('datahub_ddl_meta', blob)


def datahub_version(blob: Column | str | bytes) -> Column:
    """Version of the format, as written; any is valid.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_version', blob)


def datahub_error(blob: Column | str | bytes) -> Column:
    """The first error of the message, in this order.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_error', blob)


def datahub_is_valid(blob: Column | str | bytes) -> Column:
    """Whether datahub_error is NULL.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    BOOLEAN
    """
    return column_of('datahub_is_valid', blob)


def datahub_change(blob: Column | str | bytes) -> Column:
    """Every field in one pass, named as the functions are without `datahub_`.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRUCT<25 fields>
        op: payload.op, as written.
        operation: Kind of operation: INSERT, UPDATE_BEFORE, UPDATE_AFTER (also for UPDATE), DELETE, TRANSACTION, DDL or HEARTBEAT. NULL for an unknown op.
        sequence_id: payload.sequenceId with all its digits, quoted or not in the JSON. Both halves of an update have the same.
        event_time: When the record changed in the source database.
        event_time_ms: When the record changed in the source database [ms since epoch].
        system_time: When the synchronization handled the message; not every source has it.
        system_time_ms: When the synchronization handled the message [ms since epoch].
        checkpoint_time: Checkpoint from which a synchronization may restart; not every source has it.
        checkpoint_time_ms: Checkpoint from which a synchronization may restart [ms since epoch].
        db_type: Kind of the source database, as written.
        db_version: Version of the source database.
        database: Name of the source database.
        schema_name: Name of the schema within the database, if the database has schemas (PostgreSQL, SQL Server).
        table: Name of the source table.
        primary_key: Names of the primary key's columns; NULL for a table without a key.
        columns: Names and types of the table's columns: LONG, DOUBLE, BOOLEAN, STRING, DATE or BYTES. NULL for an item that is not an object.
        before: The row before the change as JSON text, as written, for from_json and parse_json. If a column repeats, only its last value remains.
        after: The row after the change as JSON text, as written, for from_json and parse_json. If a column repeats, only its last value remains.
        before_map: The row before the change, with values as text: numbers as written, BYTES in Base64, null as NULL. A DATE is yyyy-MM-ddTHH:mm:ss.SSSZ, or as written outside the years 1 to 9999.
        after_map: The row after the change, with values as text: numbers as written, BYTES in Base64, null as NULL. A DATE is yyyy-MM-ddTHH:mm:ss.SSSZ, or as written outside the years 1 to 9999.
        ddl_text: The statement of a DDL message.
        ddl_meta: The serialized statement of a DDL message; NULL if it is not Base64 as java.util.Base64 decodes it.
        version: Version of the format, as written; any is valid.
        error: The first error of the message, in this order. BAD_JSON; op: MISSING_FIELD or UNKNOWN_OPCODE; eventTime: MISSING_FIELD or BAD_FIELD (not an integer); the image that the op needs: MISSING_FIELD or BAD_FIELD. NULL for a valid message.
        is_valid: Whether datahub_error is NULL.
    """
    return column_of('datahub_change', blob)


def datahub_tuple(blob: Column | str | bytes) -> Column:
    """The metadata columns of this message in a TUPLE topic.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRUCT<_sequence_id_ STRING, _operation_type_ STRING, _excute_time_ BIGINT, _source_table_ STRING, _before_image_ STRING, _after_image_ STRING>
        _sequence_id_: Sequence id; both halves of an update have the same.
        _operation_type_: I, U or D.
        _excute_time_: eventTime [ms since epoch].
        _source_table_: The table's name without database and schema.
        _before_image_: Y if this is the row before the change, else N.
        _after_image_: Y if this is the row after the change, else N.
    """
    return column_of('datahub_tuple', blob)


def datahub_shard_key(blob: Column | str | bytes) -> Column:
    """The sharding key: the primary key's values as a JSON array, from the after image, else from the before image.

    Parameters
    ----------
    blob : BINARY
        One message of a BLOB topic: JSON in UTF-8.

    Returns
    -------
    STRING
    """
    return column_of('datahub_shard_key', blob)


def to_datahub_blob(change: Column | str) -> Column:
    """Encodes a message from any of the fields of datahub_change. op takes precedence over operation, and a time in milliseconds over its TIMESTAMP. before and after are JSON objects, inserted unchanged; they take precedence over their maps. error and is_valid are ignored.

    Parameters
    ----------
    change : STRUCT<25 fields>
        The fields to write: any of the fields of `datahub_change`.

    Returns
    -------
    BINARY
    """
    return column_of('to_datahub_blob', change)


def debezium_op(value: Column | str | bytes) -> Column:
    """`op` as written: c, u, d, r, t or m; for a flattened message, `__op`.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_op', value)


def debezium_operation(value: Column | str | bytes) -> Column:
    """The operation: INSERT, UPDATE, DELETE, READ (a row of a snapshot), TRUNCATE, MESSAGE (pg_logical_emit_message), UPSERT (a flattened message without an operation), TRANSACTION, HEARTBEAT or DDL.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_operation', value)


def debezium_connector(value: Column | str | bytes) -> Column:
    """Name of the connector, such as postgresql.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_connector', value)


def debezium_database(value: Column | str | bytes) -> Column:
    """Name of the source database; for Cassandra and Vitess, the keyspace.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_database', value)


def debezium_schema_name(value: Column | str | bytes) -> Column:
    """Name of the schema within the database, if it has schemas.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_schema_name', value)


def debezium_table(value: Column | str | bytes) -> Column:
    """Name of the source table; for MongoDB, the collection.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_table', value)


def debezium_snapshot(value: Column | str | bytes) -> Column:
    """Whether the row comes from a snapshot, as written: true, first, first_in_data_collection, last_in_data_collection, last, incremental or false.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_snapshot', value)


def debezium_before(value: Column | str | bytes) -> Column:
    """The row before the change as JSON text, for from_json and parse_json.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_before', value)


def debezium_after(value: Column | str | bytes) -> Column:
    """The row after the change as JSON text, for from_json and parse_json.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_after', value)


def debezium_before_map(value: Column | str | bytes) -> Column:
    """The row before the change, with values as text: numbers as written, bytes in Base64, null as NULL.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    MAP<STRING, STRING>
    """
    return column_of('debezium_before_map', value)


def debezium_after_map(value: Column | str | bytes) -> Column:
    """The row after the change, with values as text: numbers as written, bytes in Base64, null as NULL.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    MAP<STRING, STRING>
    """
    return column_of('debezium_after_map', value)


def debezium_source(value: Column | str | bytes) -> Column:
    """The complete `source` as JSON text: the connector's data about the origin of the change.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_source', value)


def debezium_event_time(value: Column | str | bytes) -> Column:
    """Time of the change in the source database, in the finest unit that the message has.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    TIMESTAMP
    """
    return column_of('debezium_event_time', value)


def debezium_event_time_ms(value: Column | str | bytes) -> Column:
    """Time of the change in the source database [ms since epoch].

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    BIGINT
    """
    return column_of('debezium_event_time_ms', value)


def debezium_processed_time(value: Column | str | bytes) -> Column:
    """Time at which the connector processed the change, in the finest unit that the message has.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    TIMESTAMP
    """
    return column_of('debezium_processed_time', value)


def debezium_processed_time_ms(value: Column | str | bytes) -> Column:
    """Time at which the connector processed the change [ms since epoch].

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    BIGINT
    """
    return column_of('debezium_processed_time_ms', value)


def debezium_transaction_id(value: Column | str | bytes) -> Column:
    """The id of the transaction, if the connector provides it; also for messages about transactions.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_transaction_id', value)


def debezium_columns(value: Column | str | bytes) -> Column:
    """The table's columns in the embedded schema: Connect's types, and the names of semantic types.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    ARRAY<STRUCT<name STRING, type STRING, logical STRING>>
    """
    return column_of('debezium_columns', value)


def debezium_error(value: Column | str | bytes) -> Column:
    """The first error of the message, in this order: BAD_JSON; op MISSING_FIELD or UNKNOWN_OPCODE; source MISSING_FIELD or BAD_FIELD; its time BAD_FIELD (not an integer); the image that the op needs MISSING_FIELD or BAD_FIELD.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRING
    """
    return column_of('debezium_error', value)


def debezium_is_valid(value: Column | str | bytes) -> Column:
    """Whether debezium_error is NULL.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    BOOLEAN
    """
    return column_of('debezium_is_valid', value)


def debezium_change(value: Column | str | bytes) -> Column:
    """All fields above as one STRUCT, decoded in a single pass, named as the functions are without `debezium_`.

    Parameters
    ----------
    value : BINARY | STRING
        The value of one message, in JSON: with its schema or without, an envelope or flattened.

    Returns
    -------
    STRUCT<20 fields>
        op: `op` as written: c, u, d, r, t or m; for a flattened message, `__op`.
        operation: The operation: INSERT, UPDATE, DELETE, READ (a row of a snapshot), TRUNCATE, MESSAGE (pg_logical_emit_message), UPSERT (a flattened message without an operation), TRANSACTION, HEARTBEAT or DDL. NULL for an unknown op and for a tombstone.
        connector: Name of the connector, such as postgresql.
        database: Name of the source database; for Cassandra and Vitess, the keyspace.
        schema_name: Name of the schema within the database, if it has schemas.
        table: Name of the source table; for MongoDB, the collection.
        snapshot: Whether the row comes from a snapshot, as written: true, first, first_in_data_collection, last_in_data_collection, last, incremental or false.
        before: The row before the change as JSON text, for from_json and parse_json. The text is as written, but a repeated column has only its last value. PostgreSQL fills unknown values with 0, "" and defaults, without a mark. For a flattened delete, the row.
        after: The row after the change as JSON text, for from_json and parse_json. The text is as written, but a repeated column has only its last value. For a flattened message, the row without added fields.
        before_map: The row before the change, with values as text: numbers as written, bytes in Base64, null as NULL.
        after_map: The row after the change, with values as text: numbers as written, bytes in Base64, null as NULL.
        source: The complete `source` as JSON text: the connector's data about the origin of the change. NULL for a flattened message.
        event_time: Time of the change in the source database, in the finest unit that the message has.
        event_time_ms: Time of the change in the source database [ms since epoch].
        processed_time: Time at which the connector processed the change, in the finest unit that the message has.
        processed_time_ms: Time at which the connector processed the change [ms since epoch].
        transaction_id: The id of the transaction, if the connector provides it; also for messages about transactions.
        columns: The table's columns in the embedded schema: Connect's types, and the names of semantic types. NULL without a schema.
        error: The first error of the message, in this order: BAD_JSON; op MISSING_FIELD or UNKNOWN_OPCODE; source MISSING_FIELD or BAD_FIELD; its time BAD_FIELD (not an integer); the image that the op needs MISSING_FIELD or BAD_FIELD. NULL if there is none.
        is_valid: Whether debezium_error is NULL.
    """
    return column_of('debezium_change', value)


def avro_json(value: Column | str | bytes, schema: Column | str) -> Column:
    """One Avro datum as plain JSON, by its schema: no tags for unions, bytes in Base64, logical types as text.

    Parameters
    ----------
    value : BINARY
        One Avro datum.
    schema : STRING
        The schema that the datum was written with, as JSON; the same for all rows.

    Returns
    -------
    STRING
    """
    return column_of('avro_json', value, schema)


def avro_error(value: Column | str | bytes, schema: Column | str) -> Column:
    """Why an Avro datum cannot be read: TRUNCATED, BAD_LENGTH, BAD_FIELD or TOO_LARGE; NULL for one that can.

    Parameters
    ----------
    value : BINARY
        One Avro datum.
    schema : STRING
        The schema that the datum was written with, as JSON; the same for all rows.

    Returns
    -------
    STRING
    """
    return column_of('avro_error', value, schema)


def registry_schema_id(message: Column | str | bytes) -> Column:
    """The number of the schema in a registry, from its wire format header (a zero byte, four bytes); NULL without one.

    Parameters
    ----------
    message : BINARY
        One message: Confluent's wire format header, then the payload.

    Returns
    -------
    INT
    """
    return column_of('registry_schema_id', message)


def registry_payload(message: Column | str | bytes) -> Column:
    """What comes after Confluent's wire format header; NULL without it.

    Parameters
    ----------
    message : BINARY
        One message: Confluent's wire format header, then the payload.

    Returns
    -------
    BINARY
    """
    return column_of('registry_payload', message)
