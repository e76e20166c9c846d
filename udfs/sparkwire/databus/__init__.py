"""LinkedIn Databus: serialized change events, V1 and V2, big- and little-endian.

    stream   event event …                      events without separators, as a relay sends them
    event    V1 | V2
    V1       header  value                      `layout.V1`; a BYTES key (i32 length, bytes) is in the header
                                                at the position of the LONG key
    V2       header  key  [metadata]  [payload] `layout.V2`
    key      i64 | i32 length, bytes | part     LONG, BYTES, SCHEMA; in V2 two attribute bits say which
    metadata, payload   part                    each present if its attribute bit is set
    part     i32 length, i16 attributes, digest (16 bytes MD5 or 4 bytes CRC-32), data

The version byte is 0 for V1 and 2 for V2. Only V2's magic word states the byte order. For any other row, the reader chooses the
order in which the row is consistent (`event_kernels.event_variant`).

Checksums are CRC-32 without zlib's initial value and final inversion. The checksum of zeros, and of no bytes, is 0. The body's
checksum is in the header, so the header's checksum covers it:

    V1   header_crc: length … key (LONG) or key's length (BYTES)     value_crc: the bytes after these
    V2   header_crc: value_crc … end of the key                      value_crc: the parts after the key

This reader is stricter than Databus's own scan, which is unsafe in these cases:

- V2's magic word must be right (`BAD_MAGIC`). Databus does not check it.
- V2's header length must be at least 45 and at most the event's length (`BAD_LENGTH`). Databus loops forever on 0 and throws near
  the bounds of an INT. One flipped bit makes it expect a longer event.
- A V1 key and the parts must end within the event, and a V2 key within the header (`BAD_LENGTH`). A part's kind of digest must
  exist. Databus throws when it reads the key or the part, or it reads bytes of the next event.

Databus does not define these cases. For an event of an unknown version, the functions return its version and the error
`BAD_MAGIC`. A V2 key type of 0 is not an error: the event has no key. After corrupt bytes, `dbus_events` accepts only headers of
up to 64 KiB.

`to_event`, `to_json` and `from_json` encode events.

Source: linkedin/databus, `com.linkedin.databus.core.DbusEventV1` and `DbusEventV2`.
"""

from sparkwire.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
