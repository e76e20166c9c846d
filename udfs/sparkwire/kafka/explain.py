"""``kafka_explain``: log bytes byte by byte, from their layout tables and what the readers find.

    batch[0].crc                 a field of the first entry's header, a batch
    batch[0].record[3].key       of its fourth record
    batch[0].payload             the records of a batch that is compressed, as they are stored …
    batch[0].record[3].key       … and then as they are when decompressed
    message[1].inner[2].crc      of the third message inside of the second entry, a compressed message of magic 0 or 1

The lines of what is decompressed follow the payload's. Their notes begin with "decompressed", and their positions count from the
beginning of the decompressed payload: all other lines, in order, have every byte of the input once. Payloads are decompressed
as long as all together come to no more than ``MOST_INFLATED``.

What `kafka_records` answers as an error is at the place where it arises. A batch whose checksum is wrong is shown all the same,
unless it is compressed.
"""

from __future__ import annotations

from itertools import chain

import pyarrow as pa

from sparkwire.base.wire import Field
from sparkwire.core.column import binary_of
from sparkwire.core.dump import Dump, Full, Line
from sparkwire.kafka.batch_headers import MAGIC_2, UNKNOWN, header_block
from sparkwire.kafka.entry_payloads import EVERY_OFFSET, payloads_of
from sparkwire.kafka.explain_batch import batch
from sparkwire.kafka.explain_entry import MOST_INFLATED, Errors, ExplainedEntry, header
from sparkwire.kafka.explain_message import key_and_value, message
from sparkwire.kafka.framing import frame_blocks, framing_of
from sparkwire.kafka.inflate import MAX_VALUE_BYTES, Inflater
from sparkwire.kafka.layout import (
    BATCH,
    ENTRY,
    MAGIC,
    MESSAGE_0,
    MESSAGE_1,
    MESSAGE_ENTRY_0,
    MESSAGE_ENTRY_1,
    OVERHEAD,
)


def explain(data: bytes) -> list[Line]:
    """Every byte of log bytes."""
    dump = Dump(data)
    try:
        _log(dump, data)
    except Full:
        return dump.end()
    return dump.end()


def explain_message(data: bytes) -> list[Line]:
    """Every byte of one message of magic 0 or 1, from its CRC on; the set in a compressed one is not opened."""
    dump = Dump(data)
    entry = ExplainedEntry(dump, "message", {})
    magic = data[MESSAGE_0["magic"].offset] if len(data) > MESSAGE_0["magic"].offset else 0
    found = header(entry, MESSAGE_1 if magic == 1 else MESSAGE_0)
    key_and_value(entry, found)
    dump.rest("message.left_over")
    return dump.end()


def _log(dump: Dump, data: bytes) -> None:
    column = pa.array([data], pa.binary())
    source = binary_of(column)
    errors = Errors(column)
    inflater = Inflater(MOST_INFLATED, MAX_VALUE_BYTES)
    blocks = (header_block(source.data, block) for block in frame_blocks(framing_of(source)))
    payloads = ((block, payloads_of(source.data, block, EVERY_OFFSET)) for block in blocks)
    inflated, number = 0, 0
    for opened in chain.from_iterable(inflater.opened(source, *found) for found in payloads):
        frames = opened.entries.frames
        for i in range(len(frames.begin)):
            begin, stop, variant = int(frames.begin[i]), int(frames.stop[i]), int(opened.entries.variant[i])
            kind = "batch" if variant == MAGIC_2 else "message" if variant < MAGIC_2 else "entry"
            dump.stop = stop
            entry = ExplainedEntry(dump, f"{kind}[{number}]", errors.of(begin))
            payload = None
            if opened.payloads.inflated[i]:
                payload = opened.arena[opened.payloads.first[i] : opened.payloads.last[i]].tobytes()
                inflated += len(payload)
            if not frames.whole[i] or variant == UNKNOWN:
                _damaged(entry, int(frames.reach[i]), bool(frames.whole[i]))
            elif variant == MAGIC_2:
                batch(entry, payload)
            else:
                message(entry, variant, payload)
            dump.stop = len(data)
            number += 1
            if inflated > MOST_INFLATED:
                raise Full


def _damaged(entry: ExplainedEntry, reach: int, whole: bool) -> None:
    """Bytes that are no whole entry: what of a header can be read, and the rest."""
    dump = entry.dump
    begin, end = dump.at, dump.stop
    dump.stop = begin + min(max(reach, OVERHEAD), end - begin)
    magic = dump.data[begin + MAGIC] if reach > MAGIC else None
    header(entry, {0: MESSAGE_ENTRY_0, 1: MESSAGE_ENTRY_1, 2: BATCH}.get(magic if magic is not None else -1, ENTRY))
    if magic is not None and dump.at == begin + OVERHEAD:
        dump.take(f"{entry.path}.before_magic", begin + MAGIC - dump.at, None, "as every entry has before its magic")
        dump.number(Field("magic", "i8"), name=f"{entry.path}.magic")
    dump.stop = end
    dump.rest(f"{entry.path}.rest", "up to the next entry" if not whole else None)
    size = int.from_bytes(dump.data[begin + 8 : begin + OVERHEAD], "big", signed=True)
    is_cut = end - begin < OVERHEAD
    says = (
        "the bytes end before a size does"
        if is_cut
        else f"it says {size} bytes, {len(dump.data) - begin - OVERHEAD} are here"
    )
    entry.blame(0, "offset" if is_cut and end - begin < 8 else "size", says, "TRUNCATED")
    entry.blame(0, "size", f"no entry has {size} bytes", "BAD_LENGTH")
    entry.blame(0, "magic", "neither 0, 1 nor 2", "BAD_MAGIC")
    entry.blame(0, "crc", "the bytes that it covers are not those that were written, or size is wrong", "CRC_MISMATCH")
