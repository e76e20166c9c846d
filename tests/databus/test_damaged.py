"""All 4,426 corrupt events against Java: `dbus_status` is Java's verdict, except the differences in docs/differences.md."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any, Literal

import pytest

from tests.support import ROOT
from tests.support.arrow import ask
from tests.support.databus_cases import DAMAGED, Damaged, damaged

PAGE = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
TABLE = "| the bytes | V1 | V2 |" + PAGE.partition("| the bytes | V1 | V2 |")[2].partition("\n\n")[0]


def differences(file: str) -> dict[str, int]:
    """The differences of a file in docs/differences.md: the reason, and the number of records."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines() if line.startswith("| ")]
    start = next(k for k, row in enumerate(cells) if row[:3] == ["the bytes", "V1", "V2"])
    by_name = {row[0]: row[1 + DAMAGED.index(file)] for row in cells[start + 1 :] if len(row) == len(cells[start])}
    return {why: int(count) for why, count in by_name.items() if count}


READERS = {"keyBytes", "keyPart", "value", "metadataPart", "payloadPart"}


@pytest.mark.parametrize("file", DAMAGED)
def test_status_is_java_verdict_or_a_documented_difference(file: str) -> None:
    records = damaged(file)
    status = ask("dbus_status", [record.data for record in records])
    error = ask("dbus_error", [record.data for record in records])
    seen: Counter[str] = Counter()
    for record, got in zip(records, zip(status, error, strict=True), strict=True):
        java = record.java["scanEvent"]
        difference = expected_difference(record)
        if difference is None:
            assert got[0] == java, record.name
        else:
            why, *expected = difference
            assert list(got) == expected, (record.name, why)
            seen[why] += got[0] != java
    assert {why: count for why, count in seen.items() if count} == differences(file)


def test_the_totals_on_the_page() -> None:
    """If Java's factory throws, there is no verdict to compare with."""
    sums = {file: differences(file) for file in DAMAGED}
    thrown = {file: one.pop("no bytes at all") + one.pop("an unknown version") for file, one in sums.items()}
    totals = [(len(damaged(file)), sum(sums[file].values()), thrown[file]) for file in DAMAGED]
    assert totals == [(1666, 94, 107), (2760, 545, 130)]
    for number in ("for 94 of 1,666", "for 545 of 2,760", "107 and 130"):
        assert number in PAGE


@pytest.mark.parametrize("file", DAMAGED)
def test_error_fits_status(file: str) -> None:
    rows = [record.data for record in damaged(file)]
    for status, error, is_valid in zip(
        ask("dbus_status", rows), ask("dbus_error", rows), ask("dbus_is_valid", rows), strict=True
    ):
        assert (status == "OK") == (error is None) == is_valid
        assert (status == "PARTIAL") == (error == "TRUNCATED")


@pytest.mark.parametrize("file", DAMAGED)
def test_accessors_read_the_same_fields_as_java(file: str) -> None:
    """Java's accessors on the corrupt events that it accepts: every field whose bytes exist."""
    records = [record for record in damaged(file) if "accessors" in record.java]
    rows = [record.data for record in records]
    same_order = [order == r.java["order"] for order, r in zip(ask("dbus_byte_order", rows), records, strict=True)]
    assert len(rows) - sum(same_order) == 1  # "byte 2 then zeros", which Java read as little-endian
    for function, accessor in FIXED.items():
        for record, same, got in zip(records, same_order, ask(function, rows), strict=True):
            if same and accessor in record.java["accessors"]:
                assert got == record.java["accessors"][accessor], (function, record.name)
    for function, accessor in VARIABLE.items():
        for record, same, got, error in zip(
            records, same_order, ask(function, rows), ask("dbus_error", rows), strict=True
        ):
            if same and error is None:
                assert got == bytes_of(record.java["accessors"].get(accessor)), (function, record.name)


FIXED = {
    "dbus_version": "version",
    "dbus_header_crc": "headerCrc",
    "dbus_value_crc": "bodyCrc",
    "dbus_value_crc_computed": "calculatedValueCrc",
    "dbus_length": "size",
    "dbus_attributes": "attributes",
    "dbus_opcode": "opcode",
    "dbus_is_trace": "isTraceEnabled",
    "dbus_is_replicated": "isExtReplicatedEvent",
    "dbus_sequence": "sequence",
    "dbus_physical_partition_id": "physicalPartitionId",
    "dbus_logical_partition_id": "logicalPartitionId",
    "dbus_timestamp_nanos": "timestampInNanos",
    "dbus_src_id": "sourceId",
    "dbus_key_long": "key",
}
VARIABLE = {"dbus_value": "value", "dbus_metadata": "metadataPart"}


def bytes_of(answer: Any) -> bytes | None:
    data = answer["data"] if isinstance(answer, dict) else answer
    return None if data is None else base64.b64decode(data)


def expected_difference(record: Damaged) -> tuple[str, str, str | None] | None:
    """The reason for a verdict that differs from Java's, with our status and error; None if it must be the same."""
    java, data = record.java, record.data
    if not data:
        return "no bytes at all", "PARTIAL", "TRUNCATED"
    if data[0] not in (0, 2):
        return "an unknown version", "ERR", "BAD_MAGIC"
    if java["kind"] == "wrongOrder":
        return "a byte order other than the one configured in Java", "OK", None
    if data[0] == 2 and len(data) >= 45:
        order: Literal["big", "little"] = "big" if java["order"] == "BIG_ENDIAN" else "little"
        magic, header_length, length = (int.from_bytes(data[at : at + 4], order, signed=True) for at in (1, 5, 17))
        if magic == SWAPPED_MAGIC:
            return "V2 with the magic of the other byte order", "PARTIAL", "TRUNCATED"
        if magic != MAGIC:
            return "V2 without its magic", "ERR", "BAD_MAGIC"
        if not 45 <= header_length <= length:
            return "V2 header length below 45 or beyond the event", "ERR", "BAD_LENGTH"
    if java["scanEvent"] != "OK" or "accessors" not in java:
        return None
    if READERS & set(java["accessors"].get("errors", {})):
        what = "key or value beyond the event" if data[0] == 0 else "key or part beyond its bounds"
        return f"{what}: Java throws when it is read", "ERR", "BAD_LENGTH"
    if data[0] == 2 and reads_on(java["accessors"]):
        return "key or part beyond its bounds: Java reads on", "ERR", "BAD_LENGTH"
    return None


MAGIC = int.from_bytes(bytes.fromhex("cafedeed"), "big", signed=True)
SWAPPED_MAGIC = int.from_bytes(bytes.fromhex("cafedeed"), "little", signed=True)


def reads_on(accessors: dict[str, Any]) -> bool:
    """Whether a key or a part that Java read from a V2 event ends after the header or the event."""
    if accessors.get("isKeyNumber"):
        key_end = 45 + 8
    elif accessors.get("isKeyString"):
        key_end = 45 + 4 + accessors["keyBytesLength"]
    elif accessors.get("isKeySchema"):
        key_end = 45 + size_of(accessors["keyPart"])
    else:
        key_end = 45
    body_end = accessors["headerLength"] + size_of(accessors["metadataPart"]) + size_of(accessors["payloadPart"])
    return bool(key_end > accessors["headerLength"] or body_end > accessors["size"])


def size_of(part: dict[str, Any] | None) -> int:
    return 0 if part is None else 6 + {"MD5": 16, "CRC32": 4}[part["digestType"]] + part["length"]
