"""Messages of a capture system for a person.

`explain` shows a JSON message: a line for each member, with its role in the declaration of its system. `message_rows` lists
messages: a line for each row, also of messages that a change table leaves out.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_FIELD, ERRORS
from sparkwire.base.grammar import Field, Struct
from sparkwire.changes import foreign
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.read_messages import read_messages
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.systems import Fields, System
from sparkwire.core.column import primitive
from sparkwire.core.explain import Explained, Walker, time_of
from sparkwire.core.names import Table
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
_HEADER: Final = Struct("header", Field("magic", "u8"), Field("schema_id", "u32"))
"""of a schema registry, before the JSON"""


def explain(data: bytes) -> Explained | None:
    """The lines of a message. None if it is not a valid message of a supported system."""
    [kind] = foreign.kinds_of(pa.array([data], pa.binary()))
    if kind is None or kind.system is None:
        return None
    walker, title = _MessageWalker(data, kind.system), kind.system.title
    walker.message()
    evidence = (_LIKELY, f"likely: it has the members of a message of {title}")
    return Explained(f"a message of {title}", walker.lines, evidence=evidence)


class _MessageWalker(Walker):
    """Explains a message. JSON has no table: an object has a line for each of its members."""

    def __init__(self, data: bytes, system: System) -> None:
        super().__init__(data)
        self.system, self.fields = system, Fields(system, pa.array([data], pa.binary()))
        [self.operation] = self.fields.texts("op").to_pylist()
        self.roles = dict[str, str]()
        """the role of each member; of several paths of a role, the first one counts that the message has"""
        self.opened_members = set[str]()
        """the members with members that have roles"""
        for role in reversed(list(system.fields)):
            paths = system.paths(role)
            present = (path for path in paths if self.fields.at_path(path).kinds[0] > NULL)
            self.roles[next(present, paths[0])] = role
            self.opened_members |= {path[:at] for path in paths for at, one in enumerate(path) if one == "."}

    def message(self) -> None:
        begins, ends = self.fields.begins, self.fields.ends
        if begins[0] > 0:
            self.walk(_HEADER, stop=int(begins[0]))
        self.object(values.roots(self.fields.data, begins, ends, np.ones(1, np.bool_)), "", len(self.data))

    def object(self, object: Values, path: str, stop: int) -> None:
        """The lines of the bytes up to ``stop``: an object, and what is around it."""
        listed, last = values.members(object), int(object.starts[0] + object.sizes[0]) - 1
        starts = [*(int(start) - 1 for start in listed.keys.starts), last]
        self.take(path or "message", starts[0], None, "an object")
        for k, name in enumerate(values.texts(listed.keys).to_pylist()):
            member = listed.counted_values.at(np.array([k]))
            self.member(member, f"{path}.{name}" if path else name, starts[k + 1])
        self.take(path or "message", stop, None, "the end")

    def member(self, value: Values, path: str, stop: int) -> None:
        if path in self.opened_members and value.kinds[0] == OBJECT:
            self.object(value, path, stop)
            return
        [text] = values.texts(value).to_pylist()
        role, operations = self.roles.get(path, ""), self.system.operations
        line = self.take(path, stop, text, _ROLES.get(role))
        if role == "op" and text in operations:
            line.notes[0] += f": {operations[text] or 'no change of a row'}"
        if role == "time" and value.kinds[0] > NULL and operations.get(self.operation, "") is not None:
            [time] = self.fields.times[0].cast(pa.int64()).to_pylist()
            if self.fields.times[1]:
                expected = "a time in ISO 8601" if self.system.time_unit == "text" else "an integer"
                line.error(f"expected {expected}", ERRORS[BAD_FIELD])
            elif time is not None:
                line.notes[0] += f": {time_of(time)}"


def system_of(messages: pa.Array) -> System | None:
    """The declared system of at least half of the messages; None if there is none."""
    names = [kind.system.name for kind in foreign.kinds_of(messages) if kind is not None and kind.system is not None]
    return next((system for name, system in SYSTEMS.items() if 2 * names.count(name) >= max(len(messages), 1)), None)


def message_rows(messages: pa.Array, system: System) -> pa.StructArray:
    """STRUCT: operation, database, table, time, before, after and error of each row in the messages.

    The operation of a message that a change table leaves out is its own name.
    """
    everything = system._replace(
        fields={role: path for role, path in system.fields.items() if role != "table"},  # messages of any table
        operations={name: operation or name for name, operation in system.operations.items()},
        left_out=None,
    )
    said = read_messages(Fields(everything, messages), MessageRecords(messages), ReadPlan(Table(""), {}, keys=()))
    names = [name for name, operation in system.operations.items() if operation is None]
    left_out = pc.is_in(said.ops, pa.array(names, pa.string()))
    fields = Fields(system, messages)
    rows = primitive(said.messages)
    columns = {
        "operation": said.ops,
        "database": fields.texts("database").take(rows),
        "table": fields.texts("table").take(rows),
        "time": said.times,
        "before": pc.if_else(left_out, None, values.objects(said.before)),
        "after": pc.if_else(left_out, None, values.objects(said.after)),
        "error": pc.if_else(left_out, None, said.errors),
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
