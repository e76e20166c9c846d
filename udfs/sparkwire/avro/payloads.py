"""Extract Avro data and the id of each schema: from a prefix, from a header of the Kafka record, or from a separate column.

    confluent         0  id                  i32 big-endian
    confluent_header  1  guid                16 bytes, in the record's header __value_schema_id or __key_schema_id; or 0 and an id
    apicurio          0  contentId           i64 big-endian, below 2^32, or i32; or i64 in a header: apicurio.value.contentId,
                                             else apicurio.value.globalId. apicurio.value.encoding is BINARY or JSON
    apicurio_global_id
                      0  globalId            the same; if both headers exist, the globalId counts
    glue              3  compression  uuid   0 for none, 5 for zlib; 16 bytes
    single_object     C3 01  fingerprint     u64 little-endian: CRC-64-AVRO of the schema's canonical form

Sources: Confluent's ``SchemaId``; Apicurio's ``Default4ByteIdHandler``, ``DefaultIdHandler`` and ``DefaultHeadersHandler``; AWS
Glue's ``GlueSchemaRegistrySerializer``; Apache Avro 1.12, "Single-object encoding".
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro.functions import FORMAT
from sparkwire.base.error_codes import BAD_FIELD, BAD_MAGIC, ERRORS, OK, TOO_LARGE, TRUNCATED
from sparkwire.base.grammar import Field, PresentIf, Sized, Struct
from sparkwire.core.column import INT32_MAX, from_codes, gather, spans_of

_FUNCTIONS: Final = FORMAT.by_name
_GUID_SIZE: Final = 16  # [bytes]
_HEADER_NAMES: Final = {
    "confluent_header": ("__{of}_schema_id",),
    "apicurio": ("apicurio.{of}.contentId", "apicurio.{of}.globalId"),
    "apicurio_global_id": ("apicurio.{of}.globalId", "apicurio.{of}.contentId"),
}
_ENCODING_NAME: Final = "apicurio.{of}.encoding"
GLOBAL_ID: Final = "globalId "
"""prefix of an Apicurio globalId, which identifies a version of an artifact; the contentId with that number is another schema"""
GLUE_ZLIB: Final = 5
MAX_PAYLOAD: Final = 256 << 20
"""the largest decompressed payload [bytes], the same as the default for one Kafka batch"""

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


class Payloads(NamedTuple):
    """Avro data, the schema id of each, and the errors of the messages around them."""

    values: pa.Array
    """NULL if none exists"""
    ids: pa.Array
    errors: pa.Array
    """STRING, NULL if there is no error"""
    is_json: pa.Array
    """BOOLEAN: whether the data are in Avro's JSON encoding instead of binary"""

    @classmethod
    def binary(cls, values: pa.Array, ids: pa.Array, errors: pa.Array) -> Payloads:
        """Payloads that all are in binary encoding."""
        return cls(values, ids, errors, pa.repeat(pa.scalar(False), len(values)))


def of_column(values: pa.Array, ids: pa.Array) -> Payloads:
    """Bare payloads, with a column of their schema ids."""
    return Payloads.binary(values, ids, pa.nulls(len(values), pa.string()))


def of_confluent(messages: pa.Array) -> Payloads:
    """The payloads after Confluent's wire format header."""
    ids = _FUNCTIONS["registry_schema_id"].decode(messages)
    without = np.asarray(messages.is_valid()) & ~np.asarray(ids.is_valid())
    return Payloads.binary(_FUNCTIONS["registry_payload"].decode(messages), ids, _bad_magic(without))


def of_apicurio(messages: pa.Array) -> Payloads:
    """The payloads after a zero byte and an id of eight bytes, or of four bytes that are not zero."""
    data, starts, sizes = spans_of(messages)
    zero = (sizes >= 5) & (_bytes_at(data, starts, sizes, 0) == 0)
    narrow = zero & (_number_at(data, starts, sizes, 1, 4) != 0)
    wide = zero & ~narrow & (sizes >= 9)
    numbers = np.where(narrow, _number_at(data, starts, sizes, 1, 4), _number_at(data, starts, sizes, 1, 8))
    ids = pa.array(numbers, mask=~(narrow | wide))
    skipped = np.where(narrow, 5, 9)
    values = gather(data, starts + skipped, np.where(narrow | wide, sizes - skipped, -1), pa.binary())
    return Payloads.binary(values, ids, _bad_magic((sizes >= 0) & ~(narrow | wide)))


def of_apicurio_global_ids(messages: pa.Array) -> Payloads:
    """The same as ``of_apicurio``, for global ids."""
    parsed = of_apicurio(messages)
    return parsed._replace(ids=pc.binary_join_element_wise(GLOBAL_ID, parsed.ids.cast(pa.string()), ""))


def of_glue(messages: pa.Array) -> Payloads:
    """The payloads after AWS Glue's header, decompressed."""
    data, starts, sizes = spans_of(messages)
    packing = _bytes_at(data, starts, sizes, 1)
    fits = (sizes >= 18) & (_bytes_at(data, starts, sizes, 0) == 3) & ((packing == 0) | (packing == GLUE_ZLIB))
    ids = _as_text(gather(data, starts + 2, np.where(fits, _GUID_SIZE, -1), pa.binary()), _guid)
    values = gather(data, starts + 18, np.where(fits, sizes - 18, -1), pa.binary())
    codes = np.where((sizes >= 0) & ~fits, BAD_MAGIC, OK).astype(np.int8)
    packed = fits & (packing == GLUE_ZLIB)
    if packed.any():
        values = _unpacked(values, packed, codes)
    return Payloads.binary(values, ids, from_codes(codes, ERRORS))


def of_single_objects(messages: pa.Array) -> Payloads:
    """The payloads after Avro's own marker and a fingerprint."""
    data, starts, sizes = spans_of(messages)
    fits = (sizes >= 10) & (_bytes_at(data, starts, sizes, 0) == 0xC3) & (_bytes_at(data, starts, sizes, 1) == 1)
    ids = gather(data, starts + 2, np.where(fits, 8, -1), pa.binary())
    values = gather(data, starts + 10, np.where(fits, sizes - 10, -1), pa.binary())
    return Payloads.binary(values, ids, _bad_magic((sizes >= 0) & ~fits))


def with_headers(name: str, otherwise: Callable[[pa.Array], Payloads]) -> Callable[[pa.Array, pa.Array, str], Payloads]:
    """A function for payloads whose record headers have the schema id; ``otherwise`` reads records without such a header.

    The function takes the messages, the headers (ARRAY<STRUCT<key, value>>), and ``key`` or ``value``.
    """

    def payloads(messages: pa.Array, headers: pa.Array, of: str) -> Payloads:
        ids, has = pa.nulls(len(messages), pa.string()), pa.repeat(pa.scalar(False), len(messages))
        for header in _HEADER_NAMES[name]:
            value = _header(headers, header.format(of=of))
            text = _as_text(value, _global_id if header.endswith("globalId") else _named_by)
            ids, has = pc.if_else(has, ids, text), pc.or_(has, value.is_valid())
        plain = otherwise(messages)
        errors = _bad_magic(np.asarray(pc.and_(has, ids.is_null())))
        return Payloads(
            pc.if_else(has, messages, plain.values),
            pc.if_else(has, ids, plain.ids.cast(pa.string())),
            pc.if_else(has, errors, plain.errors),
            _says_json(headers, of) if name.startswith("apicurio") else plain.is_json,
        )

    return payloads


def ids_as_text(ids: pa.Array) -> pa.Array:
    """STRING: numbers in decimal, fingerprints in hex."""
    return _as_text(ids, bytes.hex) if pa.types.is_binary(ids.type) else ids.cast(pa.string())


def _named_by(header: bytes) -> str | None:
    """The id in a header, as a text."""
    if len(header) == 1 + _GUID_SIZE and header[0] == 1:
        return _guid(header[1:])
    if (len(header) == 5 and header[0] == 0) or len(header) == 8:
        return str(int.from_bytes(header[-4:] if len(header) == 5 else header, "big"))
    return None


def _global_id(header: bytes) -> str | None:
    number = _named_by(header)
    return None if number is None else GLOBAL_ID + number


def _says_json(headers: pa.Array, of: str) -> pa.Array:
    encoding = _header(headers, _ENCODING_NAME.format(of=of))
    return pc.equal(encoding, b"JSON").fill_null(False)


def _guid(data: bytes) -> str:
    return str(uuid.UUID(bytes=data))


def _as_text(keys: pa.Array, text: Callable[[bytes], str | None]) -> pa.Array:
    """Each key as a text. A column has few different keys."""
    encoded = pc.dictionary_encode(keys)
    texts = pa.array([text(key) for key in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _header(headers: pa.Array, name: str) -> pa.Array:
    """The value of the first header with this name; NULL if none exists."""
    flat, rows = headers.flatten(), pc.list_parent_indices(headers)
    named = pc.equal(flat.field(0), name).fill_null(False)
    where, values = np.asarray(rows.filter(named)), flat.field(1).filter(named)
    positions = np.full(len(headers), len(values), np.int64)
    positions[where[::-1]] = np.arange(len(values))[::-1]
    return pa.concat_arrays([values, pa.nulls(1, values.type)]).take(pa.array(positions))


def _bad_magic(without: NDArray[np.bool_]) -> pa.Array:
    return from_codes(np.where(without, BAD_MAGIC, OK).astype(np.int8), ERRORS)


def _bytes_at(data: Any, starts: Any, sizes: Any, position: int) -> Any:
    """One byte of each row; 0 if the row is too short."""
    return np.where(sizes > position, data[np.minimum(starts + position, data.size - 1)], 0)


def _number_at(data: Any, starts: Any, sizes: Any, position: int, size: int) -> Any:
    """A big-endian number of each row."""
    number = np.zeros(len(starts), np.int64)
    for k in range(position, position + size):
        number = (number << 8) | _bytes_at(data, starts, sizes, k)
    return number


def _unpacked(values: pa.Array, packed: NDArray[np.bool_], codes: NDArray[np.int8]) -> pa.Array:
    """Decompress the ``packed`` rows with zlib, and write their errors to ``codes``."""
    left = INT32_MAX - int(pc.sum(pc.binary_length(values)).as_py() or 0)
    contents = values.to_pylist()
    for row in np.flatnonzero(packed).tolist():
        stream, most = zlib.decompressobj(), min(left, MAX_PAYLOAD)
        try:
            contents[row] = stream.decompress(contents[row], most + 1)
            codes[row] = TOO_LARGE if len(contents[row]) > most else OK if stream.eof else TRUNCATED
        except zlib.error:
            codes[row] = BAD_FIELD
        contents[row] = contents[row] if codes[row] == OK else None
        left -= len(contents[row] or b"")
    return pa.array(contents, pa.binary())
