"""A registry over Confluent's REST API, by Confluent's own client."""

from __future__ import annotations

import base64
import importlib
import json
import math
import queue
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from sparkwire.avro.payloads import GLOBAL_ID
from sparkwire.avro.registered import (
    AVRO,
    DEFAULT_CONTEXT,
    Place,
    Registered,
    SubjectVersion,
    check_contexts,
    context_of,
    in_context,
    needing_the_extra,
    with_references,
)
from sparkwire.avro.schema_source import SchemaSource
from sparkwire.errors import RegistryError

_NOT_FOUND: Final = (40401, 40402, 40403)
"""of subject, version and schema: Confluent's codes, which tell a registry's 404 from that of any other server"""
_NO_ARTIFACT: Final = (404,)
"""Apicurio's code"""
_CCOMPAT: Final = re.compile(r"/apis/ccompat/v\d+/?$")
"""where an address ends under which Apicurio speaks Confluent's API"""
_WAITS: Final = 0.25
"""[s] before the first try again; then each time twice as long, up to the next"""
_LONGEST_WAIT: Final = 8.0
_BUSY: Final = (408, 429)
_LEAST_PATIENCE: Final = 0.1
"""[s]"""
_LARGEST, _LARGEST_COMPRESSED = 64 << 20, 1 << 20
"""what an answer may have, as it is sent [bytes]"""
_HIDDEN: Final = "[hidden]"
_SECRET: Final = re.compile(r"password|secret|token|user\.info|key", re.IGNORECASE)
_CREDENTIALS: Final = re.compile(r"(?i)\b(basic|bearer|digest|negotiate|authorization)\b\W+[^\s\"',;}\]]+")
_MISSED_FOR: Final = 60.0
"""[s] until an id that was unknown is asked for again: it may have been registered since"""


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

    def of_apicurio(self) -> _Server | None:
        """Apicurio's own API at the same addresses; None where they are not Apicurio's."""
        urls = [_CCOMPAT.subn("/apis/registry/v2", url.strip()) for url in self.url.split(",")]
        return self._replace(url=",".join(url for url, _ in urls)) if all(count for _, count in urls) else None

    def secrets(self) -> Iterator[str]:
        """What must not be in any text: what it is asked with."""
        given = [value for name, value in self.settings if _SECRET.search(name)]
        given += [urlsplit(url.strip()).netloc.rpartition("@")[0] for url in self.url.split(",")]
        given += [self.auth] if isinstance(self.auth, str) else [self.auth[1], ":".join(self.auth)] if self.auth else []
        for value in filter(None, map(str, given)):
            for one in {value, value.partition(":")[2], unquote(value), unquote(value).partition(":")[2]} - {""}:
                yield from (one, quote(one, safe=""), base64.b64encode(one.encode()).decode())
                yield from (ascii(one)[1:-1], repr(one.encode())[2:-1], json.dumps(one)[1:-1])

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
        client = SchemaRegistryClient(given)
        _bound_answers(client)
        return client


class HttpSchemas(SchemaSource):
    """See ``Registry.http``. Clients and the schemas that they have been told are kept for the whole process."""

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
        self._missed: dict[tuple[str, Hashable], float] = {}
        """when the registry did not know an id of a context"""
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
        by_id: dict[Hashable, list[SubjectVersion]] = {}
        for subject in self._subjects:
            versions = self._versions(subject)
            if not versions:
                raise RegistryError(f"the schema registry at {self._server.title} has no subject {subject}")
            for version in versions:
                one = self._at((subject, version))
                if one is not None:
                    by_id.setdefault(one.id, []).append(one)
                    self._session.known[context_of(subject), one.id] = one, self._registered(one)
        for key, some in by_id.items():
            check_contexts(key, some, "subjects of {} alone")
        return list(by_id)

    def _versions(self, subject: str) -> Sequence[int]:
        with self._asking(f"subject {subject}"):
            return self._patiently(lambda client: client.get_versions(subject, deleted=True)) or ()

    def registered(self, ids: Iterable[Hashable]) -> dict[Hashable, Registered]:
        registered_schemas = {}
        for key in ids:
            some = [one for context in self._contexts if (one := self._known(context, key)) is not None]
            check_contexts(key, [version for version, _ in some], "subjects of {} alone")
            if some:
                registered_schemas[key] = some[-1][1]
        return registered_schemas

    def _known(self, context: str, key: Hashable) -> tuple[SubjectVersion, Registered] | None:
        """A schema by its id, which counts in a context."""
        session, place = self._session, (context, key)
        if place not in session.known and time.monotonic() - self._missed.get(place, -math.inf) > _MISSED_FOR:
            schema = self._fetch(context, key)
            if schema is None:
                self._missed[place] = time.monotonic()
            else:
                version = _version(schema, in_context(f"schema {key}", context), 0)
                session.known[place] = version, self._registered(version)
        return session.known.get(place)

    def _fetch(self, context: str, key: Hashable) -> Any:
        with self._asking(f"schema {key}"):
            if isinstance(key, str) and key.startswith(GLOBAL_ID):
                return self._with_global_id(key.removeprefix(GLOBAL_ID))
            if not isinstance(key, int):
                return self._patiently(lambda client: client.get_schema_by_guid(key))
            qualified = () if context == DEFAULT_CONTEXT else (in_context("", context),)
            return self._patiently(lambda client: client.get_schema(key, *qualified))

    def _with_global_id(self, number: str) -> Any:
        """Of Apicurio's own API beside its copy of Confluent's, which knows contentIds alone; None from another registry."""
        from confluent_kafka.schema_registry import Schema

        own = self._server.of_apicurio()
        if own is None:
            return None
        client = _session(own).client
        text = self._patiently(
            lambda _: client._rest_client.get(f"ids/globalIds/{number}", {"dereference": "true"}), *_NO_ARTIFACT
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
            with self._asking(f"{place[0]}, version {place[1]}"):
                one = self._patiently(lambda client: client.get_version(*place, deleted=True))
            if one is None:
                return None
            session.versions[place] = _version(one.schema, *place)._replace(id=one.schema_id)
        return session.versions[place]

    @property
    def _session(self) -> _Session:
        return _session(self._server)

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """What cannot be had: where, what, and why."""
        try:
            yield
        except RegistryError:
            raise
        except Exception as error:  # noqa: BLE001  # the client lets through whatever its own libraries raise
            raise RegistryError(
                f"the schema registry at {self._server.title} was asked for {what} and {_answered(error, self._server)}"
            ) from None

    def _patiently(self, ask: Callable[[Any], Any], *not_found: int) -> Any:
        """The answer, None for what is not there; asked again while that may help."""
        client, wait, end = self._session.client, _WAITS, time.monotonic() + self._patience
        while True:
            try:
                client.clear_caches()  # of its own, which answer for one context what was asked for another
                return _within(end - time.monotonic(), lambda: ask(client))
            except Exception as error:
                if getattr(error, "error_code", None) in (*_NOT_FOUND, *not_found):
                    return None
                if not _may_pass(error) or time.monotonic() + wait > end:
                    raise
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)


class _Session(NamedTuple):
    """What a process has of a registry, and never changes there."""

    client: Any
    known: dict[tuple[str, Hashable], tuple[SubjectVersion, Registered]]
    """by context and id"""
    versions: dict[Place, SubjectVersion]


_SESSIONS: Final[dict[str, _Session]] = {}


def _session(server: _Server) -> _Session:
    key = repr(tuple(server))  # settings may be of any type
    if key not in _SESSIONS:
        _SESSIONS[key] = _Session(server.client(), {}, {})
    return _SESSIONS[key]


def _version(schema: Any, subject: str, number: int) -> SubjectVersion:
    named = tuple((one.name, (one.subject, one.version)) for one in schema.references or ())
    return SubjectVersion(subject, number, -1, None, schema.schema_type or AVRO, schema.schema_str, named)


class _NoAnswer(Exception):
    """An answer that does not come to its end."""


def _within(seconds: float, ask: Callable[[], Any]) -> Any:
    """What ``ask`` answers; _NoAnswer where it has not after so many seconds, whatever the server goes on to send."""
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def asked() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # noqa: BLE001  # it is raised where the answer is waited for
            answers.put((None, error))

    threading.Thread(target=asked, daemon=True, name="sparkwire-registry").start()
    try:
        answer, error = answers.get(timeout=max(seconds, _LEAST_PATIENCE))
    except queue.Empty:
        raise _NoAnswer(f"no whole answer within {max(seconds, _LEAST_PATIENCE):.0f} s") from None
    if error is not None:
        raise error
    return answer


def _bound_answers(client: Any) -> None:
    """Let no answer become larger than a schema is, however long the server goes on."""
    session = client._rest_client.session
    library = importlib.import_module(type(session).__module__.partition(".")[0])  # httpx, or what took its place

    class Bounded(library.SyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, stream: Any, most: int) -> None:
            self._stream, self._most = stream, most

        def __iter__(self) -> Iterator[bytes]:
            left = self._most
            for part in self._stream:
                left -= len(part)
                if left < 0:
                    raise _NoAnswer(f"more than {self._most} bytes in one answer")
                yield part

        def close(self) -> None:
            self._stream.close()

    def bound(response: Any) -> None:
        is_plain = response.headers.get("content-encoding", "identity") == "identity"
        response.stream = Bounded(response.stream, _LARGEST if is_plain else _LARGEST_COMPRESSED)

    session.headers["accept-encoding"] = "identity"
    session.event_hooks["response"] = [*session.event_hooks["response"], bound]


def _may_pass(error: Exception) -> bool:
    """Whether to ask again: no answer, or that of a server in trouble."""
    status = getattr(error, "http_status_code", None)
    if status is None:
        return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)  # of the client's own library
    return status >= 500 or status in _BUSY


def _answered(error: Exception, server: _Server) -> str:
    status = getattr(error, "http_status_code", None)
    if isinstance(error, _NoAnswer):
        return f"gave {error}: check the address, or raise patience"
    if status is None:
        message = f"{type(error).__name__} {_filtered(str(error), server)}"
        if _may_pass(error):
            return f"did not answer: {message}: check the address, and whether the workers may reach it"
        return f"answered what no registry says ({message}): is this the address of a registry?"
    advice = {401: "check auth", 403: "this user may not read it", 404: "is this the address of a registry?"}
    said = str(getattr(error, "error_message", "")).removeprefix("Unknown Schema Registry Error: ")
    return f"answered {status}: {_filtered(said, server)}" + (f": {advice[status]}" if status in advice else "")


def _filtered(text: str, server: _Server) -> str:
    """What a server says, without what it was asked with, in one line of what can be printed."""
    for secret in sorted(server.secrets(), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    text = _CREDENTIALS.sub(rf"\1 {_HIDDEN}", text)
    return "".join(one if one.isprintable() else " " for one in text[:200])
