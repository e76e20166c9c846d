"""Avro payloads: one datum in a BINARY, without a file around it, and Confluent's prefix of one.

    datum    the values of the schema one after another, nothing between them        Apache Avro, "Binary Encoding"
    framed   0  id  datum            i32 big-endian: the schema's number in a registry    Confluent's wire format

Where this reader is stricter than Avro's Java, which reads on, or fails the job:

- a text that is not UTF-8, a boolean that is not 0 or 1, an int beyond 32 bits, a decimal with more digits than its
  precision, a date or timestamp outside of the years 1 to 9999, a time of day outside of the day: `BAD_FIELD`, and that field
  alone is NULL in a column;
- the number of a symbol that the schema does not have: the same; of a branch that it does not have: `BAD_FIELD`, and the datum
  is NULL;
- more than 1024 items without any bytes (null, records without fields) in one datum, or more than 2048 records or arrays
  within each other: `BAD_LENGTH`. An item whose defaults or names are longer than 1 KiB counts as that many more.

A schema of more than 64 types within each other is rejected, and to JSON one whose datum of no bytes is a text of more
than 1 MiB.

The size that a block of negative count announces has to lie within the datum and is otherwise not looked at. Bytes left over
are no error.
"""

from __future__ import annotations

from sparkwire.avro.api import (
    decode,
    encode,
    json_rows,
    protobuf_rows,
    register_function,
    rows,
    rows_by_type,
    to_python,
)
from sparkwire.avro.registry import Registry

__all__ = [
    "Registry",
    "decode",
    "encode",
    "json_rows",
    "protobuf_rows",
    "register_function",
    "rows",
    "rows_by_type",
    "to_python",
]


def __dir__() -> list[str]:
    return list(__all__)
