"""Check whether a value of a Debezium column equals the text that PostgreSQL prints, in the types of `postgres2`."""

from __future__ import annotations

from typing import Any

from tests.support.oracles import debezium_truth


def same(value: Any, type: str, text: str | None, unexpected: str | None = None) -> bool:
    """Whether a value, which its row should not have in ``_unexpected_``, equals the database's text."""
    if text is not None and type.startswith("bytea"):
        text = text.replace("\\\\x", "").replace("\\x", "")
    if type == "point" and isinstance(value, dict) and text is not None:
        return unexpected is None and [value["x"], value["y"]] == debezium_truth.numbers(text)
    if type == "hstore" and isinstance(value, dict) and text is not None:
        return unexpected is None and value == debezium_truth.hstore(text)
    return unexpected is None and debezium_truth.same(value, "", type, text)
