"""The errors that `on_error` gets, and those that end a consumption."""

from __future__ import annotations

import json
from typing import Any, Final

from sparkwire.errors import PullerRetriesExhaustedError, ScnNotFoundError


class UnreadableEventError(Exception):
    """The payload of a control event cannot be read. Databus stops without a message."""


_ERRORS: Final[dict[int, type[Exception]]] = {-5: ScnNotFoundError, -6: PullerRetriesExhaustedError}
_ERROR: Final = frozenset(("error", "errorId"))
_THROWABLE: Final = frozenset(("cause", "stackTrace", "message", "suppressed", "localizedMessage"))
_FRAME: Final = frozenset(("className", "methodName", "fileName", "lineNumber", "nativeMethod"))


def error_of(payload: bytes) -> Exception | None:
    """The error of an error event, with the message of its cause; None for an unknown id.

    It is as strict as Databus, which accepts no unknown fields. So it cannot read a stack frame that Java 9 or later has written.

    UnreadableEventError if the payload is not that of an error event.
    """
    try:
        body = json.loads(payload)
        throwable = body.get("error")
        if not body.keys() <= _ERROR or not _is_throwable(throwable):
            raise ValueError("fields that an error event does not have")
        kind = _ERRORS.get(int(body.get("errorId", 0)))
        if kind is None:
            return None
        return kind() if throwable is None else kind(throwable.get("message"))
    except (AttributeError, ValueError, TypeError) as problem:
        raise UnreadableEventError(f"an error event with an unreadable payload, {payload[:100]!r}") from problem


def _is_throwable(throwable: Any) -> bool:
    if throwable is None:
        return True
    frames = throwable.get("stackTrace") or []
    return (
        throwable.keys() <= _THROWABLE
        and all(frame.keys() <= _FRAME for frame in frames)
        and _is_throwable(throwable.get("cause"))
    )
