"""Schema registries: the source of the schemas of a column."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparkwire.avro.payloads import GLOBAL_ID
from sparkwire.avro.registered import Registered, SubjectVersion
from sparkwire.avro.registries.http import HttpSchemas
from sparkwire.avro.registries.topic import TopicSchemas
from sparkwire.avro.schema_source import SchemaSource
from sparkwire.avro.schemas import Schemas, schemas_of
from sparkwire.base.printable import printable

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
            raise ValueError(
                printable(
                    f"Registry.topic expected the columns offset, key and value; missing: {', '.join(sorted(missing))}"
                )
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
