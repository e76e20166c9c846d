"""The position of each change in its database's log, from the fields that its connector provides."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bools_of, struct, text_or_null
from sparkwire.debezium.layout import POSITION_FIELDS, READ
from sparkwire.debezium.scanned_messages import Messages
from sparkwire.json import values
from sparkwire.json.plain_texts import integers
from sparkwire.kernels import Ints

POSITION: Final = pa.struct(
    [
        ("log", pa.string()),
        ("lsn", pa.string()),
        ("position", pa.int64()),
        ("sub_position", pa.int64()),
        ("row", pa.int64()),
    ]
)
_NUMBERED: Final = r"^(?P<name>.*?)\.?(?P<number>[0-9]+)$"
"""the name of a binary log file: ``binlog.000001``"""
_SEQUENCE: Final = r'^\[(?:null|"(?P<before>[0-9]{1,18})"), ?(?:null|"(?P<change>[0-9]{1,18})")\]$'
"""PostgreSQL's pair of LSNs: the end of the previous commit, and the change"""
_RECORD: Final = r"0x[0-9a-fA-F]+\.(?P<block>[0-9a-fA-F]{1,8})\.(?P<byte>[0-9a-fA-F]{1,4})\b"
"""Oracle's ``rs_id``, such as `` 0x000012.00000345.0010 ``: the number of the log, the block in it and the byte"""


def position_of_source(scan: Messages, rows: Ints) -> pa.Array:
    """The position of each change in its database's log, from the fields that its connector provides."""
    fields = {name: scan.value(f"source.{name}").at(rows) for name in POSITION_FIELDS}
    texts = {name: values.texts(value) for name, value in fields.items()}

    def number(name: str) -> pa.Array:
        numbers = integers(texts[name], pa.int64())
        return pc.if_else(pc.greater_equal(numbers, 0), numbers, None)

    pair = pc.extract_regex(texts["sequence"], _SEQUENCE)
    ends, change = (_int_or_null(pc.struct_field(pair, name)) for name in ("before", "change"))
    change = pc.coalesce(change, number("lsn"))
    file = pc.extract_regex(texts["file"], _NUMBERED)
    is_file = pc.not_equal(texts["file"], "").fill_null(False)  # TiCDC writes an empty one
    log = pc.if_else(is_file, pc.coalesce(text_or_null(pc.struct_field(file, "name")), texts["file"]), None)
    lsns = [_sortable(texts[name]) for name in ("commit_lsn", "change_lsn")]
    lsn = pc.binary_join_element_wise(lsns[0], pc.coalesce(lsns[1], ""), "/")
    # A snapshot as of an SCN contains the commits up to it.
    of_snapshot = pc.and_(texts["commit_scn"].is_null(), pa.array(scan.operations[rows] == READ))
    position = pc.coalesce(
        pc.if_else(is_file, _int_or_null(pc.struct_field(file, "number")), None),
        # Before the first commit that the connector has seen, the change itself is later than all earlier commits.
        pc.coalesce(ends, change),
        pc.coalesce(number("commit_scn"), pc.if_else(of_snapshot, number("scn"), None)),
        pc.if_else(texts["ord"].is_valid(), number("ts_ms"), None),
        number("commit_ts"),
    )
    sub_position = pc.coalesce(pc.if_else(is_file, number("pos"), None), change, number("scn"), number("ord"))
    row = pc.coalesce(
        pc.if_else(is_file, number("row"), None),
        number("event_serial_no"),
        _place_in_redo(texts["rs_id"], number("ssn")),
    )
    valid = bools_of(pc.or_(pc.or_(log.is_valid(), lsn.is_valid()), position.is_valid()))
    valid &= ~bools_of(pc.and_(is_file, number("pos").is_null()))
    parts = {"log": log, "lsn": lsn, "position": position, "sub_position": sub_position, "row": row}
    return struct(parts, valid)


def _place_in_redo(ids: pa.Array, numbers: pa.Array) -> pa.Array:
    """The place of a change in Oracle's redo log, from the block and byte of its record and its number there; of 63 bits."""
    if ids.null_count == len(ids):
        return numbers
    parts = pc.extract_regex(ids, _RECORD)
    pairs = zip(
        *(pc.struct_field(parts, name).to_pylist() for name in ("block", "byte")), numbers.to_pylist(), strict=True
    )
    places = [
        number if not block else (int(block, 16) << 16 | int(byte, 16)) << 15 | min(number or 0, (1 << 15) - 1)
        for block, byte, number in pairs
    ]
    return pa.array(places, pa.int64())


def _sortable(lsn: pa.Array) -> pa.Array:
    """LSNs as texts that sort like them. SQL Server's have a fixed width, Informix's are decimal numbers."""
    return pc.if_else(pc.match_substring_regex(lsn, "^[0-9]+$"), pc.utf8_lpad(lsn, 20, "0"), lsn)


def _int_or_null(texts: pa.Array) -> pa.Array:
    """A group of digits as a number; NULL if the group is empty."""
    return pc.if_else(
        pc.and_(pc.greater(pc.utf8_length(texts), 0), pc.less(pc.utf8_length(texts), 19)), texts, None
    ).cast(pa.int64())
