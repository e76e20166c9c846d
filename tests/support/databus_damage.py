"""Corruption for Databus events, seeded: the same seed gives the same bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

from tests.support.databus_cases import DAMAGED, EVENTS, damaged, golden_events
from tests.support.oracles import databus as oracle

FIELDS = (0, 1, 5, 9, 13, 17, 21, 31, 45, 49, 53, 57)  # the offsets of sizes, magic, attributes and CRCs
LENGTHS = (0, 1, 4, 8, 44, 45, 48, 49, 52, 53, 56, 57, 60, 61, 62, 64, 100, 0x01000001, 2**31 - 1, 2**31)
LONGEST = 2000  # long values would only slow down the oracle


def golden_rows() -> list[bytes]:
    """The valid events, except the longest ones."""
    return [event for file in EVENTS for _, event in golden_events(file) if len(event) <= LONGEST]


def damaged_rows() -> list[bytes]:
    return [record.data for file in DAMAGED for record in damaged(file)]


def mutants(seed: int, count: int) -> list[bytes]:
    """Golden events with one to three mutations. Many get correct CRCs again, so that they pass the checks."""
    chance = random.Random(seed)
    events = golden_rows()
    rows = []
    for _ in range(count):
        event = chance.choice(events)
        for _ in range(chance.randint(1, 3)):
            event = chance.choice(MUTATIONS)(chance, event, events)
        rows.append(repair(chance, event))
    return rows


def streams(seed: int, count: int) -> list[bytes]:
    """Concatenated events of both versions and byte orders, with corruption between and inside them, some truncated."""
    chance = random.Random(seed)
    events = golden_rows()
    rows = []
    for _ in range(count):
        pieces = []
        for _ in range(chance.randint(0, 8)):
            event = chance.choice(events)
            dice = chance.random()
            if dice < 0.15:
                event = chance.choice(MUTATIONS)(chance, event, events)
            elif dice < 0.25:
                event = repair(chance, chance.choice(MUTATIONS)(chance, event, events))
            elif dice < 0.32:
                event = chance.randbytes(chance.randint(1, 90))
            elif dice < 0.4:
                event = bytes(chance.choice((1, 3, 7, 60, 61, 200)))
            elif dice < 0.44:
                event = b"\2" + bytes(chance.randint(0, 80))
            pieces.append(event)
        stream = b"".join(pieces)
        rows.append(stream[: chance.randint(0, len(stream))] if chance.random() < 0.4 else stream)
    return rows


def flip_bit(chance: random.Random, event: bytes, _: Sequence[bytes]) -> bytes:
    if not event:
        return event
    place = chance.randrange(min(len(event), 70)) if chance.random() < 0.7 else chance.randrange(len(event))
    return event[:place] + bytes([event[place] ^ 1 << chance.randrange(8)]) + event[place + 1 :]


def set_byte(chance: random.Random, event: bytes, _: Sequence[bytes]) -> bytes:
    if not event:
        return event
    place = chance.randrange(min(len(event), 70))
    return event[:place] + bytes([chance.choice((0, 1, 2, 3, 127, 128, 255))]) + event[place + 1 :]


def cut(chance: random.Random, event: bytes, _: Sequence[bytes]) -> bytes:
    return event[: chance.randint(0, len(event))]


def lengthen(chance: random.Random, event: bytes, _: Sequence[bytes]) -> bytes:
    return event + chance.choice((b"\0" * chance.randint(1, 20), chance.randbytes(chance.randint(1, 20)), event))


def splice(chance: random.Random, event: bytes, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others)
    return event[: chance.randint(0, len(event))] + other[chance.randint(0, len(other)) :]


def set_length(chance: random.Random, event: bytes, _: Sequence[bytes]) -> bytes:
    """Set a random 32-bit field to a length near a bound, in either byte order."""
    place = chance.choice(FIELDS)
    length = chance.choice((*LENGTHS, len(event), len(event) + chance.randint(-9, 9), chance.randrange(2**32)))
    field = struct.pack(chance.choice("<>") + "I", length % 2**32)
    return event[:place] + field + event[place + 4 :] if place + 4 <= len(event) else event


def set_attributes(chance: random.Random, event: bytes, _: Sequence[bytes]) -> bytes:
    place = 21 if event[:1] == b"\2" else 9
    attributes = struct.pack(chance.choice("<>") + "H", chance.randrange(2**16))
    return event[:place] + attributes + event[place + 2 :] if place + 2 <= len(event) else event


def set_part(chance: random.Random, event: bytes, _: Sequence[bytes]) -> bytes:
    """Change the size, digest type or version of the first part of a V2 body."""
    order = oracle.byte_order(event)
    start = oracle.fields(event, order).get("header_end") if event[:1] == b"\2" else None
    if start is None or not 0 <= start <= len(event) - 6:
        return event
    head = struct.pack(
        "<ih" if order == "LITTLE_ENDIAN" else ">ih",
        chance.choice((-1, 0, 1, 5, len(event), len(event) - start - chance.randint(6, 30), 2**31 - 1)),
        chance.randrange(-(2**15), 2**15),
    )
    keep_size = chance.random() < 0.5
    return event[:start] + (event[start : start + 4] if keep_size else head[:4]) + head[4:] + event[start + 6 :]


MUTATIONS = (flip_bit, set_byte, cut, lengthen, splice, set_length, set_length, set_attributes, set_part)


def repair(chance: random.Random, event: bytes) -> bytes:
    """The same bytes, with both CRCs or only the header's CRC corrected, or unchanged."""
    dice = chance.random()
    if dice < 0.4:
        event = with_right_crc(event, "value_crc")
    return with_right_crc(event, "header_crc") if dice < 0.6 else event


def with_right_crc(event: bytes, name: str) -> bytes:
    """The same bytes with this CRC corrected, if the event is long enough for it."""
    order = oracle.byte_order(event)
    place = {"header_crc": (1, 9), "value_crc": (49, 13)}[name][event[:1] == b"\2"]
    crc = oracle.fields(event, order).get(f"{name}_computed")
    if crc is None or place + 4 > len(event):
        return event
    return event[:place] + struct.pack(("<" if order == "LITTLE_ENDIAN" else ">") + "I", crc) + event[place + 4 :]
