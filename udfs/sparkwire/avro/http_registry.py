"""A registry with Confluent's REST API, read with Confluent's client."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import math
import re
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from sparkwire.avro.http_responses import BoundedClient, NoResponse
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
from sparkwire.base.printable import printable, value_error
from sparkwire.errors import RegistryError, needing_the_extra

_NOT_FOUND: Final = (40401, 40402, 40403)
"""Confluent's codes for a missing subject, version and schema; other servers send a 404 without them"""
_NO_ARTIFACT: Final = (404,)
"""Apicurio's code for a missing schema"""
_CCOMPAT: Final = re.compile(r"/apis/ccompat/v\d+/?$")
"""the end of an address at which Apicurio provides Confluent's API"""
_FIRST_WAIT: Final = 0.25
"""[s] before the first retry; each wait is twice as long as the previous one, up to `_MAX_WAIT`"""
_MAX_WAIT: Final = 8.0
_BUSY: Final = (408, 429)
_HIDDEN: Final = "[hidden]"
_SECRET: Final = re.compile(r"password|secret|token|user\.info|key", re.IGNORECASE)
_CREDENTIALS: Final = re.compile(r"(?i)\b(basic|bearer|digest|negotiate|authorization)\b\W+[^\s\"',;}\]]+")
_UNKNOWN_FOR: Final = 60.0
"""[s] after which to request an unknown id again, because it may exist by then"""


class _Server(NamedTuple):
    """The settings of a client. Workers create a client from them."""

    url: str
    auth: tuple[str, str] | str | None
    settings: tuple[tuple[str, Any], ...]

    def __repr__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        """The addresses, without credentials."""
        parts = [urlsplit(url.strip()) for url in self.url.split(",")]
        shown = (part._replace(netloc=part.netloc.rpartition("@")[2], query="").geturl() for part in parts)
        return printable(", ".join(shown))

    def of_apicurio(self) -> _Server | None:
        """The server with Apicurio's API at the same addresses; None if they are not Apicurio's."""
        urls = [_CCOMPAT.subn("/apis/registry/v2", url.strip()) for url in self.url.split(",")]
        return self._replace(url=",".join(url for url, _ in urls)) if all(count for _, count in urls) else None

    def secrets(self) -> Iterator[str]:
        """The credentials in all their encodings. They must not appear in any text."""
        secrets = [value for name, value in self.settings if _SECRET.search(name)]
        secrets += [urlsplit(url.strip()).netloc.rpartition("@")[0] for url in self.url.split(",")]
        secrets += (
            [self.auth] if isinstance(self.auth, str) else [self.auth[1], ":".join(self.auth)] if self.auth else []
        )
        for value in filter(None, map(str, secrets)):
            for secret in {value, value.partition(":")[2], unquote(value), unquote(value).partition(":")[2]} - {""}:
                yield from (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode())
                yield from (ascii(secret)[1:-1], repr(secret.encode())[2:-1], json.dumps(secret)[1:-1])

    def client(self) -> BoundedClient:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        settings = {"url": self.url, "timeout": 10, "max.retries": 0} | dict(self.settings)
        if isinstance(self.auth, str):
            settings |= {
                "bearer.auth.credentials.source": "STATIC_TOKEN",
                "bearer.auth.token": self.auth,
                # Confluent's cloud routes by these two settings. Other servers ignore them, but the client requires them.
                "bearer.auth.logical.cluster": settings.get("bearer.auth.logical.cluster", ""),
                "bearer.auth.identity.pool.id": settings.get("bearer.auth.identity.pool.id", ""),
            }
        elif self.auth is not None:
            settings["basic.auth.user.info"] = ":".join(self.auth)
        return BoundedClient(SchemaRegistryClient(settings))


class HttpSchemas(SchemaSource):
    """See ``Registry.http``. Each process caches clients and fetched schemas."""

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
        self._contexts = sorted({context_of(subject) for subject in subjects}) or [DEFAULT_CONTEXT]
        self._unknown: dict[tuple[str, Hashable], float] = {}
        """the time at which the registry did not know an id of a context"""
        self._doubtful_ids = False
        try:
            with needing_the_extra("Registry.http"):
                _session(self._server)
        except ValueError as error:
            # Confluent's message without the address, which may contain credentials.
            raise value_error(f"{self!r}: {str(error).replace(url, repr(self._server.title))}") from None

    def __repr__(self) -> str:
        return f"Registry.http({self._server.title!r})"

    def of_doubtful_ids(self) -> HttpSchemas:
        if self._server.of_apicurio() is None:
            return self
        other = copy.copy(self)
        other._doubtful_ids = True
        return other

    def ids(self) -> Sequence[Hashable] | None:
        if not self._subjects:
            return None
        by_id: dict[Hashable, list[SubjectVersion]] = {}
        for subject in self._subjects:
            versions = self._versions(subject)
            if not versions:
                raise RegistryError(f"the schema registry at {self._server.title} has no subject {subject}")
            for version in versions:
                found = self._at((subject, version))
                if found is not None:
                    by_id.setdefault(found.id, []).append(found)
                    self._session.schemas[context_of(subject), found.id] = found, self._registered(found)
        for key, some in by_id.items():
            check_contexts(key, some, "subjects of {} alone")
        return list(by_id)

    def _versions(self, subject: str) -> Sequence[int]:
        with self._explaining(f"subject {subject}"):
            return self._with_retries(lambda client: client.get_versions(subject, deleted=True)) or ()

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        registered_schemas = {}
        for key in ids:
            some = [found for context in self._contexts if (found := self._schema_of(context, key)) is not None]
            check_contexts(key, [version for version, _ in some], "subjects of {} alone")
            if some:
                registered_schemas[key] = some[-1][1]
                if self._doubtful_ids and isinstance(key, int):
                    self._check_space(key, some[-1][1].text)
        return registered_schemas

    def _check_space(self, key: Hashable, text: str) -> None:
        """Raise RegistryError if the number of a contentId is also the globalId of another schema."""
        place = DEFAULT_CONTEXT, f"{GLOBAL_ID}{key}"
        if place not in self._session.checked:
            with self._explaining(f"the schema with the globalId {key}"):
                other = self._with_global_id(str(key), {})
            if other is not None and not _same_json(other.schema_str, text):
                raise RegistryError(
                    f"schema {key} is one schema as a contentId and another one as a globalId, in the registry at "
                    f"{self._server.title}: pass wire_format='apicurio_content_id' or 'apicurio_global_id'. The messages do not "
                    "say which of the two they have"
                )
            self._session.checked.add(place)

    def _schema_of(self, context: str, key: Hashable) -> tuple[SubjectVersion, Registered] | None:
        """The schema with an id in a context."""
        session, place = self._session, (context, key)
        if place not in session.schemas and time.monotonic() - self._unknown.get(place, -math.inf) > _UNKNOWN_FOR:
            schema = self._fetch(context, key)
            if schema is None:
                self._unknown[place] = time.monotonic()
            else:
                version = _version(schema, in_context(f"schema {key}", context), 0)
                session.schemas[place] = version, self._registered(version)
        return session.schemas.get(place)

    def _fetch(self, context: str, key: Hashable) -> Any:
        with self._explaining(f"schema {key}"):
            if isinstance(key, str) and key.startswith(GLOBAL_ID):
                return self._with_global_id(key.removeprefix(GLOBAL_ID), {"dereference": "true"})
            if not isinstance(key, int):
                return self._with_retries(lambda client: client.get_schema_by_guid(key))
            qualified = () if context == DEFAULT_CONTEXT else (in_context("", context),)
            return self._with_retries(lambda client: client.get_schema(key, *qualified))

    def _with_global_id(self, number: str, parameters: Mapping[str, str]) -> Any:
        """The schema with a globalId, from Apicurio's API, because Confluent's API has only contentIds. None from other
        registries.
        """
        from confluent_kafka.schema_registry import Schema

        apicurio = self._server.of_apicurio()
        if apicurio is None:
            return None
        text = self._with_retries(
            lambda client: client._rest_client.get(f"ids/globalIds/{number}", dict(parameters)),
            *_NO_ARTIFACT,
            server=apicurio,
        )
        return None if text is None else Schema(json.dumps(text), AVRO)

    def _registered(self, version: SubjectVersion) -> Registered:
        named = version.title if version.version else version.subject
        return with_references(
            version,
            f"{named} of the registry at {self._server.title}",
            lambda place, referring: self._at((in_context(place[0], context_of(referring.subject)), place[1])),
        )

    def _at(self, place: Place) -> SubjectVersion | None:
        session = self._session
        if place not in session.versions:
            with self._explaining(f"{place[0]}, version {place[1]}"):
                found = self._with_retries(lambda client: client.get_version(*place, deleted=True))
            if found is None:
                return None
            session.versions[place] = _version(found.schema, *place)._replace(id=found.schema_id)
        return session.versions[place]

    @property
    def _session(self) -> _Session:
        return _session(self._server)

    @contextmanager
    def _explaining(self, what: str) -> Iterator[None]:
        """Raise RegistryError for any failure, with the address, the requested object, and the reason."""
        try:
            yield
        except RegistryError:
            raise
        except Exception as error:  # noqa: BLE001  # the client raises any exception of its libraries
            raise RegistryError(
                f"cannot get {what} from the schema registry at {self._server.title}: {_reason(error, self._server)}"
            ) from None

    def _with_retries(self, request: Callable[[Any], Any], *not_found: int, server: _Server | None = None) -> Any:
        """The response, or None if the requested object does not exist. Retries temporary failures for `patience` seconds."""
        bounded, wait, end = _session(server or self._server).client, _FIRST_WAIT, time.monotonic() + self._patience
        while True:
            try:
                bounded.client.clear_caches()  # they return the same schema for different contexts
                return bounded.within(end - time.monotonic(), request)
            except Exception as error:
                if getattr(error, "error_code", None) in (*_NOT_FOUND, *not_found):
                    return None
                if not _is_temporary(error) or time.monotonic() + wait > end:
                    raise
            time.sleep(wait)
            wait = min(2 * wait, _MAX_WAIT)


class _Session(NamedTuple):
    """The data of a registry that a process caches. They never change in the registry."""

    client: BoundedClient
    schemas: dict[tuple[str, Hashable], tuple[SubjectVersion, Registered]]
    """schemas by context and id"""
    versions: dict[Place, SubjectVersion]
    checked: set[tuple[str, Hashable]]
    """numbers that are not a contentId and a globalId of different schemas"""


_SESSIONS: Final[dict[str, _Session]] = {}


def _session(server: _Server) -> _Session:
    key = repr(tuple(server))  # settings may be of any type
    if key not in _SESSIONS:
        _SESSIONS[key] = _Session(server.client(), {}, {}, set())
    return _SESSIONS[key]


def _version(schema: Any, subject: str, number: int) -> SubjectVersion:
    named = tuple((one.name, (one.subject, one.version)) for one in schema.references or ())
    return SubjectVersion(subject, number, -1, None, schema.schema_type or AVRO, schema.schema_str, named)


def _same_json(one: str, other: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(json.loads(one) == json.loads(other))
    return one == other


def _is_temporary(error: Exception) -> bool:
    """Whether a retry may help: the server did not respond, is busy, or has an internal error."""
    status = getattr(error, "http_status_code", None)
    if status is None:
        return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)  # a class of the client's library
    return status >= 500 or status in _BUSY


def _reason(error: Exception, server: _Server) -> str:
    status = getattr(error, "http_status_code", None)
    if isinstance(error, NoResponse):
        return f"{error}: check the address, or raise patience"
    if status is None:
        message = f"{type(error).__name__} {_filtered(str(error), server)}"
        if _is_temporary(error):
            return f"no response: {message}: check the address, and whether the workers may reach it"
        return f"unexpected response ({message}): is this the address of a registry?"
    advice = {401: "check auth", 403: "this user may not read it", 404: "is this the address of a registry?"}
    message = str(getattr(error, "error_message", "")).removeprefix("Unknown Schema Registry Error: ")
    return f"HTTP {status}: {_filtered(message, server)}" + (f": {advice[status]}" if status in advice else "")


def _filtered(text: str, server: _Server) -> str:
    """A server's message in one printable line, without credentials."""
    for secret in sorted(server.secrets(), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    text = _CREDENTIALS.sub(rf"\1 {_HIDDEN}", text)
    return "".join(one if one.isprintable() else " " for one in text[:200])
