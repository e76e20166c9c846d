"""Bounds that are not reached yet, or not on every machine, and what is in the way: such a row is shown, and fails nothing."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Goal(NamedTuple):
    """Rows by what was done, and beside whom."""

    work: str
    peer: str
    because: str


_MEMORY: Final = "this CPU reads memory faster than it multiplies"
_CROSSING: Final = "Spark's way of rows to Python takes longer than that"
GOALS: Final = (
    Goal(r"(CRC-32C? of .*|the same)", r"(np\.sum|isal|zlib-ng|crc32c)", _MEMORY),
    Goal(r".*Databus events.*: fixed fields to columns.*", r"(np\.sum of the bytes|writing the columns alone)", _MEMORY),
    Goal(r"a fresh process with a warm cache.*", "", "numpy, pyarrow and numba alone take longer"),
    Goal(r"batches of 100 x .* snappy, to 4 columns", r"the library's calls \+ uncompressed", "both parts have become faster"),
    Goal(r"(100 B records, offset, key, value|4 M events of 260 B: .*), a core", "", _CROSSING),
    Goal(r"1 GB of segments .*: records of a key", "a filter in Spark", "a query over one row takes more than half of it"),
    Goal(r"1 GB of .* records to segments, two cores: each", "", _CROSSING),
    Goal(r"1 GB of 100 B records to segments, two cores", r"Kafka's producer into a broker", _CROSSING),
    Goal(r"1 GB of .* records to segments, two cores", r"Parquet of the same rows", "Parquet is written without Python"),
    Goal(r"1 GB of .* records to segments, two cores", "the same rows to Python and nothing else", "the job syncs its files"),
    Goal(r"a streaming backlog of 1 GB, AvailableNow", "as a batch", "Spark's start of a stream"),
    Goal(r"the same, without what a query over nothing takes", "as a batch, likewise", "Spark's start of a stream"),
    Goal(r"SQL, 1 M events: six functions, one aggregate", r"identity Arrow UDF", "six identities take as long"),
    Goal(r"[\d,]+ changes into a table of Delta.*", "one that forgets them", "it forgets deletes, so late changes undo them"),
    Goal(r"of [\d,]+ changes: .*", "a MERGE by hand that keeps deletes", "a part of the whole"),
    Goal(r"kafka_records: the same, and a byte", "", "zlib is called for every member"),
)  # fmt: skip


def goal_of(work: str, peer: str) -> Goal | None:
    """The goal that a row is, if it is one."""
    match = (goal for goal in GOALS if re.fullmatch(goal.work, work) and re.fullmatch(goal.peer, peer))
    return next(match, None)
