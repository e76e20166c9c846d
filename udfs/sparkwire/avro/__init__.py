"""Avro payloads: one datum in a BINARY, without a file around it, and Confluent's wire format header.

    datum    the values of the schema one after another, nothing between them        Apache Avro, "Binary Encoding"
    framed   0  id  datum            i32 big-endian: the schema's number in a registry    Confluent's wire format

This reader is stricter than Avro's Java, which continues or fails the job, in these cases:

- A value that its type does not allow is a `BAD_FIELD` error and becomes NULL. The other fields keep their values. For example:
  a text that is not UTF-8, a boolean other than 0 and 1, an int beyond 32 bits, an unknown enum symbol. Also a decimal
  with too many digits, a date or timestamp outside the years 1 to 9999, and a time outside the day.
- A union branch that the schema does not have is `BAD_FIELD`, and the datum is NULL.
- More than 1024 items without bytes (null, records without fields) in one datum are `BAD_LENGTH`. So are more than 2048 nested
  records or arrays. An item counts once more for each KiB of its defaults or names.

A schema with more than 64 nested types raises an error. When decoding to JSON, so does a schema for which an empty datum becomes
more than 1 MiB of JSON.

If a block's count is negative, the size after it must be within the datum; it has no other effect. The reader ignores extra
bytes at the end.
"""

from sparkwire.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
