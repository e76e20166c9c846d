"""A registry over Confluent's REST API, by Confluent's own client."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from sparkwire.avro.registered import (
    AVRO,
    Place,
    Registered,
    RegistryError,
    Version,
    needing_the_extra,
    with_references,
)
from sparkwire.avro.registry import Registry

_NOT_FOUND: Final = (40401, 40402, 40403)
"""of subject, version and schema: Confluent's codes, which tell a registry's 404 from that of any other server"""
_WAITS: Final = 0.25
"""[s] before the first try again; then each time twice as long, up to the next"""
_LONGEST_WAIT: Final = 8.0
_BUSY: Final = (408, 429)
_MISSED_FOR: Final = 60.0
"""[s] until an id that was not known is asked for again: it may have been registered since"""


class _Server(NamedTuple):
    """What a client is made of; hashable, so that a worker makes one."""

    url: str
    auth: tuple[str, str] | str | None
    settings: tuple[tuple[str, Any], ...]

    def __repr__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        """Its addresses without the credentials that may be in them."""
        parts = [urlsplit(url.strip()) for url in self.url.split(",")]
        return ", ".join(part._replace(netloc=part.netloc.rpartition("@")[2], query="").geturl() for part in parts)

    def client(self) -> Any:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        given = {"url": self.url, "timeout": 10, "max.retries": 0} | dict(self.settings)
        if isinstance(self.auth, str):
            given |= {
                "bearer.auth.credentials.source": "STATIC_TOKEN",
                "bearer.auth.token": self.auth,
                # Confluent's cloud routes by these two; others do not look at them, and the client takes nothing less.
                "bearer.auth.logical.cluster": given.get("bearer.auth.logical.cluster", ""),
                "bearer.auth.identity.pool.id": given.get("bearer.auth.identity.pool.id", ""),
            }
        elif self.auth is not None:
            given["basic.auth.user.info"] = ":".join(self.auth)
        return SchemaRegistryClient(given)


class HttpRegistry(Registry):
    """See ``Registry.http``. Clients and what they have been told are kept for the whole process."""

    def __init__(
        self,
        url: str,
        auth: tuple[str, str] | str | None,
        subjects: tuple[str, ...],
        patience: float,
        settings: Mapping[str, Any],
    ) -> None:
        self._server = _Server(url, auth, tuple(sorted(settings.items())))
        self._subjects, self._patience = subjects, patience
        try:
            with needing_the_extra("Registry.http"):
                _session(self._server)
        except ValueError as error:
            # Confluent's sentence without the address, which may hold credentials.
            raise ValueError(f"{self!r}: {str(error).replace(url, repr(self._server.title))}") from None

    def __repr__(self) -> str:
        return f"Registry.http({self._server.title!r})"

    def ids(self) -> Sequence[Hashable] | None:
        if not self._subjects:
            return None
        session = _session(self._server)
        found: list[Hashable] = []
        for subject in self._subjects:
            versions = self._versions(subject)
            if not versions:
                raise RegistryError(f"the schema registry at {self._server.title} has no subject {subject}")
            for version in versions:
                one = self._at((subject, version))
                if one is not None:
                    found.append(one.id)
                    session.known[one.id] = self._registered(one)
        return list(dict.fromkeys(found))

    def _versions(self, subject: str) -> Sequence[int]:
        with self._asking(f"subject {subject}"):
            return self._patiently(lambda client: client.get_versions(subject, deleted=True)) or ()

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        session, found = _session(self._server), {}
        for key in ids:
            if key not in session.known and time.monotonic() - session.missed.get(key, -math.inf) > _MISSED_FOR:
                self._fetch(key)
            if key in session.known:
                found[key] = session.known[key]
        return found

    def _fetch(self, key: Hashable) -> None:
        session, ask = _session(self._server), "get_schema" if isinstance(key, int) else "get_schema_by_guid"
        with self._asking(f"schema {key}"):
            schema = self._patiently(lambda client: getattr(client, ask)(key))
        if schema is None:
            session.missed[key] = time.monotonic()
        else:
            session.known[key] = self._registered(_version(schema, f"schema {key}", 0))

    def _registered(self, version: Version) -> Registered:
        named = version.title if version.version else version.subject
        return with_references(
            version, f"{named} of the registry at {self._server.title}", lambda place, _: self._at(place)
        )

    def _at(self, place: Place) -> Version | None:
        with self._asking(f"{place[0]}, version {place[1]}"):
            one = self._patiently(lambda client: client.get_version(*place, deleted=True))
            return None if one is None else _version(one.schema, *place)._replace(id=one.schema_id)

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """What cannot be had, in one sentence: where, what, and why."""
        try:
            yield
        except RegistryError:
            raise
        except Exception as error:  # noqa: BLE001  # the client lets through whatever its own libraries raise
            raise RegistryError(
                f"the schema registry at {self._server.title} was asked for {what} and {_answered(error)}"
            ) from None

    def _patiently(self, ask: Callable[[Any], Any]) -> Any:
        """The answer, None for what is not there; asked again while that may help."""
        session, wait, end = _session(self._server), _WAITS, time.monotonic() + self._patience
        while True:
            try:
                return ask(session.client)
            except Exception as error:
                if getattr(error, "error_code", None) in _NOT_FOUND:
                    return None
                if not _may_pass(error) or time.monotonic() + wait > end:
                    raise
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)


class _Session(NamedTuple):
    """What a process has of a registry."""

    client: Any
    known: dict[Hashable, Registered]
    missed: dict[Hashable, float]
    """when the registry did not know an id"""


@functools.cache
def _session(server: _Server) -> _Session:
    return _Session(server.client(), {}, {})


def _version(schema: Any, subject: str, number: int) -> Version:
    named = tuple((one.name, (one.subject, one.version)) for one in schema.references or ())
    return Version(subject, number, -1, None, schema.schema_type or AVRO, schema.schema_str, named)


def _may_pass(error: Exception) -> bool:
    """Whether to ask again: no answer, or that of a server in trouble."""
    status = getattr(error, "http_status_code", None)
    if status is None:
        return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)  # of the client's own library
    return status >= 500 or status in _BUSY


def _answered(error: Exception) -> str:
    status = getattr(error, "http_status_code", None)
    if status is None:
        told = f"{type(error).__name__} {error}"
        if _may_pass(error):
            return f"did not answer: {told}: check the address, and whether the workers may reach it"
        return f"answered what no registry says ({told}): is this the address of a registry?"
    advice = {401: "check auth", 403: "this user may not read it", 404: "is this the address of a registry?"}
    said = str(getattr(error, "error_message", "")).removeprefix("Unknown Schema Registry Error: ")[:200]
    return f"answered {status}: {said}" + (f": {advice[status]}" if status in advice else "")
