"""A slow and simple oracle for Kafka's formats, by the contract. It shares no code with the kernels.

``records(data)`` and ``batches(data)`` return the expected results of ``kafka_records`` and ``kafka_batches``, as lists of dicts
(timestamps as integers [us since epoch]), ``message(msg)`` that of ``kafka_message``. Only zlib, zstandard and the
checksums (crc32c, xxhash) come from libraries.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import xxhash
import zstandard
from crc32c import crc32c

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
STAMPS = ("CreateTime", "LogAppendTime")
CONTROL = (
    "ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS",
)  # fmt: skip
SMALLEST = {0: 14, 1: 22, 2: 49}
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999

Row = dict[str, Any]


class Unreadable(Exception):
    """The reason is the error code."""


# -- codecs


def gunzip(data: bytes) -> bytes:
    out = b""
    first = True
    while first or (len(data) > 18 and data[:3] == b"\x1f\x8b\x08"):
        member = zlib.decompressobj(31)
        out += member.decompress(data)
        if not member.eof:
            raise Unreadable("DECOMPRESS_FAILED")
        data, first = member.unused_data, False
    return out


def copy_back(out: bytearray, distance: int, length: int) -> None:
    if not 0 < distance <= len(out):
        raise Unreadable("DECOMPRESS_FAILED")
    repeated = out[-distance:]
    out += (repeated * (length // distance + 1))[:length]


def snappy_block(data: bytes) -> bytes:
    size = shift = pos = 0
    while True:
        size |= (data[pos] & 127) << shift
        pos, shift = pos + 1, shift + 7
        if data[pos - 1] < 128:
            break
    out = bytearray()
    while pos < len(data):
        tag = data[pos]
        pos += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(take(data, pos, extra), "little")
                pos += extra
            out += take(data, pos, length + 1)
            pos += length + 1
        elif tag & 3 == 1:
            copy_back(out, (tag >> 5) << 8 | data[pos], 4 + (tag >> 2 & 7))
            pos += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            copy_back(out, int.from_bytes(take(data, pos, width), "little"), 1 + (tag >> 2))
            pos += width
    if len(out) != size:
        raise Unreadable("DECOMPRESS_FAILED")
    return bytes(out)


def take(data: bytes, pos: int, size: int) -> bytes:
    if size < 0 or pos + size > len(data):
        raise IndexError
    return data[pos : pos + size]


XERIAL = bytes.fromhex("82534e4150505900")


def unsnap(data: bytes) -> bytes:
    if len(data) < 16 or data[:8] != XERIAL:
        return snappy_block(data)
    out, pos = b"", 0
    while pos < len(data):
        if data[pos : pos + 8] == XERIAL and len(data) - pos >= 16:
            pos += 16
            continue
        (size,) = struct.unpack(">i", take(data, pos, 4))
        if size <= 0:
            raise Unreadable("DECOMPRESS_FAILED")
        out += snappy_block(take(data, pos + 4, size))
        pos += 4 + size
    return out


def lz4_block(data: bytes, largest: int) -> bytes:
    out = bytearray()
    pos = 0
    while True:
        token = data[pos]
        pos += 1
        length = token >> 4
        if length == 15:
            while True:
                length += data[pos]
                pos += 1
                if data[pos - 1] != 255:
                    break
        out += take(data, pos, length)
        pos += length
        if pos == len(data):
            break
        distance = int.from_bytes(take(data, pos, 2), "little")
        pos += 2
        length = token & 15
        if length == 15:
            while True:
                length += data[pos]
                pos += 1
                if data[pos - 1] != 255:
                    break
        if distance == 0:  # invalid, but liblz4, which Kafka also uses, returns zeros
            out += bytes(length + 4)
        else:
            copy_back(out, distance, length + 4)
    if len(out) > largest:
        raise Unreadable("DECOMPRESS_FAILED")
    return bytes(out)


def unlz4(data: bytes, header_checked: bool) -> bytes:
    magic, flags, sizes = struct.unpack("<IBB", take(data, 0, 6))
    # Version 1, independent blocks, no reserved bit, no dictionary; the block size must be 4 to 7.
    if magic != 0x184D2204 or flags & 0xE3 != 0x60 or sizes not in (0x40, 0x50, 0x60, 0x70):
        raise Unreadable("DECOMPRESS_FAILED")
    largest = {0x40: 64 << 10, 0x50: 256 << 10, 0x60: 1 << 20, 0x70: 4 << 20}[sizes]
    pos = 6 + (8 if flags & 8 else 0)
    if take(data, pos, 1)[0] != xxhash.xxh32_intdigest(data[4:pos]) >> 8 & 255 and header_checked:
        raise Unreadable("DECOMPRESS_FAILED")
    pos += 1
    out = b""
    while True:
        (size,) = struct.unpack("<I", take(data, pos, 4))
        pos += 4
        stored, size = size >> 31, size & 0x7FFFFFFF
        if size == 0:
            if flags & 4:
                take(data, pos, 4)
            return out
        block = take(data, pos, size)
        if size > largest:
            raise Unreadable("DECOMPRESS_FAILED")
        pos += size
        if flags & 16:
            if take(data, pos, 4) != xxhash.xxh32_intdigest(block).to_bytes(4, "little"):
                raise Unreadable("DECOMPRESS_FAILED")
            pos += 4
        out += block if stored else lz4_block(block, largest)


def unzstd(data: bytes) -> bytes:
    out = b""
    while data:
        if len(data) >= 8 and int.from_bytes(data[:4], "little") & ~15 == 0x184D2A50:
            size = 8 + int.from_bytes(data[4:8], "little")
            take(data, 0, size)
            data = data[size:]
            continue
        frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        out += frame.decompress(data)
        if not frame.eof:
            raise Unreadable("DECOMPRESS_FAILED")
        data = frame.unused_data
    return out


def decompress(codec: int, data: bytes, magic: int) -> bytes:
    try:
        if codec == 1:
            return gunzip(data)
        if codec == 2:
            return unsnap(data)
        if codec == 3:
            return unlz4(data, magic > 0)
        return unzstd(data)
    except (IndexError, zlib.error, zstandard.ZstdError, struct.error):
        raise Unreadable("DECOMPRESS_FAILED") from None


# -- entries


def verdict(data: bytes, pos: int) -> str | None:
    """The error of the entry at ``pos``."""
    if len(data) - pos < 12:
        return "TRUNCATED"
    (size,) = struct.unpack_from(">i", data, pos + 8)
    if size < 14:
        return "BAD_LENGTH"
    if pos + 12 + size > len(data):
        return "TRUNCATED"
    (magic,) = struct.unpack_from(">b", data, pos + 16)
    if magic not in SMALLEST:
        return "BAD_MAGIC"
    if size < SMALLEST[magic]:
        return "BAD_LENGTH"
    return None if checks(data[pos : pos + 12 + size], magic) else "CRC_MISMATCH"


def checks(entry: bytes, magic: int) -> bool:
    if magic == 2:
        return crc32c(entry[21:]) == int.from_bytes(entry[17:21], "big")
    return zlib.crc32(entry[16:]) == int.from_bytes(entry[12:16], "big")


def entries(data: bytes) -> Iterator[tuple[int, int, str | None, bool]]:
    """Position, position of the next entry, error, and whether the size is plausible."""
    pos = 0
    while pos < len(data):
        error = verdict(data, pos)
        if error in (None, "CRC_MISMATCH", "BAD_MAGIC"):
            named = pos + 12 + struct.unpack_from(">i", data, pos + 8)[0]
            if error is None or (named < len(data) and verdict(data, named) is None):
                yield pos, named, error, True
                pos = named
                continue
        else:
            named = -1
        intact = next((q for q in range(pos + 1, len(data)) if plausible(data, q) and not verdict(data, q)), len(data))
        like_an_entry = named >= 0 and (named == len(data) or verdict(data, named) in (None, "CRC_MISMATCH"))
        believed = named >= 0 and named <= intact and (like_an_entry or intact == len(data))
        stop = named if believed else intact
        yield pos, stop, error, believed
        pos = stop


def plausible(data: bytes, pos: int) -> bool:
    return pos + 26 <= len(data) and data[pos + 16] < 3 and data[pos + 8] < 0x80


HEADER = (
    ("base_offset", ">q", 0), ("partition_leader_epoch", ">i", 12), ("magic", ">b", 16), ("crc", ">I", 17),
    ("attributes", ">h", 21), ("last_offset_delta", ">i", 23), ("base_timestamp_ms", ">q", 27),
    ("max_timestamp_ms", ">q", 35), ("producer_id", ">q", 43), ("producer_epoch", ">h", 51), ("base_sequence", ">i", 53),
    ("record_count", ">i", 57),
)  # fmt: skip


def header(data: bytes, pos: int, stop: int, error: str | None) -> Row:
    """The readable fields of an entry's header; None for the others."""
    row: Row = dict.fromkeys([name for name, _, _ in HEADER] + ["codec", "timestamp_type"])
    entry = data[pos:stop]
    if error == "BAD_LENGTH" or len(entry) < 17:
        return row
    (magic,) = struct.unpack_from(">b", entry, 16)
    if magic == 2:
        for name, form, at in HEADER:
            if at + struct.calcsize(form) <= len(entry):
                (row[name],) = struct.unpack_from(form, entry, at)
    elif magic in (0, 1):
        row |= {"base_offset": struct.unpack_from(">q", entry)[0], "magic": magic}
        (row["crc"],) = struct.unpack_from(">I", entry, 12)
        if len(entry) >= 18:
            (row["attributes"],) = struct.unpack_from(">b", entry, 17)
        if magic == 1 and len(entry) >= 26:
            (row["max_timestamp_ms"],) = struct.unpack_from(">q", entry, 18)
    elif error == "BAD_MAGIC":
        row |= {"base_offset": struct.unpack_from(">q", entry)[0], "magic": magic}
    if row["attributes"] is not None:
        row["codec"] = row["attributes"] & 7
        row["timestamp_type"] = STAMPS[row["attributes"] >> 3 & 1] if magic else None
    return row


def known_codec(codec: int | None, magic: int | None) -> str | None:
    return None if codec is None or codec >= (5 if magic == 2 else 4) else CODECS[codec]


def sequence(base: int, delta: int) -> int:
    return base + delta if base + delta <= 2**31 - 1 else base + delta - 2**31


def no_minus_one(value: int | None) -> int | None:
    return None if value == -1 else value


def batches(data: bytes) -> list[Row]:
    rows = []
    for pos, stop, error, believed in entries(data):
        h = header(data, pos, stop, error)
        magic, bits = h["magic"], h["attributes"]
        legacy = magic in (0, 1)
        wrapper = legacy and bits is not None and bits & 7 > 0
        last = h["base_offset"] if legacy else None
        if h["last_offset_delta"] is not None:
            last = wrapped(h["base_offset"] + h["last_offset_delta"], 64)
        count = h["record_count"]
        if legacy and bits is not None:
            count = None if wrapper else 1
        last_sequence = None
        if h["base_sequence"] is not None:
            last_sequence = wrapped(sequence(h["base_sequence"], h["last_offset_delta"]), 32)
            last_sequence = -1 if h["base_sequence"] == -1 else last_sequence
        crc_valid = {None: True, "CRC_MISMATCH": False}.get(error)
        if error is None and known_codec(h["codec"], magic) is None:
            error = "UNKNOWN_CODEC"
        rows.append(
            {
                "position": pos,
                "size": stop - pos if believed else None,
                "base_offset": None if wrapper else h["base_offset"],
                "last_offset": last,
                "magic": magic,
                "crc": h["crc"],
                "crc_valid": crc_valid,
                "compression": known_codec(h["codec"], magic),
                "timestamp_type": h["timestamp_type"],
                "base_timestamp_ms": no_minus_one(h["base_timestamp_ms"]),
                "max_timestamp_ms": no_minus_one(h["max_timestamp_ms"]),
                "record_count": count,
                "partition_leader_epoch": h["partition_leader_epoch"],
                "producer_id": h["producer_id"],
                "producer_epoch": h["producer_epoch"],
                "base_sequence": h["base_sequence"],
                "last_sequence": last_sequence,
                "is_transactional": flag_of(h, 16),
                "is_control": flag_of(h, 32),
                "delete_horizon_ms": h["base_timestamp_ms"] if magic == 2 and (bits or 0) & 64 else None,
                "error": error,
            }
        )
    return rows


def wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


# -- records


def records(data: bytes, verify_crc: bool = True) -> list[Row]:
    rows: list[Row] = []
    for pos, stop, error, whole_entry in entries(data):
        h = header(data, pos, stop, error)
        if error == "CRC_MISMATCH" and whole_entry and not verify_crc:
            error = None
        common = {
            "position": pos,
            "magic": h["magic"],
            "compression": known_codec(h["codec"], h["magic"]),
            "producer_id": h["producer_id"],
            "producer_epoch": h["producer_epoch"],
            "partition_leader_epoch": h["partition_leader_epoch"],
            "is_transactional": flag_of(h, 16),
            "is_control": flag_of(h, 32),
        }
        whole: Row = {"offset": h["base_offset"], "timestamp_type": h["timestamp_type"]}
        if h["magic"] == 1:
            whole["timestamp_ms"] = h["max_timestamp_ms"]
        if error is None:
            try:
                result = (
                    batch_records(data, pos, stop, h)
                    if h["magic"] == 2
                    else log_records(data, pos, stop, h, verify_crc)
                )
            except Unreadable as reason:
                result = [whole | {"error": str(reason)}]
        else:
            result = [whole | {"error": error}]
        rows += [finished(row, common) for row in result]
    return rows


def flag_of(h: Row, bit: int) -> bool | None:
    if h["magic"] in (0, 1):
        return False
    return None if h["attributes"] is None else bool(h["attributes"] & bit)


COLUMNS = (
    "offset", "timestamp", "timestamp_ms", "timestamp_type", "key", "value", "headers", "position", "magic",
    "compression", "producer_id", "producer_epoch", "sequence", "partition_leader_epoch", "is_transactional",
    "is_control", "control_type", "error",
)  # fmt: skip


def finished(row: Row, common: Row) -> Row:
    row = row | common
    ms = no_minus_one(row.get("timestamp_ms"))
    row["timestamp_ms"] = ms
    row["timestamp"] = ms * 1000 if ms is not None and FIRST_MS <= ms <= LAST_MS else None
    return {name: row.get(name) for name in COLUMNS}


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.pos = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.pos + size > len(self.data):
            raise Unreadable("BAD_RECORD")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def varint(self, bits: int = 32) -> int:
        value = shift = 0
        for _ in range(5 if bits == 32 else 10):
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                value &= (1 << bits) - 1
                return value >> 1 ^ -(value & 1)
        raise Unreadable("BAD_RECORD")

    def nullable(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.take(size)


def batch_records(data: bytes, pos: int, stop: int, h: Row) -> list[Row]:
    if known_codec(h["codec"], 2) is None:
        raise Unreadable("UNKNOWN_CODEC")
    if h["record_count"] < 0:
        raise Unreadable("BAD_RECORD")
    if h["record_count"] == 0:
        return []
    payload = data[pos + 61 : stop]
    reader = Reader(decompress(h["codec"], payload, 2) if h["codec"] else payload)
    rows: list[Row] = []
    try:
        for number in range(h["record_count"]):
            body = Reader(reader.take(reader.varint()))
            if number == h["record_count"] - 1 and reader.pos != len(reader.data):
                raise Unreadable("BAD_RECORD")
            rows.append(record(body, h))
    except Unreadable as reason:
        rows.append({"error": str(reason)})
    return rows


def record(body: Reader, h: Row) -> Row:
    body.take(1)
    time_delta, offset_delta = body.varint(64), body.varint()
    key, value = body.nullable(), body.nullable()
    count = body.varint()
    if count < 0:
        raise Unreadable("BAD_RECORD")
    headers = []
    for _ in range(count):
        name = body.take(body.varint()).decode("utf-8", "replace")
        headers.append({"key": name, "value": body.nullable()})
    if body.pos != len(body.data):
        raise Unreadable("BAD_RECORD")
    time = h["max_timestamp_ms"] if h["attributes"] & 8 else wrapped(h["base_timestamp_ms"] + time_delta, 64)
    control = None
    if h["attributes"] & 32 and key is not None and len(key) >= 4:
        (kind,) = struct.unpack_from(">h", key, 2)
        control = CONTROL[kind] if 0 <= kind < len(CONTROL) else "UNKNOWN"
    return {
        "offset": wrapped(h["base_offset"] + offset_delta, 64),
        "timestamp_ms": time,
        "timestamp_type": h["timestamp_type"],
        "key": key,
        "value": value,
        "headers": headers,
        "sequence": sequence(h["base_sequence"], offset_delta) if h["base_sequence"] >= 0 else -1,
        "control_type": control,
    }


def body_of(message: bytes) -> tuple[int | None, bytes | None, bytes | None, bool]:
    """Timestamp, key, value, and whether key and value could be read."""
    reader = Reader(message)
    key = value = time = None
    try:
        reader.take(6)
        if message[4] == 1:
            (time,) = struct.unpack(">q", reader.take(8))
        (size,) = struct.unpack(">i", reader.take(4))
        key = None if size < 0 else reader.take(size)
        (size,) = struct.unpack(">i", reader.take(4))
        value = None if size < 0 else reader.take(size)
    except Unreadable:
        return time, key, value, False
    return time, key, value, True


def log_records(data: bytes, pos: int, stop: int, h: Row, verify_crc: bool) -> list[Row]:
    message = data[pos + 12 : stop]
    time, key, value, intact = body_of(message)
    if known_codec(h["codec"], h["magic"]) is None:
        raise Unreadable("UNKNOWN_CODEC")
    if h["codec"] == 0:
        row = {"offset": h["base_offset"], "timestamp_ms": time, "timestamp_type": h["timestamp_type"]}
        return [row | {"key": key, "value": value, "error": None if intact else "BAD_RECORD"}]
    if not intact or value is None:
        raise Unreadable("BAD_RECORD")
    inner, torn = inner_messages(decompress(h["codec"], value, h["magic"]))
    if not inner:
        raise Unreadable("BAD_RECORD")
    base = 0
    if h["magic"] == 1 and h["base_offset"] != 0:
        if h["base_offset"] < inner[-1][0]:
            raise Unreadable("BAD_RECORD")
        base = h["base_offset"] - inner[-1][0]
    rows = [inner_record(wrapped(base + offset, 64), content, h, verify_crc) for offset, content in inner]
    return rows + [{"error": "BAD_RECORD"}] * torn


def inner_messages(data: bytes) -> tuple[list[tuple[int, bytes]], bool]:
    """Offset and bytes of each complete message, and whether bytes remain."""
    result, pos = [], 0
    while pos + 12 <= len(data):
        offset, size = struct.unpack_from(">qi", data, pos)
        if size < 14 or pos + 12 + size > len(data):
            break
        result.append((offset, data[pos + 12 : pos + 12 + size]))
        pos += 12 + size
    return result, pos < len(data)


def inner_record(offset: int, content: bytes, h: Row, verify_crc: bool) -> Row:
    right = not verify_crc or zlib.crc32(content[4:]) == int.from_bytes(content[:4], "big")
    magic = content[4]
    if magic > 1:
        return {"offset": offset, "error": "BAD_MAGIC"}
    if right and content[5] & 7:
        return {"offset": offset, "error": "BAD_RECORD"}
    time, key, value, intact = body_of(content)
    if time is not None and h["timestamp_type"] == "LogAppendTime":
        time = h["max_timestamp_ms"]
    error = "CRC_MISMATCH" if not right else None if intact else "BAD_RECORD"
    return {
        "offset": offset,
        "timestamp_ms": time,
        "timestamp_type": h["timestamp_type"] if magic == 1 else None,
        "key": key,
        "value": value,
        "error": error,
    }


# -- single messages


def message(msg: bytes) -> Row:
    row: Row = dict.fromkeys(
        ("crc", "crc_computed", "crc_valid", "magic", "attributes", "compression", "timestamp", "timestamp_ms",
         "timestamp_type", "key", "key_size", "value", "value_size")
    )  # fmt: skip
    row["error"] = message_error(msg, row)
    row["is_valid"] = row["error"] is None
    return row


def message_error(msg: bytes, row: Row) -> str | None:
    if len(msg) >= 4:
        row["crc"] = int.from_bytes(msg[:4], "big")
        row["crc_computed"] = zlib.crc32(msg[4:])
    if len(msg) < 5:
        return "TRUNCATED"
    (row["magic"],) = struct.unpack_from(">b", msg, 4)
    if row["magic"] not in (0, 1):
        row["crc_valid"] = row["crc"] == row["crc_computed"]
        return "BAD_MAGIC"
    if len(msg) < 6:
        return "TRUNCATED"
    (row["attributes"],) = struct.unpack_from(">b", msg, 5)
    row["compression"] = known_codec(row["attributes"] & 7, row["magic"])
    if row["magic"] == 1:
        row["timestamp_type"] = STAMPS[row["attributes"] >> 3 & 1]
    time, row["key"], row["value"], intact = body_of(msg)
    row["timestamp_ms"] = no_minus_one(time)
    if time is not None and time != -1 and FIRST_MS <= time <= LAST_MS:
        row["timestamp"] = time * 1000
    at = 14 if row["magic"] == 1 else 6
    for name in ("key_size", "value_size"):
        if at + 4 <= len(msg):
            (row[name],) = struct.unpack_from(">i", msg, at)
            at += 4 + max(row[name], 0)
    if not intact:
        # If the sizes exist and the checksum covers exactly these bytes, a size is wrong. Otherwise bytes are missing.
        complete = row["crc"] == row["crc_computed"] and row["key_size"] is not None
        row["crc_valid"] = True if complete else None
        return "BAD_LENGTH" if complete else "TRUNCATED"
    if row["crc"] != row["crc_computed"]:
        row["crc_computed"] = zlib.crc32(msg[4:at])
    row["crc_valid"] = row["crc"] == row["crc_computed"]
    if not row["crc_valid"]:
        return "CRC_MISMATCH"
    return None if row["compression"] else "UNKNOWN_CODEC"
