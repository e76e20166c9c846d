"""Where the schemas of a registry come from: what knows schemas by their ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from sparkwire.avro.inline import schemas_of_registered
from sparkwire.avro.registered import AVRO, Registered, SubjectVersion
from sparkwire.avro.schemas import Schemas
from sparkwire.errors import SchemaError


class SchemaSource:
    """A folder, a server, a topic: whatever knows schemas by their ids."""

    def ids(self) -> Sequence[Hashable] | None:
        """What names its schemas, the latest last; None where only the data can say which are needed."""
        raise NotImplementedError

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        """The schemas with these ids, without those that the registry does not know.

        Raises
        ------
        RegistryError
            where it does not answer, or what a schema refers to is not there.
        """
        raise NotImplementedError

    def schemas(self, ids: Iterable[Hashable]) -> Schemas:
        """Those with these ids that are Avro's, each with all that it refers to.

        Raises
        ------
        ValueError
            where all are of another type, or none can be read: one of them is named.
        """
        registered = self.registered(ids)
        some = {key: one for key, one in registered.items() if one.type == AVRO}
        if registered and not some:
            one = next(iter(registered.values()))
            raise ValueError(f"{one.title} is of type {one.type}, and avro.rows reads {AVRO}: take registry.rows")
        schemas = schemas_of_registered(some)
        if schemas.unreadable and not schemas.texts:
            raise SchemaError(next(iter(schemas.unreadable.values())))
        return schemas

    def versions(self) -> list[SubjectVersion]:
        """Every version of every subject, as the registry numbered them; NotImplementedError where only its topic has them."""
        raise NotImplementedError(f"{self!r} does not list its versions: read its topic, _schemas, with Registry.topic")
