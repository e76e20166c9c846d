"""Decode payloads of every type in a schema registry: Avro, JSON Schema, Protobuf.

`sparkwire.avro.Registry` represents the registry. `sparkwire.avro.rows` reads only Avro, also without a registry.
"""

from sparkwire.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
