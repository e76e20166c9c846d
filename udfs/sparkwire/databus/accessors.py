"""The answers of the scalar functions, each a column taken from a scan of events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.base.errors import ERRORS, OK, TRUNCATED
from sparkwire.base.wire import described
from sparkwire.core.builders import Column
from sparkwire.core.column import build, empty, from_codes, gather, primitive, timestamps
from sparkwire.databus import layout
from sparkwire.databus.event_kernels import UNKNOWN
from sparkwire.databus.key_text import measure_keys, write_keys
from sparkwire.databus.layout import NO_VARIANT, V1_LITTLE, V2_LITTLE
from sparkwire.databus.parts import DIGEST, NO_NUMBER, VERSION
from sparkwire.databus.scan import Events
from sparkwire.kernels import Bools, Ints

EventAccessor = Callable[[Events], pa.Array]


def fixed(field: str, example: str) -> Column[Events]:
    """A fixed field, NULL where its bytes are missing."""
    sql, doc = described(field, layout.V1, layout.V2)
    return Column(field, sql, doc, lambda events: primitive(events.header.fields[field], events.has(field)), example)


def crc_computed(which: int) -> EventAccessor:
    """The header's (0) or the value's (1) checksum, over the bytes that are there."""
    return lambda events: primitive(events.checked.crcs[which], events.checked.crcs[which] != UNKNOWN)


def crc_valid(which: int) -> EventAccessor:
    """Whether the header's (0) or the value's (1) checksum is the stored one."""
    return lambda events: primitive(events.checked.checks[which] == 1, events.checked.checks[which] != UNKNOWN)


def span(which: int) -> EventAccessor:
    """The bytes of a part, NULL where it is missing."""
    return lambda events: gather(events.data, events.spans.starts[which], events.spans.sizes[which], pa.binary())


def number(which: int, dtype: npt.DTypeLike) -> EventAccessor:
    """A number out of the variable part, NULL where it is missing."""

    def answer(events: Events) -> pa.Array:
        values = events.spans.numbers[which]
        there = values != NO_NUMBER
        return primitive(np.where(there, values, 0).astype(dtype), there)

    return answer


def attribute(v1_bit: int, v2_bit: int) -> EventAccessor:
    """Whether an attribute bit is set."""
    return lambda events: primitive(events.attribute(v1_bit, v2_bit), events.has("attributes"))


def byte_order(events: Events) -> pa.Array:
    variants = events.header.variants
    little = ((variants == V1_LITTLE) | (variants == V2_LITTLE)).astype(np.int8)
    return from_codes(np.where(variants == NO_VARIANT, np.int8(-1), little), layout.BYTE_ORDERS)


def opcode(events: Events) -> pa.Array:
    return from_codes(events.opcodes, layout.OPCODES)


def key_type(events: Events) -> pa.Array:
    return from_codes(events.key_types, layout.KEY_TYPES)


def is_end_of_period(events: Events) -> pa.Array:
    return primitive(events.header.fields["src_id"] == layout.END_OF_PERIOD, events.has("src_id"))


def timestamp(events: Events) -> pa.Array:
    return timestamps(events.header.fields["timestamp_nanos"], "ns", events.has("timestamp_nanos"))


def source_range(events: Events) -> pa.Array:
    ids = events.header.fields["src_id"]
    return _by_source(events, np.select([ids > 0, ids > layout.PRIVATE_MAX], [0, 1], 2), layout.SOURCE_RANGES)


def event_type(events: Events) -> pa.Array:
    ids = events.header.fields["src_id"]
    kinds = [
        ids > 0,
        ids == layout.END_OF_PERIOD,
        ids == layout.CHECKPOINT,
        ids == layout.SCN_REGRESS,
        (ids >= layout.FIRST_ERROR) & (ids <= layout.LAST_ERROR),
        ids <= layout.PRIVATE_MAX,
    ]
    return _by_source(events, np.select(kinds, range(len(kinds)), len(kinds)), layout.EVENT_TYPES)


def _by_source(events: Events, codes: Ints, vocabulary: tuple[str, ...]) -> pa.Array:
    there = events.has("src_id")
    return from_codes((codes if there is None else np.where(there, codes, -1)).astype(np.int8), vocabulary)


def schema_id(events: Events) -> pa.Array:
    """V1: the header's 16 bytes. V2: the payload part's digest."""
    at = layout.V1["schema_id"].offset
    v1 = ~events.is_v2 & _mask(events, "schema_id")
    starts = np.where(v1, events.offsets[:-1].astype(np.int64) + at, events.spans.starts[DIGEST])
    return gather(events.data, starts, np.where(v1, layout.MD5_SIZE, events.spans.sizes[DIGEST]), pa.binary())


def schema_version(events: Events) -> pa.Array:
    """V1: the first two bytes of the schema id, as REPL_DBUS uses them. V2: the payload part's version."""
    v1 = ~events.is_v2 & _mask(events, "schema_version")
    v2 = events.spans.numbers[VERSION]
    values = np.where(v1, events.header.fields["schema_version"], np.where(v2 == NO_NUMBER, 0, v2))
    return primitive(values.astype(np.int16), v1 | (v2 != NO_NUMBER))


def _mask(events: Events, field: str) -> Bools:
    there = events.has(field)
    return np.ones(events.rows, np.bool_) if there is None else there


def key_long(events: Events) -> pa.Array:
    return primitive(events.header.fields["key_long"], events.long_keys)


def key_text(events: Events) -> pa.Array:
    """A LONG in decimal, other keys as UTF-8, NULL where they are not."""
    (starts, found), longs = events.keys, events.header.fields["key_long"]
    sizes = empty(events.rows, np.int64)
    measure_keys(events.data, starts, found, longs, events.long_keys, sizes)

    def write(offsets: npt.NDArray[np.int32], out: npt.NDArray[np.uint8]) -> None:
        write_keys(events.data, starts, longs, events.long_keys, sizes, offsets, out)

    return build(sizes, write, pa.string())


def status(events: Events) -> pa.Array:
    return from_codes(status_codes(events.errors), layout.STATUSES)


def status_codes(errors: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """OK without an error, PARTIAL for TRUNCATED, ERR for any other."""
    codes = np.full(len(errors), layout.STATUS_ERR, np.int8)
    codes[errors == OK] = layout.STATUS_OK
    codes[errors == TRUNCATED] = layout.STATUS_PARTIAL
    return codes


def error(events: Events) -> pa.Array:
    return from_codes(events.errors, ERRORS)


def is_valid(events: Events) -> pa.Array:
    return primitive(events.errors == OK)
