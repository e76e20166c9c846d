"""Registries: where the schemas of a column come from, and what is known of each there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparkwire.avro.registered import Registered, SubjectVersion
from sparkwire.avro.registries.given import GivenSchemas
from sparkwire.avro.registries.http import HttpSchemas
from sparkwire.avro.registries.topic import TopicSchemas
from sparkwire.avro.schema_source import SchemaSource
from sparkwire.avro.schemas import Schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Registry(SchemaSource):
    """Where schemas come from: ``Registry.of``, ``Registry.http`` or ``Registry.topic``.

    Wherever schemas are taken, a registry is.
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

    def versions(self) -> list[SubjectVersion]:
        return self._source.versions()

    @staticmethod
    def of(schemas: Any) -> Registry:
        """The registry of a folder of ``.avsc`` files, of a list of schemas, or of a mapping from ids to schemas.

        Raises
        ------
        ValueError
            where a schema is none, or there is none.

        Examples
        --------
        >>> Registry.of({42: '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'})
        """
        return schemas if isinstance(schemas, Registry) else Registry(GivenSchemas(schemas))

    @staticmethod
    def http(
        url: str,
        auth: tuple[str, str] | str | None = None,
        *,
        subjects: Sequence[str] = (),
        patience: float = 60,
        settings: Mapping[str, Any] | None = None,
    ) -> Registry:
        """A registry that speaks Confluent's REST API; needs the extra ``registry``.

        Nothing is asked before a query needs it, and each id once.

        Parameters
        ----------
        url
            one, or several with commas between them, tried in turn
        auth
            ``(user, password)``, or a token sent as bearer. It goes to the workers with the query, as all that a
            function holds, and is in no text.
        subjects
            those whose versions there can be. With them, a query knows its columns without looking at the data first, which a
            stream cannot do. Ids count in the context of the subjects (``:.eu:orders-value``), without subjects in the
            default one; of another one, all of ``https://registry:8081/contexts/.eu`` is.
        patience
            how long a registry may be away, or answer that it is busy, before a query fails [s]
        settings
            what else ``confluent_kafka.schema_registry.SchemaRegistryClient`` takes: ``ssl.ca.location``, ``proxy``, …

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
        """The registry whose topic, ``_schemas``, a DataFrame has: read from a broker, or with `kafka_log` from its segments.

        It is read at once, and as it is then.

        Parameters
        ----------
        df
            a batch with the columns ``offset``, ``key`` and ``value``
        subjects
            as in ``http``
        context
            in which ids count, ``.name``: by default that of ``subjects``; without these the default one, and another's where
            only that has an id

        Returns
        -------
        Registry
            whose ``versions()`` are those of every subject, each with its id, and whether it was deleted

        Raises
        ------
        ValueError
            where the columns are not there, or nothing of it is a schema.

        Examples
        --------
        >>> Registry.topic(spark.read.format("kafka_log").load("/backup/_schemas-0"))
        """
        missing = {"offset", "key", "value"} - set(df.columns)
        if missing:
            raise ValueError(
                f"Registry.topic takes the columns offset, key and value, and there is no {', '.join(sorted(missing))}"
            )
        if df.isStreaming:
            raise ValueError(
                "Registry.topic reads the whole topic, and this is a stream: take spark.read instead of spark.readStream"
            )
        rows = df.select("offset", "key", "value").collect()
        records = ((row["offset"], _bytes(row["key"]), _bytes(row["value"])) for row in rows)
        return Registry(TopicSchemas(records, tuple(subjects), context))


def _bytes(cell: Any) -> bytes | None:
    return None if cell is None else bytes(cell)
