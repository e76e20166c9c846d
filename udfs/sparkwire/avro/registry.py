"""Schema registries: the source of the schemas of a column. They are passed schemas, a server, or the records of a topic."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparkwire.avro.http_registry import HttpSchemas
from sparkwire.avro.payloads import GLOBAL_ID
from sparkwire.avro.schema_source import (
    AVRO,
    DEFAULT_CONTEXT,
    Place,
    Registered,
    SchemaSource,
    SubjectVersion,
    check_contexts,
    context_of,
    in_context,
    with_references,
)
from sparkwire.avro.schemas import Schemas, schemas_of
from sparkwire.base.printable import value_error
from sparkwire.errors import RegistryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PassedSchemas(SchemaSource):
    """The schemas that a caller passes: a folder, a list or a mapping. See ``Registry.of``."""

    def __init__(self, schemas: Any) -> None:
        passed = schemas_of(schemas)
        # The keys match the ids in the messages, whether these are Apicurio's contentIds or globalIds.
        global_ids: dict[Hashable, int] = {
            f"{GLOBAL_ID}{key}": k for key, k in passed.keys.items() if isinstance(key, int)
        }
        self._schemas: Schemas = passed._replace(keys={**passed.keys, **global_ids})

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


class TopicSchemas(SchemaSource):
    """A registry read from its topic, `_schemas`; see ``Registry.topic``.

    Each record is a version of a subject, a deletion, or a subject's settings. The last record of a key wins, as after
    compaction. Deleted versions remain while their records exist, because data with these schemas may exist.

    Source: ``SchemaKey``, ``SchemaValue``, ``DeleteSubjectKey``, ``ConfigValue`` of Confluent's Schema Registry.
    """

    def __init__(
        self,
        records: Iterable[tuple[int, bytes | None, bytes | None]],
        subjects: Sequence[str] = (),
        context: str | None = None,
    ) -> None:
        self._subjects = subjects
        self._contexts = {context} if context else {context_of(subject) for subject in subjects}
        """the contexts to look up ids in; empty: the default context, or another one if only that has the id"""
        self._versions: dict[Place, SubjectVersion] = {}
        self._aliases: dict[str, str] = {}
        ordered = sorted(records, key=lambda record: record[0])
        for _, key, value in ordered:
            # Skip records that no registry wrote, as a registry does.
            with contextlib.suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
                self._take(_json(key), _json(value))
        if not self._versions:
            raise ValueError(
                f"Registry.topic found no schema in {len(ordered)} records: is this the registry's topic, _schemas?"
            )
        self._by_id: dict[Hashable, list[SubjectVersion]] = {}
        for version in self._versions.values():
            for named in (version.id, version.guid):
                if named is not None:
                    self._by_id.setdefault(named, []).append(version)

    def __repr__(self) -> str:
        return f"Registry.topic of {len(self._versions)} versions of {len({v.subject for v in self._versions.values()})} subjects"

    def versions(self) -> list[SubjectVersion]:
        """Every version of every subject, with the registry's numbers."""
        return sorted(self._versions.values(), key=lambda version: (version.subject, version.version))

    # -- records

    def _take(self, key: Any, value: Any) -> None:
        subject, kind = key.get("subject"), key.get("keytype")
        if kind == "SCHEMA":
            self._take_version((subject, key["version"]), value)
        elif kind == "DELETE_SUBJECT" and value is not None:
            for place, version in self._versions.items():
                if place[0] == subject and place[1] <= int(value["version"]):
                    self._versions[place] = version._replace(deleted=True)
        elif kind == "CONFIG" and subject:
            alias = value and value.get("alias")
            if alias:
                self._aliases[subject] = alias
            else:
                self._aliases.pop(subject, None)

    def _take_version(self, place: Place, value: Any) -> None:
        if value is None:
            if place in self._versions:  # deleted permanently
                self._versions[place] = self._versions[place]._replace(deleted=True)
            return
        references = value.get("references") or ()
        self._versions[str(place[0]), int(place[1])] = SubjectVersion(
            str(place[0]),
            int(place[1]),
            int(value["id"]),
            value.get("guid"),
            value.get("schemaType") or AVRO,
            str(value["schema"]),
            tuple((str(ref["name"]), (str(ref["subject"]), int(ref["version"]))) for ref in references),
            bool(value.get("deleted")),
        )

    # -- schemas

    def ids(self) -> Sequence[Hashable] | None:
        if not self._subjects:
            return None
        versions, ids_of_subjects = self.versions(), list[Hashable]()
        for subject in self._subjects:
            matching = [version.id for version in versions if version.subject == self._aliases.get(subject, subject)]
            if not matching:
                raise RegistryError(f"the registry's topic has no subject {subject}")
            ids_of_subjects += matching
        return list(dict.fromkeys(ids_of_subjects))

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        registered_schemas = {}
        for key in ids:
            version = self._with_id(key)
            if version is not None:
                title = f"schema {key} of the registry's topic ({version.title})"
                registered_schemas[key] = with_references(version, title, self._at)
        return registered_schemas

    def _with_id(self, key: Hashable) -> SubjectVersion | None:
        some = self._by_id.get(key, [])
        matching = [version for version in some if context_of(version.subject) in (self._contexts or {DEFAULT_CONTEXT})]
        if not matching and not self._contexts:
            matching = some
        check_contexts(key, matching, "Registry.topic(df, context={!r})")
        return matching[-1] if matching else None

    def _at(self, place: Place, referring: SubjectVersion) -> SubjectVersion | None:
        """A version by its subject or the subject's alias. The context of the referring version has precedence."""
        subject, number = self._aliases.get(place[0], place[0]), place[1]
        within = in_context(subject, context_of(referring.subject))
        return self._versions.get((within, number)) or self._versions.get((subject, number))


class Registry(SchemaSource):
    """A source of schemas: ``Registry.of``, ``Registry.http`` or ``Registry.topic``.

    Every parameter that accepts schemas also accepts a registry.
    """

    def __init__(self, source: SchemaSource) -> None:
        self._source = source

    def __repr__(self) -> str:
        return repr(self._source)

    def ids(self) -> Sequence[Hashable] | None:
        return self._source.ids()

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        return self._source.registered(ids)

    def schemas(self, ids: Iterable[Hashable]) -> Schemas:
        return self._source.schemas(ids)

    def of_doubtful_ids(self) -> Registry:
        return Registry(self._source.of_doubtful_ids())

    def versions(self) -> list[SubjectVersion]:
        return self._source.versions()

    @staticmethod
    def of(schemas: Any) -> Registry:
        """Create a registry from a folder of ``.avsc`` files, a list of schemas, or a mapping from ids to schemas.

        Raises
        ------
        ValueError
            if a schema is invalid, or there are no schemas.

        Examples
        --------
        >>> Registry.of({42: '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'})
        """
        return schemas if isinstance(schemas, Registry) else Registry(PassedSchemas(schemas))

    @staticmethod
    def http(
        url: str,
        auth: tuple[str, str] | str | None = None,
        *,
        subjects: Sequence[str] = (),
        patience: float = 60,
        settings: Mapping[str, Any] | None = None,
    ) -> Registry:
        """Connect to a registry with Confluent's REST API. This needs the extra ``registry``.

        A query fetches schemas when it needs them, each id once.

        Parameters
        ----------
        url
            one address, or several separated by commas. The client tries them in turn
        auth
            ``(user, password)``, or a bearer token. It is sent to the workers as a part of the pickled function, and never
            appears in messages
        subjects
            the subjects of the messages. With them, a query knows its columns without reading data first, which a stream needs.
            The context of the ids is that of the subjects (``:.eu:orders-value``), without subjects the default context.
            ``https://registry:8081/contexts/.eu`` selects another context
        patience
            how long the registry may be unreachable or busy before a query fails [s]
        settings
            further settings of ``confluent_kafka.schema_registry.SchemaRegistryClient``: ``ssl.ca.location``, ``proxy``, …

        Raises
        ------
        ModuleNotFoundError
            without the extra.

        Examples
        --------
        >>> Registry.http("https://registry:8081", auth=("reader", password), subjects=["orders-value"])
        """
        return Registry(HttpSchemas(url, auth, tuple(subjects), patience, dict(settings or {})))

    @staticmethod
    def topic(df: DataFrame, *, subjects: Sequence[str] = (), context: str | None = None) -> Registry:
        """Read a registry from its topic, ``_schemas``. The DataFrame comes from a broker, or from segments with `kafka_log`.

        This function reads the topic once.

        Parameters
        ----------
        df
            a batch with the columns ``offset``, ``key`` and ``value``
        subjects
            as in ``http``
        context
            the context to look up ids in, ``.name``: by default that of ``subjects``. Without ``subjects``, the default context,
            or another one if only that has the id

        Returns
        -------
        Registry
            its ``versions()`` lists the versions of every subject, with their ids and whether they are deleted

        Raises
        ------
        ValueError
            if a column is missing, ``df`` is a stream, or no record is a schema.

        Examples
        --------
        >>> Registry.topic(spark.read.format("kafka_log").load("/backup/_schemas-0"))
        """
        missing = {"offset", "key", "value"} - set(df.columns)
        if missing:
            raise value_error(
                f"Registry.topic expected the columns offset, key and value; missing: {', '.join(sorted(missing))}"
            )
        if df.isStreaming:
            raise ValueError(
                "Registry.topic expected a batch, got a stream: use spark.read instead of spark.readStream"
            )
        rows = df.select("offset", "key", "value").collect()
        records = ((row["offset"], _bytes(row["key"]), _bytes(row["value"])) for row in rows)
        return Registry(TopicSchemas(records, tuple(subjects), context))


def _bytes(cell: Any) -> bytes | None:
    return None if cell is None else bytes(cell)


def _json(data: bytes | None) -> Any:
    return None if data is None else json.loads(data)
