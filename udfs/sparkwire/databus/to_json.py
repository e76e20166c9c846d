"""Databus's JSON of an event, the text that `DbusEvent.writeTo` writes.

The bytes of a value are in Base64 with line breaks (encoding `JSON`) or as text (`JSON_PLAIN_VALUE`); keys of bytes
and schema ids are in Base64 in both. The text ends with a line feed.

An event whose bytes are corrupt has a text as long as every field that the text names can be read; checksums do not
matter. It is NULL where Java throws: an unknown version, a V2 event without a kind of key or with opcode 3.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.errors import refusal
from sparkwire.core.column import build, empty
from sparkwire.databus import layout
from sparkwire.databus.layout import LONG_KEY
from sparkwire.databus.parts import (
    DIGEST,
    KEY,
    KEY_DIGEST,
    KEY_VERSION,
    METADATA,
    METADATA_DIGEST,
    METADATA_VERSION,
    SPANS,
    VALUE,
    VERSION,
)
from sparkwire.databus.scan import Events
from sparkwire.kernels import Bools, Ints
from sparkwire.kernels.template import (
    BASE64,
    HEXADECIMAL,
    NUMBER,
    TEXT,
    WORD,
    Templates,
    TemplateValue,
    measure_rows,
    templates,
    write_rows,
)

PLAIN: Final = "JSON_PLAIN_VALUE"
ENCODINGS: Final = {"JSON": "JSON", PLAIN: PLAIN, "JSON_PLAIN": PLAIN}
"""The spellings that are taken, and what the text says."""

_KEYS: Final = (
    '"key":<key_long>',
    '"keyBytes":"<key>"',
    '"key":"Length=<key_size>;SchemaVersion=<key_version>;SchemaId=0x<key_digest>;Value=0x<key_head>"',
)
_HEAD: Final = 64  # [bytes] of a SCHEMA key's data that Databus shows

_V1: Final = (
    '{<v1_opcode>KEY,"sequence":<sequence>,"logicalPartitionId":<logical_partition_id>,'
    '"physicalPartitionId":<physical_partition_id>,"timestampInNanos":<timestamp_nanos>,"srcId":<src_id>,'
    '"schemaId":"<digest>","valueEnc":"ENCODING","isReplicated":<is_replicated><v1_end_of_period><v1_trace>,'
    '"value":"<value>"}\n'
)
_V2: Final = (
    '{"version":2,"magicByte":<magic>,"headerCrc":<header_crc>,"bodyCrc":<value_crc>,"opcode":<v2_opcode>,'
    '"keyType":"<v2_key_type>",KEY,"valueEnc":"ENCODING","isReplicated":<is_replicated>,"traceOn":<is_trace>,'
    '"hasPayloadMetadata":<has_metadata>,"hasPayload":<has_payload>,"timestampInNanos":<timestamp_nanos>,'
    '"srcId":<src_id>,"logicalPartitionId":<logical_partition_id>,"physicalPartitionId":<physical_partition_id>,'
    '"sequence":<sequence>PARTS}\n'
)
_METADATA: Final = (
    ',"metadataLength":<metadata_size>,"metadataSchemaVersion":<metadata_version>,'
    '"metadataSchemaId":"<metadata_digest>","metadataValue":"<metadata>"'
)
_PAYLOAD: Final = (
    ',"payloadLength":<value_size>,"payloadSchemaVersion":<version>,'
    '"payloadSchemaId":"<digest>","payloadValue":"<value>"'
)

_BOOLEAN: Final = ("false", "true")
_WORDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "v1_opcode": ("opcode", ("", *(f'"opcode":"{opcode}",' for opcode in layout.OPCODES))),
    "v1_end_of_period": ("is_end_of_period", ("", ',"endOfPeriod":true')),
    "v1_trace": ("is_trace", ("", ',"traceEnabled":true')),
    "v2_opcode": ("opcode", ("null", *(f'"{opcode}"' for opcode in layout.OPCODES))),
    "v2_key_type": ("key_type", ("Number", "String", "Schema")),
    **{name: (name, _BOOLEAN) for name in ("is_replicated", "is_trace", "has_metadata", "has_payload")},
}
# Rows of the numbers and of the spans that the kernels get.
_NUMBERS: Final = (
    *("key_long", "sequence", "logical_partition_id", "physical_partition_id", "timestamp_nanos", "src_id"),
    *("magic", "header_crc", "value_crc", "key_version", "metadata_version", "version"),
    *("key_size", "metadata_size", "value_size", "opcode", "key_type", "is_end_of_period"),
    *("is_replicated", "is_trace", "has_metadata", "has_payload"),
)
_KEY_HEAD: Final = SPANS
_V1_TEMPLATES: Final = 2


@cache
def _templates(encoding: str) -> Templates:
    """V1 by kind of key; V2 by kind of key, then by metadata, then by payload."""
    texts = [_V1.replace("KEY", key) for key in _KEYS[:2]]
    for key in _KEYS:
        for parts in ("", _PAYLOAD, _METADATA, _METADATA + _PAYLOAD):
            texts.append(_V2.replace("KEY", key).replace("PARTS", parts))
    data = TEXT if encoding == PLAIN else BASE64
    values = {name: TemplateValue(NUMBER, k) for k, name in enumerate(_NUMBERS)}
    values |= {name: TemplateValue(WORD, _NUMBERS.index(source), words) for name, (source, words) in _WORDS.items()}
    values |= {
        "key": TemplateValue(BASE64, KEY),
        "digest": TemplateValue(BASE64, DIGEST),
        "metadata_digest": TemplateValue(BASE64, METADATA_DIGEST),
    }
    values |= {"value": TemplateValue(data, VALUE), "metadata": TemplateValue(data, METADATA)}
    values |= {"key_digest": TemplateValue(HEXADECIMAL, KEY_DIGEST), "key_head": TemplateValue(HEXADECIMAL, _KEY_HEAD)}
    return templates([text.replace("ENCODING", encoding) for text in texts], values)


def to_json(column: pa.Array[Any], encoding: str) -> pa.Array[Any]:
    """STRING: each event's text; NULL where one cannot be made."""
    if encoding not in ENCODINGS:
        raise refusal("dbus_to_json", f"encoding {', '.join(ENCODINGS)}", repr(encoding))
    events = Events(column)
    table, chosen = _templates(ENCODINGS[encoding]), _chosen(events)
    given = (table, chosen, events.data, _numbers(events), *_spans(events))
    measured = empty(events.rows, np.int64)
    measure_rows(*given, measured, empty(0, np.uint8))
    return build(measured, lambda offsets, out: write_rows(*given, offsets, out), pa.string())


def _chosen(events: Events) -> npt.NDArray[np.int8]:
    """The template of each row, -1 where a field that it names cannot be read.

    A part's data comes after its digest and its version, and the V1 value after everything else: what comes later vouches for
    what came before.
    """
    found, kinds = events.spans.sizes >= 0, events.key_types.astype(np.int64)
    key = np.where(kinds == LONG_KEY, events.long_keys, found[KEY])
    metadata, payload = _has_metadata(events), _has_payload(events)
    intact = key & (metadata <= found[METADATA]) & (payload <= found[VALUE]) & ~_has_opcode_3(events)
    v2 = np.where(intact, _V1_TEMPLATES + 4 * kinds + 2 * metadata + payload, -1)
    return np.where(events.is_v2, v2, np.where(found[VALUE], kinds, -1)).astype(np.int8)


def _has_metadata(events: Events) -> Bools:
    return events.attribute(0, layout.V2_METADATA)


def _has_payload(events: Events) -> Bools:
    return events.attribute(0, layout.V2_PAYLOAD)


def _has_opcode_3(events: Events) -> Bools:
    mask = layout.V2_OPCODE_MASK
    return np.asarray(events.header.fields["attributes"] & mask == mask)


def _numbers(events: Events) -> Ints:
    fields, spans = events.header.fields, events.spans
    found = fields | {
        "magic": fields["magic"].astype(np.int32),  # Java has no unsigned numbers
        "key_version": spans.numbers[KEY_VERSION],
        "metadata_version": spans.numbers[METADATA_VERSION],
        "version": spans.numbers[VERSION],
        "key_size": spans.sizes[KEY],
        "metadata_size": spans.sizes[METADATA],
        "value_size": spans.sizes[VALUE],
        "opcode": events.opcodes + 1,
        "key_type": events.key_types,
        "is_end_of_period": fields["src_id"] == layout.END_OF_PERIOD,
        "is_replicated": events.attribute(layout.V1_REPLICATED, layout.V2_REPLICATED),
        "is_trace": events.attribute(layout.V1_TRACE, layout.V2_TRACE),
        "has_metadata": _has_metadata(events),
        "has_payload": _has_payload(events),
    }
    return np.stack([found[name] for name in _NUMBERS], dtype=np.int64)


def _spans(events: Events) -> tuple[Ints, Ints]:
    """Starts and sizes, (SPANS + 1, rows): those of the scan, V1's schema id among the digests, and the key's head."""
    starts = np.concatenate((events.spans.starts, events.spans.starts[KEY : KEY + 1]))
    sizes = np.concatenate((events.spans.sizes, np.minimum(events.spans.sizes[KEY : KEY + 1], _HEAD)))
    v1 = ~events.is_v2
    np.copyto(starts[DIGEST], events.offsets[:-1] + layout.V1["schema_id"].offset, where=v1)
    sizes[DIGEST, v1] = layout.MD5_SIZE
    return starts, sizes
