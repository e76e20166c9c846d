"""The table `databus`: streams of events in files, their windows, and their rows as record batches.

A stream is a file. With ``stream => directory``, it consists of all files of a directory, in the order of their names. `query`,
`plan` and `read` correspond to those of `kafka_log`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import arrow_type
from sparkwire.core.sources import options
from sparkwire.core.sources.options import Option
from sparkwire.core.sources.storage import GZIP, File, OpenFile, absolute_paths, steady
from sparkwire.core.sources.table import (
    CHOICES,
    FILE_COST,
    PATHS,
    TASKS,
    batches_of,
    files_at,
    packed,
    selected_columns,
    selected_paths,
)
from sparkwire.databus.client.checkpoint import Checkpoint
from sparkwire.databus.event_fields import FIELDS
from sparkwire.databus.files.event_rows import (
    UNENDED,
    EventsQuery,
    FilePart,
    OpenWindow,
    Start,
    WindowEnd,
    Windows,
    event_rows,
    windows_of,
)
from sparkwire.databus.files.events import END, EventFile, EventRows
from sparkwire.databus.layout import NO_VARIANT
from sparkwire.databus.stream import stream_variant

NAME: Final = "databus"
FILE, DIRECTORY = "file", "directory"

OPTIONS: Final = (
    *PATHS,
    Option(
        "stream",
        options.choice(FILE, DIRECTORY),
        FILE,
        "whether a stream is a file, or all files of a directory",
    ),
    *CHOICES,
    Option(
        "sources",
        options.integers,
        None,
        "ids of the sources whose data events you want; control events are always included",
    ),
    Option(
        "startingScn", options.whole_number, None, "reads windows that end at this SCN or later, and the open window"
    ),
    Option(
        "startingCheckpoint", options.text, "", "reads what this Databus checkpoint has not consumed: the JSON text"
    ),
    *TASKS,
)

_OWN: Final = {
    "stream": pa.string(),
    "file": pa.string(),
    "position": pa.int64(),
    "window": pa.int64(),
    "window_start_scn": pa.int64(),
    "window_scn": pa.int64(),
}
COLUMNS: Final = _OWN | {column.name: arrow_type(column.sql) for column in FIELDS} | {"event": pa.binary()}
"""type by name, in order"""
_OWN_DOCS: Final = {
    "stream": "The file or directory that is the event's stream.",
    "file": "The event's file.",
    "position": "Position of the event in the file [bytes].",
    "window": "Number of the window in its stream: 0, 1, …",
    "window_start_scn": "Sequence of the window's first data event.",
    "window_scn": "Sequence of the window's end-of-period event; NULL while the window is open.",
    "event": "The serialized event.",
}
DOCS: Final = _OWN_DOCS | {column.name: column.doc for column in FIELDS}
"""description of each column"""
METADATA: Final = "sparkwire.databus"
"""the key in a column's metadata"""
MARKED: Final = ("stream", "event", "sequence")
"""the columns that have the metadata"""
TO_THE_END: Final = 2**62
"""a position after the last event of any file"""


class UnreadFile(NamedTuple):
    """A file, and the position between two windows at which reading begins."""

    file: File
    begin: int
    previous: int
    """variant of the previous event"""


def query(texts: Mapping[str, str]) -> EventsQuery:
    """Read the options of a query; ValueError if an option is wrong or path is missing."""
    o = options.parsed(NAME, OPTIONS, texts)
    paths, columns = selected_paths(NAME, o), selected_columns(NAME, tuple(COLUMNS), (), o)
    return EventsQuery(
        paths, o["stream"] == DIRECTORY, columns, o["mode"], o["sources"], _start(o["startingScn"], o["startingCheckpoint"]),
        o["maxSplitBytes"], o["maxBytesPerTrigger"], o["failOnDataLoss"],
    )  # fmt: skip


def _start(scn: int | None, checkpoint: str) -> Start | None:
    if scn is not None and checkpoint:
        raise ValueError(f"{NAME} takes startingScn or startingCheckpoint, got both")
    if scn is not None:
        return Start(scn, 0)
    if not checkpoint:
        return None
    try:
        parsed = Checkpoint.parse(checkpoint)
    except ValueError as error:
        raise value_error(f"{NAME} takes startingCheckpoint the JSON of a Databus checkpoint: {error}") from None
    if parsed.is_flexible:
        return None
    if parsed.mode != "ONLINE_CONSUMPTION":
        raise value_error(f"{NAME} takes startingCheckpoint of ONLINE_CONSUMPTION, got {parsed.mode}")
    return Start(parsed.window_scn, parsed.window_offset)


def find(paths: Sequence[str], may_be_empty: bool = False) -> list[File]:
    """The files at some paths, in the order of their names, without hidden files (``.…``, ``_…``).

    OSError if a path does not exist, or you may not read it. ValueError if a directory has no file, unless ``may_be_empty``.
    """
    files = files_at(paths, _visible, _NO_FILE, may_be_empty=may_be_empty)
    return sorted(files, key=lambda file: (file.root, file.folder, file.basename))


def input_files(query: EventsQuery, may_be_empty: bool = False) -> list[File]:
    """The files of a query; errors as `find`."""
    return find(query.paths, may_be_empty)


_NO_FILE = f"path {{path}} has no file: {NAME} reads every file whose name does not begin with . or _"


def _visible(files: list[File], single: bool, _: str) -> dict[str, File]:
    names = {file.path for file in files}
    return {
        file.name: file
        for file in files
        if single
        # A compressed copy of a file in the same directory is redundant.
        or not (file.basename.startswith((".", "_")) or (file.compressed and file.path.removesuffix(GZIP) in names))
    }


def streams(query: EventsQuery, may_be_empty: bool = False) -> list[tuple[str, list[File]]]:
    """The streams of a query, each with its files in order; errors as `find`."""
    files = input_files(query, may_be_empty)
    if not query.by_directory:
        return [(file.name, [file]) for file in files]
    return [(root + folder, list(some)) for (root, folder), some in groupby(files, key=lambda f: (f.root, f.folder))]


def types(_: EventsQuery) -> dict[str, pa.DataType]:
    """Type by name of all columns."""
    return COLUMNS


def docs(query: EventsQuery) -> Mapping[str, str]:
    """Description of each column."""
    return DOCS


def marks(query: EventsQuery) -> Mapping[str, Mapping[str, str]]:
    """Metadata of the columns that record the origin of their rows."""
    paths = absolute_paths(query.paths)
    if not (query.by_directory and paths):
        return {}
    return {column: {METADATA: json.dumps(paths)} for column in MARKED}


def directories_read(schema: pa.Schema) -> tuple[str, ...]:
    """The paths of the directories from which a query has read rows with this schema; empty if they are unknown."""
    for field in schema:
        text = (field.metadata or {}).get(METADATA.encode()) if field.name in MARKED else None
        if text is not None:
            try:
                return options.some_paths(text.decode())
            except ValueError:  # metadata of another program
                return ()
    return ()


def schema(query: EventsQuery) -> pa.Schema:
    return pa.schema([pa.field(name, COLUMNS[name]) for name in query.columns])


def with_filters(query: EventsQuery, comparisons: Sequence[options.Comparison]) -> EventsQuery:
    """The query with pushed-down filters, which apply together. It may still return rows that do not match."""
    for column, operator, *values in options.not_null(comparisons):
        if column == "src_id" and operator in ("=", "in"):
            query = query._replace(sources=options.within(query.sources, values))
    return query


def plan(query: EventsQuery) -> list[tuple[FilePart, ...]]:
    """The tasks of a query; OSError or ValueError as `find`."""
    parts = steady(
        lambda: [
            part
            for stream, files in streams(query)
            for part in stream_parts(
                stream, [UnreadFile(file, 0, NO_VARIANT) for file in files], query.max_split_bytes, 0
            )
        ]
    )
    return packed(parts, [_size(part) + FILE_COST for part in parts], query.max_split_bytes)


def _size(part: FilePart) -> int:
    """The approximate size of a part [bytes]."""
    return max(0, min(part.stop, part.file.size) - part.start)


def stream_parts(stream: str, files: Sequence[UnreadFile], max_bytes: int, begin: int) -> list[FilePart]:
    """The parts of a stream, split between windows. It reads headers only if files must be split or joined.

    ``begin`` is the number of the window that begins in the first file.
    """
    window = OpenWindow(begin)
    if len(files) == 1 and (files[0].file.compressed or files[0].file.size - files[0].begin <= max_bytes):
        return [FilePart(files[0].file, stream, files[0].begin, TO_THE_END, files[0].previous, window, UNENDED)]
    parts: list[FilePart] = []
    waiting: list[int] = []  # indexes of the parts at whose end the current window is open
    for file, start, previous in files:
        with OpenFile(file) as source:
            events = EventFile(source)
            parts.append(FilePart(file, stream, start, TO_THE_END, previous, window, UNENDED))
            position = start
            while len((rows := events.rows(position, source.size, previous)).kinds):
                windows = windows_of(rows, window, None)
                _join(parts, waiting, window, windows)
                for at, opened, before in _cuts(rows, windows, window, previous, parts[-1].start, max_bytes):
                    if not file.compressed:
                        parts[-1] = parts[-1]._replace(stop=at)
                        parts.append(FilePart(file, stream, at, TO_THE_END, before, opened, UNENDED))
                window, position, previous = windows.after, rows.stop, rows.previous
        if not window.empty:
            waiting.append(len(parts) - 1)
    return parts


def _join(parts: list[FilePart], waiting: list[int], window: OpenWindow, windows: Windows) -> None:
    """Set the window end in the parts at whose end ``window`` was open."""
    rows_of_window = np.flatnonzero(windows.number == window.number)
    if len(rows_of_window) and not window.empty:
        for k in waiting:
            parts[k] = parts[k]._replace(
                beyond=WindowEnd(int(windows.start_scn[rows_of_window[0]]), int(windows.scn[rows_of_window[0]]))
            )
    if windows.after.number != window.number or windows.after.empty:
        waiting.clear()


def _cuts(
    rows: EventRows, windows: Windows, window: OpenWindow, previous: int, start: int, max_bytes: int
) -> Iterator[tuple[int, OpenWindow, int]]:
    """Split positions after ``start``, each with its window and the variant of the previous event."""
    for k in np.flatnonzero(windows.begins).tolist():
        at = rows.position + int(rows.ends[k])
        if at - start < max_bytes or (k and rows.kinds[k - 1] != END):
            continue
        if k:
            first = int(rows.ends[k - 1])
            previous = int(stream_variant(rows.data, first, int(rows.ends[k]) - first, NO_VARIANT))
        yield at, OpenWindow(int(windows.number[k])), previous
        start = at


def read(query: EventsQuery, task: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """The rows of a task.

    CorruptDataError in mode FAILFAST if a row has an error; FileChangedError if a file was truncated after planning.
    """
    return batches_of(task, partial(event_rows, query))
