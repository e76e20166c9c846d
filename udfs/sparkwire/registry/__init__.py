"""Payloads of every type that a schema registry has: Avro, JSON Schema, Protobuf.

`sparkwire.avro.Registry` says where the registry is; `sparkwire.avro.rows` reads Avro alone, also without a registry.
"""

from __future__ import annotations

from sparkwire.registry.api import rows

__all__ = ["rows"]


def __dir__() -> list[str]:
    return list(__all__)
