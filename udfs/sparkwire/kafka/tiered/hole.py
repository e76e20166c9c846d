"""What is read where a bucket has lost a part of a log: a few bytes that no reader takes for a record batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

_BYTES = b"\xff"


class HoleLayer:
    """Bytes in place of an object's; the object need not be there."""

    size = len(_BYTES)

    def opened(self, raw: Callable[[], Any]) -> Any:
        return pa.BufferReader(_BYTES)
