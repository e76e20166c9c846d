"""Bound the time and the size of a registry's responses. After a timeout, thread and connection of the request end."""

from __future__ import annotations

import importlib
import queue
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

from sparkwire.base.printable import printable

_MAX_RESPONSE: Final = 64 << 20
"""size limit of a response after decompression [bytes]; no schema is larger"""
_MIN_PATIENCE: Final = 0.1
"""[s] lower limit for waiting for one response"""
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""zlib's number for each encoding of a response; the client requests none of them"""
_STEP: Final = 1 << 16
"""number of bytes to decompress at once"""


class NoResponse(Exception):
    """A response that is incomplete, too large or unreadable."""


class _Request(threading.local):
    """The request of the current thread."""

    def __init__(self) -> None:
        self.end = float("inf")
        """the time of its timeout, in `time.monotonic`"""
        self.given_up = threading.Event()

    def check(self) -> None:
        if self.given_up.is_set():
            raise NoResponse("given up")


_REQUEST: Final = _Request()


class BoundedClient:
    """Confluent's client of a registry, with limits for its responses."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._streams: WeakSet[Any] = WeakSet()
        session = client._rest_client.session
        self._library = importlib.import_module(type(session).__module__.partition(".")[0])  # httpx or its successor
        session.headers["accept-encoding"] = "identity"
        session.event_hooks["request"] = [*session.event_hooks["request"], self._begin]
        session.event_hooks["response"] = [*session.event_hooks["response"], _bounded(self._library)]

    def within(self, seconds: float, request: Callable[[Any], Any]) -> Any:
        """The result of ``request(client)``. Raises NoResponse after ``seconds``, even if the server is still sending."""
        seconds = max(seconds, _MIN_PATIENCE)
        results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        given_up, end = threading.Event(), time.monotonic() + seconds

        def send() -> None:
            _REQUEST.given_up, _REQUEST.end = given_up, end
            try:
                results.put((request(self.client), None))
            except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
                results.put((None, error))

        threading.Thread(target=send, daemon=True, name="sparkwire-registry").start()
        late = NoResponse(f"no complete response within {seconds:.0f} s")
        try:
            result, error = results.get(timeout=seconds)
        except queue.Empty:
            given_up.set()
            self._disconnect()
            raise late from None
        # The last wait of the request ends at the same time as this one.
        if isinstance(error, self._library.TimeoutException) and time.monotonic() >= end:
            raise late from error
        if error is not None:
            raise error
        return result

    def _begin(self, request: Any) -> None:
        """Note the connections of a request, and bound each of its waits."""
        _REQUEST.check()  # the client tries the next address
        left = max(_REQUEST.end - time.monotonic(), _MIN_PATIENCE)
        limits = request.extensions.get("timeout", {})
        waits = ("connect", "read", "write", "pool")
        request.extensions["timeout"] = {
            name: left if limits.get(name) is None else min(left, limits[name]) for name in waits
        }
        request.extensions["trace"] = self._note

    def _note(self, event: str, info: dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._streams.add(info["return_value"])
        # A step that closes must not fail, because nobody sees its error.
        if event.endswith(".started") and "closed" not in event:
            _REQUEST.check()

    def _disconnect(self) -> None:
        """Shut all connections down. Their threads, which may wait for a server, get an error. Other requests try again."""
        for stream in list(self._streams):
            with suppress(OSError):
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._streams.clear()


def _bounded(library: Any) -> Callable[[Any], None]:
    """A hook that limits the size of a response, and decompresses it. ``library``: the one that the client uses."""

    class Bounded(library.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, encodings: list[str]) -> None:
            self._stream, self._encodings = stream, encodings

        def __iter__(self) -> Iterator[bytes]:
            parts = _limited(self._stream)
            for encoding in reversed(self._encodings):
                parts = _limited(_decompressed(parts, _WINDOW_BITS[encoding]))
            return parts

        def close(self) -> None:
            self._stream.close()

    def bound(response: Any) -> None:
        listed = response.headers.get("content-encoding", "").split(",")
        encodings = [name for text in listed if (name := text.strip().lower()) not in ("", "identity")]
        for name in encodings:
            if name not in _WINDOW_BITS:
                raise NoResponse(
                    printable(f"a response with the Content-Encoding {name[:40]}, which was not requested")
                )
        if encodings:
            del response.headers["content-encoding"]  # else the library decompresses without a limit
        response.stream = Bounded(response.stream, encodings)

    return bound


def _limited(parts: Iterable[bytes]) -> Iterator[bytes]:
    left = _MAX_RESPONSE
    for part in parts:
        _REQUEST.check()
        left -= len(part)
        if left < 0:
            raise NoResponse(f"a response of more than {_MAX_RESPONSE} bytes")
        yield part


def _decompressed(parts: Iterable[bytes], window_bits: int) -> Iterator[bytes]:
    """The decompressed bytes in small steps: it decompresses no more than its caller reads."""
    stream = zlib.decompressobj(window_bits)
    for part in parts:
        step = stream.decompress(part, _STEP)
        while step:
            yield step
            step = stream.decompress(stream.unconsumed_tail, _STEP)
    if not stream.eof:
        raise NoResponse("a compressed response without its end")
