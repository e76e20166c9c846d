"""Scan JSON documents in one pass: validate each, and locate the selected values.

A document is a UTF-8 object; a byte-order mark before it is allowed. A scan ends at the first corruption, and returns the values
that are complete before it. If a key repeats within an object, the last one counts. The scan is not recursive, and nesting is
unlimited: ``nest`` has one byte for each open bracket within a value that is not selected.

Documents of one column often have the same structure. So a scan compares each with a *template* (`template.py`), and parses
only the members that do not fit it. At the beginning of a member, the state of a scan is the position, the open node and the
values before it. The template has the same for its own members. Members that fit add the template's values, at their own
positions. The scan passes each member of the template at most once, and in order, so a key that repeats is always parsed.

If few members fit, the scan skips only what a document has in common with the previous one. Few fit if texts vary, or if the
column has many kinds of documents. The scan then leaves separate marks, after the commas between members.

The module is long because its loop is long: the loop calls only inlined kernels, and the steps around it share its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparkwire.json import grammar
from sparkwire.json.grammar import (
    Kinds,
    behind_mark,
    blank,
    delimited,
    first_word,
    quick_number_end,
    quick_string_end,
    scalar_end,
    string_end,
    unescapes_to,
)
from sparkwire.json.template import (
    CHILD,
    CLOSED,
    COUNT,
    FIRST,
    KIND,
    LENGTH,
    NODE,
    OPENED,
    PARSED,
    POSITION,
    SIZE,
    SLOT,
    START,
    TOTAL_MARKS,
    Template,
    begin_notes,
    end_notes,
    fitting_size,
    note_event,
    note_member,
    template,
)
from sparkwire.kernels.blocks import BLOCK, differences, lowest
from sparkwire.kernels.jit import kernel
from sparkwire.kernels.load import Bools, Bytes, Ints, i64, int64, u8, uint64

_NODE = np.dtype(
    [
        (field, np.int64)
        for field in (
            "parent",
            "first",  # the first child
            "last",  # one after the last child
            "slot",  # the number of the selected value, -1 for an inner node
            "key_start",
            "key_size",
            "key_first",  # its first bytes, see first_word
            "key_last",  # its last bytes, the same way
            "table_start",  # the hash table of its children begins at table[table_start]
            "table_mask",  # one less than its size, which is a power of two
            "below_first",  # the slots at and below a node are below[below_first:below_last]
            "below_last",
        )
    ]
)
_START, _SIZE, _KIND, _COUNT = range(4)
# Ways to scan: make notes for a template, use the template, skip the common beginning.
_NOTE, _COMPARE, _SKIP = range(3)
_ROWS = 16  # after so many documents a template that fits badly is replaced
_SKIPPED_ROWS = 512  # so many documents are scanned without a template after the second one that fits badly
_MARKS = 32  # of a document without a template
_TRIES = 8  # after so many members that do not fit one after the other, a document is parsed to its end
_MIX = 0x9E3779B97F4A7C15  # odd, its bits as irregular as those of the golden ratio
_ALL = (1 << 64) - 1
_HIGH = 40  # a hash is the bits from here on: the higher ones of a product depend on all bits of its factors


class Paths(NamedTuple):
    """The selected values as a tree: node 0 is the document, and the children of a node are contiguous."""

    nodes: NDArray[Any]
    below: Ints
    keys: Bytes
    table: Ints
    """hash tables, one after the other: a child by its key, -1 in free places"""

    @property
    def slots(self) -> int:
        return int(self.nodes["slot"].max()) + 1


class Scratch(NamedTuple):
    """The state of a scan."""

    nest: Bytes
    slots: Ints
    """start, size, kind and count for each slot of the current document; starts are relative to the document"""
    found: Ints
    """the number of slots with a column, then these slots in the order of their columns"""
    columns: Ints
    """the column of each slot; -1 until a document has a value for it"""
    template: Template


def paths(*names_wanted: str) -> Paths:
    """The tree of paths such as ``payload.timestamp.eventTime``. Slot ``i`` is the i-th path."""
    return tree_of([tuple(path.split(".")) for path in names_wanted])


def tree_of(names_wanted: Sequence[tuple[str, ...]]) -> Paths:
    """The tree of distinct paths, each a tuple of keys; a key may contain any character. Slot ``i`` is the i-th path."""
    steps: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for path in names_wanted:
        for size in range(len(path)):
            steps.setdefault(path[:size], {})[path[: size + 1]] = None
    nodes: list[tuple[str, ...]] = [()]
    for node in nodes:  # breadth first: the list grows while the loop runs
        nodes += steps.get(node, ())
    names = [node[-1].encode() if node else b"" for node in nodes]
    slots = {path: slot for slot, path in enumerate(names_wanted)}
    children: list[list[int]] = [[] for _ in nodes]
    below: list[list[int]] = [[] for _ in nodes]
    places = {node: i for i, node in enumerate(nodes)}
    for i, node in enumerate(nodes[1:], 1):
        children[places[node[:-1]]].append(i)
    for slot, path in enumerate(names_wanted):
        for size in range(len(path) + 1):
            below[places[path[:size]]].append(slot)
    tree = np.empty(len(nodes), _NODE)
    tree["parent"] = [places[node[:-1]] for node in nodes]
    tree["first"] = [group[0] if group else 0 for group in children]
    tree["last"] = [group[-1] + 1 if group else 0 for group in children]
    tree["slot"] = [slots.get(node, grammar.NONE) for node in nodes]
    tree["key_start"] = np.cumsum([0, *map(len, names)])[:-1]
    tree["key_size"] = [len(name) for name in names]
    tree["key_first"] = [grammar.word_of(name[: grammar.WORD]) for name in names]
    tree["key_last"] = [grammar.word_of(name[-grammar.WORD :]) for name in names]
    tree["below_first"] = np.cumsum([0, *map(len, below)])[:-1]
    tree["below_last"] = np.cumsum([*map(len, below)])
    table: list[int] = []
    for i, group in enumerate(children):
        mask = (1 << (4 * len(group)).bit_length()) - 1
        tree["table_start"][i], tree["table_mask"][i] = len(table), mask
        table += _hash_table(group, mask, names)
    slots_below = [slot for group in below for slot in group]
    return Paths(tree, _ints(slots_below), np.frombuffer(b"".join(names), np.uint8), _ints(table))


def _hash_table(children: Sequence[int], mask: int, names: Sequence[bytes]) -> list[int]:
    """Each child at the place of its key's hash, or at the first free one after it."""
    table = [grammar.NONE] * (mask + 1)
    for child in children:
        name = names[child]
        first, last = (int.from_bytes(part, "little") for part in (name[: grammar.WORD], name[-grammar.WORD :]))
        place = (((first ^ last * _MIX) * _MIX & _ALL) >> _HIGH) & mask
        while table[place] != grammar.NONE:
            place = (place + 1) & mask
        table[place] = child
    return table


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def scratch(tree: Paths, longest: int) -> Scratch:
    """Allocate the state for documents of up to ``longest`` bytes."""
    slots = np.zeros((4, tree.slots), np.int64)
    slots[_SIZE] = -1
    found, columns = np.zeros(tree.slots + 1, np.int64), np.full(tree.slots, grammar.NONE)
    return Scratch(np.empty(longest, np.uint8), slots, found, columns, template(tree.slots, len(tree.nodes), longest))


@kernel
def scan_documents(
    data: Bytes,
    begins: NDArray[Any],
    ends: NDArray[Any],
    tree: Paths,
    nulls: bool,
    scratch: Scratch,
    starts: Ints,
    sizes: Ints,
    kinds: Kinds,
    counts: Ints,
    valid: Bools,
) -> bool:
    """Validate each document ``data[begins[i]:ends[i]]`` and store the spans of the selected values.

    Returns false as soon as more slots have a value than ``kinds`` has rows. The results are then incomplete.

    Parameters
    ----------
    nulls
        whether to store a null as NULL; otherwise it is absent
    starts, sizes, kinds, counts
        one row for each slot of ``tree`` that some document has, as ``scratch.columns`` says, and one column for each
        document. ``sizes`` is -1 and ``kinds`` ABSENT if the value does not exist. ``counts`` is the number of members of a
        container that has no slots below it
    valid
        whether the document is one JSON object and nothing else
    """
    slots, found, state = scratch.slots, scratch.found, scratch.template.state
    columns, last, size, marks = 0, 0, 0, 0
    way, rows, failures, seen, parsed = _NOTE, 0, 0, 0, 0
    for row in range(valid.size):
        begin, end = int64(begins[row]), int64(ends[row])
        if way == _SKIP:
            same = _same_size(data, last, begin, min(size, end - begin))
            while marks > 0 and scratch.template.marks[POSITION, uint64(marks - 1)] > same:
                marks -= 1
        elif way == _NOTE:
            begin_notes(scratch.template)
        valid[row], marks = _scan(data, begin, end, tree, nulls, scratch, way, marks)
        last, size, rows = begin, end - begin, rows + 1
        if way == _NOTE:
            end_notes(data, begin, end if valid[row] else begin, scratch.template)
            marks = state[TOTAL_MARKS]
            if marks > 0:
                way, rows, seen, parsed = _COMPARE, 0, 0, 0
            elif rows == _ROWS:
                way, rows, failures = _SKIP, 0, failures + 2
        elif way == _COMPARE:
            seen, parsed = seen + size, parsed + state[PARSED]
            if rows == _ROWS:
                if 8 * parsed > 7 * seen:
                    failures += 1
                    way = _SKIP if failures % 2 == 0 else _NOTE
                    marks = 0
                rows, seen, parsed = 0, 0, 0
        elif rows == _SKIPPED_ROWS * failures:
            way, rows = _NOTE, 0
        if found[0] > kinds.shape[0]:
            return False
        while columns < found[0]:
            for before in range(row):
                kinds[columns, before], sizes[columns, before] = grammar.ABSENT, -1
            columns += 1
        for column in range(columns):
            c, r, s = uint64(column), uint64(row), uint64(found[uint64(column + 1)])
            kind = slots[_KIND, s]
            kinds[c, r], sizes[c, r] = kind, slots[_SIZE, s]
            if kind != grammar.ABSENT:
                starts[c, r] = begin + slots[_START, s]
                if kind >= grammar.OBJECT:
                    counts[c, r] = slots[_COUNT, s]
    return True


@kernel
def number_runs(data: Bytes, starts: Ints, sizes: Ints, firsts: Ints) -> None:
    """For each span, the first of the consecutive spans with the same bytes. Spans of a negative size are equal."""
    for i in range(sizes.size):
        firsts[i] = i
        if i > 0 and sizes[i] == sizes[i - 1] and (sizes[i] < 0 or _equal(data, starts[i - 1], starts[i], sizes[i])):
            firsts[i] = firsts[i - 1]


@kernel
def _equal(data: Bytes, a: int, b: int, size: int) -> bool:
    same = _same_size(data, a, b, size)
    while same < size and u8(data, a + same) == u8(data, b + same):
        same += 1
    return same == size


@kernel
def _same_size(data: Bytes, a: int, b: int, size: int) -> int:
    """The number of equal bytes from ``a`` and from ``b`` on, at most ``size``. Near the end of the data it may be less."""
    same = 0
    while same < size and max(a, b) + same + BLOCK <= data.size:
        other = differences(data, a + same, b + same)
        if other != 0:
            return min(same + lowest(other), size)
        same += BLOCK
    return min(same, size)


@kernel
def _scan(
    data: Bytes, begin: int, end: int, tree: Paths, nulls: bool, scratch: Scratch, way: int, marks: int
) -> tuple[bool, int]:
    """Whether the document is valid, and its number of marks. With `_SKIP`, ``marks`` of the previous document's marks apply."""
    nodes, slots, template = tree.nodes, scratch.slots, scratch.template
    node = 0  # the innermost open object that is a node of the tree
    template.state[PARSED] = end - begin
    if way == _SKIP and marks > 0:
        node = template.marks[NODE, uint64(marks - 1)]
        _forget_after(scratch, template.marks[POSITION, uint64(marks - 1)])
        pos = begin + template.marks[POSITION, uint64(marks - 1)]
    else:
        _forget_after(scratch, 0)
        pos = blank(data, behind_mark(data, begin, end), end)
        if pos >= end or u8(data, pos) != grammar.LEFT_BRACE:
            return False, marks
        after = blank(data, pos + 1, end)
        if after < end and u8(data, after) == grammar.RIGHT_BRACE:
            return blank(data, after + 1, end) == end, marks
        pos += 1
    block, ahead = pos - BLOCK, uint64(0)
    noting, passed, tries = way == _NOTE, grammar.NONE, _TRIES if way == _COMPARE else 0
    while True:
        mark = grammar.NONE  # the template's mark here
        if tries > 0:
            mark = passed + 1
            tries -= 1
            while mark < marks and template.marks[NODE, uint64(mark)] != node:
                mark += 1
            if mark >= marks:
                mark = grammar.NONE
        if mark >= 0:
            place = template.marks[POSITION, uint64(mark)]
            same = fitting_size(data, pos, end, template, place)
            if place + same == template.state[LENGTH] and pos + same == end:
                _add_values(scratch, mark, marks, pos - begin - place)
                template.state[PARSED] -= same
                return True, marks
            last = mark
            while last + 1 < marks and template.marks[POSITION, uint64(last + 1)] <= place + same:
                last += 1
            if last > mark:  # but not into an object that is empty here
                after = blank(data, pos + template.marks[POSITION, uint64(last)] - place, end)
                last -= after < end and u8(data, after) == grammar.RIGHT_BRACE
            if last > mark:
                _add_values(scratch, mark, last, pos - begin - place)
                skipped = template.marks[POSITION, uint64(last)] - place
                template.state[PARSED] -= skipped
                pos += skipped
                node, mark, passed, tries = template.marks[NODE, uint64(last)], last, last - 1, _TRIES
                block, ahead = pos - BLOCK, uint64(0)
        member = pos - begin
        pos = blank(data, pos, end)
        if pos >= end or u8(data, pos) != grammar.QUOTE:
            return False, marks
        start, escaped = pos + 1, False
        pos, block, ahead = quick_string_end(data, pos, end, block, ahead)
        if pos < 0:
            pos, escaped = string_end(data, start, end)
            if pos < 0:
                return False, marks
            block, ahead = pos + 1 - BLOCK, uint64(0)
        child = _escaped_child(data, start, pos, tree, node) if escaped else _child(data, start, pos, tree, node)
        slot = grammar.NONE
        if child >= 0:
            slot = nodes[uint64(child)].slot
            if _forget(tree, child, slots) and way == _SKIP:
                marks = 0
        if noting:
            noting = note_member(template, member, node, child)
        elif child >= 0:
            passed = max(passed, template.places[uint64(child)])
        elif mark >= 0 and template.marks[CHILD, uint64(mark)] < 0:
            passed = mark
        pos = blank(data, pos + 1, end)
        if pos >= end or u8(data, pos) != grammar.COLON:
            return False, marks
        pos = blank(data, pos + 1, end)
        if pos >= end:
            return False, marks
        c = u8(data, pos)
        start, after, kind = pos, pos, grammar.ABSENT
        if c == grammar.QUOTE:
            start, kind = pos + 1, grammar.STRING
            after, block, ahead = quick_string_end(data, pos, end, block, ahead)
            if after < 0:
                after, escaped = string_end(data, start, end)
                if after < 0:
                    return False, marks
                block, ahead = after + 1 - BLOCK, uint64(0)
                kind = grammar.ESCAPED if escaped else grammar.STRING
            pos = after + 1
        elif c == grammar.LEFT_BRACE and child >= 0 and nodes[uint64(child)].first < nodes[uint64(child)].last:
            pos = blank(data, pos + 1, end)
            if pos >= end:
                return False, marks
            if u8(data, pos) != grammar.RIGHT_BRACE:
                node = child
                if slot >= 0:
                    slots[_START, uint64(slot)] = start - begin
                    if noting:
                        note_event(template, slot, start - begin, -1, OPENED, 0)
                pos = start + 1
                continue
            pos += 1
            after, kind = pos, grammar.OBJECT
        elif c == grammar.LEFT_BRACE or c == grammar.LEFT_BRACKET:
            pos, members, block, ahead = _container_end(data, pos, end, scratch.nest, block, ahead)
            if pos < 0:
                return False, marks
            after, kind = pos, grammar.OBJECT if c == grammar.LEFT_BRACE else grammar.ARRAY
            if slot >= 0:
                slots[_COUNT, uint64(slot)] = members
        else:
            after, kind = quick_number_end(data, pos, end)
            if after < 0:
                after, kind = scalar_end(data, pos, end)
                if after < 0 or not delimited(data, after, end):
                    return False, marks
            pos = after
        if slot >= 0 and (nulls or kind != grammar.NULL):
            s = uint64(slot)
            slots[_START, s], slots[_SIZE, s], slots[_KIND, s] = start - begin, after - start, kind
            if scratch.columns[s] < 0:
                _add_column(scratch, slot)
            if noting:
                note_event(template, slot, start - begin, after - start, kind, slots[_COUNT, s])
        while True:
            pos = blank(data, pos, end)
            if pos >= end:
                return False, marks
            c = u8(data, pos)
            pos += 1
            if c == grammar.COMMA:
                if way == _SKIP and marks < _MARKS:
                    m = uint64(marks)
                    template.marks[POSITION, m], template.marks[NODE, m] = pos - begin, node
                    marks += 1
                break
            if c != grammar.RIGHT_BRACE:
                return False, marks
            if node == 0:
                return blank(data, pos, end) == end, marks
            slot = nodes[uint64(node)].slot
            if slot >= 0:
                s = uint64(slot)
                slots[_SIZE, s], slots[_KIND, s] = pos - begin - slots[_START, s], grammar.OBJECT
                if scratch.columns[s] < 0:
                    _add_column(scratch, slot)
                if noting:
                    note_event(template, slot, pos - begin, -1, CLOSED, 0)
            node = nodes[uint64(node)].parent


@kernel
def _add_values(scratch: Scratch, mark: int, last: int, shift: int) -> None:
    """Add the values that the template has from one mark to another, at positions that differ by ``shift``."""
    slots, events, marks = scratch.slots, scratch.template.events, scratch.template.marks
    for event in range(marks[FIRST, uint64(mark)], marks[FIRST, uint64(last)]):
        e = uint64(event)
        s, kind = uint64(events[SLOT, e]), events[KIND, e]
        if kind == OPENED:
            slots[_START, s] = events[START, e] + shift
        elif kind == CLOSED:
            slots[_SIZE, s], slots[_KIND, s] = events[START, e] + shift - slots[_START, s], grammar.OBJECT
        else:
            slots[_START, s], slots[_SIZE, s] = events[START, e] + shift, events[SIZE, e]
            slots[_KIND, s], slots[_COUNT, s] = kind, events[COUNT, e]


@kernel
def _add_column(scratch: Scratch, slot: int) -> None:
    """Give the slot the next column."""
    column = scratch.found[0]
    scratch.columns[uint64(slot)], scratch.found[uint64(column + 1)] = column, slot
    scratch.found[0] = column + 1


@kernel
def _forget_after(scratch: Scratch, place: int) -> None:
    """Remove the values that end after this position. The starts of objects that are open there stay known."""
    slots = scratch.slots
    for column in range(scratch.found[0]):
        s = uint64(scratch.found[uint64(column + 1)])
        if slots[_START, s] + slots[_SIZE, s] > place:
            slots[_SIZE, s], slots[_KIND, s] = -1, grammar.ABSENT


@kernel
def _forget(tree: Paths, node: int, slots: Ints) -> bool:
    """Remove the values at and below a node, because its key occurs again. Returns whether there were any."""
    again = False
    for i in range(tree.nodes[uint64(node)].below_first, tree.nodes[uint64(node)].below_last):
        s = uint64(tree.below[uint64(i)])
        if slots[_KIND, s] != grammar.ABSENT:
            slots[_SIZE, s], slots[_KIND, s] = -1, grammar.ABSENT
            again = True
    return again


@kernel
def _child(data: Bytes, start: int, end: int, tree: Paths, node: int) -> int:
    """The child of ``node`` with this key; -1 if none."""
    n, size = uint64(node), end - start
    first = first_word(data, start, size)
    last = i64(data, end - grammar.WORD, True) if size > grammar.WORD else first
    place = int64((uint64(first) ^ uint64(last) * uint64(_MIX)) * uint64(_MIX) >> uint64(_HIGH))
    while True:
        child = int64(tree.table[uint64(tree.nodes[n].table_start + (place & tree.nodes[n].table_mask))])
        if child < 0 or _has_key(data, start, size, first, last, tree, child):
            return child
        place += 1


@kernel
def _has_key(data: Bytes, start: int, size: int, first: int, last: int, tree: Paths, child: int) -> bool:
    c = uint64(child)
    if tree.nodes[c].key_first != first or tree.nodes[c].key_last != last or tree.nodes[c].key_size != size:
        return False
    at, same, rest = tree.nodes[c].key_start, grammar.WORD, size - grammar.WORD
    while same < rest and u8(data, start + same) == tree.keys[uint64(at + same)]:
        same += 1
    return same >= rest


@kernel
def _escaped_child(data: Bytes, start: int, end: int, tree: Paths, node: int) -> int:
    nodes = tree.nodes
    for child in range(nodes[uint64(node)].first, nodes[uint64(node)].last):
        c = uint64(child)
        if unescapes_to(data, start, end, tree.keys, nodes[c].key_start, nodes[c].key_size):
            return child
    return grammar.NONE


@kernel
def _container_end(data: Bytes, pos: int, end: int, nest: Bytes, block: int, ahead: int) -> tuple[int, int, int, int]:
    """The position after the object or array at ``pos``, -1 if corrupt; its number of members; ``block`` and ``ahead`` there."""
    bracket, depth, members = int64(u8(data, pos)), 0, 1  # innermost open bracket; the outer ones are nest[:depth]
    pos = blank(data, pos + 1, end)
    if pos < end and u8(data, pos) == bracket + grammar.TO_RIGHT:
        return pos + 1, 0, block, ahead
    while True:
        if bracket == grammar.LEFT_BRACE:
            if pos >= end or u8(data, pos) != grammar.QUOTE:
                break
            start = pos + 1
            pos, block, ahead = quick_string_end(data, pos, end, block, ahead)
            if pos < 0:
                pos, _ = string_end(data, start, end)
                if pos < 0:
                    break
                block, ahead = pos + 1 - BLOCK, uint64(0)
            pos = blank(data, pos + 1, end)
            if pos >= end or u8(data, pos) != grammar.COLON:
                break
            pos = blank(data, pos + 1, end)
        if pos >= end:
            break
        c = int64(u8(data, pos))
        if c == grammar.QUOTE:
            start = pos + 1
            pos, block, ahead = quick_string_end(data, pos, end, block, ahead)
            if pos < 0:
                pos, _ = string_end(data, start, end)
                if pos < 0:
                    break
                block, ahead = pos + 1 - BLOCK, uint64(0)
            pos += 1
        elif c == grammar.LEFT_BRACE or c == grammar.LEFT_BRACKET:
            pos = blank(data, pos + 1, end)
            if pos >= end:
                break
            if u8(data, pos) != c + grammar.TO_RIGHT:
                nest[uint64(depth)] = bracket
                bracket = c
                depth += 1
                continue
            pos += 1
        else:
            after, _ = quick_number_end(data, pos, end)
            if after < 0:
                after, _ = scalar_end(data, pos, end)
                if after < 0 or not delimited(data, after, end):
                    break
            pos = after
        while True:
            pos = blank(data, pos, end)
            c = int64(u8(data, pos)) if pos < end else grammar.NONE
            pos += 1
            if c != bracket + grammar.TO_RIGHT or depth == 0:
                break
            depth -= 1
            bracket = int64(nest[uint64(depth)])
        if c == grammar.COMMA:
            members += depth == 0
            pos = blank(data, pos, end)
        elif c == bracket + grammar.TO_RIGHT:
            return pos, members, block, ahead
        else:
            break
    return grammar.NONE, 0, block, ahead
