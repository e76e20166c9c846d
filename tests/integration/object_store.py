"""A server with the S3 API that records its requests."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyarrow import fs
from werkzeug.serving import make_server

_BUSY = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Server(NamedTuple):
    """The server, with its requests: method, path, range."""

    query: str
    """the options at the end of a URI for this server"""
    requests: list[tuple[str, str, str]]
    faults: list[int]
    """how many more requests of objects it will reject as busy"""

    @property
    def url(self) -> str:
        """The address of the server."""
        return unquote(self.query.partition("=")[2].partition("&")[0])

    def bucket(self, name: str) -> fs.FileSystem:
        """Create a bucket. Returns the server's file system; its paths begin with the bucket's name."""
        store, _ = fs.FileSystem.from_uri(f"s3://{name}/{self.query}&allow_bucket_creation=true")
        store.create_dir(name)
        return store

    def object_requests(self, below: str) -> list[tuple[str, str]]:
        """The name and range of each read of an object below a path."""
        return [
            (path, ranges.removeprefix("bytes="))
            for method, path, ranges in self.requests
            if method == "GET" and path.startswith(f"/{below}") and ".." not in path
        ]

    def opened(self, below: str) -> int:
        """How often an object below a path was opened. When pyarrow opens an object, it requests the size with HEAD."""
        return sum(method == "HEAD" and path.startswith(f"/{below}/") for method, path, _ in self.requests)


@contextmanager
def running_store() -> Iterator[Server]:
    """A server on the loopback interface, until the context ends."""
    requests: list[tuple[str, str, str]] = []
    faults = [0]
    application = DomainDispatcherApplication(create_backend_app)

    def recorded(environ: dict[str, Any], start: Any) -> Any:
        requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE", "")))
        if faults[0] and "HTTP_RANGE" in environ:
            faults[0] -= 1
            start("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(_BUSY)))])
            return [_BUSY]
        return application(environ, start)

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # otherwise it logs a line for each request
    running = make_server("127.0.0.1", 0, recorded, threaded=True)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    before = {name: os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    os.environ |= dict.fromkeys(before, "test")
    try:
        yield Server(
            f"?endpoint_override=http%3A%2F%2F127.0.0.1%3A{running.server_port}&region=us-east-1", requests, faults
        )
    finally:
        os.environ |= {name: value for name, value in before.items() if value is not None}
        running.shutdown()
        thread.join()
