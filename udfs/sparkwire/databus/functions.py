"""The table of Databus's functions: registration, documentation and tests read it."""

from __future__ import annotations

from functools import partial
from typing import Final

from sparkwire.base.sqltype import sql_name
from sparkwire.core.builders import Shared, rows_function, scalar_functions, struct_function
from sparkwire.core.explain import FIELD_DOCS, RETURNS, explained
from sparkwire.core.function import Format, Function
from sparkwire.databus import explain, layout, stream
from sparkwire.databus.event_fields import FIELDS
from sparkwire.databus.from_json import from_json
from sparkwire.databus.partition import key_partition
from sparkwire.databus.scan import Events
from sparkwire.databus.to_event import input_type, to_event
from sparkwire.databus.to_json import to_json

_EVENT: Final = bytes.fromhex(
    "00328136c6000000420001000000000000004dffff0003136dcc951d8c0001002801020304"
    "05060708090a0b0c0d0e0f10f032519b000000000000000568656c6c6f"
)
_END_OF_PERIOD: Final = bytes.fromhex(
    "00679046890000003d0000000000000000004dffff0000136dcc951d8c0001fffe00000000"
    "000000000000000000000000000000000000000000000000"
)
_EVENT_V2: Final = bytes.fromhex(
    "02cafedeed00000047f170d867779bfe600000007300cd136dcc9524e7cd15000000640001"
    "00000000000003e800000004000c336bc592ec108633ae82db910a5eebcaa972d417000000"
    "01001dd2a55dfc270000000b0004101d2a3744515e6b7885929facb9c6d3045a4d856d8722"
    "69a4be98"
)
SAMPLES: Final = {"event": _EVENT, "event_v2": _EVENT_V2, "stream": _EVENT + _EVENT_V2 + b"\xff\xff" + _END_OF_PERIOD}
"""Bytes written by Databus: a V1 event, a V2 event with metadata and a SCHEMA key, a stream with two stray bytes."""

_events_of = Shared(Events)

_STRUCT: Final = struct_function(
    "dbus_event(event BINARY)",
    FIELDS,
    partial(Events, check=True),
    "All fields above as one STRUCT, decoded in a single pass.",
    "dbus_event(event).sequence -> 77",
)

FUNCTIONS: Final = (
    *scalar_functions("dbus_{}(event BINARY)", FIELDS, _events_of),
    _STRUCT,
    rows_function(
        "dbus_events(stream BINARY)",
        stream.TABLE,
        stream.Stream,
        "Splits concatenated events, V1 and V2 mixed. After corrupt bytes, it resumes at the next header with a valid checksum "
        "and returns the skipped bytes as one row. A truncated tail is the last row.",
        "transform(dbus_events(stream), e -> e.status) -> [OK, OK, ERR, OK]",
    ),
    Function(
        f"dbus_explain(event BINARY) -> {RETURNS}",
        "Explains every byte of an event, in order: the field, its position and size [bytes], its value, and its error. "
        "Intended for inspecting a handful of events; it is slow.",
        explained(explain.explain),
        "filter(dbus_explain(event), line -> line.field = 'sequence')[0].value -> 77",
        field_docs=FIELD_DOCS,
    ),
    Function(
        "dbus_key_partition(event BINARY, n INT) -> INT",
        "The client, 0 to n - 1, to which Databus's key filter assigns the event: abs(key) % n. A text key that is a decimal "
        "number counts as this number, any other text as its Java hash code. NULL if the key cannot be read.",
        key_partition,
        "dbus_key_partition(event, 3) -> 2",
    ),
    Function(
        "dbus_to_json(event BINARY, encoding STRING = 'JSON') -> STRING",
        "The JSON text that Databus writes for the event: the value is Base64 with encoding JSON, text with JSON_PLAIN_VALUE "
        "(also spelled JSON_PLAIN). NULL if a field of the text cannot be read.",
        to_json,
        "get_json_object(dbus_to_json(event), '$.value') -> aGVsbG8=",
    ),
    Function(
        "dbus_from_json(json STRING) -> BINARY",
        "Encodes a V1 event, big-endian, with both checksums, from Databus's JSON. It accepts either encoding of the value, and "
        "also keyBytes, opcode and isReplicated. NULL for any other text.",
        from_json,
        "dbus_from_json(dbus_to_json(event)) = event -> true",
    ),
    Function(
        f"to_dbus_event(event {sql_name(input_type(_STRUCT.return_type))}) -> BINARY",
        "Encodes an event from any of the fields of dbus_event: V1 or V2, in either byte order. It computes lengths and "
        "checksums. attributes takes precedence over the fields derived from it, schema_id over schema_version. Missing fields "
        "are 0, false or empty.",
        to_event,
        "to_dbus_event(dbus_event(event_v2)) = event_v2 -> true",
    ),
)

ARGUMENTS: Final = {
    "event": "One serialized event, from its version byte on.",
    "event STRUCT": "The fields to write: any of the fields of `dbus_event`.",
    "stream": "Concatenated events, V1 and V2 mixed: a file, or a relay's buffer.",
    "n": "Number of partitions, 1 or more.",
    "encoding": "Encoding of the value: JSON for Base64, JSON_PLAIN_VALUE for text; the same for all rows.",
    "json": "The JSON that Databus writes for one event.",
}
FORMAT: Final = Format(
    "databus",
    "Databus",
    "dbus_",
    FUNCTIONS,
    SAMPLES,
    "dbus_event",
    {"Databus V1, big-endian": layout.V1, "Databus V2, big-endian": layout.V2},
    ARGUMENTS,
)
