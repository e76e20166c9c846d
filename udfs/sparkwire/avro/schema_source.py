"""The interface of schema sources, which find schemas by their ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from sparkwire.avro.inline import schemas_of_registered
from sparkwire.avro.registered import AVRO, Registered, SubjectVersion
from sparkwire.avro.schemas import Schemas
from sparkwire.base.printable import printable
from sparkwire.errors import SchemaError


class SchemaSource:
    """A folder, a server or a topic: finds schemas by their ids."""

    def ids(self) -> Sequence[Hashable] | None:
        """The ids of its schemas, the latest last; None if only the data contain the needed ids."""
        raise NotImplementedError

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        """The schemas with these ids. Unknown ids are left out.

        Raises
        ------
        RegistryError
            if the registry does not respond, or a reference is missing.
        """
        raise NotImplementedError

    def schemas(self, ids: Iterable[Hashable]) -> Schemas:
        """The Avro schemas with these ids, with references inlined.

        Raises
        ------
        ValueError
            if all schemas are of another type, or none can be read. The message names one of them.
        """
        registered = self.registered(ids)
        some = {key: one for key, one in registered.items() if one.type == AVRO}
        if registered and not some:
            one = next(iter(registered.values()))
            raise ValueError(
                printable(f"{one.title} is of type {one.type}, but avro.rows reads {AVRO}: use registry.rows")
            )
        schemas = schemas_of_registered(some)
        if schemas.unreadable and not schemas.texts:
            raise SchemaError(next(iter(schemas.unreadable.values())))
        return schemas

    def of_doubtful_ids(self) -> SchemaSource:
        """The source for messages that do not say whether a number is a contentId or a globalId of Apicurio.

        It raises RegistryError if the two are different schemas. A source without globalIds is the same.
        """
        return self

    def versions(self) -> list[SubjectVersion]:
        """Every version of every subject, with the registry's numbers. Only ``Registry.topic`` lists them."""
        raise NotImplementedError(f"{self!r} does not list its versions: read its topic, _schemas, with Registry.topic")
