"""What a query of `databus` selects: plain data, read from its options."""

from __future__ import annotations

from typing import NamedTuple


class Start(NamedTuple):
    """The first window of a query."""

    scn: int
    skipped: int
    """data events of the window with this very scn that are not requested, -1 for the whole window"""


class EventsQuery(NamedTuple):
    """What is requested."""

    paths: tuple[str, ...]
    by_directory: bool
    columns: tuple[str, ...]
    mode: str
    sources: frozenset[int] | None
    start: Start | None
    max_split_bytes: int
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool
