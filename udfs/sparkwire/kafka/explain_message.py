"""A message of magic 0 or 1, and the set in a compressed one, line by line."""

from __future__ import annotations

from typing import Final

from sparkwire.base.wire import Field
from sparkwire.core.dump import Dump
from sparkwire.kafka import layout
from sparkwire.kafka.explain_entry import ExplainedEntry, blame_header, header

_VALUE_SIZE: Final = Field("value_size", "i32", "negative for a null value [bytes]")


def message(entry: ExplainedEntry, variant: int, payload: bytes | None) -> None:
    dump = entry.dump
    found = header(entry, (layout.MESSAGE_ENTRY_0, layout.MESSAGE_ENTRY_1)[variant])
    trouble = key_and_value(entry, found, payload)
    if payload is not None:
        _inner(entry, dump.decompressed(payload))
    blame_header(entry)
    entry.blame(0, trouble or "size", "the message ends before what it announces", "BAD_RECORD")


def key_and_value(entry: ExplainedEntry, found: dict[str, int], payload: bytes | None = None) -> str | None:
    """What follows a message's header; which size says more than there is."""
    dump, path = entry.dump, entry.path
    trouble = None
    key_size = found.get("key_size")
    if key_size is None:
        return "key_size"
    if key_size > 0 and dump.left:
        dump.content(f"{path}.key", key_size)
    if key_size > 0 and key_size > dump.left and not dump.left:
        trouble = "key_size"
    value_size = dump.number(_VALUE_SIZE, _VALUE_SIZE.doc, name=f"{path}.value_size")
    if value_size is None:
        dump.rest(f"{path}.rest")
        return trouble or "key_size"
    compressed = found["attributes"] & layout.CODEC_MASK != layout.NONE
    if value_size > dump.left or (compressed and value_size < 0):
        trouble = "value_size"
    if value_size > 0 and compressed:
        size = "not decompressed" if payload is None else f"{len(payload)} bytes when decompressed"
        dump.take(f"{path}.payload", value_size, None, size)
    elif value_size > 0 and dump.left:
        dump.content(f"{path}.value", value_size)
    dump.rest(f"{path}.left_over", "after the value: no error")
    return trouble


def _inner(entry: ExplainedEntry, dump: Dump) -> None:
    """The messages of a compressed set."""
    number = 0
    while dump.left:
        begin, end = dump.at, dump.stop
        inner = ExplainedEntry(dump, f"{entry.path}.inner[{number}]", entry.errors)
        stated = int.from_bytes(dump.data[begin + 8 : begin + layout.OVERHEAD], "big", signed=True)
        whole = dump.left > layout.MAGIC and layout.LEAST_SIZE <= stated <= dump.left - layout.OVERHEAD
        magic = dump.data[begin + layout.MAGIC] if whole else None
        if whole:
            dump.stop = begin + layout.OVERHEAD + stated
        found = header(
            inner,
            {0: layout.MESSAGE_ENTRY_0, 1: layout.MESSAGE_ENTRY_1}.get(-1 if magic is None else magic, layout.ENTRY),
        )
        trouble = "size"
        if magic in (0, 1):
            trouble = key_and_value(inner, found) or "size"
        elif whole:
            dump.take(f"{inner.path}.before_magic", begin + layout.MAGIC - dump.at)
            dump.number(Field("magic", "i8"), name=f"{inner.path}.magic")
        dump.rest(f"{inner.path}.rest")
        inner.blame(number, "crc", "the bytes that it covers are not those that were written", "CRC_MISMATCH")
        inner.blame(number, "magic", "a compressed set has messages of magic 0 and 1", "BAD_MAGIC")
        inner.blame(number, trouble, "it contradicts the bytes that are there", "BAD_RECORD")
        dump.stop = end
        number += 1
