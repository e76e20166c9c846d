"""Schema sources, which find schemas by their ids: as registries store them, and with their references inlined.

Each type is defined where its name first occurs, as in Avro's own schema texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sparkwire.avro.schema import NAMED, PRIMITIVES, TOO_DEEP, full_name, loaded
from sparkwire.avro.schemas import Schemas, ids_of, java_texts
from sparkwire.base.printable import value_error
from sparkwire.errors import RegistryError, SchemaError

AVRO: Final = "AVRO"
_MAX_DEPTH: Final = 64
"""maximum depth of nested references"""

DEFAULT_CONTEXT: Final = "."

Place = tuple[str, int]
"""a subject and one of its versions"""


def context_of(subject: str) -> str:
    """The context of a subject: ``.name`` of ``:.name:subject``. Schema ids are unique within a context."""
    return subject.split(":")[1] if subject.startswith(":.") else DEFAULT_CONTEXT


def in_context(subject: str, context: str) -> str:
    """The subject's name with the context as its qualifier, unless it has one already."""
    return subject if context == DEFAULT_CONTEXT or subject.startswith(":.") else f":{context}:{subject}"


class Registered(NamedTuple):
    """A schema as a registry stores it."""

    text: str
    title: str
    """its name in an error message"""
    type: str = AVRO
    """AVRO, JSON or PROTOBUF"""
    references: tuple[tuple[str, str], ...] = ()
    """names and texts of all direct and indirect references; each occurs once, after its own references"""


class SubjectVersion(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    guid: str | None
    type: str
    text: str
    references: tuple[tuple[str, Place], ...]
    deleted: bool = False

    @property
    def title(self) -> str:
        """Its name in an error message."""
        return f"{self.subject}, version {self.version}"


def check_contexts(key: Hashable, versions: Sequence[SubjectVersion], advice: str) -> None:
    """Raise RegistryError if an id has different schemas in several contexts. ``advice`` has a ``{}`` for a context."""
    if len({(version.text, version.references) for version in versions}) > 1:
        contexts = sorted({context_of(version.subject) for version in versions})
        raise RegistryError(
            f"schema {key} is not the same in the contexts {', '.join(contexts)} of the registry: choose one, "
            + advice.format(contexts[0])
        )


def with_references(
    version: SubjectVersion, title: str, at: Callable[[Place, SubjectVersion], SubjectVersion | None]
) -> Registered:
    """Resolve a version's direct and indirect references.

    Parameters
    ----------
    at
        finds the version at a place that another version refers to; None if none exists

    Raises
    ------
    RegistryError
        if a reference is missing, or the references form a cycle.
    """
    by_place: dict[Place, tuple[str, str]] = {}

    def follow(version: SubjectVersion, within: tuple[Place, ...]) -> None:
        for name, place in version.references:
            named = f"{title} refers to {place[0]}, version {place[1]}"
            referred = at(place, version)
            if referred is None:
                raise RegistryError(f"{named}, which does not exist")
            reference = referred.subject, referred.version  # in its context
            if reference in within or len(within) == _MAX_DEPTH:
                raise RegistryError(
                    f"{named}, which leads back to itself" if reference in within else f"{named}, and so on"
                )
            if reference not in by_place:
                follow(referred, (*within, reference))
                by_place[reference] = name, referred.text

    follow(version, ((version.subject, version.version),))
    return Registered(version.text, title, version.type, tuple(by_place.values()))


# -- sources


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
        avro_schemas = {key: schema for key, schema in registered.items() if schema.type == AVRO}
        if registered and not avro_schemas:
            schema = next(iter(registered.values()))
            raise value_error(f"{schema.title} is of type {schema.type}, but avro.rows reads {AVRO}: use registry.rows")
        schemas = schemas_of_registered(avro_schemas)
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


# -- references


def schemas_of_registered(registered: Mapping[Hashable, Registered]) -> Schemas:
    """The Avro schemas of a registry, with references inlined. Schemas that cannot be read are listed separately."""
    texts: dict[Hashable, str] = {}
    unreadable: dict[Hashable, str] = {}
    for key, schema in registered.items():
        if schema.type == AVRO:
            try:
                [texts[key]] = java_texts([(schema.title, inlined(schema))])
            except SchemaError as e:
                unreadable[key] = str(e)
    with_texts = {key: unreadable[list(unreadable)[k]] for key, k in ids_of(unreadable).items()}
    return Schemas(tuple(texts.values()), ids_of(texts), with_texts)


Definitions = Mapping[str, Mapping[str, Any]]


def inlined(schema: Registered) -> str:
    """The text of a schema, with its references inlined. Raises SchemaError for a text that is not JSON or nested too deeply."""
    if not schema.references:
        return schema.text
    definitions: dict[str, Mapping[str, Any]] = {}
    where = schema.title
    try:
        for name, text in schema.references:
            where = f"{schema.title}: {name}, which it refers to"
            definitions |= dict(_definitions(loaded(text), ""))
        where = schema.title
        return json.dumps(_inlined(loaded(schema.text), "", definitions, set()))
    except SchemaError as e:
        raise SchemaError(f"{where}: {e}") from None
    except RecursionError:
        raise SchemaError(f"{where}: {TOO_DEEP}") from None


def _definitions(json_type: Any, namespace: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each named type with its namespace."""
    if isinstance(json_type, list):
        for branch in json_type:
            yield from _definitions(branch, namespace)
    elif isinstance(json_type, dict):
        if json_type.get("type") in NAMED and isinstance(json_type.get("name"), str):
            full = full_name(json_type["name"], json_type.get("namespace", namespace) or "")
            namespace, _, name = full.rpartition(".")
            yield full, {**json_type, "name": name, "namespace": namespace}
        for part in _parts(json_type):
            yield from _definitions(part, namespace)


def _parts(json_type: Mapping[str, Any]) -> Iterator[Any]:
    yield from (json_type[name] for name in ("type", "items", "values") if name in json_type)
    fields = json_type.get("fields")
    if isinstance(fields, list):
        yield from (field["type"] for field in fields if isinstance(field, dict) and "type" in field)


def _inlined(json_type: Any, namespace: str, definitions: Definitions, defined: set[str]) -> Any:
    if isinstance(json_type, str):
        full = next((name for name in (full_name(json_type, namespace), json_type) if name in definitions), None)
        if json_type in PRIMITIVES or full is None or full in defined:
            return json_type
        return _inlined(definitions[full], "", definitions, defined)
    if isinstance(json_type, list):
        return [_inlined(branch, namespace, definitions, defined) for branch in json_type]
    if not isinstance(json_type, dict):
        return json_type
    kind = json_type.get("type")
    if kind in NAMED and isinstance(json_type.get("name"), str):
        full = full_name(json_type["name"], json_type.get("namespace", namespace) or "")
        if full in defined:
            return full
        defined.add(full)
        namespace = full.rpartition(".")[0]
    elif not isinstance(kind, str) or kind not in (*NAMED, "array", "map"):
        return {**json_type, "type": _inlined(kind, namespace, definitions, defined)}
    inlined = dict(json_type)
    for part in ("items", "values"):
        if part in inlined:
            inlined[part] = _inlined(inlined[part], namespace, definitions, defined)
    if isinstance(inlined.get("fields"), list):
        inlined["fields"] = [
            {**field, "type": _inlined(field.get("type"), namespace, definitions, defined)}
            if isinstance(field, dict)
            else field
            for field in inlined["fields"]
        ]
    return inlined
