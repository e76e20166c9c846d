"""A template: one valid document, with which a scan compares the next documents instead of parsing them.

Documents of one column often differ in few characters: the digits of numbers, and the characters of texts. A template has a
range of characters for each of its bytes. The digit of a number may become another digit. A plain character of a text may become
another plain character. All other bytes must be the same. A document whose bytes fit has the template's structure, and its
values have the same kinds and sizes.

A text or number of another size does not fit. So a template has *marks*: the beginnings of the members of its document and of the
nodes of its tree. The scan parses a member that does not fit, and compares again from the mark of the next member.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparkwire.json import grammar
from sparkwire.json.grammar import blank, string_end
from sparkwire.kernels.blocks import BLOCK, PLAIN, lowest, misfits
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bytes, Ints, int64, u8, uint64

MARKS = 256
LONGEST = 1 << 16  # [bytes] of a template
POSITION, NODE, CHILD, FIRST = range(4)
"""Of a mark: its position, relative to the document; the open node; the member's node, -1 if none; its first event."""
SLOT, START, SIZE, KIND, COUNT = range(5)
"""Of an event: the slot, and its value. The value of an object with slots below it has two events, `OPENED` and `CLOSED`."""
OPENED, CLOSED = -1, -2
TOTAL_MARKS, TOTAL_EVENTS, LENGTH, PARSED = range(4)
"""Of the state: the numbers of marks and events, the document's size [bytes], and the bytes that the last scan parsed"""
_WORD = 6  # the largest size of an escape [bytes]


class Template(NamedTuple):
    """A template, or the notes for the next one."""

    marks: Ints
    events: Ints
    places: Ints
    """the mark of the member that is a node, -1 if there is none"""
    state: Ints
    lowest: Bytes
    """the lowest character that each byte may become"""
    widths: Bytes
    """the highest one less the lowest one"""


def template(slots: int, nodes: int, longest: int) -> Template:
    """Allocate a template of documents of up to ``longest`` bytes, with ``slots`` and ``nodes`` of a tree."""
    room = min(longest, LONGEST) + BLOCK
    marks, events = np.empty((4, MARKS + 1), np.int64), np.empty((5, 2 * slots), np.int64)
    characters = np.zeros((2, room), np.uint8)
    return Template(marks, events, np.empty(nodes, np.int64), np.zeros(4, np.int64), characters[0], characters[1])


@kernel
def fitting_size(data: Bytes, pos: int, end: int, template: Template, place: int) -> int:
    """The number of bytes from ``pos`` on that fit the template from ``place`` on. Near the end of the data it may be less."""
    same, size = 0, min(end - pos, int64(template.state[LENGTH]) - place)
    while same < size and pos + same + BLOCK <= data.size:
        other = misfits(data, pos + same, template.lowest, template.widths, place + same)
        if other != 0:
            return min(same + lowest(other), size)
        same += BLOCK
    return min(same, size)


@kernel
def begin_notes(template: Template) -> None:
    """Forget the template, and make room for notes."""
    template.state[TOTAL_MARKS] = template.state[TOTAL_EVENTS] = template.state[LENGTH] = 0
    template.places[:] = grammar.NONE


@kernel
def note_member(template: Template, position: int, node: int, child: int) -> bool:
    """Note the beginning of a member. Returns false if its key occurs again, so that the document cannot become a template."""
    total = template.state[TOTAL_MARKS]
    if total < MARKS:
        t = uint64(total)
        template.marks[POSITION, t], template.marks[NODE, t], template.marks[CHILD, t] = position, node, child
        template.marks[FIRST, t] = template.state[TOTAL_EVENTS]
        total += 1
        template.state[TOTAL_MARKS] = total
    if child >= 0:
        if template.places[uint64(child)] >= 0:
            template.state[TOTAL_MARKS] = 0
            return False
        template.places[uint64(child)] = total - 1
    return True


@kernel
def note_event(template: Template, slot: int, start: int, size: int, kind: int, count: int) -> None:
    e = uint64(template.state[TOTAL_EVENTS])
    events = template.events
    events[SLOT, e], events[START, e], events[SIZE, e] = slot, start, size
    events[KIND, e], events[COUNT, e] = kind, count
    template.state[TOTAL_EVENTS] += 1


@kernel
def end_notes(data: Bytes, begin: int, end: int, template: Template) -> None:
    """Make the noted document the template, if it is not too long. It must be valid, or empty."""
    size = end - begin
    if size == 0 or size + BLOCK > template.widths.size:
        template.state[TOTAL_MARKS] = 0
    if template.state[TOTAL_MARKS] == 0:
        return
    template.state[LENGTH] = size
    template.marks[FIRST, uint64(template.state[TOTAL_MARKS])] = template.state[TOTAL_EVENTS]
    for i in range(size):
        template.lowest[uint64(i)], template.widths[uint64(i)] = u8(data, begin + i), 0
    pos = begin
    while pos < end:
        c = u8(data, pos)
        if c == grammar.QUOTE:
            start = pos + 1
            close, _ = string_end(data, start, end)
            pos = blank(data, close + 1, end)
            if pos >= end or u8(data, pos) != grammar.COLON:
                _free_characters(data, start, close, begin, template)
        elif c == grammar.MINUS or grammar.ZERO <= c <= grammar.NINE:
            pos = _free_digits(data, pos, end, begin, template)
        else:
            pos += 1


@kernel
def _free_characters(data: Bytes, pos: int, end: int, begin: int, template: Template) -> None:
    """Let the plain characters of a text become other ones."""
    while pos < end:
        c = u8(data, pos)
        if c == grammar.BACKSLASH:
            pos += _WORD if u8(data, pos + 1) == 0x75 else 2
            continue
        if c < 0x80:
            template.lowest[uint64(pos - begin)], template.widths[uint64(pos - begin)] = 0x20, PLAIN
        pos += 1


@kernel
def _free_digits(data: Bytes, pos: int, end: int, begin: int, template: Template) -> int:
    """Let the digits of a number become other ones, but not the first one of several a zero. Returns the number's end."""
    first = True
    while pos < end:
        c = u8(data, pos)
        if grammar.ZERO <= c <= grammar.NINE:
            several = first and pos + 1 < end and grammar.ZERO <= u8(data, pos + 1) <= grammar.NINE
            low = grammar.ZERO + 1 if several else grammar.ZERO
            template.lowest[uint64(pos - begin)] = low
            template.widths[uint64(pos - begin)] = grammar.NINE - low
            first = False
        elif not (c == grammar.DOT or c == grammar.MINUS or c == grammar.PLUS or (c | 0x20) == 0x65):
            break
        pos += 1
    return int64(pos)
