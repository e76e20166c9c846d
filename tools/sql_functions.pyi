# Generated from the catalogue by `make docs`.
from pyspark.sql import Column

def dbus_version(event: Column | str | bytes) -> Column:
    """Version of the format: 0 (V1) or 2 (V2); other values as stored.

    dbus_version(event BINARY) -> TINYINT
    """

def dbus_byte_order(event: Column | str | bytes) -> Column:
    """BIG_ENDIAN or LITTLE_ENDIAN, NULL for an unknown version. V2's magic word says it; else the order in which the stored length is the row's, else that in which the header's checksum is right, else BIG_ENDIAN.

    dbus_byte_order(event BINARY) -> STRING
    """

def dbus_header_crc(event: Column | str | bytes) -> Column:
    """The header's checksum, as stored.

    dbus_header_crc(event BINARY) -> BIGINT
    """

def dbus_value_crc(event: Column | str | bytes) -> Column:
    """The value's checksum, as stored; of V2 the body's.

    dbus_value_crc(event BINARY) -> BIGINT
    """

def dbus_header_crc_computed(event: Column | str | bytes) -> Column:
    """The header's checksum, computed over the bytes that are there.

    dbus_header_crc_computed(event BINARY) -> BIGINT
    """

def dbus_value_crc_computed(event: Column | str | bytes) -> Column:
    """The value's checksum, computed over the bytes that are there; of V2 the body's.

    dbus_value_crc_computed(event BINARY) -> BIGINT
    """

def dbus_header_crc_valid(event: Column | str | bytes) -> Column:
    """Whether the header's checksum is right; NULL where bytes that it needs are missing.

    dbus_header_crc_valid(event BINARY) -> BOOLEAN
    """

def dbus_value_crc_valid(event: Column | str | bytes) -> Column:
    """Whether the value's checksum is right; NULL where bytes that it needs are missing.

    dbus_value_crc_valid(event BINARY) -> BOOLEAN
    """

def dbus_length(event: Column | str | bytes) -> Column:
    """Length of the whole event, as stored [bytes].

    dbus_length(event BINARY) -> INT
    """

def dbus_attributes(event: Column | str | bytes) -> Column:
    """The 16 attribute bits.

    dbus_attributes(event BINARY) -> INT
    """

def dbus_opcode(event: Column | str | bytes) -> Column:
    """UPSERT or DELETE; NULL where no opcode bit is set.

    dbus_opcode(event BINARY) -> STRING
    """

def dbus_is_trace(event: Column | str | bytes) -> Column:
    """Whether the event is traced.

    dbus_is_trace(event BINARY) -> BOOLEAN
    """

def dbus_is_replicated(event: Column | str | bytes) -> Column:
    """Whether the event came by external replication.

    dbus_is_replicated(event BINARY) -> BOOLEAN
    """

def dbus_key_type(event: Column | str | bytes) -> Column:
    """LONG, BYTES or (V2 only) SCHEMA.

    dbus_key_type(event BINARY) -> STRING
    """

def dbus_is_end_of_period(event: Column | str | bytes) -> Column:
    """Whether the event ends a window: source id -2.

    dbus_is_end_of_period(event BINARY) -> BOOLEAN
    """

def dbus_sequence(event: Column | str | bytes) -> Column:
    """Sequence number of the window (SCN).

    dbus_sequence(event BINARY) -> BIGINT
    """

def dbus_physical_partition_id(event: Column | str | bytes) -> Column:
    """Physical partition; of V2 its only partition id.

    dbus_physical_partition_id(event BINARY) -> SMALLINT
    """

def dbus_logical_partition_id(event: Column | str | bytes) -> Column:
    """Logical partition; of V2 its only partition id.

    dbus_logical_partition_id(event BINARY) -> SMALLINT
    """

def dbus_timestamp_nanos(event: Column | str | bytes) -> Column:
    """Creation time [ns since epoch]. Control events have Java's nanoTime instead.

    dbus_timestamp_nanos(event BINARY) -> BIGINT
    """

def dbus_timestamp(event: Column | str | bytes) -> Column:
    """Creation time, rounded toward the past to microseconds.

    dbus_timestamp(event BINARY) -> TIMESTAMP
    """

def dbus_src_id(event: Column | str | bytes) -> Column:
    """Source id.

    dbus_src_id(event BINARY) -> INT
    """

def dbus_source_range(event: Column | str | bytes) -> Column:
    """Range of the source id: DATA (> 0), GLOBAL_SYSTEM (-19999 to 0) or PRIVATE_SYSTEM.

    dbus_source_range(event BINARY) -> STRING
    """

def dbus_event_type(event: Column | str | bytes) -> Column:
    """Kind of event by the full source id: DATA, END_OF_PERIOD, CHECKPOINT (-3), SCN_REGRESS (-51), ERROR (-49 to -5), PRIVATE (<= -20000) or SYSTEM (any other <= 0).

    dbus_event_type(event BINARY) -> STRING
    """

def dbus_schema_id(event: Column | str | bytes) -> Column:
    """Id of the payload's schema, 16 bytes; of V2 the payload part's digest (16 or 4), NULL without a payload.

    dbus_schema_id(event BINARY) -> BINARY
    """

def dbus_schema_version(event: Column | str | bytes) -> Column:
    """Version of the payload's schema. V1: the first two bytes of the schema id, as REPL_DBUS uses them.

    dbus_schema_version(event BINARY) -> SMALLINT
    """

def dbus_key(event: Column | str | bytes) -> Column:
    """The key as text: a LONG in decimal, BYTES and a SCHEMA key's data as UTF-8; NULL where they are not UTF-8.

    dbus_key(event BINARY) -> STRING
    """

def dbus_key_long(event: Column | str | bytes) -> Column:
    """The key, if it is a LONG.

    dbus_key_long(event BINARY) -> BIGINT
    """

def dbus_key_bytes(event: Column | str | bytes) -> Column:
    """The key's bytes, NULL where it is a LONG; of a SCHEMA key its data.

    dbus_key_bytes(event BINARY) -> BINARY
    """

def dbus_value(event: Column | str | bytes) -> Column:
    """The payload; NULL for V2 without one, X'' for an empty one.

    dbus_value(event BINARY) -> BINARY
    """

def dbus_value_size(event: Column | str | bytes) -> Column:
    """Size of the payload, as the event says [bytes].

    dbus_value_size(event BINARY) -> INT
    """

def dbus_metadata(event: Column | str | bytes) -> Column:
    """Data of V2's metadata part.

    dbus_metadata(event BINARY) -> BINARY
    """

def dbus_metadata_schema_id(event: Column | str | bytes) -> Column:
    """Digest of the metadata's schema, 16 or 4 bytes.

    dbus_metadata_schema_id(event BINARY) -> BINARY
    """

def dbus_metadata_schema_version(event: Column | str | bytes) -> Column:
    """Version of the metadata's schema.

    dbus_metadata_schema_version(event BINARY) -> SMALLINT
    """

def dbus_key_schema_id(event: Column | str | bytes) -> Column:
    """Digest of a SCHEMA key's schema, 16 or 4 bytes.

    dbus_key_schema_id(event BINARY) -> BINARY
    """

def dbus_key_schema_version(event: Column | str | bytes) -> Column:
    """Version of a SCHEMA key's schema.

    dbus_key_schema_version(event BINARY) -> SMALLINT
    """

def dbus_status(event: Column | str | bytes) -> Column:
    """OK, PARTIAL (bytes are missing) or ERR: the verdict of Databus's own scan, stricter where that is unsafe.

    dbus_status(event BINARY) -> STRING
    """

def dbus_error(event: Column | str | bytes) -> Column:
    """The first thing wrong, reading from the front; NULL for an intact event.

    dbus_error(event BINARY) -> STRING
    """

def dbus_is_valid(event: Column | str | bytes) -> Column:
    """Whether nothing is wrong.

    dbus_is_valid(event BINARY) -> BOOLEAN
    """

def dbus_event(event: Column | str | bytes) -> Column:
    """Every field above, in one pass.

    dbus_event(event BINARY) -> STRUCT<…>
    """

def dbus_events(stream: Column | str | bytes) -> Column:
    """Events as they lie one after the other on the wire, V1 and V2 mixed. After damage it goes on at the next header whose checksum is right; the bytes skipped are one row. A torn tail is the last row.

    dbus_events(stream BINARY) -> ARRAY<…>
    """

def dbus_explain(event: Column | str | bytes) -> Column:
    """Every byte of an event in order: which field it is, where it begins and how long it is [bytes], what it says, and what is wrong with it. For a few events that somebody looks at: it is slow.

    dbus_explain(event BINARY) -> ARRAY<…>
    """

def dbus_key_partition(event: Column | str | bytes, n: Column | str | int) -> Column:
    """Which of n clients Databus's key filter gives the event to, 0 to n - 1: abs(key) % n. A key that is text counts as the number that it says, else by its Java hash code; NULL without a key that can be read.

    dbus_key_partition(event BINARY, n INT) -> INT
    """

def dbus_to_json(event: Column | str | bytes, encoding: Column | str = 'JSON') -> Column:
    """The text that Databus writes of the event: the value in Base64 with encoding JSON, as text with JSON_PLAIN_VALUE (also spelt JSON_PLAIN). NULL where a field that the text names cannot be read.

    dbus_to_json(event BINARY, encoding STRING = 'JSON') -> STRING
    """

def dbus_from_json(json: Column | str) -> Column:
    """A V1 event out of Databus's JSON, big-endian, both checksums set; either encoding of the value, keyBytes, opcode and isReplicated too. NULL for any other text.

    dbus_from_json(json STRING) -> BINARY
    """

def to_dbus_event(event: Column | str) -> Column:
    """An event out of any of the fields of dbus_event: V1 or V2, in either byte order. Lengths and checksums are computed; attributes win over the fields derived from them, schema_id over schema_version. What is left out is 0, false or empty.

    to_dbus_event(event STRUCT<…>
    """

def kafka_crc(msg: Column | str | bytes) -> Column:
    """The message's CRC-32, as stored.

    kafka_crc(msg BINARY) -> BIGINT
    """

def kafka_crc_computed(msg: Column | str | bytes) -> Column:
    """The CRC-32 computed over the bytes that are there.

    kafka_crc_computed(msg BINARY) -> BIGINT
    """

def kafka_crc_valid(msg: Column | str | bytes) -> Column:
    """Whether both are equal; NULL where bytes are missing.

    kafka_crc_valid(msg BINARY) -> BOOLEAN
    """

def kafka_magic(msg: Column | str | bytes) -> Column:
    """Version of the format: 0 or 1; other values as stored.

    kafka_magic(msg BINARY) -> TINYINT
    """

def kafka_attributes(msg: Column | str | bytes) -> Column:
    """The attribute bits: 0-2 codec, 3 timestamp type.

    kafka_attributes(msg BINARY) -> INT
    """

def kafka_compression(msg: Column | str | bytes) -> Column:
    """Codec of the message set in the value: none, gzip, snappy, lz4; NULL for an unknown one.

    kafka_compression(msg BINARY) -> STRING
    """

def kafka_timestamp(msg: Column | str | bytes) -> Column:
    """When the message was created or appended; NULL for magic 0 and for -1.

    kafka_timestamp(msg BINARY) -> TIMESTAMP
    """

def kafka_timestamp_ms(msg: Column | str | bytes) -> Column:
    """The same [ms since epoch].

    kafka_timestamp_ms(msg BINARY) -> BIGINT
    """

def kafka_timestamp_type(msg: Column | str | bytes) -> Column:
    """CreateTime or LogAppendTime; NULL for magic 0.

    kafka_timestamp_type(msg BINARY) -> STRING
    """

def kafka_key(msg: Column | str | bytes) -> Column:
    """The key; NULL for a null key.

    kafka_key(msg BINARY) -> BINARY
    """

def kafka_key_size(msg: Column | str | bytes) -> Column:
    """The key's size as stored, -1 for null [bytes].

    kafka_key_size(msg BINARY) -> INT
    """

def kafka_value(msg: Column | str | bytes) -> Column:
    """The value; NULL for a null value (tombstone). Of a compressed message it is the compressed set.

    kafka_value(msg BINARY) -> BINARY
    """

def kafka_value_size(msg: Column | str | bytes) -> Column:
    """The value's size as stored, -1 for null [bytes].

    kafka_value_size(msg BINARY) -> INT
    """

def kafka_error(msg: Column | str | bytes) -> Column:
    """Why the message cannot be read: TRUNCATED, BAD_MAGIC (a record batch, too), BAD_LENGTH (a size beyond bytes that the checksum finds complete), CRC_MISMATCH, UNKNOWN_CODEC; NULL for intact bytes.

    kafka_error(msg BINARY) -> STRING
    """

def kafka_is_valid(msg: Column | str | bytes) -> Column:
    """Whether kafka_error is NULL.

    kafka_is_valid(msg BINARY) -> BOOLEAN
    """

def kafka_message(msg: Column | str | bytes) -> Column:
    """Every field above, in one pass.

    kafka_message(msg BINARY) -> STRUCT<…>
    """

def kafka_batches(data: Column | str | bytes) -> Column:
    """The headers of log bytes: a row for each batch of magic 2 and each entry of magic 0 and 1, nothing decompressed; position and size [bytes], timestamps [ms since epoch]. Torn, zeroed or skipped bytes are one row without a size.

    kafka_batches(data BINARY) -> ARRAY<…>
    """

def kafka_records(data: Column | str | bytes, verify_crc: Column | bool = True, max_batch_bytes: Column | int = 268435456, max_cell_bytes: Column | int = 2147483648) -> Column:
    """Every record of log bytes, compressed sets opened, control records among them. A batch or entry that cannot be read, or whose CRC is wrong, is one row with an error, its position [bytes] and what its header tells. verify_crc => false reads it as if the CRC were right. max_batch_bytes bounds what one compressed batch decompresses to, max_cell_bytes what all those of one cell become as records, 100 bytes each and their content [bytes]: what is more is TOO_LARGE.

    kafka_records(data BINARY, verify_crc BOOLEAN = true, max_batch_bytes BIGINT = 268435456, max_cell_bytes BIGINT = 2147483648) -> ARRAY<…>
    """

def kafka_headers_map(headers: Column | str) -> Column:
    """The headers of a record as a MAP: if a key repeats, the last one wins. map_from_entries fails on such headers.

    kafka_headers_map(headers ARRAY<STRUCT<key STRING, value BINARY>>) -> MAP<STRING, BINARY>
    """

def kafka_next_offset(data: Column | str | bytes) -> Column:
    """The offset after the last entry within kafka_valid_bytes; NULL if there is none.

    kafka_next_offset(data BINARY) -> BIGINT
    """

def kafka_valid_bytes(data: Column | str | bytes) -> Column:
    """How many bytes from the front are whole entries with a right CRC: what a broker's recovery keeps [bytes].

    kafka_valid_bytes(data BINARY) -> INT
    """

def kafka_offset_index(data: Column | str | bytes, base_offset: Column | str | int) -> Column:
    """An .index file: absolute offsets and the positions of their entries in the segment [bytes].

    kafka_offset_index(data BINARY, base_offset BIGINT) -> ARRAY<STRUCT<offset BIGINT, position INT>>
    """

def kafka_time_index(data: Column | str | bytes, base_offset: Column | str | int) -> Column:
    """A .timeindex file: timestamps [ms since epoch] and the absolute offsets that had them.

    kafka_time_index(data BINARY, base_offset BIGINT) -> ARRAY<…>
    """

def kafka_txn_index(data: Column | str | bytes) -> Column:
    """A .txnindex file: the aborted transactions whose marker is in the segment, first to last offset.

    kafka_txn_index(data BINARY) -> ARRAY<…>
    """

def kafka_producer_snapshot(data: Column | str | bytes) -> Column:
    """A .snapshot file of a partition: what the broker knew of each producer at the offset in the file's name. error is the file's: its whole entries are rows all the same, and a file without any is one row of an error.

    kafka_producer_snapshot(data BINARY) -> ARRAY<…>
    """

def kafka_leader_epochs(text: Column | str | bytes) -> Column:
    """A leader-epoch-checkpoint file, whole: where each leader's records begin. Damage is a row of NULLs. A STRING needs CAST(text AS BINARY).

    kafka_leader_epochs(text BINARY) -> ARRAY<STRUCT<epoch INT, start_offset BIGINT>>
    """

def kafka_group_record(key: Column | str | bytes, value: Column | str | bytes) -> Column:
    """A record of __consumer_offsets: a group's committed OFFSET or a GROUP's state, all versions; OTHER for the newer group protocols, of which the key's version alone is answered. A tombstone (NULL value) has its key's fields.

    kafka_group_record(key BINARY, value BINARY) -> STRUCT<…>
    """

def kafka_transaction_record(key: Column | str | bytes, value: Column | str | bytes) -> Column:
    """A record of __transaction_state: the state of a transactional id and the partitions that its transaction writes to, all versions. A tombstone (NULL value) has its key's field.

    kafka_transaction_record(key BINARY, value BINARY) -> STRUCT<…>
    """

def kafka_search_offset(data: Column | str | bytes, target: Column | str | int) -> Column:
    """The first entry whose last offset is at least the target: that offset, and where the entry begins [bytes]; NULL if there is none. Checksums are not computed.

    kafka_search_offset(data BINARY, target BIGINT) -> STRUCT<offset BIGINT, position INT>
    """

def kafka_explain(data: Column | str | bytes) -> Column:
    """Every byte of log bytes in order: which field it is, where it begins and how long it is [bytes], what it says, and what is wrong with it. The records of a compressed batch follow its payload, marked as decompressed, with positions in what it becomes. For a few batches that somebody looks at: it is slow.

    kafka_explain(data BINARY) -> ARRAY<…>
    """

def to_kafka_message(key: Column | str | bytes, value: Column | str | bytes, timestamp_ms: Column | str | int | None = None, magic: Column | str | int | None = None) -> Column:
    """One message of magic 0 or 1 with its CRC; by default 1, and 0 without a timestamp [ms since epoch]. A NULL key is a null key, a NULL value a tombstone; in magic 1 a NULL timestamp is -1, and magic 0 has none.

    to_kafka_message(key BINARY, value BINARY, timestamp_ms BIGINT = NULL, magic INT = NULL) -> BINARY
    """

def to_kafka_records(records: Column | str, base_offset: Column | str | int, compression: Column | str, magic: Column | str | int) -> Column:
    """Log bytes: a record batch (magic 2) or a message set (0, 1) of these records, numbered from base_offset on; compression is none, gzip, snappy, lz4 or zstd, in any case, the last for magic 2 alone. Fields may be left out; a NULL timestamp [ms since epoch] is -1, magic 0 has none; only magic 2 has headers. No records give no bytes.

    to_kafka_records(records ARRAY<…>
    """

def datahub_op(blob: Column | str | bytes) -> Column:
    """payload.op, as written.

    datahub_op(blob BINARY) -> STRING
    """

def datahub_operation(blob: Column | str | bytes) -> Column:
    """What the op is: INSERT, UPDATE_BEFORE, UPDATE_AFTER (an UPDATE too), DELETE, TRANSACTION, DDL or HEARTBEAT; NULL for an op that is not known.

    datahub_operation(blob BINARY) -> STRING
    """

def datahub_sequence_id(blob: Column | str | bytes) -> Column:
    """payload.sequenceId with all its digits, quoted or bare in the JSON. Both halves of an update have the same.

    datahub_sequence_id(blob BINARY) -> STRING
    """

def datahub_event_time(blob: Column | str | bytes) -> Column:
    """When the record changed in the source database.

    datahub_event_time(blob BINARY) -> TIMESTAMP
    """

def datahub_event_time_ms(blob: Column | str | bytes) -> Column:
    """When the record changed in the source database [ms since epoch].

    datahub_event_time_ms(blob BINARY) -> BIGINT
    """

def datahub_system_time(blob: Column | str | bytes) -> Column:
    """When the synchronization handled the message; not every source has it.

    datahub_system_time(blob BINARY) -> TIMESTAMP
    """

def datahub_system_time_ms(blob: Column | str | bytes) -> Column:
    """When the synchronization handled the message [ms since epoch].

    datahub_system_time_ms(blob BINARY) -> BIGINT
    """

def datahub_checkpoint_time(blob: Column | str | bytes) -> Column:
    """Where a synchronization may start again; not every source has it.

    datahub_checkpoint_time(blob BINARY) -> TIMESTAMP
    """

def datahub_checkpoint_time_ms(blob: Column | str | bytes) -> Column:
    """Where a synchronization may start again [ms since epoch].

    datahub_checkpoint_time_ms(blob BINARY) -> BIGINT
    """

def datahub_db_type(blob: Column | str | bytes) -> Column:
    """Kind of the source database, as written.

    datahub_db_type(blob BINARY) -> STRING
    """

def datahub_db_version(blob: Column | str | bytes) -> Column:
    """Version of the source database.

    datahub_db_version(blob BINARY) -> STRING
    """

def datahub_database(blob: Column | str | bytes) -> Column:
    """Name of the source database.

    datahub_database(blob BINARY) -> STRING
    """

def datahub_schema_name(blob: Column | str | bytes) -> Column:
    """Name of the schema within the database, where it has such (PostgreSQL, SQL Server).

    datahub_schema_name(blob BINARY) -> STRING
    """

def datahub_table(blob: Column | str | bytes) -> Column:
    """Name of the source table.

    datahub_table(blob BINARY) -> STRING
    """

def datahub_primary_key(blob: Column | str | bytes) -> Column:
    """Names of the primary key's columns; NULL for a table without a key.

    datahub_primary_key(blob BINARY) -> ARRAY<STRING>
    """

def datahub_columns(blob: Column | str | bytes) -> Column:
    """The table's columns: LONG, DOUBLE, BOOLEAN, STRING, DATE or BYTES. NULL for an item that is not an object.

    datahub_columns(blob BINARY) -> ARRAY<STRUCT<name STRING, type STRING>>
    """

def datahub_before(blob: Column | str | bytes) -> Column:
    """The row before the change as JSON text, for from_json and parse_json: as written, but of a column that repeats only the last value.

    datahub_before(blob BINARY) -> STRING
    """

def datahub_after(blob: Column | str | bytes) -> Column:
    """The row after the change as JSON text, for from_json and parse_json: as written, but of a column that repeats only the last value.

    datahub_after(blob BINARY) -> STRING
    """

def datahub_before_map(blob: Column | str | bytes) -> Column:
    """The row before the change, values as text: numbers as written, BYTES in Base64, a DATE as yyyy-MM-ddTHH:mm:ss.SSSZ (as written outside of the years 1 to 9999), null as NULL.

    datahub_before_map(blob BINARY) -> MAP<STRING, STRING>
    """

def datahub_after_map(blob: Column | str | bytes) -> Column:
    """The row after the change, values as text: numbers as written, BYTES in Base64, a DATE as yyyy-MM-ddTHH:mm:ss.SSSZ (as written outside of the years 1 to 9999), null as NULL.

    datahub_after_map(blob BINARY) -> MAP<STRING, STRING>
    """

def datahub_ddl_text(blob: Column | str | bytes) -> Column:
    """The statement of a DDL message.

    datahub_ddl_text(blob BINARY) -> STRING
    """

def datahub_ddl_meta(blob: Column | str | bytes) -> Column:
    """The serialized statement of a DDL message, NULL where it is no Base64 (as java.util.Base64 reads it).

    datahub_ddl_meta(blob BINARY) -> BINARY
    """

def datahub_version(blob: Column | str | bytes) -> Column:
    """Version of the format, as written; none is refused.

    datahub_version(blob BINARY) -> STRING
    """

def datahub_error(blob: Column | str | bytes) -> Column:
    """What is wrong with the message, the first that applies: BAD_JSON; op MISSING_FIELD or UNKNOWN_OPCODE; eventTime MISSING_FIELD or BAD_FIELD (not an integer); the image that the op needs MISSING_FIELD or BAD_FIELD. NULL for none.

    datahub_error(blob BINARY) -> STRING
    """

def datahub_is_valid(blob: Column | str | bytes) -> Column:
    """Whether datahub_error is NULL.

    datahub_is_valid(blob BINARY) -> BOOLEAN
    """

def datahub_change(blob: Column | str | bytes) -> Column:
    """Every field in one pass, named as the functions are without `datahub_`.

    datahub_change(blob BINARY) -> STRUCT<…>
    """

def datahub_tuple(blob: Column | str | bytes) -> Column:
    """The metadata columns that a TUPLE topic has for this message: I, U or D, eventTime [ms since epoch], the table's name, Y or N for each image. NULL for a message that such a topic cannot carry.

    datahub_tuple(blob BINARY) -> STRUCT<…>
    """

def datahub_shard_key(blob: Column | str | bytes) -> Column:
    """What the message is sharded by: the primary key's values as a JSON array, out of the after image, else the before image; the table's name where there is no key or no image.

    datahub_shard_key(blob BINARY) -> STRING
    """

def to_datahub_blob(change: Column | str) -> Column:
    """The message that datahub_change reads as this, out of any of its fields. op wins over operation, a time in milliseconds over its TIMESTAMP, before and after (JSON objects, inserted as they are) over their maps; error and is_valid are not looked at.

    to_datahub_blob(change STRUCT<…>
    """

def avro_json(value: Column | str | bytes, schema: Column | str) -> Column:
    """One Avro datum as plain JSON, by its schema: no tags for unions, bytes in Base64, logical types as text. NULL where it cannot be read.

    avro_json(value BINARY, schema STRING CONSTANT) -> STRING
    """

def avro_error(value: Column | str | bytes, schema: Column | str) -> Column:
    """Why an Avro datum cannot be read: TRUNCATED, BAD_LENGTH, BAD_FIELD or TOO_LARGE; NULL for one that can.

    avro_error(value BINARY, schema STRING CONSTANT) -> STRING
    """

def registry_schema_id(value: Column | str | bytes) -> Column:
    """The number of the schema in a registry, from Confluent's prefix (a zero byte, four bytes); NULL without it.

    registry_schema_id(value BINARY) -> INT
    """

def registry_payload(value: Column | str | bytes) -> Column:
    """What comes after Confluent's prefix; NULL without it.

    registry_payload(value BINARY) -> BINARY
    """
