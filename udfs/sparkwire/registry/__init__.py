"""Decode payloads of every type in a schema registry: Avro, JSON Schema, Protobuf.

`sparkwire.avro.Registry` represents the registry. `sparkwire.avro.rows` reads only Avro, also without a registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkwire.base.lazy import lazy_names

if TYPE_CHECKING:
    from sparkwire.spark.rows.registered_rows import rows

__all__ = ["rows"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "rows": "sparkwire.spark.rows.registered_rows",
    },
)
