"""A slow and simple oracle for the other files of Kafka's local storage, and for records of its internal topics.

Each function returns the expected result of the function with the same name, and shares no code with it.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from crc32c import crc32c

Row = dict[str, Any]
STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
ENTRY_LINE = re.compile(rb"(-1|[0-9]+)[ \t\r]+(-1|[0-9]+)[ \t\r]*")


def txn_index(data: bytes) -> list[Row]:
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    return [
        dict(zip(names, struct.unpack_from(">hqqqq", data, at), strict=True)) for at in range(0, len(data) - 33, 34)
    ]


def producer_snapshot(data: bytes) -> list[Row]:
    names = (
        "producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta", "timestamp_ms",
        "coordinator_epoch", "current_txn_first_offset",
    )  # fmt: skip
    rows: list[Row] = []
    error = None
    if len(data) < 10:
        error = "TRUNCATED"
    elif data[:2] != b"\0\1":
        error = "BAD_MAGIC"
    else:
        crc, count = struct.unpack(">Ii", data[2:10])
        for number in range(max(count, 0)):
            if len(data) < 10 + 46 * (number + 1):
                break
            row = dict(zip(names, struct.unpack_from(">qhiqiqiq", data, 10 + 46 * number), strict=True))
            for name in ("timestamp_ms", "current_txn_first_offset"):
                row[name] = None if row[name] == -1 else row[name]
            rows.append(row)
        if count < 0:
            error = "BAD_LENGTH"
        elif len(rows) < count:
            error = "TRUNCATED"
        elif crc32c(data[6:]) != crc:
            error = "CRC_MISMATCH"
    if error and not rows:
        rows = [dict.fromkeys(names)]
    return [row | {"error": error} for row in rows]


def leader_epochs(text: bytes) -> list[Row]:
    damage = {"epoch": None, "start_offset": None}
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not lines or (len(lines) == 1 and re.fullmatch(rb"0+[ \t\r]*", lines[0])):
        return []
    head = [re.fullmatch(rb"(-1|[0-9]+)[ \t\r]*", line) for line in lines[:2]]
    if len(head) < 2 or head[0] is None or head[1] is None or int(head[0][1]) != 0 or not 0 <= int(head[1][1]) < 2**31:
        return [damage]
    rows = []
    for line in lines[2:]:
        entry = ENTRY_LINE.fullmatch(line)
        good = entry is not None and int(entry[1]) < 2**31 and int(entry[2]) < 2**63
        rows.append({"epoch": int(entry[1]), "start_offset": int(entry[2])} if entry and good else damage)
    return rows if len(rows) == int(head[1][1]) else [*rows, damage]


class Stop(Exception):
    """The reason is the error code."""


class Cursor:
    """Reads a message from its start to its end."""

    def __init__(self, data: bytes, flexible: bool = False) -> None:
        self.data, self.flexible = data, flexible

    def take(self, size: int) -> bytes:
        if size > len(self.data):
            raise Stop("TRUNCATED")
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def uvarint(self) -> int:
        value = 0
        for k in range(5):
            byte = self.take(1)[0]
            value |= (byte & 127) << 7 * k
            if byte < 128:
                return value & 0xFFFFFFFF
        raise Stop("TRUNCATED")

    def size(self, width: int, null: bool) -> int | None:
        size = self.uvarint() - 1 if self.flexible else self.number(width)
        if size < (-1 if null else 0):
            raise Stop("BAD_LENGTH")
        return None if size == -1 else size

    def text(self, null: bool = False) -> str | None:
        size = self.size(2, null)
        return None if size is None else self.take(size).decode("utf-8", "replace")

    def bytes(self) -> None:
        self.take(self.size(4, False) or 0)

    def tags(self) -> None:
        if self.flexible:
            for _ in range(self.uvarint()):
                self.uvarint()
                self.take(self.uvarint())


def time(value: int) -> int | None:
    return None if value == -1 else value


GROUP_FIELDS = (
    "kind", "version", "group", "topic", "partition", "offset", "leader_epoch", "metadata", "commit_timestamp_ms",
    "expire_timestamp_ms", "protocol_type", "generation", "protocol", "leader", "members", "error",
)  # fmt: skip


def group_record(key: bytes | None, value: bytes | None) -> Row | None:
    if key is None:
        return None
    row: Row = dict.fromkeys(GROUP_FIELDS)
    try:
        group_key(Cursor(key), row)
    except Stop as error:
        row["error"] = str(error)
    if row["kind"] in ("OFFSET", "GROUP"):
        row["version"] = None
        try:
            if value is not None:
                (offset_value if row["kind"] == "OFFSET" else group_value)(value, row)
        except Stop as error:
            row["error"] = row["error"] or str(error)
    return row


def group_key(key: Cursor, row: Row) -> None:
    row["version"] = version = key.number(2)
    if not 0 <= version <= 23:
        raise Stop("BAD_MAGIC")
    row["kind"] = ("OFFSET", "OFFSET", "GROUP")[version] if version < 3 else "OTHER"
    if version < 3:
        row["group"] = key.text()
    if version < 2:
        row["topic"] = key.text()
        row["partition"] = key.number(4)


def value_version(value: bytes, row: Row, newest: int, flexible: int) -> tuple[Cursor, int]:
    version = Cursor(value).number(2)
    row["version"] = version
    if not 0 <= version <= newest:
        raise Stop("BAD_MAGIC")
    return Cursor(value[2:], version >= flexible), version


def offset_value(value: bytes, row: Row) -> None:
    cursor, version = value_version(value, row, 4, 4)
    row["offset"] = cursor.number(8)
    if version >= 3:
        row["leader_epoch"] = cursor.number(4)
    row["metadata"] = cursor.text()
    row["commit_timestamp_ms"] = time(cursor.number(8))
    if version == 1:
        row["expire_timestamp_ms"] = time(cursor.number(8))
    cursor.tags()


def group_value(value: bytes, row: Row) -> None:
    cursor, version = value_version(value, row, 4, 4)
    row["protocol_type"] = cursor.text()
    row["generation"] = cursor.number(4)
    row["protocol"] = cursor.text(null=True)
    row["leader"] = cursor.text(null=True)
    if version >= 2:
        cursor.number(8)
    row["members"] = cursor.size(4, False)
    for _ in range(row["members"]):
        cursor.text()
        if version >= 3:
            cursor.text(null=True)
        cursor.text()
        cursor.text()
        cursor.take(8 if version >= 1 else 4)
        cursor.bytes()
        cursor.bytes()
        cursor.tags()
    cursor.tags()


TRANSACTION_FIELDS = (
    "version", "transactional_id", "producer_id", "producer_epoch", "timeout_ms", "state", "partitions",
    "last_update_timestamp_ms", "start_timestamp_ms", "error",
)  # fmt: skip


def transaction_record(key: bytes | None, value: bytes | None) -> Row | None:
    if key is None:
        return None
    row: Row = dict.fromkeys(TRANSACTION_FIELDS)
    try:
        cursor = Cursor(key)
        version = cursor.number(2)
        if version != 0:
            row["version"] = version
            raise Stop("BAD_MAGIC")
        known = True
        row["transactional_id"] = cursor.text()
    except Stop as error:
        row["error"] = str(error)
        known = len(key) >= 2 and key[:2] == b"\0\0"
    if known and value is not None:
        try:
            transaction_value(value, row)
        except Stop as error:
            row["error"] = row["error"] or str(error)
    return row


def transaction_value(value: bytes, row: Row) -> None:
    cursor, _ = value_version(value, row, 1, 1)
    row["producer_id"] = cursor.number(8)
    row["producer_epoch"] = cursor.number(2)
    row["timeout_ms"] = cursor.number(4)
    state = cursor.number(1)
    if 0 <= state < len(STATES):
        row["state"] = STATES[state]
    else:
        row["error"] = row["error"] or "BAD_FIELD"
    topics = cursor.size(4, True)
    if topics is not None:
        row["partitions"] = []
        for _ in range(topics):
            topic = cursor.text()
            for _ in range(cursor.size(4, False) or 0):
                row["partitions"].append({"topic": topic, "partition": cursor.number(4)})
            cursor.tags()
    row["last_update_timestamp_ms"] = time(cursor.number(8))
    row["start_timestamp_ms"] = time(cursor.number(8))
    cursor.tags()
