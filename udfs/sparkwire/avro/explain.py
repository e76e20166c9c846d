"""What stands around Avro data, line by line; the data are one line, as only their schema says what they are."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from sparkwire.avro.payloads import GLUE_ZLIB
from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.base.wire import Field, Layout
from sparkwire.core.dump import LONGEST_TEXT, Dump, Line

CONFLUENT: Final = Layout(
    "Confluent's wire format header",
    Field("magic", "u8", "Confluent's wire format"),
    Field("schema_id", "i32", "the number of the schema in a registry"),
)
APICURIO: Final = Layout(
    "Apicurio's wire format header",
    Field("magic", "u8", "Apicurio's wire format"),
    Field("schema_id", "i64", "the number of the schema in a registry"),
)
GLUE: Final = Layout(
    "AWS Glue's header",
    Field("version", "u8", "AWS Glue's wire format"),
    Field("compression", "u8", f"0 for none, {GLUE_ZLIB} for zlib"),
    Field("schema_version_id", "bytes16", "the UUID of the schema in AWS Glue's registry"),
)
SINGLE_OBJECT: Final = Layout(
    "Avro's single object, before its fingerprint",
    Field("marker", "u8", "Avro's single-object encoding"),
    Field("version", "u8", "of that encoding"),
)
_SAYS: Final = "as the schema of that name says: see avro_json and avro.rows"


def _message(layout: Layout, data: bytes) -> list[Line]:
    """A number or two, then the data."""
    dump = _fields(layout, data)
    dump.rest("payload", _SAYS)
    return dump.end()


def _fields(layout: Layout, data: bytes) -> Dump:
    dump = Dump(data)
    for field in layout.fields:
        dump.number(field, field.doc)
    return dump


def _glue(data: bytes) -> list[Line]:
    dump = _fields(GLUE, data)
    if data[1] != GLUE_ZLIB:
        dump.rest("payload", _SAYS)
        return dump.end()
    try:
        unpacked, note = zlib.decompressobj().decompress(data[18:], LONGEST_TEXT), "compressed with zlib"
    except zlib.error as error:
        unpacked, note = b"", f"{ERRORS[BAD_FIELD]}: not what zlib compresses: {error}"
    dump.rest("payload", note)
    dump.decompressed(unpacked).rest("payload", _SAYS)
    return dump.end()


def _single_object(data: bytes) -> list[Line]:
    dump = _fields(SINGLE_OBJECT, data)
    dump.take("fingerprint", 8, data[2:10].hex(), "CRC-64-AVRO of the schema's canonical form, little-endian")
    dump.rest("payload", _SAYS)
    return dump.end()


EXPLAINED: Final[Mapping[str, tuple[str, Callable[[bytes], list[Line]]]]] = {
    "confluent": ("a message with Confluent's wire format header", partial(_message, CONFLUENT)),
    "apicurio": ("a message with Apicurio's wire format header", partial(_message, APICURIO)),
    "glue": ("a message with AWS Glue's header", _glue),
    "single_object": ("one of Avro's single objects", _single_object),
}
"""of the wire formats that a value shows"""
