"""Escape what could change a screen: texts of others, before they are printed or become a part of a message.

Such are control characters and format characters (bidirectional marks, joiners, tags). So are separators of lines and
paragraphs, lone surrogates, and characters that this Python's Unicode does not know.
"""

from __future__ import annotations

import json
from typing import Any, Final
from unicodedata import category

_HARMLESS: Final = ("Zs", "Co")
"""categories of characters that are not printable for Python, and change no screen: spaces, and characters for private use"""


def printable(text: str) -> str:
    r"""The text with Python's escapes for characters that could change a screen. To escape a text twice changes nothing.

    >>> printable("a\x1b[31mb\u202e é")
    'a\\x1b[31mb\\u202e é'
    """
    if text.isprintable():
        return text
    return "".join(one.encode("unicode_escape").decode() if _is_harmful(one) else one for one in text)


def value_error(text: str) -> ValueError:
    """A ValueError whose message is `printable`."""
    return ValueError(printable(text))


def type_error(text: str) -> TypeError:
    """A TypeError whose message is `printable`."""
    return TypeError(printable(text))


def printable_json(value: Any, separators: tuple[str, str] | None = None) -> str:
    r"""The JSON of a value in one line. It escapes the same characters as `printable`, and has the same value.

    >>> printable_json({"é": "\x9b"})
    '{"é": "\\u009b"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    if text.isprintable():
        return text
    return "".join(json.dumps(one)[1:-1] if _is_harmful(one) else one for one in text)


def _is_harmful(one: str) -> bool:
    return not one.isprintable() and category(one) not in _HARMLESS
