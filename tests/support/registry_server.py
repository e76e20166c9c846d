"""A schema registry with Confluent's REST API for reading and registering schemas.

Source: "Schema Registry API Reference" of Confluent Platform 8.0. The tests read its responses with Confluent's client.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import trustme

NOT_FOUND = {"subject": 40401, "version": 40402, "schema": 40403}


class Response(NamedTuple):
    """A response of a failing or wrong server."""

    status: int
    body: bytes = b'{"error_code": 50001, "message": "store error"}'


class RegistryServer:
    """The registry's schemas, its recorded requests, and its failures."""

    def __init__(self) -> None:
        self.versions: dict[tuple[str, int], dict[str, Any]] = {}
        self.global_ids: dict[int, Any] = {}
        """schemas by their ids in Apicurio's API"""
        self.requests: list[str] = []
        """method and path of each request, without the query"""
        self.authorizations: set[str | None] = set()
        self.failing: list[Response] = []
        """responses to the next requests"""
        self.slow: float = 0
        """[s] delay of each response"""
        self.url = ""

    # -- schemas

    def register(
        self, subject: str, schema: Any, kind: str = "AVRO", references: Any = (), id: int | None = None
    ) -> int:
        """Register a schema and return its id, which is the same for the same text, as in every registry."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        same = [one for one in self.versions.values() if (one["schema"], one["references"]) == (text, list(references))]
        number = id or (same[0]["id"] if same else max((one["id"] for one in self.versions.values()), default=0) + 1)
        version = 1 + max((place[1] for place in self.versions if place[0] == subject), default=0)
        mine = next((one for one in same if one["subject"] == subject), None)
        if mine is None:
            self.versions[subject, version] = {
                "subject": subject,
                "version": version,
                "id": number,
                "guid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}{text}")),
                "schemaType": kind,
                "schema": text,
                "references": list(references),
                "deleted": False,
            }
        return int(number)

    def guid(self, id: int) -> str:
        """The GUID of the schema with an id."""
        return next(str(one["guid"]) for one in self.versions.values() if one["id"] == id)

    def delete(self, subject: str) -> None:
        """Delete a subject softly: requests that include deleted versions still find it."""
        for (named, _), one in self.versions.items():
            if named == subject:
                one["deleted"] = True

    # -- responses

    def respond(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        """The status and JSON of a response."""
        parts = urlsplit(target)
        deleted = "deleted=true" in parts.query.lower()
        path = [unquote(part) for part in parts.path.strip("/").split("/")]
        if path[:2] == ["apis", "ccompat"]:
            path = path[3:]
        match method, path:
            case "GET", ["apis", "registry", "v2", "ids", "globalIds", number]:
                schema = self.global_ids.get(int(number))
                return (200, schema) if schema else (404, {"error_code": 404, "message": f"No artifact {number}"})
            case "GET", ["schemas", "ids", id]:
                context = _context(parse_qs(parts.query).get("subject", [""])[0])
                mine = [one for one in self.versions.values() if _context(one["subject"]) == context]
                return self._schema([one for one in mine if str(one["id"]) == id])
            case "GET", ["schemas", "guids", guid]:
                return self._schema([one for one in self.versions.values() if one["guid"] == guid])
            case "GET", ["subjects", subject, "versions"]:
                numbers = [
                    place[1]
                    for place, one in self.versions.items()
                    if place[0] == subject and (deleted or not one["deleted"])
                ]
                return (200, numbers) if numbers else _not_found("subject")
            case "GET", ["subjects", subject, "versions", number]:
                result = self.versions.get((subject, int(number)))
                return (
                    (200, _without(result, "deleted"))
                    if result and (deleted or not result["deleted"])
                    else _not_found("version")
                )
            case "POST", ["subjects", subject, "versions"] | ["subjects", subject]:
                new = self.register(
                    subject, body["schema"], body.get("schemaType") or "AVRO", body.get("references") or ()
                )
                matching = [one for one in self.versions.values() if one["id"] == new and one["subject"] == subject]
                return 200, _without(matching[0], "deleted")
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _schema(self, rows: list[dict[str, Any]]) -> tuple[int, Any]:
        return (200, _without(rows[0], "deleted", "subject", "version")) if rows else _not_found("schema")


def _context(subject: str) -> str:
    """``.eu`` of ``:.eu:orders``; ids belong to a context."""
    return subject.split(":")[1] if subject.startswith(":.") else "."


def _without(one: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name not in names}


def _not_found(what: str) -> tuple[int, Any]:
    return 404, {"error_code": NOT_FOUND[what], "message": f"{what.title()} not found."}


@contextmanager
def serving(authority: trustme.CA | None = None) -> Iterator[RegistryServer]:
    """A registry at a separate port, with TLS if an authority is given. As a proxy, it responds for every host."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # which waits for the client before it sends the body after the header

        def _respond(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            registry.requests.append(f"{self.command} {unquote(urlsplit(self.path).path)}")
            registry.authorizations.add(self.headers.get("Authorization"))
            time.sleep(registry.slow)
            if registry.failing:
                status, body = registry.failing.pop(0)
            else:
                status, document = registry.respond(self.command, self.path, json.loads(data) if data else None)
                body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _respond  # noqa: N815  # the names that http.server calls

        def log_message(self, *_: Any) -> None:
            """Log nothing, because tests report failures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    registry.url = f"http{'s' if authority else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
