"""``kafka_explain``: log bytes byte by byte, from their layout tables and the results of the readers.

    batch[0].crc                 a field of the first entry's header, a batch
    batch[0].payload             the stored payload of a compressed batch …
    batch[0].record[3].key       … and its records, decompressed
    message[1].inner[2].crc      of the third message inside of the second entry, a compressed message of magic 0 or 1

The lines of decompressed bytes follow those of the payload. Their notes begin with "decompressed", and their positions count
from the beginning of the decompressed payload. All payloads together are decompressed up to ``MOST_INFLATED``.

Each error of `kafka_records` is at the field where it arises. A batch with a wrong checksum is shown, too, unless it is
compressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, Final

import pyarrow as pa

from sparkwire.base.grammar import Field, Sized, Struct
from sparkwire.core.column import binary_of
from sparkwire.core.explain import Explained, Scope, Walker, time_of
from sparkwire.kafka import layout
from sparkwire.kafka.batch_headers import header_block
from sparkwire.kafka.codecs import NAMES
from sparkwire.kafka.entry_payloads import EVERY_OFFSET, payloads_of
from sparkwire.kafka.framing import frame_blocks, framing_of
from sparkwire.kafka.inflate import MAX_VALUE_BYTES, Inflater
from sparkwire.kafka.records import scan_records

MOST_INFLATED: Final = 16 << 20
"""what all payloads of a value may become [bytes]"""

_FLAGS: Final = {
    layout.TRANSACTIONAL: "transactional",
    layout.CONTROL: "control",
    layout.DELETE_HORIZON: "delete horizon",
}
_PREFIX: Final = Struct("entry", *layout.ENTRY.fields)
_UNKNOWN: Final = Struct(
    "entry",
    *layout.ENTRY.fields,
    Field("before_magic", "bytes4"),
    Field("magic", "i8"),
    Sized("content", doc="of an unknown magic", opaque=True),
    ends="size",
    counts_rest=True,
)
_BY_MAGIC: Final = (layout.MESSAGE_ENTRY, layout.MESSAGE_ENTRY, layout.WHOLE_BATCH, _UNKNOWN)
_OF_ANY_SIZE: Final = [Struct(table.name, *table.parts, covered=table.covered) for table in _BY_MAGIC[1:3]]


def explain(data: bytes) -> Explained:
    """Every byte of log bytes."""
    column = pa.array([data], pa.binary())
    records = scan_records(column, max_batch_bytes=MOST_INFLATED, columns=("error",))
    rows = groupby(zip(records.entry_of_row(), records.error().to_pylist(), strict=True), key=itemgetter(0))
    errors = {entry: [error for _, error in of_entry] for entry, of_entry in rows}
    frames, payloads, walker = records.entries.frames, _payloads(column), _EntryWalker(data)
    entries = zip(frames.begin, frames.stop.tolist(), frames.reach, records.entries.variant, strict=True)
    for number, (begin, stop, reach, magic) in enumerate(entries):
        table = _BY_MAGIC[magic] if reach > layout.MAGIC else _PREFIX
        walker.payload = payloads.get(begin)
        walker.walk(table, f"{table.name}[{number}]", errors.get(number, ()), stop)
    return Explained("bytes of a Kafka log", walker.lines)


def explanations(data: bytes) -> Iterator[Explained]:
    """Log bytes; an entry whose size or magic byte is wrong; a message of magic 0 or 1, from its CRC on."""
    log = explain(data)
    yield log
    error = next((line.code for line in log.lines if line.code), None)
    for table in _OF_ANY_SIZE:
        entry = _EntryWalker(data)
        entry.walk(table, f"{table.name}[0]", [error])
        if any(line.is_right for line in entry.lines):
            yield log._replace(lines=entry.lines)
    message = _EntryWalker(data)
    message.after = ("left_over", "after the value: no error")
    message.walk(layout.MESSAGE, "message")
    yield Explained("a message of Kafka", message.lines)


def _payloads(column: pa.Array) -> dict[int, bytes]:
    """The decompressed payloads, by the positions of their entries."""
    source, payloads = binary_of(column), dict[int, bytes]()
    inflater = Inflater(MOST_INFLATED, MAX_VALUE_BYTES, MOST_INFLATED)
    for frames in frame_blocks(framing_of(source)):
        block = header_block(source.data, frames)
        for some, of_some, arena in inflater.decompressed(source, block, payloads_of(source.data, block, EVERY_OFFSET)):
            for i in of_some.inflated.nonzero()[0]:
                payloads[some.frames.begin[i]] = arena[of_some.first[i] : of_some.last[i]].tobytes()
    return payloads


class _EntryWalker(Walker):
    """Explains one entry; ``payload`` is its decompressed payload."""

    PLACES: ClassVar = {
        "TRUNCATED": dict.fromkeys(("size", "offset"), "{left} bytes follow"),
        "BAD_LENGTH": {"size": "no entry has {value} bytes"},
        "BAD_MAGIC": {"magic": "neither 0, 1 nor 2"},
        "CRC_MISMATCH": {
            "crc": "the bytes that it covers are not those that were written",
            "size": "the checksum is right: the size or the magic byte is not",
        },
        "UNKNOWN_CODEC": {"attributes": "entries of this magic have no such codec"},
        "DECOMPRESS_FAILED": dict.fromkeys(("payload", "size"), "its codec cannot read the payload"),
        "TOO_LARGE": {"payload": f"it becomes more than {MOST_INFLATED} bytes, the bound of an explanation"},
        "BAD_RECORD": dict.fromkeys(("record_count", "size"), "it contradicts the bytes that are there"),
    }
    SIZE_ERRORS = ("BAD_RECORD",)
    after = ("rest", "up to the next entry")
    payload: bytes | None = None
    """of the current entry, decompressed"""

    def note(self, scope: Scope, name: str, value: int | bytes) -> str | None:
        batch = scope.parent.values if scope.parent is not None else scope.values
        match name, value:
            case "attributes", int() if "magic" in scope.values:
                return ", ".join(_names_of_bits(value, 2 if scope.struct.name == "batch" else scope.values["magic"]))
            case "timestamp" | "base_timestamp" | "max_timestamp", int():
                return _time_of(value)
            case "timestamp_delta", int():
                is_late = batch["attributes"] & layout.LOG_APPEND_TIME
                return _time_of(batch["max_timestamp"] if is_late else batch["base_timestamp"] + value)
            case "last_offset_delta" | "offset_delta", int():
                return f"offset {batch['offset'] + value}"
            case "key", bytes() if scope.struct is layout.RECORD and batch["attributes"] & layout.CONTROL:
                types = layout.CONTROL_TYPES
                return types[min(int.from_bytes(value[2:4], "big"), len(types) - 1)] if len(value) >= 4 else None
        return None

    def opened(self, scope: Scope, content: bytes) -> tuple[bytes | None, str]:
        size = "not decompressed" if self.payload is None else f"{len(self.payload)} bytes when decompressed"
        return self.payload, f"{NAMES[scope.values['attributes'] & layout.CODEC_MASK]}, {size}"


def _names_of_bits(attributes: int, magic: int) -> Iterator[str]:
    yield NAMES[attributes & layout.CODEC_MASK]
    if magic > 0:
        yield layout.TIMESTAMP_TYPES[1 if attributes & layout.LOG_APPEND_TIME else 0]
    if magic == 2:
        yield from (name for bit, name in _FLAGS.items() if attributes & bit)


def _time_of(ms: int) -> str:
    return "none" if ms == layout.NO_TIMESTAMP else time_of(1000 * ms)
