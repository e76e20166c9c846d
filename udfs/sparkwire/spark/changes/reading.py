"""How the changes of a table are read: what all formats give to `changes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from sparkwire.changes.batches import ChangeBatch

Arrays = Mapping[str, pa.Array]


class Reading(NamedTuple):
    """How the changes of a table are read."""

    schema: pa.Schema
    decode: Callable[[Arrays], ChangeBatch]
    """decodes changes from the needed columns, by their roles"""
    needs: Mapping[str, str]
    """the name of each needed column, by its role"""
    keys: Sequence[str] | None
    never: Sequence[str]
    """columns that are NULL in every row"""
    topic: str | None = None
    """the column of topics, if any"""
    missing_is_unknown: bool = False
    """whether a column that a row does not have has an unknown value, instead of NULL"""
