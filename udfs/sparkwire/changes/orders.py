"""The parts of `_order_`: (scn, file, position) for Databus, a sequence id for DataHub, an offset or position for Debezium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

NUMBER: Final = pa.struct([("digits", pa.int32()), ("number", pa.string())])
"""An integer of any length, as a STRUCT that sorts like the number."""


def numbers(texts: pa.Array) -> pa.Array:
    """Texts of digits as NUMBER; NULL if a text is not an integer."""
    plain = pc.if_else(pc.match_substring_regex(texts, "^[0-9]+$"), pc.utf8_ltrim(texts, "0"), None)
    digits = pc.cast(pc.utf8_length(plain), pa.int32())
    return pa.StructArray.from_arrays([digits, plain], fields=list(NUMBER), mask=pc.is_null(plain))


def as_order(value: Any, names: Sequence[str]) -> list[Any]:
    """Convert a user's value (a Row, dict, tuple or single value) to the parts of an order, or to its first parts.

    Raises ValueError if the value does not have these parts.
    """
    if list(names) == [part.name for part in NUMBER] and isinstance(value, int | str | Decimal):
        text = str(int(value))
        return [0 if text == "0" else len(text), "" if text == "0" else text]
    if isinstance(value, Mapping):
        if set(value) - set(names):
            raise ValueError(
                f"current() expected as_of to be an order with the parts {', '.join(names)}, got {', '.join(map(str, value))}"
            )
        return [value[name] for name in names if name in value]
    parts = list(value) if isinstance(value, tuple | list) else [value]
    if not parts or len(parts) > len(names):
        raise ValueError(f"current() expected as_of to be an order with the parts {', '.join(names)}, got {value!r}")
    return parts
