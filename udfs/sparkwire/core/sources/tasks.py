"""Put small parts of files together into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

FILE_COST = 1 << 20
"""what opening a file counts for, when small parts are put together into one task [bytes]"""

Item = TypeVar("Item")


def packed(items: Sequence[Item], costs: Sequence[int], most: int) -> list[tuple[Item, ...]]:
    """Items put together, in their order, as many as cost up to ``most``.

    Small tasks do not pay: in the time that Spark takes to start one, it reads tens of MB.
    """
    out: list[list[Item]] = []
    room = 0
    for item, cost in zip(items, costs, strict=True):
        if not out or room < cost:
            out.append([])
            room = most
        out[-1].append(item)
        room -= cost
    return [tuple(some) for some in out]
