"""Find the blocks of entries' payloads, with the plans of their codecs."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparkwire.base.error_codes import DECOMPRESS_FAILED, OK, UNKNOWN_CODEC
from sparkwire.core.column import arrays, empty, part
from sparkwire.kafka.batch_headers import HeaderBlock
from sparkwire.kafka.codecs import CODECS, Plan
from sparkwire.kafka.entry_payloads import EntryPayloads
from sparkwire.kafka.framings import BAD_FRAME, Blocks
from sparkwire.kafka.layout import NONE
from sparkwire.kernels import Bytes, Ints, kernel

_NO_PLAN = -2


@kernel
def _plan_unknown(data: Bytes, start: int, end: int, codec: int, magic: int, out: Blocks, count: int) -> int:
    return _NO_PLAN


def _or(own: int, plan: Plan, others: Plan, key: str) -> Plan:
    """A plan that uses ``plan`` for the codec ``own`` and ``others`` for all other codecs."""

    @kernel(key=key)
    def planned(data: Any, start: int, end: int, codec: int, magic: int, out: Any, count: int) -> int:
        if codec == own:
            return plan(data, start, end, codec, magic, out, count)
        return others(data, start, end, codec, magic, out, count)

    return planned


def _of_every_codec() -> Plan:
    """One kernel for all codecs that have a plan."""
    planned, key = _plan_unknown, "plans of"
    for codec in CODECS:
        if codec.plan is not None:
            key += f" {codec.id} {codec.plan.__module__}.{codec.plan.__name__}"
            planned = _or(codec.id, codec.plan, planned, key)
    return planned


_plan = _of_every_codec()


def planned_blocks(data: Bytes, entries: HeaderBlock, payloads: EntryPayloads) -> tuple[Blocks, Ints]:
    """The blocks of compressed payloads, and the number of blocks up to the end of each entry.

    It sets the error of entries with an unreadable payload.
    """
    entry_count = len(entries.variant)
    planned, ends = arrays(Blocks, 8 * entry_count), empty(entry_count, np.int64)  # a batch has one block or a few
    count = plan_blocks(data, entries, payloads, planned, ends)
    if count > len(planned.codec):
        planned = arrays(Blocks, count)
        count = plan_blocks(data, entries, payloads, planned, ends)
    return part(planned, 0, count), ends


@kernel
def plan_blocks(data: Bytes, entries: HeaderBlock, payloads: EntryPayloads, out: Blocks, ends: Ints) -> int:
    """Plan the blocks of payloads; returns their number, which may exceed the room in ``out``."""
    frames = entries.frames
    count = 0
    for i in range(ends.size):
        if payloads.codec[i] != NONE and frames.error[i] == OK:
            first, last = payloads.first[i], payloads.last[i]
            planned = _plan(data, first, last, payloads.codec[i], entries.variant[i], out, count)
            if planned == _NO_PLAN:
                frames.error[i] = UNKNOWN_CODEC
            elif planned == BAD_FRAME:
                frames.error[i] = DECOMPRESS_FAILED
            else:
                count = planned
        ends[i] = count
    return count
