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

from sparkwire.base.grammar import Part, Struct
from sparkwire.base.wire import Field, Layout
from sparkwire.core.column import binary_of
from sparkwire.core.dump import Dump, Full, Line
from sparkwire.core.walk import Scope
from sparkwire.kafka.batch_headers import MAGIC_2, UNKNOWN, header_block
from sparkwire.kafka.entry_payloads import EVERY_OFFSET, payloads_of
from sparkwire.kafka.explain_entry import MOST_INFLATED, EntryWalker, Errors
from sparkwire.kafka.framing import frame_blocks, framing_of
from sparkwire.kafka.inflate import MAX_VALUE_BYTES, Inflater
from sparkwire.kafka.layout import (
    BATCH,
    ENTRY,
    LEAST_SIZE,
    MAGIC,
    MESSAGE_0,
    MESSAGE_ENTRY_0,
    MESSAGE_ENTRY_1,
    OVERHEAD,
    WHOLE_BATCH,
    WHOLE_MESSAGES,
)

_MESSAGE_ENTRIES = tuple(Struct("entry", *ENTRY.fields, message) for message in WHOLE_MESSAGES)


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
    at = MESSAGE_0["magic"].offset
    magic = int(data[at : at + 1] == b"\1")
    walker = MessageWalker(Dump(data), "message", magic)
    walker.message(WHOLE_MESSAGES[magic])
    return walker.dump.end()


def _log(dump: Dump, data: bytes) -> None:
    column = pa.array([data], pa.binary())
    source = binary_of(column)
    errors = Errors(column)
    inflater = Inflater(MOST_INFLATED, MAX_VALUE_BYTES)
    blocks = (header_block(source.data, block) for block in frame_blocks(framing_of(source)))
    payloads = ((block, payloads_of(source.data, block, EVERY_OFFSET)) for block in blocks)
    inflated, number = 0, 0
    for opened in chain.from_iterable(inflater.decompressed(source, *block) for block in payloads):
        frames = opened.entries.frames
        for i in range(len(frames.begin)):
            begin, stop, variant = int(frames.begin[i]), int(frames.stop[i]), int(opened.entries.variant[i])
            kind = "batch" if variant == MAGIC_2 else "message" if variant < MAGIC_2 else "entry"
            path, of_rows = f"{kind}[{number}]", errors.of(begin)
            dump.stop = stop
            payload = None
            if opened.payloads.inflated[i]:
                payload = opened.arena[opened.payloads.first[i] : opened.payloads.last[i]].tobytes()
                inflated += len(payload)
            if not frames.whole[i] or variant == UNKNOWN:
                _damaged(EntryWalker(dump, path, variant, of_rows), int(frames.reach[i]), bool(frames.whole[i]))
            elif variant == MAGIC_2:
                _batch(EntryWalker(dump, path, variant, of_rows, payload))
            else:
                MessageWalker(dump, path, variant, of_rows, payload).entry()
            dump.stop = len(data)
            number += 1
            if inflated > MOST_INFLATED:
                raise Full


def _batch(walker: EntryWalker) -> None:
    walker.walk(WHOLE_BATCH, walker.path)
    walker.blame_header()
    walker.blame(0, "record_count", "a number of records is not negative", "BAD_RECORD")


class MessageWalker(EntryWalker):
    """Explains a message of magic 0 or 1, and the set in a compressed one."""

    def entry(self) -> None:
        """With its offset and size."""
        field = self.message(_MESSAGE_ENTRIES[self.magic])
        self.blame_header()
        self.blame(0, field, "the message ends before what it announces", "BAD_RECORD")

    def message(self, table: Struct) -> str:
        """Its fields; which one says more than there is, or its size."""
        scope = self.walk(table, self.path)
        self.dump.rest(f"{self.path}.left_over", "after the value: no error")
        if "value_size" not in scope.values:
            return "key_size"
        return "value_size" if self.is_short else "size"

    def held(self, scope: Scope, part: Part) -> None:
        """The messages of a compressed set."""
        number = 0
        while self.dump.left:
            self._inner(number)
            number += 1

    def _inner(self, number: int) -> None:
        dump = self.dump
        begin, end = dump.at, dump.stop
        size = int.from_bytes(dump.data[begin + 8 : begin + OVERHEAD], "big", signed=True)
        is_whole = dump.left > MAGIC and LEAST_SIZE <= size <= dump.left - OVERHEAD
        magic = dump.data[begin + MAGIC] if is_whole else None
        if is_whole:
            dump.stop = begin + OVERHEAD + size
        inner = MessageWalker(dump, f"{self.path}.inner[{number}]", magic or 0, self.errors)
        field = "size"
        if magic in (0, 1):
            field = inner.message(_MESSAGE_ENTRIES[magic])
        else:
            _fields(inner, ENTRY)
            if is_whole:
                _magic(inner, begin)
        dump.rest(f"{inner.path}.rest")
        inner.blame(number, "crc", "the bytes that it covers are not those that were written", "CRC_MISMATCH")
        inner.blame(number, "magic", "a compressed set has messages of magic 0 and 1", "BAD_MAGIC")
        inner.blame(number, field, "it contradicts the bytes that are there", "BAD_RECORD")
        dump.stop = end


def _fields(walker: EntryWalker, table: Layout) -> None:
    walker.walk(Struct("entry", *table.fields), walker.path)


def _magic(walker: EntryWalker, begin: int, *notes: str) -> None:
    """The magic of an entry of which only its place is known."""
    dump = walker.dump
    dump.take(f"{walker.path}.before_magic", begin + MAGIC - dump.at, None, *notes)
    dump.number(Field("magic", "i8"), name=f"{walker.path}.magic")


def _damaged(walker: EntryWalker, reach: int, whole: bool) -> None:
    """Bytes that are no whole entry: what of a header can be read, and the rest."""
    dump = walker.dump
    begin, end = dump.at, dump.stop
    dump.stop = begin + min(max(reach, OVERHEAD), end - begin)
    magic = dump.data[begin + MAGIC] if reach > MAGIC else -1
    _fields(walker, {0: MESSAGE_ENTRY_0, 1: MESSAGE_ENTRY_1, 2: BATCH}.get(magic, ENTRY))
    if magic != -1 and dump.at == begin + OVERHEAD:
        _magic(walker, begin, "as every entry has before its magic")
    dump.stop = end
    dump.rest(f"{walker.path}.rest", "up to the next entry" if not whole else None)
    size = int.from_bytes(dump.data[begin + 8 : begin + OVERHEAD], "big", signed=True)
    is_cut = end - begin < OVERHEAD
    left = len(dump.data) - begin - OVERHEAD
    says = "the bytes end before a size does" if is_cut else f"it says {size} bytes, {left} are here"
    walker.blame(0, "offset" if is_cut and end - begin < 8 else "size", says, "TRUNCATED")
    walker.blame(0, "size", f"no entry has {size} bytes", "BAD_LENGTH")
    walker.blame(0, "magic", "neither 0, 1 nor 2", "BAD_MAGIC")
    walker.blame(0, "crc", "the bytes that it covers are not those that were written, or size is wrong", "CRC_MISMATCH")
