"""Registries: where the schemas of a column come from, and what is known of each there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparkwire.avro.inline import schemas_of_registered
from sparkwire.avro.registered import AVRO, Registered
from sparkwire.avro.schemas import Schemas
from sparkwire.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Registry:
    """Where schemas come from: ``Registry.of``, ``Registry.http`` or ``Registry.topic``.

    Wherever schemas are taken, a registry is.
    """

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
        found = self.registered(ids)
        some = {key: one for key, one in found.items() if one.type == AVRO}
        if found and not some:
            one = next(iter(found.values()))
            raise ValueError(f"{one.title} is of type {one.type}, and avro.rows reads {AVRO}: take registry.rows")
        schemas = schemas_of_registered(some)
        if schemas.unreadable and not schemas.texts:
            raise SchemaError(next(iter(schemas.unreadable.values())))
        return schemas

    @staticmethod
    def of(schemas: Any) -> Registry:
        """The registry of a folder of ``.avsc`` files, of a list of schemas, or of a mapping from ids to schemas.

        Raises
        ------
        ValueError
            where a schema is none, or there is none: one sentence.

        Examples
        --------
        >>> Registry.of({42: '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'})
        """
        from sparkwire.avro.registries.given import GivenRegistry

        return schemas if isinstance(schemas, Registry) else GivenRegistry(schemas)

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
            ``(user, password)``, or a token that is sent as bearer. It goes to the workers with the query, as all that a
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
            without the extra: one sentence.

        Examples
        --------
        >>> Registry.http("https://registry:8081", auth=("reader", password), subjects=["orders-value"])
        """
        from sparkwire.avro.registries.http import HttpRegistry

        return HttpRegistry(url, auth, tuple(subjects), patience, dict(settings or {}))

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
            where the columns are not there, or nothing of it is a schema: one sentence.

        Examples
        --------
        >>> Registry.topic(spark.read.format("kafka_log").load("/backup/_schemas-0"))
        """
        from sparkwire.avro.registries.topic import TopicRegistry

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
        return TopicRegistry(
            ((row["offset"], _bytes(row["key"]), _bytes(row["value"])) for row in rows), tuple(subjects), context
        )


def _bytes(cell: Any) -> bytes | None:
    return None if cell is None else bytes(cell)
