"""Explain a JSON message of a capture system: a line for each member, with its role in the system's declaration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.changes import foreign
from sparkwire.changes.systems import Fields, System
from sparkwire.core.column import binary_of
from sparkwire.core.lines import Explained, Line, time_of
from sparkwire.json import values
from sparkwire.json.grammar import NULL, OBJECT
from sparkwire.json.values import Values

_ROLES: Final = {
    "op": "the operation",
    "after": "the row, of an update the new one",
    "before": "the old row, or its changed columns",
    "database": "the database",
    "schema": "the schema",
    "table": "the table",
    "keys": "the names of the key columns",
    "types": "the types of the columns",
    "time": "when it happened",
    "transaction": "the transaction",
    "position": "the position in the source",
    "sequence": "the position in the source",
}
"""what the roles of a declaration mean; other roles need no note"""
_LIKELY: Final = 2
"""the rank of the evidence, as in `Explained.confidence`"""
_HEADER: Final = (("magic", 1), ("schema_id", 4))
"""the header of a schema registry before the JSON [bytes]"""


def explain(data: bytes) -> Explained | None:
    """The lines of a message. None if it is not a valid message of a supported system."""
    column = pa.array([data], pa.binary())
    [known] = foreign.kinds_of(column)
    if known is None or not known.system.name:
        return None
    title = known.system.title
    evidence = (_LIKELY, f"likely: it has the members of a message of {title}")
    return Explained(f"a message of {title}", list(_lines(data, column, known.system)), evidence=evidence)


def _lines(data: bytes, column: pa.Array, system: System) -> Iterator[Line]:
    source = binary_of(column)
    begins, ends = values.bounds(source)
    root = values.roots(source.data, begins, ends, np.ones(1, np.bool_))
    begin = int(begins[0]) - int(source.offsets[0])
    if begin:
        at = 0
        for name, size in _HEADER:
            yield Line(at, data[at : at + size], name, str(int.from_bytes(data[at : at + size], "big")), [])
            at += size
    yield from _Message(data, system).object(root, "", begin, len(data))


class _Message:
    """The lines of a message; each byte is in one of them."""

    def __init__(self, data: bytes, system: System) -> None:
        self.data, self.system = data, system
        fields = Fields(system, pa.array([data], pa.binary()))
        [self.operation] = fields.texts("op").to_pylist()
        [self.time], [self.is_odd_time] = fields.times[0].cast(pa.int64()).to_pylist(), fields.times[1]
        self.is_left_out = system.operations.get(self.operation, "") is None
        paths = {role: system.paths(role) for role in reversed(list(system.fields))}
        self.roles = {
            path: role
            for role, several in paths.items()
            for path in several
            if path == next((one for one in several if fields.at_path(one).kinds[0] > NULL), several[0])
        }
        parts = [path.split(".") for several in paths.values() for path in several]
        self.opened = {".".join(path[:k]) for path in parts for k in range(1, len(path))}
        """the members with members that have roles"""

    def line(self, begin: int, end: int, path: str, value: str | None, note: str = "") -> Line:
        return Line(begin, self.data[begin:end], path or "message", value, [note] if note else [])

    def object(self, object: Values, path: str, begin: int, end: int) -> Iterator[Line]:
        """The lines of the bytes from ``begin`` to ``end``: an object, and what is around it."""
        last = int(object.starts[0] + object.sizes[0]) - 1
        listed = values.members(object)
        keys, members = values.texts(listed.keys).to_pylist(), listed.counted_values
        starts = [int(start) - 1 for start in listed.keys.starts]
        yield self.line(begin, starts[0] if starts else last, path, None, "an object")
        for k, (name, start, stop) in enumerate(zip(keys, starts, [*starts[1:], last], strict=True)):
            yield from self.member(members.at(np.array([k])), f"{path}.{name}" if path else name, start, stop)
        yield self.line(last, end, path, None, "the end")

    def member(self, value: Values, path: str, begin: int, end: int) -> Iterator[Line]:
        if path in self.opened and value.kinds[0] == OBJECT:
            yield from self.object(value, path, begin, end)
            return
        [text] = values.texts(value).to_pylist()
        role = self.roles.get(path, "")
        line = self.line(begin, end, path, text, _ROLES.get(role, ""))
        if role == "op" and text in self.system.operations:
            line.notes[0] += f": {self.system.operations[text] or 'no change of a row'}"
        if role == "time" and value.kinds[0] > NULL and not self.is_left_out:
            if self.is_odd_time:
                expected = "a time in ISO 8601" if self.system.time_unit == "text" else "an integer"
                line.error(f"expected {expected}", ERRORS[BAD_FIELD] or "")
            elif self.time is not None:
                line.notes[0] += f": {time_of(self.time)}"
        yield line
