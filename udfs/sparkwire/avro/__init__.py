"""Avro payloads: one datum in a BINARY, without a file around it, and Confluent's wire format header.

    datum    the values of the schema one after another, nothing between them        Apache Avro, "Binary Encoding"
    framed   0  id  datum            i32 big-endian: the schema's number in a registry    Confluent's wire format

This reader is stricter than Avro's Java, which continues or fails the job, in these cases:

- Values that their type does not allow are `BAD_FIELD`, and NULL in a column; the other fields stay. Examples: a text that is
  not UTF-8, a boolean other than 0 and 1, an int beyond 32 bits, an unknown enum symbol. Decimals with too many digits, dates
  and timestamps outside the years 1 to 9999, and times outside the day, are `BAD_FIELD`, too.
- A union branch that the schema does not have is `BAD_FIELD`, and the datum is NULL.
- More than 1024 items without bytes (null, records without fields) in one datum are `BAD_LENGTH`. So are more than 2048 nested
  records or arrays. An item whose defaults or names are longer than 1 KiB counts as that many more.

A schema with more than 64 nested types raises an error. To JSON, so does a schema whose datum of no bytes is a text of more
than 1 MiB.

The size of a block of negative count has to be within the datum and has no other effect. Extra bytes at the end are no error.
"""

from __future__ import annotations

from sparkwire.avro.api import decode, encode, register_function, rows, rows_by_type, to_python
from sparkwire.avro.registry import Registry

__all__ = [
    "Registry",
    "decode",
    "encode",
    "register_function",
    "rows",
    "rows_by_type",
    "to_python",
]


def __dir__() -> list[str]:
    return list(__all__)
