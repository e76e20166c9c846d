"""A message with Confluent's prefix, line by line; its payload is one line, as only its schema says what it is."""

from __future__ import annotations

from typing import Final

from sparkwire.base.wire import Field, Layout
from sparkwire.core.dump import Dump, Line

PREFIX: Final = Layout(
    "Confluent's prefix",
    Field("magic", "u8", "Confluent's wire format"),
    Field("schema_id", "i32", "the number of the schema in a registry"),
)


def explain(data: bytes) -> list[Line]:
    """Every byte of one message."""
    dump = Dump(data)
    for field in PREFIX.fields:
        dump.number(field, field.doc)
    dump.rest("payload", "as the schema of that number says: see avro_json and avro.rows")
    return dump.end()
