"""A registry whose responses are slow, endless, or contain credentials."""

from __future__ import annotations

import base64
import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from threading import enumerate as enumerate_threads
from types import SimpleNamespace

import pytest

from sparkwire.avro import http_responses
from sparkwire.avro.registry import Registry
from sparkwire.errors import RegistryError

confluent = pytest.importorskip("confluent_kafka.schema_registry")

PASSWORD, TOKEN = "pass word/ü+1", "token-of-the-reader"
Respond = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(respond: Respond) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(OSError):  # the client has closed the connection
                respond(self)

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}"
    finally:
        running.shutdown()


def head(handler: BaseHTTPRequestHandler, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def drips(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte from time to time, so that no single read waits long."""
    head(handler, Content_Length="1000000")
    for _ in range(600):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def endless(handler: BaseHTTPRequestHandler) -> None:
    head(handler, Content_Length=str(1 << 40))
    while True:
        handler.wfile.write(bytes(1 << 20))


def silent(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(30)


def drips_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    drips(handler)


def sender(body: bytes, encoding: str) -> Respond:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        head(handler, Content_Length=str(len(body)), Content_Encoding=encoding)
        handler.wfile.write(body)

    return respond


def bomb(wrappings: int) -> bytes:
    """8 GiB of zeros, compressed at least once. Their blocks are copies of one, because compressing them all takes minutes."""
    deflate = zlib.compressobj(wbits=31)
    first = deflate.compress(bytes(1 << 20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    again = deflate.compress(bytes(1 << 20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    body = first + again * (1 << 13)
    for _ in range(wrappings - 1):
        body = gzip.compress(body, mtime=0)
    return body


def threads() -> list[Thread]:
    return [thread for thread in enumerate_threads() if thread.name == "sparkwire-registry"]


def test_a_wait_of_the_request_that_ends_at_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the timeout, although the request has ended with an error of its own."""
    times = iter([0.0, 60.0])
    monkeypatch.setattr(http_responses, "time", SimpleNamespace(monotonic=lambda: next(times)))

    def request(_: object) -> None:
        raise client._library.ReadTimeout("timed out")

    client = http_responses.BoundedClient(confluent.SchemaRegistryClient({"url": "http://127.0.0.1"}))
    with pytest.raises(http_responses.NoResponse, match="no complete response within 60 s"):
        client.within(60, request)


@pytest.mark.parametrize("respond", [drips, endless, silent, drips_headers])
def test_an_endless_response_is_aborted(respond: Respond) -> None:
    with server(respond) as url:
        with pytest.raises(RegistryError, match=r"no complete response within|more than \d+ bytes"):
            Registry.http(url, patience=0.5).registered([1])
        for thread in threads():
            thread.join(20)
        assert not threads()


@pytest.mark.parametrize(("wrappings", "encoding"), [(1, "gzip"), (2, "gzip, gzip"), (3, "gzip,X-GZip , gzip")])
def test_the_limit_counts_decompressed_bytes(wrappings: int, encoding: str) -> None:
    with server(sender(bomb(wrappings), encoding)) as url:
        with pytest.raises(RegistryError, match=rf"a response of more than {64 << 20} bytes"):
            Registry.http(url, patience=60).registered([1])
        for thread in threads():
            thread.join(20)
        assert not threads()


@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate", "gzip, deflate", "deflate, identity, gzip"])
def test_a_compressed_response(encoding: str) -> None:
    """A proxy compresses it, although the client does not ask for that."""
    compress: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}
    body = json.dumps({"schema": json.dumps({"type": "string", "doc": "x" * 200_000})}).encode()
    for name in encoding.split(", "):
        body = compress[name](body)
    with server(sender(body, encoding)) as url:
        assert set(Registry.http(url, patience=20).registered([1])) == {1}


@pytest.mark.parametrize(
    ("body", "encoding", "what"),
    [
        (b"{}", "br", "a response with the Content-Encoding br, which was not requested"),
        (gzip.compress(b"{}", mtime=0)[:-9], "gzip", "a compressed response without its end"),
        (b"{}", "gzip", "incorrect header check"),
    ],
)
def test_an_unreadable_response(body: bytes, encoding: str, what: str) -> None:
    with server(sender(body, encoding)) as url, pytest.raises(RegistryError, match=what):
        Registry.http(url, patience=20).registered([1])


def echo(status: int, is_json: bool) -> Respond:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        sent = handler.headers.get("Authorization", "")
        plain = base64.b64decode(sent.partition(" ")[2]).decode() if sent.startswith("Basic") else ""
        said = f"you sent {sent} which is {plain} \x1b[31m"
        body = (json.dumps({"error_code": status, "message": said}) if is_json else said).encode()
        head(handler, status, Content_Length=str(len(body)))
        handler.wfile.write(body)

    return respond


@pytest.mark.parametrize("auth", [("reader", PASSWORD), TOKEN])
@pytest.mark.parametrize(
    ("status", "is_json"), [(200, False), (401, True), (401, False), (403, True), (418, True), (418, False)]
)
def test_what_a_server_echoes_is_not_quoted(is_json: bool, status: int, auth: tuple[str, str] | str) -> None:
    with server(echo(status, is_json)) as url, pytest.raises(RegistryError) as reported:
        Registry.http(url, auth, patience=0.5).registered([1])
    secret = PASSWORD if isinstance(auth, tuple) else TOKEN
    plain = base64.b64encode(f"reader:{secret}".encode()).decode()
    for hidden in (secret, ascii(secret)[1:-1], repr(secret.encode())[2:-1], plain, "\x1b", "\n"):
        assert hidden not in str(reported.value)
    if status != 200:
        assert f"HTTP {status}: " in str(reported.value)
        assert "you sent" in str(reported.value)
