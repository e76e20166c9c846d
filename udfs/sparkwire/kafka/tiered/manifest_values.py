"""Check the values of a manifest: each must have its type and be within its bounds."""

from __future__ import annotations

from typing import Any


class InvalidManifestError(ValueError):
    """A manifest is not the one of its segment: it is truncated, of another segment, or contradicts itself."""


def number(value: Any, allowed: range) -> int:
    """An integer; InvalidManifestError for another type, or a value out of bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise InvalidManifestError(
            f"it has {_shown(value)} where a number from {allowed.start} to {allowed.stop - 1} belongs"
        )
    return value


def name(value: Any) -> str:
    """A printable text; InvalidManifestError for any other value."""
    if not isinstance(value, str) or not value.isprintable() or not value:
        raise InvalidManifestError(f"it has {_shown(value)} where a name belongs")
    return value


def _shown(value: Any) -> str:
    if isinstance(value, (str, int, float, bool)) or value is None:
        return f"{str(value)[:40]!a}" if isinstance(value, str) else f"{value:.6g}" if value is not None else "null"
    return f"a {type(value).__name__}"
