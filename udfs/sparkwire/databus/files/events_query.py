"""The selection of a query over `databus`, as plain data that follows from its options."""

from __future__ import annotations

from typing import NamedTuple


class Start(NamedTuple):
    """The position at which a query starts."""

    scn: int
    skipped: int
    """number of data events to skip in the window with this SCN, -1 for the whole window"""


class EventsQuery(NamedTuple):
    """The options of a query, and its pushed-down columns and filters."""

    paths: tuple[str, ...]
    by_directory: bool
    columns: tuple[str, ...]
    mode: str
    sources: frozenset[int] | None
    start: Start | None
    max_split_bytes: int
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool
