"""The origin of rows, in the metadata of `kafka_log`'s columns. A writer needs it to keep the start and end of the log.

Spark keeps a column's metadata through filters, joins, sorts and changes of other columns. Parquet stores it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sparkwire.core.sources.storage import absolute_paths

METADATA: Final = "sparkwire.kafka_log"
"""the key in a column's metadata"""
MARKED: Final = ("offset", "is_transactional")
"""the columns that have the metadata"""


class Origin(NamedTuple):
    """The paths and options with which `kafka_log` read the rows."""

    paths: tuple[str, ...]
    """empty if the paths may contain credentials"""
    remote_path: str = ""
    encryption_keys: str = ""
    committed: bool = False
    """whether the isolation level was `read_committed`"""


def origin_of(paths: Sequence[str], remote_path: str, encryption_keys: str, committed: bool) -> Origin:
    """The origin of a query, with absolute paths."""
    absolute = absolute_paths([path for path in (*paths, remote_path) if path])
    if not absolute:
        return Origin((), committed=committed)
    return Origin(absolute[: len(paths)], "".join(absolute[len(paths) :]), encryption_keys, committed)


def written(origin: Origin) -> str:
    """An origin as text."""
    return json.dumps(origin._asdict())


def parsed(metadata: Mapping[bytes, bytes] | None) -> Origin | None:
    """The origin in a column's metadata, None if there is none."""
    text = (metadata or {}).get(METADATA.encode())
    if text is None:
        return None
    try:
        document = json.loads(text)
        return Origin(tuple(document.pop("paths")), **document)
    except (ValueError, TypeError, KeyError, AttributeError):  # metadata of another program
        return None
