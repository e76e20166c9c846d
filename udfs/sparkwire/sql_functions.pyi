# Generated from the catalogue by `make docs`.
from pyspark.sql import Column

def dbus_version(event: Column | str) -> Column:
    """Version of the format: 0 (V1) or 2 (V2); other values as stored.

    dbus_version(event BINARY) -> TINYINT
    """

def dbus_byte_order(event: Column | str) -> Column:
    """BIG_ENDIAN or LITTLE_ENDIAN, NULL for an unknown version. V2's magic word tells; else the order in which the stored length is the row's, else that in which the header's checksum is right, else BIG_ENDIAN.

    dbus_byte_order(event BINARY) -> STRING
    """

def dbus_header_crc(event: Column | str) -> Column:
    """The header's checksum, as stored.

    dbus_header_crc(event BINARY) -> BIGINT
    """

def dbus_value_crc(event: Column | str) -> Column:
    """The value's checksum, as stored; of V2 the body's.

    dbus_value_crc(event BINARY) -> BIGINT
    """

def dbus_header_crc_computed(event: Column | str) -> Column:
    """The header's checksum, computed over the bytes that are there.

    dbus_header_crc_computed(event BINARY) -> BIGINT
    """

def dbus_value_crc_computed(event: Column | str) -> Column:
    """The value's checksum, computed over the bytes that are there; of V2 the body's.

    dbus_value_crc_computed(event BINARY) -> BIGINT
    """

def dbus_header_crc_valid(event: Column | str) -> Column:
    """Whether the header's checksum is right; NULL where bytes that it needs are missing.

    dbus_header_crc_valid(event BINARY) -> BOOLEAN
    """

def dbus_value_crc_valid(event: Column | str) -> Column:
    """Whether the value's checksum is right; NULL where bytes that it needs are missing.

    dbus_value_crc_valid(event BINARY) -> BOOLEAN
    """

def dbus_length(event: Column | str) -> Column:
    """Length of the whole event, as stored [bytes].

    dbus_length(event BINARY) -> INT
    """

def dbus_attributes(event: Column | str) -> Column:
    """The 16 attribute bits.

    dbus_attributes(event BINARY) -> INT
    """

def dbus_opcode(event: Column | str) -> Column:
    """UPSERT or DELETE; NULL where no opcode bit is set.

    dbus_opcode(event BINARY) -> STRING
    """

def dbus_is_trace(event: Column | str) -> Column:
    """Whether the event is traced.

    dbus_is_trace(event BINARY) -> BOOLEAN
    """

def dbus_is_replicated(event: Column | str) -> Column:
    """Whether the event came by external replication.

    dbus_is_replicated(event BINARY) -> BOOLEAN
    """

def dbus_key_type(event: Column | str) -> Column:
    """LONG, BYTES or (V2 only) SCHEMA.

    dbus_key_type(event BINARY) -> STRING
    """

def dbus_is_end_of_period(event: Column | str) -> Column:
    """Whether the event ends a window: source id -2.

    dbus_is_end_of_period(event BINARY) -> BOOLEAN
    """

def dbus_sequence(event: Column | str) -> Column:
    """Sequence number of the window (SCN).

    dbus_sequence(event BINARY) -> BIGINT
    """

def dbus_physical_partition_id(event: Column | str) -> Column:
    """Physical partition; of V2 its only partition id.

    dbus_physical_partition_id(event BINARY) -> SMALLINT
    """

def dbus_logical_partition_id(event: Column | str) -> Column:
    """Logical partition; of V2 its only partition id.

    dbus_logical_partition_id(event BINARY) -> SMALLINT
    """

def dbus_timestamp_nanos(event: Column | str) -> Column:
    """Creation time [ns since epoch]. Control events have Java's nanoTime instead.

    dbus_timestamp_nanos(event BINARY) -> BIGINT
    """

def dbus_timestamp(event: Column | str) -> Column:
    """Creation time, rounded toward the past to microseconds.

    dbus_timestamp(event BINARY) -> TIMESTAMP
    """

def dbus_src_id(event: Column | str) -> Column:
    """Source id.

    dbus_src_id(event BINARY) -> INT
    """

def dbus_source_range(event: Column | str) -> Column:
    """Range of the source id: DATA (> 0), GLOBAL_SYSTEM (-19999 to 0) or PRIVATE_SYSTEM.

    dbus_source_range(event BINARY) -> STRING
    """

def dbus_event_type(event: Column | str) -> Column:
    """Kind of event by the full source id: DATA, END_OF_PERIOD, CHECKPOINT (-3), SCN_REGRESS (-51), ERROR (-49 to -5), PRIVATE (<= -20000) or SYSTEM (any other <= 0).

    dbus_event_type(event BINARY) -> STRING
    """

def dbus_schema_id(event: Column | str) -> Column:
    """Id of the payload's schema, 16 bytes; of V2 the payload part's digest (16 or 4), NULL without a payload.

    dbus_schema_id(event BINARY) -> BINARY
    """

def dbus_schema_version(event: Column | str) -> Column:
    """Version of the payload's schema. V1: the first two bytes of the schema id, as REPL_DBUS uses them.

    dbus_schema_version(event BINARY) -> SMALLINT
    """

def dbus_key(event: Column | str) -> Column:
    """The key as text: a LONG in decimal, BYTES and a SCHEMA key's data as UTF-8; NULL where they are not UTF-8.

    dbus_key(event BINARY) -> STRING
    """

def dbus_key_long(event: Column | str) -> Column:
    """The key, if it is a LONG.

    dbus_key_long(event BINARY) -> BIGINT
    """

def dbus_key_bytes(event: Column | str) -> Column:
    """The key's bytes, NULL where it is a LONG; of a SCHEMA key its data.

    dbus_key_bytes(event BINARY) -> BINARY
    """

def dbus_value(event: Column | str) -> Column:
    """The payload; NULL for V2 without one, X'' for an empty one.

    dbus_value(event BINARY) -> BINARY
    """

def dbus_value_size(event: Column | str) -> Column:
    """Size of the payload, as the event tells it [bytes].

    dbus_value_size(event BINARY) -> INT
    """

def dbus_metadata(event: Column | str) -> Column:
    """Data of V2's metadata part.

    dbus_metadata(event BINARY) -> BINARY
    """

def dbus_metadata_schema_id(event: Column | str) -> Column:
    """Digest of the metadata's schema, 16 or 4 bytes.

    dbus_metadata_schema_id(event BINARY) -> BINARY
    """

def dbus_metadata_schema_version(event: Column | str) -> Column:
    """Version of the metadata's schema.

    dbus_metadata_schema_version(event BINARY) -> SMALLINT
    """

def dbus_key_schema_id(event: Column | str) -> Column:
    """Digest of a SCHEMA key's schema, 16 or 4 bytes.

    dbus_key_schema_id(event BINARY) -> BINARY
    """

def dbus_key_schema_version(event: Column | str) -> Column:
    """Version of a SCHEMA key's schema.

    dbus_key_schema_version(event BINARY) -> SMALLINT
    """

def dbus_status(event: Column | str) -> Column:
    """OK, PARTIAL (bytes are missing) or ERR: the verdict of Databus's own scan, stricter where that is unsafe.

    dbus_status(event BINARY) -> STRING
    """

def dbus_error(event: Column | str) -> Column:
    """The first thing wrong, reading from the front; NULL for a sound event.

    dbus_error(event BINARY) -> STRING
    """

def dbus_is_valid(event: Column | str) -> Column:
    """Whether nothing is wrong.

    dbus_is_valid(event BINARY) -> BOOLEAN
    """

def dbus_event(event: Column | str) -> Column:
    """Every field above, in one pass.

    dbus_event(event BINARY) -> STRUCT<…>
    """

def dbus_events(stream: Column | str) -> Column:
    """Events as they lie one behind the other on the wire, V1 and V2 mixed. After damage it goes on at the next header whose checksum is right; the bytes skipped are one row. A torn tail is the last row.

    dbus_events(stream BINARY) -> ARRAY<…>
    """
