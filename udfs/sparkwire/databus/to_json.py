"""Databus's JSON of an event: the text that `DbusEvent.writeTo` writes.

The encoding `JSON` writes the value in Base64 with line breaks, `JSON_PLAIN_VALUE` writes it as text. Both write BYTES keys and
schema ids in Base64. The text ends with a line feed.

A corrupt event has a text if every field of the text can be read; checksums do not matter. The text is NULL if Java throws: for
an unknown version, and for a V2 event without a kind of key or with opcode 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import argument_error
from sparkwire.core.column import Spans, from_codes, primitive
from sparkwire.databus import layout
from sparkwire.databus.layout import BYTES_KEY, LONG_KEY, NO_KEY, SCHEMA_KEY
from sparkwire.databus.parts import (
    DIGEST,
    KEY,
    KEY_DIGEST,
    KEY_VERSION,
    METADATA,
    METADATA_DIGEST,
    METADATA_VERSION,
    VALUE,
    VERSION,
)
from sparkwire.databus.scan import Events
from sparkwire.json.columns import BASE64_LINES, NULL, TEXT, object_of, string_of_spans
from sparkwire.kernels import Bools, Ints

PLAIN: Final = "JSON_PLAIN_VALUE"
ENCODINGS: Final = {"JSON": "JSON", PLAIN: PLAIN, "JSON_PLAIN": PLAIN}
"""Encoding in the text, by the spelling of the argument."""

_HEAD: Final = 64  # [bytes] of a SCHEMA key's data that Databus shows
_END: Final = "}\n"
_OPCODES: Final = tuple(f'"{opcode}"' for opcode in layout.OPCODES)
_KEY_TYPES: Final = ('"Number"', '"String"', '"Schema"')


def to_json(column: pa.Array[Any], encoding: str) -> pa.Array[Any]:
    """STRING: the text of each event; NULL for an event without a text."""
    if encoding not in ENCODINGS:
        raise argument_error("dbus_to_json", f"encoding {', '.join(ENCODINGS)}", repr(encoding))
    events, name = Events(column), ENCODINGS[encoding]
    v2 = events.is_v2
    if not v2.any():
        return _v1(events, name)
    if v2.all():
        return _v2(events, name)
    rows = np.argsort(v2, kind="stable")
    first = int(len(rows) - np.count_nonzero(v2))
    parts = (column.take(pa.array(part)) for part in (rows[:first], rows[first:]))
    texts = [write(Events(part), name) for write, part in zip((_v1, _v2), parts, strict=True)]
    return pa.concat_arrays(texts).take(pa.array(np.argsort(rows, kind="stable")))


def _v1(events: Events, encoding: str) -> pa.Array[Any]:
    # The value is last: if it can be read, everything before it can be read.
    readable = (events.spans.sizes[VALUE] >= 0) & (events.key_types != NO_KEY)
    schema_id = events.offsets[:-1].astype(np.int64) + layout.V1["schema_id"].offset
    members = {
        "opcode": from_codes(events.opcodes, _OPCODES),
        **_key(events),
        "sequence": _field(events, "sequence"),
        "logicalPartitionId": _field(events, "logical_partition_id"),
        "physicalPartitionId": _field(events, "physical_partition_id"),
        "timestampInNanos": _field(events, "timestamp_nanos"),
        "srcId": _field(events, "src_id"),
        "schemaId": _base64(events, schema_id, np.where(readable, layout.MD5_SIZE, -1)),
        "valueEnc": f'"{encoding}"',
        "isReplicated": _boolean(events.attribute(layout.V1_REPLICATED, 0)),
        "endOfPeriod": _true_or_none(events.header.fields["src_id"] == layout.END_OF_PERIOD),
        "traceEnabled": _true_or_none(events.attribute(layout.V1_TRACE, 0)),
        "value": _content(events, VALUE, encoding, readable),
    }
    return _where(readable, members)


def _v2(events: Events, encoding: str) -> pa.Array[Any]:
    present, kinds = events.spans.sizes >= 0, events.key_types
    metadata, payload = events.attribute(0, layout.V2_METADATA), events.attribute(0, layout.V2_PAYLOAD)
    key = np.where(kinds == LONG_KEY, events.long_keys, present[KEY])
    opcode_3 = events.header.fields["attributes"] & layout.V2_OPCODE_MASK == layout.V2_OPCODE_MASK
    # A part's data is after its digest and its version.
    readable = key & (kinds != NO_KEY) & (metadata <= present[METADATA]) & (payload <= present[VALUE]) & ~opcode_3
    members = {
        "version": "2",
        "magicByte": _number(events.header.fields["magic"].astype(np.int32)),  # Java has no unsigned numbers
        "headerCrc": _field(events, "header_crc"),
        "bodyCrc": _field(events, "value_crc"),
        "opcode": pc.coalesce(from_codes(events.opcodes, _OPCODES), NULL),
        "keyType": from_codes(kinds, _KEY_TYPES),
        **_key(events),
        "valueEnc": f'"{encoding}"',
        "isReplicated": _boolean(events.attribute(0, layout.V2_REPLICATED)),
        "traceOn": _boolean(events.attribute(0, layout.V2_TRACE)),
        "hasPayloadMetadata": _boolean(metadata),
        "hasPayload": _boolean(payload),
        "timestampInNanos": _field(events, "timestamp_nanos"),
        "srcId": _field(events, "src_id"),
        "logicalPartitionId": _field(events, "logical_partition_id"),
        "physicalPartitionId": _field(events, "physical_partition_id"),
        "sequence": _field(events, "sequence"),
        **_part(events, "metadata", (METADATA, METADATA_VERSION, METADATA_DIGEST), encoding, readable & metadata),
        **_part(events, "payload", (VALUE, VERSION, DIGEST), encoding, readable & payload),
    }
    return _where(readable, members)


def _where(readable: Bools, members: Mapping[str, pa.Array[Any] | str]) -> pa.Array[Any]:
    texts = object_of(members, len(readable), _END)
    return texts if readable.all() else pc.if_else(pa.array(readable), texts, None)


def _key(events: Events) -> dict[str, pa.Array[Any]]:
    """``key`` or ``keyBytes``, whichever the event has."""
    kinds, spans = events.key_types, events.spans
    members = {"key": _number(events.header.fields["key_long"], kinds == LONG_KEY)}
    schema = kinds == SCHEMA_KEY
    if schema.any():
        members["key"] = pc.coalesce(members["key"], _schema_key(events, schema))
    members["keyBytes"] = _base64(events, spans.starts[KEY], np.where(kinds == BYTES_KEY, spans.sizes[KEY], -1))
    return members


def _schema_key(events: Events, present: Bools) -> pa.Array[Any]:
    """The text that Databus writes for a SCHEMA key. It loops over rows, because SCHEMA keys are rare."""
    spans = events.spans

    def shown(part: int, row: int, most: int) -> str:
        start = int(spans.starts[part, row])
        return events.data[start : start + max(0, min(int(spans.sizes[part, row]), most))].tobytes().hex()

    texts = [
        f'"Length={spans.sizes[KEY, row]};SchemaVersion={spans.numbers[KEY_VERSION, row]};'
        f'SchemaId=0x{shown(KEY_DIGEST, row, layout.MD5_SIZE)};Value=0x{shown(KEY, row, _HEAD)}"'
        if present[row]
        else None
        for row in range(events.rows)
    ]
    return pa.array(texts, pa.string())


def _part(
    events: Events, name: str, which: tuple[int, int, int], encoding: str, present: Bools
) -> dict[str, pa.Array[Any]]:
    (content, version, digest), spans = which, events.spans
    return {
        f"{name}Length": _number(spans.sizes[content], present),
        f"{name}SchemaVersion": _number(spans.numbers[version], present),
        f"{name}SchemaId": _base64(events, spans.starts[digest], np.where(present, spans.sizes[digest], -1)),
        f"{name}Value": _content(events, content, encoding, present),
    }


# -- texts


def _field(events: Events, name: str) -> pa.Array[Any]:
    return _number(events.header.fields[name])


def _number(values: npt.NDArray[Any], present: Bools | None = None) -> pa.Array[Any]:
    return primitive(values, present).cast(pa.string())


def _boolean(values: Bools) -> pa.Array[Any]:
    return from_codes(values.astype(np.int8), ("false", "true"))


def _true_or_none(values: Bools) -> pa.Array[Any]:
    return from_codes(values.astype(np.int8) - np.int8(1), ("true",))


def _base64(events: Events, starts: Ints, sizes: Ints) -> pa.Array[Any]:
    return string_of_spans(Spans(events.data, starts, sizes), BASE64_LINES)


def _content(events: Events, part: int, encoding: str, present: Bools) -> pa.Array[Any]:
    """A part's data in the encoding."""
    spans = Spans(events.data, events.spans.starts[part], np.where(present, events.spans.sizes[part], -1))
    return string_of_spans(spans, TEXT if encoding == PLAIN else BASE64_LINES)
