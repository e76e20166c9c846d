"""The selection of a query over `kafka_log`, as plain data that follows from its options."""

from __future__ import annotations

from typing import NamedTuple

from sparkwire.kafka.files.replicas import FAIL
from sparkwire.kafka.files.seek import END, FIRST
from sparkwire.kafka.search import Search


class Filtered(NamedTuple):
    """The bounds that follow from a query's filters. Rows outside them need not be read."""

    first_offset: int = FIRST
    end_offset: int = END
    first_timestamp: int | None = None
    """[ms since epoch]"""
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None


class LogQuery(NamedTuple):
    """The options of a query, and its pushed-down columns and filters."""

    paths: tuple[str, ...]
    rows: str
    columns: tuple[str, ...]
    mode: str
    starting_offset: int | None
    ending_offset: int | None
    starting_timestamp: int | None
    ending_timestamp: int | None
    committed: bool
    control_records: bool
    verify: bool
    max_batch_bytes: int
    max_split_bytes: int
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool
    search: Search = Search()
    remote_path: str = ""
    encryption_keys: str = ""
    filtered: Filtered = Filtered()
    replicas: str = FAIL
