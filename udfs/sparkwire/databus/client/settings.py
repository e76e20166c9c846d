"""How a dispatcher works."""

from __future__ import annotations

from typing import Final, NamedTuple

BUFFER_SIZE: Final = 10 << 20  # [bytes] of Databus's client
THRESHOLD: Final = BUFFER_SIZE * 75 // 100


class Settings(NamedTuple):
    """How a dispatcher works; the defaults are Databus's."""

    threshold: int = THRESHOLD
    """[bytes] after the last checkpoint of which there is one in the middle of a window"""
    max_retries: int = -1
    """-1 for no limit; 0 for no retry; n allows n - 1 rollbacks (1 allows 1) between two completed windows"""
    first_sleep: int = 0
    """[ms] before the first retry; then each time 1.1 times as long and 1 ms more"""
