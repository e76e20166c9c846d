"""Replace a part of a log that a bucket has lost: a few bytes that are not a record batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

_BYTES = b"\xff"


class HoleLayer:
    """A layer that returns fixed bytes instead of an object's; the object need not exist."""

    size = len(_BYTES)

    def opened(self, raw: Callable[[], Any]) -> Any:
        return pa.BufferReader(_BYTES)
