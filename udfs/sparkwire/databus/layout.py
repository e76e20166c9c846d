"""The tables of the Databus formats: positions of fields, meanings of bits and ids.

Source: `DbusEventV1`, `DbusEventV2`, `DbusEventPart` and `DbusEventInternalWritable` of linkedin/databus.
"""

from __future__ import annotations

from typing import Final

from sparkwire.base.grammar import Covered, Field, Layout, Part, PresentIf, Sized, Struct, described

V1: Final = Layout(
    "V1",
    Field("version", "i8", "Version of the format: 0 (V1) or 2 (V2). Any other value is returned unchanged"),
    Field("header_crc", "u32", "The header's checksum, as stored"),
    Field("length", "i32", "Length of the whole event, as stored [bytes]"),
    Field("attributes", "u16", "The 16 attribute bits"),
    Field("sequence", "i64", "Sequence number of the window (SCN)"),
    Field("physical_partition_id", "i16", "Physical partition"),
    Field("logical_partition_id", "i16", "Logical partition"),
    Field("timestamp_nanos", "i64", "Creation time [ns since epoch]. Control events have Java's nanoTime instead"),
    Field("src_id", "i16", "Source id"),
    Field("schema_id", "bytes16", "MD5 of the payload's schema"),
    Field("value_crc", "u32", "The value's checksum, as stored"),
    Field("key_long", "i64", "The key, if it is a LONG"),  # else an i32 length [bytes] and the key's bytes
).overlay("schema_id", Field("schema_version", "i16", "Schema version that REPL_DBUS writes in place of a schema id"))

V2: Final = Layout(
    "V2",
    Field("version", "i8"),
    Field("magic", "u32", "CAFEDEED, in the byte order of the event"),
    Field("header_length", "i32", "From the first byte to the end of the key [bytes]"),
    Field("header_crc", "u32"),
    Field("value_crc", "u32", "the body's checksum"),
    Field("length", "i32"),
    Field("attributes", "u16"),
    Field("timestamp_nanos", "i64"),
    Field("src_id", "i32"),
    Field("physical_partition_id", "i16", "the event's only partition id"),
    Field("sequence", "i64"),
    Field("key_long", "i64"),  # else an i32 length and the key's bytes (BYTES), or a part (SCHEMA)
).overlay("physical_partition_id", Field("logical_partition_id", "i16", "the event's only partition id"))

FIELDS: Final = tuple(dict.fromkeys((*V1.places, *V2.places)))
"""names of the fixed fields of both versions"""

# The head of a V2 part: of the metadata, the payload or a SCHEMA key. The part's digest and data follow.
PART: Final = Layout(
    "part",
    Field("length", "i32", "Length of the data alone [bytes]"),
    Field("attributes", "i16", "Bits 0-1 kind of digest (0 MD5, 1 CRC-32), bits 2-15 signed schema version"),
)
PART_SIZE: Final = PART.size
MD5_SIZE: Final = 16
CRC32_SIZE: Final = 4

# Position of the key: the end of a header's fixed fields [bytes].
V1_KEY: Final = V1["key_long"].offset
V2_KEY: Final = V2["key_long"].offset
V1_LONG_HEADER: Final = V1_KEY + 8
V1_BYTES_HEADER: Final = V1_KEY + 4
V1_ATTRIBUTES_END: Final = V1["attributes"].end
V2_LENGTH_END: Final = V2["length"].end

MAGIC: Final = 0xCAFEDEED
MIN_LENGTH: Final = V1_KEY  # [bytes] Databus rejects shorter V1 events before it checks the checksum

# The variant of a row: its version and byte order.
NO_VARIANT: Final = 0
V1_BIG: Final = 1
V1_LITTLE: Final = 2
V2_BIG: Final = 3
V2_LITTLE: Final = 4

# Attribute bits of V1; bit 0 is UPSERT, bit 1 DELETE.
V1_TRACE: Final = 1 << 2
V1_BYTES_KEY: Final = 1 << 3
V1_REPLICATED: Final = 1 << 8

# Attribute bits of V2; the opcode and the kind of key are numbers.
V2_OPCODE_MASK: Final = 0b11
V2_KEY_SHIFT: Final = 2
V2_KEY_MASK: Final = 0b11
V2_REPLICATED: Final = 1 << 4
V2_TRACE: Final = 1 << 5
V2_METADATA: Final = 1 << 6
V2_PAYLOAD: Final = 1 << 7

# The parts after the fixed fields.


def _fixed(table: Layout) -> list[Field]:
    """The fields before the key."""
    return [_described(field) for field in table.fields if field.name != "key_long"]


def _described(field: Field) -> Field:
    return field._replace(doc=described(field.name, V1, V2)[1].rstrip("."))


DIGEST_MASK: Final = 0b11
DIGESTS: Final = {0: "MD5", 1: "CRC-32"}


def _part(length: str, attributes: str, digest: str, data: str) -> list[Part]:
    """The fields of a part: length, attributes, digest and data, with these names."""
    digests = {0: [Field(digest, "bytes16", DIGESTS[0])], 1: [Field(digest, "bytes4", DIGESTS[1])]}
    return [
        PART["length"].field._replace(name=length),
        PART["attributes"].field._replace(name=attributes),
        PresentIf(attributes, DIGEST_MASK, digests, None, "kind of digest"),
        Sized(data, length, nullable=False, title="part"),
    ]


_LONG: Final = _described(V2["key_long"].field)
_BYTES: Final = Sized(
    "key_bytes", Field("key_length", "i32", "Length of the key's bytes [bytes]"), "BYTES", nullable=False, title="key"
)
EVENT_V1: Final = Struct(
    "event",
    *_fixed(V1),
    PresentIf("attributes", V1_BYTES_KEY, {0: [_LONG], V1_BYTES_KEY: [_BYTES]}),
    Sized("value"),
    title="V1 event with key and value",
    ends="length",
    covered=[
        Covered("header_crc", "crc32_raw", last=["key_long", "key_length"]),
        Covered("value_crc", "crc32_raw", last=["event"], after=["key_long", "key_length"]),
    ],
)
_KEYS: Final[tuple[list[Part], ...]] = (
    [_LONG],
    [_BYTES],
    _part("key_length", "key_attributes", "key_schema_id", "key_bytes"),
)
EVENT_V2: Final = Struct(
    "event",
    Struct(
        "header",
        *_fixed(V2),
        PresentIf(
            "attributes",
            V2_KEY_MASK << V2_KEY_SHIFT,
            {kind + 1 << V2_KEY_SHIFT: key for kind, key in enumerate(_KEYS)},
        ),
        ends="header_length",
        unclaimed="between the key and the end of the header",
    ),
    PresentIf(
        "attributes",
        V2_METADATA,
        {V2_METADATA: _part("metadata_length", "metadata_attributes", "metadata_schema_id", "metadata")},
    ),
    PresentIf(
        "attributes", V2_PAYLOAD, {V2_PAYLOAD: _part("payload_length", "payload_attributes", "schema_id", "value")}
    ),
    title="V2 event with its parts",
    ends="length",
    unclaimed="of no part, within the event's length",
    covered=[
        Covered("header_crc", "crc32_raw", last=["header"]),
        Covered("value_crc", "crc32_raw", last=["event"], after=["header"]),
    ],
)

OPCODES: Final = ("UPSERT", "DELETE")
KEY_TYPES: Final = ("LONG", "BYTES", "SCHEMA")
LONG_KEY: Final = 0
BYTES_KEY: Final = 1
SCHEMA_KEY: Final = 2
NO_KEY: Final = -1

BYTE_ORDERS: Final = ("BIG_ENDIAN", "LITTLE_ENDIAN")
STATUSES: Final = ("OK", "PARTIAL", "ERR")
STATUS_OK: Final = 0
STATUS_PARTIAL: Final = 1
STATUS_ERR: Final = 2

# Source ids.
SOURCE_RANGES: Final = ("DATA", "GLOBAL_SYSTEM", "PRIVATE_SYSTEM")
EVENT_TYPES: Final = ("DATA", "END_OF_PERIOD", "CHECKPOINT", "SCN_REGRESS", "ERROR", "PRIVATE", "SYSTEM")
END_OF_PERIOD: Final = -2
CHECKPOINT: Final = -3
SCN_REGRESS: Final = -51
LAST_ERROR: Final = -5
FIRST_ERROR: Final = -49
PRIVATE_MAX: Final = -20000
