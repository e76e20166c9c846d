"""The settings of a dispatcher."""

from __future__ import annotations

from typing import Final, NamedTuple

BUFFER_SIZE: Final = 10 << 20  # size of the buffer of Databus's client [bytes]
THRESHOLD: Final = BUFFER_SIZE * 75 // 100


class Settings(NamedTuple):
    """The settings of a dispatcher; the defaults are those of Databus."""

    threshold: int = THRESHOLD
    """size after the last checkpoint from which on a window gets a checkpoint in its middle [bytes]"""
    max_retries: int = -1
    """-1 for no limit; 0 for no retry; n allows n - 1 rollbacks (1 allows 1) between two completed windows"""
    first_sleep: int = 0
    """wait before the first retry [ms]; each later wait is 1.1 times as long, plus 1 ms"""
