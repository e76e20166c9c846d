"""Databus's functions: a row each, from which registration, docs and tests follow."""

from __future__ import annotations

from functools import partial
from typing import Final

from sparkwire.base.sqltype import sql_name
from sparkwire.core.builders import Shared, rows_function, scalar_functions, struct_function
from sparkwire.core.dump import FIELD_DOCS, RETURNS, explained
from sparkwire.core.function import Format, Function
from sparkwire.databus import explain, layout, stream
from sparkwire.databus.event_fields import FIELDS
from sparkwire.databus.from_json import from_json
from sparkwire.databus.input_fields import takable
from sparkwire.databus.partition import key_partition
from sparkwire.databus.scan import Events
from sparkwire.databus.to_event import to_event
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
"""Written by Databus itself: a V1 event, a V2 event with metadata and a SCHEMA key, a stream with two stray bytes."""

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
        "Splits concatenated events, V1 and V2 mixed. After corrupt bytes, it resumes at the next header with a valid checksum. "
        "The skipped bytes are one row. A truncated tail is the last row.",
        "transform(dbus_events(stream), e -> e.status) -> [OK, OK, ERR, OK]",
    ),
    Function(
        f"dbus_explain(event BINARY) -> {RETURNS}",
        "Every byte of an event in order: which field it is, where it begins and how long it is [bytes], what it says, and what "
        "is wrong with it. Intended for inspecting a handful of events; it is slow.",
        explained(explain.explain),
        "filter(dbus_explain(event), line -> line.field = 'sequence')[0].value -> 77",
        field_docs=FIELD_DOCS,
    ),
    Function(
        "dbus_key_partition(event BINARY, n INT) -> INT",
        "Which of n clients Databus's key filter gives the event to, 0 to n - 1: abs(key) % n. A text key that is a "
        "number counts as this number, any other text as its Java hash code. NULL if the key cannot be read.",
        key_partition,
        "dbus_key_partition(event, 3) -> 2",
    ),
    Function(
        "dbus_to_json(event BINARY, encoding STRING = 'JSON') -> STRING",
        "The text that Databus writes of the event: the value in Base64 with encoding JSON, as text with JSON_PLAIN_VALUE (also "
        "spelt JSON_PLAIN). NULL where a field that the text names cannot be read.",
        to_json,
        "get_json_object(dbus_to_json(event), '$.value') -> aGVsbG8=",
    ),
    Function(
        "dbus_from_json(json STRING) -> BINARY",
        "A V1 event out of Databus's JSON, big-endian, both checksums set; either encoding of the value, keyBytes, opcode and "
        "isReplicated too. NULL for any other text.",
        from_json,
        "dbus_from_json(dbus_to_json(event)) = event -> true",
    ),
    Function(
        f"to_dbus_event(event {sql_name(takable(_STRUCT.return_type))}) -> BINARY",
        "An event out of any of the fields of dbus_event: V1 or V2, in either byte order. It computes lengths and checksums; "
        "attributes win over the fields derived from them, schema_id over schema_version. What is left out is 0, false or empty.",
        to_event,
        "to_dbus_event(dbus_event(event_v2)) = event_v2 -> true",
    ),
)

ARGUMENTS: Final = {
    "event": "One serialized event, from its version byte on.",
    "event STRUCT": "The fields to write, any of those of `dbus_event`.",
    "stream": "Events one after another, V1 and V2 mixed: a file, or a relay's buffer.",
    "n": "How many partitions there are, 1 or more.",
    "encoding": "Encoding of the value: JSON for Base64, JSON_PLAIN_VALUE for text; the same for all rows.",
    "json": "The JSON that Databus writes of one event.",
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
