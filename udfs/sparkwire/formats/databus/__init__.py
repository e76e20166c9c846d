"""LinkedIn Databus: serialized change events, V1 and V2, big- and little-endian.

    stream   event event …                      as a relay sends them, one after the other
    event    V1 | V2
    V1       header  value                      `layout.V1`; a BYTES key is in the header's place of the
                                                LONG key: i32 length, bytes
    V2       header  key  [metadata]  [payload] `layout.V2`
    key      i64 | i32 length, bytes | part     LONG, BYTES, SCHEMA; in V2 derived by two attribute bits
    metadata, payload   part                    each there if its attribute bit is set
    part     i32 length, i16 attributes, digest (16 bytes MD5 or 4 bytes CRC-32), data

The version byte is 0 for V1 and 2 for V2. Only V2's magic word says the byte order, so a row
is read in the order in which it makes sense (`event.event_variant`).

Checksums are CRC-32 with neither the initial value nor the final inversion of zlib's: that of zeros, and
of nothing, is 0. The body's checksum is in the header, so it is covered by the header's:

    V1   header_crc: length … key (LONG) or key's length (BYTES)     value_crc: what follows
    V2   header_crc: value_crc … end of the key                      value_crc: the parts after the key

Where this reader is stricter than Databus's own scan, which is unsafe there:

- V2's magic word has to be right (`BAD_MAGIC`): Databus reads on whatever it is;
- 45 <= V2's header length <= length (`BAD_LENGTH`): Databus loops on 0, throws near the bounds of an INT, and
  takes one flipped bit there for the beginning of a longer event;
- a V1 key has to end within the event, a V2 key within the header, parts within the event, and a part's kind of
  digest has to be known (`BAD_LENGTH`): Databus throws when the key or the part is asked for, or reads a
  neighbour's bytes.

What the original leaves open: of a row whose version is unknown only the version is answered, it is `BAD_MAGIC`.
A V2 key type of 0 is no error, such an event has no key. Resuming in a damaged stream (`dbus_events`) believes only
headers of up to 64 KiB.

The way back, and what it does where the original is silent or unsafe: `writer`, `to_json`, `from_json`.

Source: linkedin/databus, `com.linkedin.databus.core.DbusEventV1` and `DbusEventV2`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from sparkwire.builders import Shared, rows_function, scalar_functions, struct_function
from sparkwire.dump import FIELD_DOCS, RETURNS, explained
from sparkwire.formats.databus import explain, layout, stream
from sparkwire.formats.databus.fields import FIELDS
from sparkwire.formats.databus.from_json import from_json
from sparkwire.formats.databus.input_fields import takable
from sparkwire.formats.databus.partition import key_partition
from sparkwire.formats.databus.scan import Events
from sparkwire.formats.databus.to_json import to_json
from sparkwire.formats.databus.writer import to_event
from sparkwire.function import Format, Function
from sparkwire.sqltype import sql_name

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
    "Every field above, in one pass.",
    "dbus_event(event).sequence -> 77",
)

FUNCTIONS: Final = (
    *scalar_functions("dbus_{}(event BINARY)", FIELDS, _events_of),
    _STRUCT,
    rows_function(
        "dbus_events(stream BINARY)",
        stream.TABLE,
        stream.Stream,
        "Events as they lie one after the other on the wire, V1 and V2 mixed. After damage it goes on at the next header whose "
        "checksum is right; the bytes skipped are one row. A torn tail is the last row.",
        "transform(dbus_events(stream), e -> e.status) -> [OK, OK, ERR, OK]",
    ),
    Function(
        f"dbus_explain(event BINARY) -> {RETURNS}",
        "Every byte of an event in order: which field it is, where it begins and how long it is [bytes], what it says, and what "
        "is wrong with it. For a few events that somebody looks at: it is slow.",
        explained(explain.explain),
        "filter(dbus_explain(event), line -> line.field = 'sequence')[0].value -> 77",
        field_docs=FIELD_DOCS,
    ),
    Function(
        "dbus_key_partition(event BINARY, n INT) -> INT",
        "Which of n clients Databus's key filter gives the event to, 0 to n - 1: abs(key) % n. A key that is text counts as the "
        "number that it says, else by its Java hash code; NULL without a key that can be read.",
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
        "An event out of any of the fields of dbus_event: V1 or V2, in either byte order. Lengths and checksums are computed; "
        "attributes win over the fields derived from them, schema_id over schema_version. What is left out is 0, false or empty.",
        to_event,
        "to_dbus_event(dbus_event(event_v2)) = event_v2 -> true",
    ),
)

FORMAT: Final = Format(
    "databus",
    "Databus",
    "dbus_",
    FUNCTIONS,
    SAMPLES,
    "dbus_event",
    {"Databus V1, big-endian": layout.V1, "Databus V2, big-endian": layout.V2},
)
