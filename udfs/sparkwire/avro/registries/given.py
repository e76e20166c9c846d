"""A registry of schemas that are given: a folder, a list, a mapping."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from sparkwire.avro.registered import Registered
from sparkwire.avro.registry import Registry
from sparkwire.avro.schemas import Schemas, schemas_of


class GivenRegistry(Registry):
    """See ``Registry.of``."""

    def __init__(self, schemas: Any) -> None:
        self._schemas: Schemas = schemas_of(schemas)
        self.wire_format = "confluent" if isinstance(schemas, Mapping) else "databus"

    def __repr__(self) -> str:
        return f"Registry.of {len(self._schemas.texts)} schemas"

    def ids(self) -> Sequence[Hashable]:
        return list(self._schemas.keys)

    def schemas(self, ids: Iterable[Hashable]) -> Schemas:
        """All of them, whatever names them."""
        return self._schemas

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        keys, texts = self._schemas.keys, self._schemas.texts
        return {key: Registered(texts[keys[key]], f"schema {key!r}") for key in ids if key in keys}
