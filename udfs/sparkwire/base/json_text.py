"""Parse JSON from messages with Python: whatever is wrong with a text is a ValueError."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sparkwire.base.printable import value_error


def parsed_json(text: str | bytes, number: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text. ``number`` reads the text of a number.

    Raises ValueError also for a text with too many levels, and for NaN, which is no JSON.
    """
    try:
        return json.loads(text, parse_float=number, parse_int=number, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("the JSON has too many levels") from error


def _no_constant(text: str) -> Any:
    raise value_error(f"{text} is no JSON")


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair: JSON can escape one, and no column can hold it."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
