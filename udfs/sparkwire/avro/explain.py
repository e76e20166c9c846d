"""Explain the headers around Avro data line by line. The data are one line, because only a schema can explain them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

from sparkwire.avro.payloads import GLUE_ZLIB
from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.base.grammar import PresentIf, Sized, Struct
from sparkwire.base.wire import Field
from sparkwire.core.lines import LONGEST_TEXT, Line
from sparkwire.core.walk import Scope, Walker

_DATA: Final = Sized("payload", doc="as the schema of that name says: see avro_json and avro.rows", opaque=True)
CONFLUENT: Final = Struct(
    "Confluent's wire format header",
    Field("magic", "u8", "Confluent's wire format"),
    Field("schema_id", "i32", "the number of the schema in a registry"),
    _DATA,
)
APICURIO: Final = Struct(
    "Apicurio's wire format header",
    Field("magic", "u8", "Apicurio's wire format"),
    Field("schema_id", "i64", "the number of the schema in a registry"),
    _DATA,
)
GLUE: Final = Struct(
    "AWS Glue's header",
    Field("version", "u8", "AWS Glue's wire format"),
    Field("compression", "u8", f"0 for none, {GLUE_ZLIB} for zlib"),
    Field("schema_version_id", "bytes16", "the UUID of the schema in AWS Glue's registry"),
    PresentIf("compression", 0xFF, {GLUE_ZLIB: [Sized("payload", holds=_DATA)]}, [_DATA]),
)
SINGLE_OBJECT: Final = Struct(
    "Avro's single-object header",
    Field("marker", "u8", "Avro's single-object encoding"),
    Field("version", "u8", "of that encoding"),
    Field("fingerprint", "bytes8", "CRC-64-AVRO of the schema's canonical form, little-endian"),
    _DATA,
)
TABLES: Final[Mapping[str, Struct]] = {
    "confluent": CONFLUENT,
    "apicurio": APICURIO,
    "glue": GLUE,
    "single_object": SINGLE_OBJECT,
}
"""headers of the wire formats that a value itself identifies"""


class _MessageWalker(Walker):
    def opened(self, scope: Scope, content: bytes) -> tuple[bytes, str]:
        try:
            return zlib.decompressobj().decompress(content, LONGEST_TEXT), "compressed with zlib"
        except zlib.error as error:
            return b"", f"{ERRORS[BAD_FIELD]}: not what zlib compresses: {error}"


def explain(table: Struct, data: bytes) -> list[Line]:
    """Every byte of a message."""
    walker = _MessageWalker(data)
    walker.walk(table)
    return walker.lines
