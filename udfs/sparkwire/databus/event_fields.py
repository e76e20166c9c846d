"""The fields of an event, in the order of ``dbus_event``. Each is a scalar function and a column of the struct."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, OK, TRUNCATED
from sparkwire.base.grammar import described
from sparkwire.core.builders import Column, ColumnTable
from sparkwire.core.column import build, empty, from_codes, gather, primitive, timestamps
from sparkwire.databus import layout, parts
from sparkwire.databus.event_kernels import UNKNOWN
from sparkwire.databus.layout import NO_VARIANT, V1_LITTLE, V2_LITTLE
from sparkwire.databus.parts import NO_NUMBER
from sparkwire.databus.scan import Events
from sparkwire.kernels import Bools, Bytes, Ints, copy, int64, kernel
from sparkwire.kernels.text import decimal_width, utf8_valid, write_decimal


@kernel
def measure_keys(data: Bytes, starts: Ints, sizes: Ints, longs: Ints, is_long: Bools, texts: Ints) -> None:
    """Size of every key as text [bytes], -1 if there is no key or it is not UTF-8."""
    for row in range(texts.size):
        if is_long[row]:
            texts[row] = decimal_width(longs[row])
        elif sizes[row] >= 0 and utf8_valid(data, starts[row], sizes[row]):
            texts[row] = sizes[row]
        else:
            texts[row] = -1


@kernel
def write_keys(
    data: Bytes, starts: Ints, longs: Ints, is_long: Bools, texts: Ints, offsets: npt.NDArray[np.int32], out: Bytes
) -> None:
    """Write every key as text; ``offsets`` follow from the sizes of ``measure_keys``."""
    for row in range(texts.size):
        if texts[row] > 0:
            if is_long[row]:
                write_decimal(out, int64(offsets[row]), longs[row], texts[row])
            else:
                copy(out, int64(offsets[row]), data, starts[row], texts[row])


FIELDS = ColumnTable[Events]()

EventAccessor = Callable[[Events], pa.Array]


def fixed(field: str, example: str) -> Column[Events]:
    """A fixed field, NULL if its bytes are missing."""
    sql, doc = described(field, layout.V1, layout.V2)
    return Column(field, sql, doc, lambda events: primitive(events.header.fields[field], events.has(field)), example)


def crc_computed(which: int) -> EventAccessor:
    """The checksum of the header (0) or the value (1), computed over the bytes that exist."""
    return lambda events: primitive(events.checked.crcs[which], events.checked.crcs[which] != UNKNOWN)


def crc_valid(which: int) -> EventAccessor:
    """Whether the computed checksum of the header (0) or the value (1) equals the stored one."""
    return lambda events: primitive(events.checked.checks[which] == 1, events.checked.checks[which] != UNKNOWN)


def _span(name: str, doc: str, which: int, example: str) -> Column[Events]:
    """The bytes of a part, NULL if it is missing."""

    def accessor(events: Events) -> pa.Array:
        return gather(events.data, events.spans.starts[which], events.spans.sizes[which], pa.binary())

    return Column(name, "BINARY", doc, accessor, example)


def _number(name: str, sql: str, doc: str, which: int, example: str) -> Column[Events]:
    """A number of a part, NULL if it is missing."""

    def accessor(events: Events) -> pa.Array:
        values = events.spans.numbers[which]
        present = values != NO_NUMBER
        return primitive(np.where(present, values, 0).astype(np.int32 if sql == "INT" else np.int16), present)

    return Column(name, sql, doc, accessor, example)


def _flag(name: str, doc: str, v1_bit: int, v2_bit: int) -> Column[Events]:
    """Whether an attribute bit is set."""

    def accessor(events: Events) -> pa.Array:
        return primitive(events.attribute(v1_bit, v2_bit), events.has("attributes"))

    return Column(name, "BOOLEAN", doc, accessor, f"dbus_{name}(event) -> false")


FIELDS.append(fixed("version", "dbus_version(event) -> 0"))


@FIELDS.column("STRING", "dbus_byte_order(event) -> BIG_ENDIAN")
def byte_order(events: Events) -> pa.Array:
    """BIG_ENDIAN or LITTLE_ENDIAN, NULL for an unknown version. The first of these that determines it counts: V2's magic word, a
    stored length that equals the size of the bytes, a header checksum that is right. The default is BIG_ENDIAN.
    """
    variants = events.header.variants
    little = ((variants == V1_LITTLE) | (variants == V2_LITTLE)).astype(np.int8)
    return from_codes(np.where(variants == NO_VARIANT, np.int8(-1), little), layout.BYTE_ORDERS)


FIELDS += [
    fixed("header_crc", "dbus_header_crc(event) -> 847328966"),
    fixed("value_crc", "dbus_value_crc(event) -> 4029829531"),
    Column(
        "header_crc_computed",
        "BIGINT",
        "The header's checksum, computed over the bytes that exist.",
        crc_computed(0),
        "dbus_header_crc_computed(event) -> 847328966",
    ),
    Column(
        "value_crc_computed",
        "BIGINT",
        "The value's checksum (V2: the body's), computed over the bytes that exist.",
        crc_computed(1),
        "dbus_value_crc_computed(event) -> 4029829531",
    ),
    *(
        Column(
            f"{name}_crc_valid",
            "BOOLEAN",
            f"Whether the {name}'s checksum is right; NULL if bytes of its range are missing.",
            crc_valid(which),
            f"dbus_{name}_crc_valid(event) -> true",
        )
        for which, name in enumerate(("header", "value"))
    ),
    fixed("length", "dbus_length(event) -> 66"),
    fixed("attributes", "dbus_attributes(event) -> 1"),
]


@FIELDS.column("STRING", "dbus_opcode(event) -> UPSERT")
def opcode(events: Events) -> pa.Array:
    """UPSERT or DELETE; NULL if no opcode bit is set."""
    return from_codes(events.opcodes, layout.OPCODES)


FIELDS += [
    _flag("is_trace", "Whether the event is traced.", layout.V1_TRACE, layout.V2_TRACE),
    _flag(
        "is_replicated",
        "Whether the event comes from external replication.",
        layout.V1_REPLICATED,
        layout.V2_REPLICATED,
    ),
]


@FIELDS.column("STRING", "dbus_key_type(event_v2) -> SCHEMA")
def key_type(events: Events) -> pa.Array:
    """LONG, BYTES or (V2 only) SCHEMA."""
    return from_codes(events.key_types, layout.KEY_TYPES)


@FIELDS.column("BOOLEAN", "dbus_is_end_of_period(event) -> false")
def is_end_of_period(events: Events) -> pa.Array:
    """Whether the event ends a window: source id -2."""
    return primitive(events.header.fields["src_id"] == layout.END_OF_PERIOD, events.has("src_id"))


FIELDS += [
    fixed("sequence", "dbus_sequence(event) -> 77"),
    fixed("physical_partition_id", "dbus_physical_partition_id(event) -> -1"),
    fixed("logical_partition_id", "dbus_logical_partition_id(event) -> 3"),
    fixed("timestamp_nanos", "dbus_timestamp_nanos(event) -> 1400000000000000001"),
]


@FIELDS.column("TIMESTAMP", "unix_micros(dbus_timestamp(event)) -> 1400000000000000")
def timestamp(events: Events) -> pa.Array:
    """Creation time, rounded toward the past to microseconds."""
    return timestamps(events.header.fields["timestamp_nanos"], "ns", events.has("timestamp_nanos"))


FIELDS.append(fixed("src_id", "dbus_src_id(event) -> 40"))


@FIELDS.column("STRING", "dbus_source_range(event) -> DATA")
def source_range(events: Events) -> pa.Array:
    """Range of the source id: DATA (> 0), GLOBAL_SYSTEM (-19999 to 0) or PRIVATE_SYSTEM."""
    ids = events.header.fields["src_id"]
    return _by_source(events, np.select([ids > 0, ids > layout.PRIVATE_MAX], [0, 1], 2), layout.SOURCE_RANGES)


@FIELDS.column("STRING", "dbus_event_type(event) -> DATA")
def event_type(events: Events) -> pa.Array:
    """Kind of event by the full source id: DATA, END_OF_PERIOD, CHECKPOINT (-3), SCN_REGRESS (-51), ERROR (-49 to -5),
    PRIVATE (<= -20000) or SYSTEM (any other <= 0).
    """
    ids = events.header.fields["src_id"]
    kinds = [
        ids > 0,
        ids == layout.END_OF_PERIOD,
        ids == layout.CHECKPOINT,
        ids == layout.SCN_REGRESS,
        (ids >= layout.FIRST_ERROR) & (ids <= layout.LAST_ERROR),
        ids <= layout.PRIVATE_MAX,
    ]
    return _by_source(events, np.select(kinds, range(len(kinds)), len(kinds)), layout.EVENT_TYPES)


def _by_source(events: Events, codes: Ints, vocabulary: tuple[str, ...]) -> pa.Array:
    present = events.has("src_id")
    return from_codes((codes if present is None else np.where(present, codes, -1)).astype(np.int8), vocabulary)


@FIELDS.column("BINARY", "hex(dbus_schema_id(event)) -> 0102030405060708090A0B0C0D0E0F10")
def schema_id(events: Events) -> pa.Array:
    """Id of the payload's schema, 16 bytes. V2: the payload part's digest, 16 or 4 bytes, NULL without a payload."""
    at = layout.V1["schema_id"].offset
    v1 = ~events.is_v2 & _mask(events, "schema_id")
    starts = np.where(v1, events.offsets[:-1].astype(np.int64) + at, events.spans.starts[parts.DIGEST])
    sizes = np.where(v1, layout.MD5_SIZE, events.spans.sizes[parts.DIGEST])
    return gather(events.data, starts, sizes, pa.binary())


@FIELDS.column("SMALLINT", "dbus_schema_version(event_v2) -> 1")
def schema_version(events: Events) -> pa.Array:
    """Version of the payload's schema. V1: the first two bytes of the schema id, as REPL_DBUS uses them."""
    v1 = ~events.is_v2 & _mask(events, "schema_version")
    v2 = events.spans.numbers[parts.VERSION]
    values = np.where(v1, events.header.fields["schema_version"], np.where(v2 == NO_NUMBER, 0, v2))
    return primitive(values.astype(np.int16), v1 | (v2 != NO_NUMBER))


def _mask(events: Events, field: str) -> Bools:
    present = events.has(field)
    return np.ones(events.rows, np.bool_) if present is None else present


@FIELDS.column("STRING", "dbus_key(event) -> 5")
def key(events: Events) -> pa.Array:
    """The key as text: a LONG in decimal, BYTES and a SCHEMA key's data as UTF-8. NULL if they are not UTF-8."""
    (starts, spans), longs = events.keys, events.header.fields["key_long"]
    sizes = empty(events.rows, np.int64)
    measure_keys(events.data, starts, spans, longs, events.long_keys, sizes)

    def write(offsets: npt.NDArray[np.int32], out: npt.NDArray[np.uint8]) -> None:
        write_keys(events.data, starts, longs, events.long_keys, sizes, offsets, out)

    return build(sizes, write, pa.string())


@FIELDS.column("BIGINT", "dbus_key_long(event) -> 5")
def key_long(events: Events) -> pa.Array:
    """The key, if it is a LONG."""
    return primitive(events.header.fields["key_long"], events.long_keys)


FIELDS += [
    _span(
        "key_bytes",
        "The bytes of a BYTES key, or the data of a SCHEMA key; NULL for a LONG key.",
        parts.KEY,
        "hex(dbus_key_bytes(event_v2)) -> A972D417",
    ),
    _span(
        "value",
        "The payload; NULL for V2 without one, X'' for an empty one.",
        parts.VALUE,
        "CAST(dbus_value(event) AS STRING) -> hello",
    ),
    _number(
        "value_size",
        "INT",
        "Size of the payload, as stored in the event [bytes].",
        parts.VALUE_SIZE,
        "dbus_value_size(event) -> 5",
    ),
    _span("metadata", "Data of V2's metadata part.", parts.METADATA, "hex(dbus_metadata(event_v2)) -> 27"),
    _span(
        "metadata_schema_id",
        "Digest of the metadata's schema, 16 or 4 bytes.",
        parts.METADATA_DIGEST,
        "hex(dbus_metadata_schema_id(event_v2)) -> D2A55DFC",
    ),
    _number(
        "metadata_schema_version",
        "SMALLINT",
        "Version of the metadata's schema.",
        parts.METADATA_VERSION,
        "dbus_metadata_schema_version(event_v2) -> 7",
    ),
    _span(
        "key_schema_id",
        "Digest of a SCHEMA key's schema, 16 or 4 bytes.",
        parts.KEY_DIGEST,
        "hex(dbus_key_schema_id(event_v2)) -> 336BC592EC108633AE82DB910A5EEBCA",
    ),
    _number(
        "key_schema_version",
        "SMALLINT",
        "Version of a SCHEMA key's schema.",
        parts.KEY_VERSION,
        "dbus_key_schema_version(event_v2) -> 3",
    ),
]


@FIELDS.column("STRING", "dbus_status(event) -> OK")
def status(events: Events) -> pa.Array:
    """OK, PARTIAL (bytes are missing) or ERR, as in Databus's own scan, but stricter where that scan is unsafe."""
    return from_codes(status_codes(events.errors), layout.STATUSES)


def status_codes(errors: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """OK without an error, PARTIAL for TRUNCATED, ERR for any other."""
    codes = np.full(len(errors), layout.STATUS_ERR, np.int8)
    codes[errors == OK] = layout.STATUS_OK
    codes[errors == TRUNCATED] = layout.STATUS_PARTIAL
    return codes


@FIELDS.column("STRING", "dbus_error(substring(event, 1, 60)) -> TRUNCATED")
def error(events: Events) -> pa.Array:
    """The first error in the order of the bytes; NULL for a valid event."""
    return from_codes(events.errors, ERRORS)


@FIELDS.column("BOOLEAN", "dbus_is_valid(event) -> true")
def is_valid(events: Events) -> pa.Array:
    """Whether the event has no error."""
    return primitive(events.errors == OK)
