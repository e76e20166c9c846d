"""A slow and simple oracle for Databus events: the expected results of every `dbus_*` function.

The oracle shares no code with the package. It reads one event at a time with `int.from_bytes` and `zlib`. Tests compare it
with Databus's own results in tests/data/databus.

`decode(event)` returns all results of one event, `split(stream)` the rows of `dbus_events`.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any, Literal

ORDERS: dict[str, Literal["big", "little"]] = {"BIG_ENDIAN": "big", "LITTLE_ENDIAN": "little"}
MAGIC = 0xCAFEDEED
SEARCHED_HEADER = 1 << 16  # [bytes]
DIGEST_SIZES = {0: 16, 1: 4}  # MD5, CRC-32; 2 and 3 are undefined

NAMES = """
    version byte_order header_crc value_crc header_crc_computed value_crc_computed header_crc_valid value_crc_valid
    length attributes opcode is_trace is_replicated key_type is_end_of_period sequence physical_partition_id
    logical_partition_id timestamp_nanos timestamp src_id source_range event_type schema_id schema_version key
    key_long key_bytes value value_size metadata metadata_schema_id metadata_schema_version key_schema_id
    key_schema_version status error is_valid
""".split()  # noqa: SIM905


def decode(event: bytes) -> dict[str, Any]:
    """All results of one event, by function name without `dbus_`. Timestamps are microseconds since the epoch."""
    order = byte_order(event)
    answers: dict[str, Any] = dict.fromkeys(NAMES)
    answers |= {name: value for name, value in fields(event, order).items() if name in answers}
    answers["error"] = header_error(event, order) or body_error(event, order)
    answers["status"] = status(answers["error"])
    answers["is_valid"] = answers["error"] is None
    return answers


def split(stream: bytes) -> list[dict[str, Any]]:
    """The rows of `dbus_events`: complete events, the bytes between them, and a truncated tail."""
    rows = []
    position, before = 0, "BIG_ENDIAN"
    while position < len(stream):
        rest = stream[position:]
        order = stream_order(rest, before)
        error = header_error(rest, order)
        if error is None:
            before = order
            size = fields(rest, order)["length"]
            error = body_error(rest, order)
        else:
            size = next((skip for skip in range(1, len(rest)) if starts_event(rest[skip:], before)), len(rest))
        event = rest[:size]
        rows.append({"position": position, "event": event, "status": status(error), "error": error})
        position += len(event)
    return rows


def starts_event(rest: bytes, before: str) -> bool:
    """Whether decoding may continue here: version, V2 magic, length bounds and header CRC are all valid.

    The search ignores headers longer than SEARCHED_HEADER; otherwise it could take quadratic time.
    """
    if rest[0] not in (0, 2):
        return False
    order = stream_order(rest, before)
    return header_error(rest, order) is None and fields(rest, order)["header_end"] <= SEARCHED_HEADER


# --- which byte order -----------------------------------------------------------------------------


def byte_order(event: bytes) -> str | None:
    """The byte order: by the V2 magic, else the only order in which the length matches, else by the header CRC."""
    if not event or event[0] not in (0, 2):
        return None
    return (
        order_by_magic(event)
        or the_one(order for order in ORDERS if fields(event, order)["length"] == len(event))
        or the_one(order for order in ORDERS if fields(event, order)["header_crc_valid"])
        or "BIG_ENDIAN"
    )


def stream_order(rest: bytes, before: str) -> str:
    """The byte order: by the V2 magic, else by the header CRC, else that of the previous event."""
    return (
        order_by_magic(rest) or the_one(order for order in ORDERS if fields(rest, order)["header_crc_valid"]) or before
    )


def order_by_magic(event: bytes) -> str | None:
    if event[0] != 2:
        return None
    return the_one(order for order in ORDERS if integer(event, 1, 4, order, signed=False) == MAGIC)


def the_one(orders: Any) -> str | None:
    """The byte order, if only one remains."""
    left = list(orders)
    return left[0] if len(left) == 1 else None


# --- the fields -----------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def fields(event: bytes, order: str | None) -> dict[str, Any]:
    """Every field whose bytes exist; also `header_end`, `key_end` and `body_end`, if known."""
    if not event:
        return {}
    version = int.from_bytes(event[:1], "big", signed=True)
    if version not in (0, 2):
        return {"version": version, "length": None, "header_crc_valid": None}
    assert order is not None
    result = (fields_v1 if version == 0 else fields_v2)(event, order)
    nanos, src_id = result["timestamp_nanos"], result["src_id"]
    result |= {
        "version": version,
        "byte_order": order,
        "timestamp": None if nanos is None else nanos // 1000,
        "is_end_of_period": None if src_id is None else src_id == -2,
        "source_range": None if src_id is None else source_range(src_id),
        "event_type": None if src_id is None else event_type(src_id),
    }
    for crc, covered in (("header_crc", result["header_range"]), ("value_crc", result["value_range"])):
        result |= checksum(event, crc, result[crc], covered)
    return result


def fields_v1(event: bytes, order: str) -> dict[str, Any]:
    length = integer(event, 5, 4, order)
    attributes = integer(event, 9, 2, order, signed=False)
    bits = attributes or 0
    long_key = not bits & 8
    header_end = 61 if long_key else 57
    fields: dict[str, Any] = {
        "header_crc": integer(event, 1, 4, order, signed=False),
        "length": length,
        "attributes": attributes,
        "sequence": integer(event, 11, 8, order),
        "physical_partition_id": integer(event, 19, 2, order),
        "logical_partition_id": integer(event, 21, 2, order),
        "timestamp_nanos": integer(event, 23, 8, order),
        "src_id": integer(event, 31, 2, order),
        "schema_id": span(event, 33, 16),
        "schema_version": integer(event, 33, 2, order),
        "value_crc": integer(event, 49, 4, order, signed=False),
        "header_end": header_end,
        "header_range": (5, header_end),
        "value_range": None,
        "key_end": None,
    }
    if attributes is None:
        return fields
    fields |= {
        "opcode": "UPSERT" if bits & 1 else "DELETE" if bits & 2 else None,
        "is_trace": bool(bits & 1 << 2),
        "is_replicated": bool(bits & 1 << 8),
        "key_type": "LONG" if long_key else "BYTES",
        "value_range": None if length is None else (header_end, length),
    }
    fields |= key_long(event, 53, order) if long_key else key_bytes(event, 53, order)
    key_end = fields["key_end"]
    if key_end is not None and length is not None and length >= key_end:
        fields["value_size"] = length - key_end
        fields["value"] = span(event, key_end, length - key_end)
    return fields


def fields_v2(event: bytes, order: str) -> dict[str, Any]:
    header_length = integer(event, 5, 4, order)
    length = integer(event, 17, 4, order)
    attributes = integer(event, 21, 2, order, signed=False)
    bits = attributes or 0
    partition_id = integer(event, 35, 2, order)
    fields: dict[str, Any] = {
        "magic": integer(event, 1, 4, order, signed=False),
        "header_crc": integer(event, 9, 4, order, signed=False),
        "value_crc": integer(event, 13, 4, order, signed=False),
        "length": length,
        "attributes": attributes,
        "timestamp_nanos": integer(event, 23, 8, order),
        "src_id": integer(event, 31, 4, order),
        "physical_partition_id": partition_id,
        "logical_partition_id": partition_id,
        "sequence": integer(event, 37, 8, order),
        "header_end": header_length,
        "header_range": None if header_length is None else (13, header_length),
        "value_range": None if header_length is None or length is None else (header_length, length),
        "key_end": None,
        "body_end": None,
    }
    if attributes is None:
        return fields
    fields |= {
        "opcode": {1: "UPSERT", 2: "DELETE"}.get(bits & 3),
        "is_replicated": bool(bits & 1 << 4),
        "is_trace": bool(bits & 1 << 5),
        "key_type": {1: "LONG", 2: "BYTES", 3: "SCHEMA"}.get(bits >> 2 & 3),
    }
    if fields["key_type"] == "LONG":
        fields |= key_long(event, 45, order)
    elif fields["key_type"] == "BYTES":
        fields |= key_bytes(event, 45, order)
    elif fields["key_type"] == "SCHEMA":
        key = part(event, 45, order)
        fields |= {"key_bytes": key["data"], "key": text(key["data"]), "key_end": key["end"]}
        fields |= {"key_schema_id": key["digest"], "key_schema_version": key["version"]}
    else:
        fields["key_end"] = 45

    position = header_length if header_length is not None and header_length >= 45 else None
    if bits & 1 << 6:
        metadata = part(event, position, order)
        fields |= {"metadata": metadata["data"], "metadata_schema_id": metadata["digest"]}
        fields |= {"metadata_schema_version": metadata["version"]}
        position = metadata["end"]
    if bits & 1 << 7:
        payload = part(event, position, order)
        fields |= {"value": payload["data"], "value_size": payload["size"]}
        fields |= {"schema_id": payload["digest"], "schema_version": payload["version"]}
        position = payload["end"]
    fields["body_end"] = position
    return fields


def key_long(event: bytes, position: int, order: str) -> dict[str, Any]:
    key = integer(event, position, 8, order)
    return {"key_long": key, "key": None if key is None else str(key), "key_end": position + 8}


def key_bytes(event: bytes, position: int, order: str) -> dict[str, Any]:
    size = integer(event, position, 4, order)
    if size is None or size < 0:
        return {}
    key = span(event, position + 4, size)
    return {"key_bytes": key, "key": text(key), "key_end": position + 4 + size}


def part(event: bytes, position: int | None, order: str) -> dict[str, Any]:
    """A V2 part: the size of its data, its attributes (digest type, version), the schema's digest, the data."""
    fields: dict[str, Any] = dict.fromkeys(("size", "version", "digest", "data", "end"))
    if position is None:
        return fields
    size = integer(event, position, 4, order)
    attributes = integer(event, position + 4, 2, order)
    if size is not None and size >= 0:
        fields["size"] = size
    if attributes is None:
        return fields
    fields["version"] = attributes >> 2  # signed, 14 bits
    digest_size = DIGEST_SIZES.get(attributes & 3)
    if digest_size is None:
        return fields
    fields["digest"] = span(event, position + 6, digest_size)
    if size is not None and size >= 0:
        fields["data"] = span(event, position + 6 + digest_size, size)
        fields["end"] = position + 6 + digest_size + size
    return fields


def source_range(src_id: int) -> str:
    return "DATA" if src_id > 0 else "PRIVATE_SYSTEM" if src_id <= -20000 else "GLOBAL_SYSTEM"


def event_type(src_id: int) -> str:
    named = {-2: "END_OF_PERIOD", -3: "CHECKPOINT", -51: "SCN_REGRESS"}
    if src_id in named:
        return named[src_id]
    return "DATA" if src_id > 0 else "ERROR" if -49 <= src_id <= -5 else "PRIVATE" if src_id <= -20000 else "SYSTEM"


# --- checksums ------------------------------------------------------------------------------------


def crc(data: bytes) -> int:
    """Databus's CRC-32: initial value 0, no final xor. It is zero for all-zero bytes."""
    return zlib.crc32(data, 0xFFFFFFFF) ^ 0xFFFFFFFF


def checksum(event: bytes, name: str, stored: int | None, covered: tuple[int, int] | None) -> dict[str, Any]:
    """The CRC over the available part of its range, and whether it is correct, which is known only if the range is complete."""
    fields: dict[str, Any] = {name + "_computed": None, name + "_valid": None}
    if covered is None:
        return fields
    start, end = covered
    if start >= 0 and (start < len(event) or end <= start):  # an empty range is complete
        fields[name + "_computed"] = crc(event[start : max(start, end)])
    if stored is not None and fields[name + "_computed"] is not None and end <= max(len(event), start):
        fields[name + "_valid"] = stored == fields[name + "_computed"]
    return fields


# --- the verdict ----------------------------------------------------------------------------------


def status(error: str | None) -> str:
    return "OK" if error is None else "PARTIAL" if error == "TRUNCATED" else "ERR"


def header_error(event: bytes, order: str | None) -> str | None:
    """The error of the header. Without a valid header, the end of the event is unknown."""
    if not event:
        return "TRUNCATED"
    result = fields(event, order)
    if result["version"] not in (0, 2):
        return "BAD_MAGIC"
    if result["version"] == 0:
        if len(event) < result["header_end"]:
            return "TRUNCATED"
        if result["length"] < 53:
            return "BAD_LENGTH"
    else:
        if len(event) < 45:
            return "TRUNCATED"
        if result["magic"] != MAGIC:
            return "BAD_MAGIC"
        if not 45 <= result["header_end"] <= result["length"]:
            return "BAD_LENGTH"
        if len(event) < result["header_end"]:
            return "TRUNCATED"
    return None if result["header_crc_valid"] else "HEADER_CRC_MISMATCH"


def body_error(event: bytes, order: str | None) -> str | None:
    """The error after a valid header."""
    result = fields(event, order)
    length = result["length"]
    if len(event) < length:
        return "TRUNCATED"
    key_bound = length if result["version"] == 0 else result["header_end"]
    if result["key_end"] is None or result["key_end"] > key_bound:
        return "BAD_LENGTH"
    if result["version"] == 2 and (result["body_end"] is None or result["body_end"] > length):
        return "BAD_LENGTH"
    return None if result["value_crc_valid"] else "VALUE_CRC_MISMATCH"


# --- bytes ----------------------------------------------------------------------------------------


def span(event: bytes, start: int, size: int) -> bytes | None:
    """`size` bytes from `start`, if all of them exist."""
    return event[start : start + size] if start >= 0 and size >= 0 and start + size <= len(event) else None


def integer(event: bytes, position: int, size: int, order: str, *, signed: bool = True) -> int | None:
    data = span(event, position, size)
    return None if data is None else int.from_bytes(data, ORDERS[order], signed=signed)


def text(data: bytes | None) -> str | None:
    """The text, or None if it is not UTF-8."""
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
