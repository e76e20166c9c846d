"""A registry of schemas that the caller passes: a folder, a list or a mapping."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from sparkwire.avro.payloads import GLOBAL_ID
from sparkwire.avro.registered import Registered
from sparkwire.avro.schema_source import SchemaSource
from sparkwire.avro.schemas import Schemas, schemas_of


class GivenSchemas(SchemaSource):
    """See ``Registry.of``."""

    def __init__(self, schemas: Any) -> None:
        given_schemas = schemas_of(schemas)
        # The keys match the ids in the messages, whether these are Apicurio's contentIds or globalIds.
        global_ids: dict[Hashable, int] = {
            f"{GLOBAL_ID}{key}": k for key, k in given_schemas.keys.items() if isinstance(key, int)
        }
        self._schemas: Schemas = given_schemas._replace(keys={**given_schemas.keys, **global_ids})

    def __repr__(self) -> str:
        return f"Registry.of {len(self._schemas.texts)} schemas"

    def ids(self) -> Sequence[Hashable]:
        return list(self._schemas.keys)

    def schemas(self, ids: Iterable[Hashable]) -> Schemas:
        """All schemas, regardless of ``ids``."""
        return self._schemas

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        keys, texts = self._schemas.keys, self._schemas.texts
        return {key: Registered(texts[keys[key]], f"schema {key!r}") for key in ids if key in keys}
