"""LinkedIn Databus: serialized change events, V1 and V2, big- and little-endian.

    stream   event event …                      as a relay sends them, one after the other
    event    V1 | V2
    V1       header  value                      `layout.V1`; a BYTES key is in the header's place of the
                                                LONG key: i32 length, bytes
    V2       header  key  [metadata]  [payload] `layout.V2`
    key      i64 | i32 length, bytes | part     LONG, BYTES, SCHEMA; in V2 derived by two attribute bits
    metadata, payload   part                    each there if its attribute bit is set
    part     i32 length, i16 attributes, digest (16 bytes MD5 or 4 bytes CRC-32), data

The version byte is 0 for V1 and 2 for V2. Only V2's magic word states the byte order. Any other row is read in the order in
which it is consistent (`event.event_variant`).

Checksums are CRC-32 with neither the initial value nor the final inversion of zlib's: that of zeros, and
of nothing, is 0. The body's checksum is in the header, so the header's checksum covers it:

    V1   header_crc: length … key (LONG) or key's length (BYTES)     value_crc: what follows
    V2   header_crc: value_crc … end of the key                      value_crc: the parts after the key

This reader is stricter than Databus's own scan, which is unsafe in these cases:

- V2's magic word has to be right (`BAD_MAGIC`): Databus does not check it;
- 45 <= V2's header length <= length (`BAD_LENGTH`): Databus loops on 0, throws near the bounds of an INT, and
  takes one flipped bit there for the beginning of a longer event;
- a V1 key and parts have to end within the event, and a V2 key within the header (`BAD_LENGTH`). A part's kind of digest has to
  be one that exists. Databus throws when it reads the key or the part, or it reads a neighbour's bytes.

Databus does not define these cases. An event of an unknown version returns its version and the error `BAD_MAGIC`. A V2
key type of 0 is no error: the event has no key. After corrupt bytes, `dbus_events` accepts only headers of up to 64 KiB.

`to_event`, `to_json` and `from_json` encode events.

Source: linkedin/databus, `com.linkedin.databus.core.DbusEventV1` and `DbusEventV2`.
"""

from __future__ import annotations

from sparkwire.databus.api import callbacks, consume, rows_by_source
from sparkwire.databus.client.checkpoint import Checkpoint
from sparkwire.databus.client.consumer import Consumer, Registration
from sparkwire.databus.client.data_event import DataEvent
from sparkwire.databus.client.page import Source
from sparkwire.databus.client.result import Result
from sparkwire.databus.client.run import Outcome, dispatch
from sparkwire.databus.client.scn import Scn
from sparkwire.databus.client.settings import Settings

__all__ = [
    "Checkpoint",
    "Consumer",
    "DataEvent",
    "Outcome",
    "Registration",
    "Result",
    "Scn",
    "Settings",
    "Source",
    "callbacks",
    "consume",
    "dispatch",
    "rows_by_source",
]


def __dir__() -> list[str]:
    return list(__all__)
