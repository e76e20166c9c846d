"""The Avro payloads of Databus events, and what names the schema of each."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.payloads import Payloads
from sparkwire.core.column import bools_of
from sparkwire.databus.functions import FORMAT
from sparkwire.kernels.load import Bools

_FUNCTIONS: Final = FORMAT.by_name
EVENT_COLUMNS: Final = ("sequence", "timestamp", "src_id", "opcode", "key")
"""what a typed row has of its Databus event, each between underscores"""


def ask(function: str, column: pa.Array) -> pa.Array:
    """What a function of Databus returns."""
    return _FUNCTIONS[function].decode(column)


def is_data(events: pa.Array) -> Bools:
    """Which are data events."""
    return bools_of(pc.equal(ask("dbus_event_type", events), "DATA").fill_null(False))


def of_events(events: pa.Array) -> Payloads:
    """The payloads of Databus's data events; control events have none, and deletes may have an empty one, which is none."""
    is_delete = pc.equal(ask("dbus_opcode", events), "DELETE").fill_null(False)
    is_empty = pc.equal(ask("dbus_value_size", events), 0).fill_null(False)
    values = pc.if_else(
        pc.and_not(pa.array(is_data(events)), pc.and_(is_delete, is_empty)), ask("dbus_value", events), None
    )
    return Payloads.binary(values, ask("dbus_schema_id", events), ask("dbus_error", events))
