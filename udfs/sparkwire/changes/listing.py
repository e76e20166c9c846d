"""List the messages of a capture system for a person: one line for each row, also of messages that a change table leaves out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.changes import foreign
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.read_messages import read_messages
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.systems import Fields, System
from sparkwire.core.column import primitive
from sparkwire.core.names import Table
from sparkwire.json import values


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
