"""LinkedIn Databus: serialized change events, V1 and V2, big- and little-endian.

    stream   event event …                      as a relay sends them, one after the other
    event    V1 | V2
    V1       header  value                      `layout.V1`; a BYTES key is in the header's place of the
                                                LONG key: i32 length, bytes
    V2       header  key  [metadata]  [payload] `layout.V2`
    key      i64 | i32 length, bytes | part     LONG, BYTES, SCHEMA; in V2 derived by two attribute bits
    metadata, payload   part                    each there if its attribute bit is set
    part     i32 length, i16 attributes, digest (16 bytes MD5 or 4 bytes CRC-32), data

The version byte is 0 for V1 and 2 for V2. Only V2's magic word says the byte order, so a row
is read in the order in which it makes sense (`event.event_variant`).

Checksums are CRC-32 with neither the initial value nor the final inversion of zlib's: that of zeros, and
of nothing, is 0. The body's checksum is in the header, so it is covered by the header's:

    V1   header_crc: length … key (LONG) or key's length (BYTES)     value_crc: what follows
    V2   header_crc: value_crc … end of the key                      value_crc: the parts after the key

Where this reader is stricter than Databus's own scan, which is unsafe there:

- V2's magic word has to be right (`BAD_MAGIC`): Databus reads on whatever it is;
- 45 <= V2's header length <= length (`BAD_LENGTH`): Databus loops on 0, throws near the bounds of an INT, and
  takes one flipped bit there for the beginning of a longer event;
- a V1 key has to end within the event, a V2 key within the header, parts within the event, and a part's kind of
  digest has to be known (`BAD_LENGTH`): Databus throws when the key or the part is asked for, or reads a
  neighbour's bytes.

What the original leaves open: of a row whose version is unknown only the version is answered, it is `BAD_MAGIC`.
A V2 key type of 0 is no error, such an event has no key. Resuming in a damaged stream (`dbus_events`) believes only
headers of up to 64 KiB.

The way back, and what it does where the original is silent or unsafe: `writer`, `to_json`, `from_json`.

Source: linkedin/databus, `com.linkedin.databus.core.DbusEventV1` and `DbusEventV2`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from sparkwire.builders import Column, Shared, rows_function, scalar_functions, struct_function
from sparkwire.dump import RETURNS, explained
from sparkwire.formats.databus import accessors, explain, layout, stream
from sparkwire.formats.databus.accessors import attribute, crc_computed, crc_valid, fixed, number, span
from sparkwire.formats.databus.from_json import from_json
from sparkwire.formats.databus.input_fields import takable
from sparkwire.formats.databus.layout import V1_REPLICATED, V1_TRACE, V2_REPLICATED, V2_TRACE
from sparkwire.formats.databus.partition import key_partition
from sparkwire.formats.databus.parts import (
    KEY,
    KEY_DIGEST,
    KEY_VERSION,
    METADATA,
    METADATA_DIGEST,
    METADATA_VERSION,
    VALUE,
    VALUE_SIZE,
)
from sparkwire.formats.databus.scan import Events
from sparkwire.formats.databus.to_json import to_json
from sparkwire.formats.databus.writer import to_event
from sparkwire.function import Format, Function
from sparkwire.sqltype import sql_name

_EVENT: Final = bytes.fromhex(
    "00328136c6000000420001000000000000004dffff0003136dcc951d8c0001002801020304"
    "05060708090a0b0c0d0e0f10f032519b000000000000000568656c6c6f"
)
_END_OF_PERIOD: Final = bytes.fromhex(
    "00679046890000003d0000000000000000004dffff0000136dcc951d8c0001fffe00000000"
    "000000000000000000000000000000000000000000000000"
)
_EVENT_V2: Final = bytes.fromhex(
    "02cafedeed00000047f170d867779bfe600000007300cd136dcc9524e7cd15000000640001"
    "00000000000003e800000004000c336bc592ec108633ae82db910a5eebcaa972d417000000"
    "01001dd2a55dfc270000000b0004101d2a3744515e6b7885929facb9c6d3045a4d856d8722"
    "69a4be98"
)
SAMPLES: Final = {
    "event": _EVENT,
    "event_v2": _EVENT_V2,
    "stream": _EVENT + _EVENT_V2 + b"\xff\xff" + _END_OF_PERIOD,
}
"""Written by Databus itself: a V1 event, a V2 event with metadata and a SCHEMA key, a stream with two stray bytes."""

_events_of = Shared(Events)


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
    Column(
        "key_long",
        "BIGINT",
        "The key, if it is a LONG.",
        accessors.key_long,
        "dbus_key_long(event) -> 5",
    ),
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
    Column(
        "metadata",
        "BINARY",
        "Data of V2's metadata part.",
        span(METADATA),
        "hex(dbus_metadata(event_v2)) -> 27",
    ),
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
        "The first thing wrong, reading from the front; NULL for an intact event.",
        accessors.error,
        "dbus_error(substring(event, 1, 60)) -> TRUNCATED",
    ),
    Column(
        "is_valid",
        "BOOLEAN",
        "Whether nothing is wrong.",
        accessors.is_valid,
        "dbus_is_valid(event) -> true",
    ),
)

_STRUCT: Final = struct_function(
    "dbus_event(event BINARY)",
    FIELDS,
    partial(Events, check=True),
    "Every field above, in one pass.",
    "dbus_event(event).sequence -> 77",
)

FUNCTIONS: Final = (
    *scalar_functions("dbus_{}(event BINARY)", FIELDS, _events_of),
    _STRUCT,
    rows_function(
        "dbus_events(stream BINARY)",
        stream.TABLE,
        stream.Stream,
        "Events as they lie one after the other on the wire, V1 and V2 mixed. After damage it goes on at the next header whose "
        "checksum is right; the bytes skipped are one row. A torn tail is the last row.",
        "transform(dbus_events(stream), e -> e.status) -> [OK, OK, ERR, OK]",
    ),
    Function(
        f"dbus_explain(event BINARY) -> {RETURNS}",
        "Every byte of an event in order: which field it is, where it begins and how long it is [bytes], what it says, and what "
        "is wrong with it. For a few events that somebody looks at: it is slow.",
        explained(explain.explain),
        "filter(dbus_explain(event), line -> line.field = 'sequence')[0].value -> 77",
    ),
    Function(
        "dbus_key_partition(event BINARY, n INT) -> INT",
        "Which of n clients Databus's key filter gives the event to, 0 to n - 1: abs(key) % n. A key that is text counts as the "
        "number that it says, else by its Java hash code; NULL without a key that can be read.",
        key_partition,
        "dbus_key_partition(event, 3) -> 2",
    ),
    Function(
        "dbus_to_json(event BINARY, encoding STRING = 'JSON') -> STRING",
        "The text that Databus writes of the event: the value in Base64 with encoding JSON, as text with JSON_PLAIN_VALUE (also "
        "spelt JSON_PLAIN). NULL where a field that the text names cannot be read.",
        to_json,
        "get_json_object(dbus_to_json(event), '$.value') -> aGVsbG8=",
    ),
    Function(
        "dbus_from_json(json STRING) -> BINARY",
        "A V1 event out of Databus's JSON, big-endian, both checksums set; either encoding of the value, keyBytes, opcode and "
        "isReplicated too. NULL for any other text.",
        from_json,
        "dbus_from_json(dbus_to_json(event)) = event -> true",
    ),
    Function(
        f"to_dbus_event(event {sql_name(takable(_STRUCT.return_type))}) -> BINARY",
        "An event out of any of the fields of dbus_event: V1 or V2, in either byte order. Lengths and checksums are computed; "
        "attributes win over the fields derived from them, schema_id over schema_version. What is left out is 0, false or empty.",
        to_event,
        "to_dbus_event(dbus_event(event_v2)) = event_v2 -> true",
    ),
)

FORMAT: Final = Format(
    "databus",
    "Databus",
    "dbus_",
    FUNCTIONS,
    SAMPLES,
    "dbus_event",
    {"Databus V1, big-endian": layout.V1, "Databus V2, big-endian": layout.V2},
)
