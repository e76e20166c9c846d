"""Decode payloads of every type in a schema registry: Avro, JSON Schema, Protobuf.

`sparkwire.avro.Registry` represents the registry. `sparkwire.avro.rows` reads only Avro, also without a registry.
"""

from __future__ import annotations

from sparkwire.registry.api import rows

__all__ = ["rows"]


def __dir__() -> list[str]:
    return list(__all__)
