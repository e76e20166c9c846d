"""What an event has: its fields in the order of ``dbus_event``, each a scalar function of its own and a column of the struct."""

from __future__ import annotations

from typing import Final

import numpy as np

from sparkwire.core.builders import Column
from sparkwire.databus import accessors
from sparkwire.databus.accessors import attribute, crc_computed, crc_valid, fixed, number, span
from sparkwire.databus.layout import V1_REPLICATED, V1_TRACE, V2_REPLICATED, V2_TRACE
from sparkwire.databus.parts import (
    KEY,
    KEY_DIGEST,
    KEY_VERSION,
    METADATA,
    METADATA_DIGEST,
    METADATA_VERSION,
    VALUE,
    VALUE_SIZE,
)

FIELDS: Final = (
    fixed("version", "dbus_version(event) -> 0"),
    Column(
        "byte_order",
        "STRING",
        "BIG_ENDIAN or LITTLE_ENDIAN, NULL for an unknown version. V2's magic word says it; else the order in which the stored "
        "length is the row's, else that in which the header's checksum is right, else BIG_ENDIAN.",
        accessors.byte_order,
        "dbus_byte_order(event) -> BIG_ENDIAN",
    ),
    fixed("header_crc", "dbus_header_crc(event) -> 847328966"),
    fixed("value_crc", "dbus_value_crc(event) -> 4029829531"),
    Column(
        "header_crc_computed",
        "BIGINT",
        "The header's checksum, computed over the bytes that are there.",
        crc_computed(0),
        "dbus_header_crc_computed(event) -> 847328966",
    ),
    Column(
        "value_crc_computed",
        "BIGINT",
        "The value's checksum, computed over the bytes that are there; of V2 the body's.",
        crc_computed(1),
        "dbus_value_crc_computed(event) -> 4029829531",
    ),
    Column(
        "header_crc_valid",
        "BOOLEAN",
        "Whether the header's checksum is right; NULL where bytes that it needs are missing.",
        crc_valid(0),
        "dbus_header_crc_valid(event) -> true",
    ),
    Column(
        "value_crc_valid",
        "BOOLEAN",
        "Whether the value's checksum is right; NULL where bytes that it needs are missing.",
        crc_valid(1),
        "dbus_value_crc_valid(event) -> true",
    ),
    fixed("length", "dbus_length(event) -> 66"),
    fixed("attributes", "dbus_attributes(event) -> 1"),
    Column(
        "opcode",
        "STRING",
        "UPSERT or DELETE; NULL where no opcode bit is set.",
        accessors.opcode,
        "dbus_opcode(event) -> UPSERT",
    ),
    Column(
        "is_trace",
        "BOOLEAN",
        "Whether the event is traced.",
        attribute(V1_TRACE, V2_TRACE),
        "dbus_is_trace(event) -> false",
    ),
    Column(
        "is_replicated",
        "BOOLEAN",
        "Whether the event came by external replication.",
        attribute(V1_REPLICATED, V2_REPLICATED),
        "dbus_is_replicated(event) -> false",
    ),
    Column(
        "key_type",
        "STRING",
        "LONG, BYTES or (V2 only) SCHEMA.",
        accessors.key_type,
        "dbus_key_type(event_v2) -> SCHEMA",
    ),
    Column(
        "is_end_of_period",
        "BOOLEAN",
        "Whether the event ends a window: source id -2.",
        accessors.is_end_of_period,
        "dbus_is_end_of_period(event) -> false",
    ),
    fixed("sequence", "dbus_sequence(event) -> 77"),
    fixed("physical_partition_id", "dbus_physical_partition_id(event) -> -1"),
    fixed("logical_partition_id", "dbus_logical_partition_id(event) -> 3"),
    fixed("timestamp_nanos", "dbus_timestamp_nanos(event) -> 1400000000000000001"),
    Column(
        "timestamp",
        "TIMESTAMP",
        "Creation time, rounded toward the past to microseconds.",
        accessors.timestamp,
        "unix_micros(dbus_timestamp(event)) -> 1400000000000000",
    ),
    fixed("src_id", "dbus_src_id(event) -> 40"),
    Column(
        "source_range",
        "STRING",
        "Range of the source id: DATA (> 0), GLOBAL_SYSTEM (-19999 to 0) or PRIVATE_SYSTEM.",
        accessors.source_range,
        "dbus_source_range(event) -> DATA",
    ),
    Column(
        "event_type",
        "STRING",
        "Kind of event by the full source id: DATA, END_OF_PERIOD, CHECKPOINT (-3), SCN_REGRESS (-51), ERROR (-49 to -5), "
        "PRIVATE (<= -20000) or SYSTEM (any other <= 0).",
        accessors.event_type,
        "dbus_event_type(event) -> DATA",
    ),
    Column(
        "schema_id",
        "BINARY",
        "Id of the payload's schema, 16 bytes; of V2 the payload part's digest (16 or 4), NULL without a payload.",
        accessors.schema_id,
        "hex(dbus_schema_id(event)) -> 0102030405060708090A0B0C0D0E0F10",
    ),
    Column(
        "schema_version",
        "SMALLINT",
        "Version of the payload's schema. V1: the first two bytes of the schema id, as REPL_DBUS uses them.",
        accessors.schema_version,
        "dbus_schema_version(event_v2) -> 1",
    ),
    Column(
        "key",
        "STRING",
        "The key as text: a LONG in decimal, BYTES and a SCHEMA key's data as UTF-8; NULL where they are not UTF-8.",
        accessors.key_text,
        "dbus_key(event) -> 5",
    ),
    Column("key_long", "BIGINT", "The key, if it is a LONG.", accessors.key_long, "dbus_key_long(event) -> 5"),
    Column(
        "key_bytes",
        "BINARY",
        "The key's bytes, NULL where it is a LONG; of a SCHEMA key its data.",
        span(KEY),
        "hex(dbus_key_bytes(event_v2)) -> A972D417",
    ),
    Column(
        "value",
        "BINARY",
        "The payload; NULL for V2 without one, X'' for an empty one.",
        span(VALUE),
        "CAST(dbus_value(event) AS STRING) -> hello",
    ),
    Column(
        "value_size",
        "INT",
        "Size of the payload, as the event says [bytes].",
        number(VALUE_SIZE, np.int32),
        "dbus_value_size(event) -> 5",
    ),
    Column("metadata", "BINARY", "Data of V2's metadata part.", span(METADATA), "hex(dbus_metadata(event_v2)) -> 27"),
    Column(
        "metadata_schema_id",
        "BINARY",
        "Digest of the metadata's schema, 16 or 4 bytes.",
        span(METADATA_DIGEST),
        "hex(dbus_metadata_schema_id(event_v2)) -> D2A55DFC",
    ),
    Column(
        "metadata_schema_version",
        "SMALLINT",
        "Version of the metadata's schema.",
        number(METADATA_VERSION, np.int16),
        "dbus_metadata_schema_version(event_v2) -> 7",
    ),
    Column(
        "key_schema_id",
        "BINARY",
        "Digest of a SCHEMA key's schema, 16 or 4 bytes.",
        span(KEY_DIGEST),
        "hex(dbus_key_schema_id(event_v2)) -> 336BC592EC108633AE82DB910A5EEBCA",
    ),
    Column(
        "key_schema_version",
        "SMALLINT",
        "Version of a SCHEMA key's schema.",
        number(KEY_VERSION, np.int16),
        "dbus_key_schema_version(event_v2) -> 3",
    ),
    Column(
        "status",
        "STRING",
        "OK, PARTIAL (bytes are missing) or ERR: the verdict of Databus's own scan, stricter where that is unsafe.",
        accessors.status,
        "dbus_status(event) -> OK",
    ),
    Column(
        "error",
        "STRING",
        "The first thing wrong, reading from the front; NULL for a valid event.",
        accessors.error,
        "dbus_error(substring(event, 1, 60)) -> TRUNCATED",
    ),
    Column("is_valid", "BOOLEAN", "Whether nothing is wrong.", accessors.is_valid, "dbus_is_valid(event) -> true"),
)
