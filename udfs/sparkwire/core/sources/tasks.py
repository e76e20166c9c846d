"""Combine small parts of files to tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

FILE_COST = 1 << 20
"""the cost of opening a file, relative to reading, when small parts are combined to a task [bytes]"""

Item = TypeVar("Item")


def packed(items: Sequence[Item], costs: Sequence[int], most: int) -> list[tuple[Item, ...]]:
    """Combine consecutive items to tasks that cost up to ``most``.

    Small tasks are inefficient: in the time in which Spark starts a task, it reads tens of MB.
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
