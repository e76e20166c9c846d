"""The table `databus`: streams of events in files, their windows, and their rows as record batches.

A stream is a file, or with ``stream => directory`` all files of a directory, in the order of their names. `query`, `plan` and
`read` as in `kafka_log`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkwire.builders import columns_of
from sparkwire.client.checkpoint import Checkpoint
from sparkwire.column import from_codes, gather, primitive
from sparkwire.errors import ERRORS, OK
from sparkwire.files import options
from sparkwire.files.events import DATA, END, EventFile, Rows
from sparkwire.files.options import DROPMALFORMED, FAILFAST, PERMISSIVE, Option
from sparkwire.files.plan import FILE_COST, packed
from sparkwire.files.storage import File, Source, listed
from sparkwire.files.windows import NO_SCN, UNENDED, Ending, Open, Windows, ending, windows_of
from sparkwire.formats.databus.accessors import status_codes
from sparkwire.formats.databus.fields import FIELDS
from sparkwire.formats.databus.layout import NO_VARIANT, STATUSES
from sparkwire.formats.databus.scan import Events
from sparkwire.formats.databus.stream import stream_variant
from sparkwire.kernels import Bools
from sparkwire.sqltype import arrow_type

NAME: Final = "databus"
FILE, DIRECTORY = "file", "directory"

OPTIONS: Final = (
    Option("path", options.one_path, (), "a file, a directory or a glob; local, or a URI that pyarrow.fs opens"),
    Option("paths", options.some_paths, (), "several of them, as `load` takes a list"),
    Option(
        "stream", options.choice(FILE, DIRECTORY), FILE, "whether a stream is a file, or a directory of files in order"
    ),
    Option("columns", options.text, "", "a comma list; what is not asked for is not decoded"),
    Option("mode", options.choice(PERMISSIVE, DROPMALFORMED, FAILFAST), PERMISSIVE, "what damage becomes"),
    Option(
        "sources",
        options.integers,
        None,
        "ids of the sources whose data events are asked for; control events always are",
    ),
    Option("startingScn", options.whole_number, None, "windows from there on"),
    Option("startingCheckpoint", options.text, "", "what a Databus checkpoint, its JSON, has not consumed"),
    Option("maxSplitBytes", options.size, 128 << 20, "what one task reads [bytes]"),
    Option("maxBytesPerTrigger", options.size, None, "streaming: what one batch reads [bytes]"),
    Option("failOnDataLoss", options.boolean, True, "streaming: whether it fails where what it has to read is gone"),
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
    "stream": "The file, or the directory, whose events these are.",
    "file": "Which file.",
    "position": "Where the event begins in the file [bytes].",
    "window": "Number of the window in its stream: 0, 1, …",
    "window_start_scn": "Sequence of the window's first data event.",
    "window_scn": "Sequence of its end-of-period event; NULL while the window is open.",
    "event": "The event as it is.",
}
DOCS: Final = _OWN_DOCS | {column.name: column.doc for column in FIELDS}
"""what each of them means"""
TO_THE_END: Final = 2**62
"""a position after that of any event"""
_CHECKED: Final = frozenset({"status", "error", "is_valid"})


class Start(NamedTuple):
    """From where on windows are asked for."""

    scn: int
    skipped: int
    """data events of the window with this very scn that are not asked for, -1 for the whole window"""


class Query(NamedTuple):
    """What is asked for."""

    paths: tuple[str, ...]
    by_directory: bool
    columns: tuple[str, ...]
    mode: str
    sources: frozenset[int] | None
    start: Start | None
    max_split_bytes: int
    max_bytes_per_trigger: int | None
    fail_on_data_loss: bool


class Part(NamedTuple):
    """Some events of a file."""

    file: File
    stream: str
    start: int
    """position of the first [bytes]"""
    stop: int
    """position from which on none of them begins [bytes]"""
    previous: int
    """variant of the event before"""
    window: Open
    beyond: Ending
    """what later files have of the window that is open at the file's end"""


class Begin(NamedTuple):
    """Between two windows."""

    position: int
    """in a file [bytes]"""
    window: int
    """number of the window that begins there"""
    previous: int
    """variant of the event before"""


FRONT: Final = Begin(0, 0, NO_VARIANT)


def query(given: Mapping[str, str]) -> Query:
    """Read the options of a query.

    Raises
    ------
    ValueError
        where one is wrong, or path is missing.
    """
    o = options.parsed(NAME, OPTIONS, given)
    paths = o["path"] + o["paths"]
    if not paths:
        raise ValueError(f"{NAME} needs path: a file, a directory or a glob")
    columns = options.chosen_columns(NAME, tuple(COLUMNS), o["columns"]) if o["columns"] else tuple(COLUMNS)
    return Query(
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
        raise ValueError(f"{NAME} takes startingCheckpoint the JSON of a Databus checkpoint: {error}") from None
    if parsed.is_flexible:
        return None
    if parsed.mode != "ONLINE_CONSUMPTION":
        raise ValueError(f"{NAME} takes startingCheckpoint of ONLINE_CONSUMPTION, got {parsed.mode}")
    return Start(parsed.window_scn, parsed.window_offset)


def find(paths: Sequence[str]) -> list[File]:
    """The files at some paths, in the order of their names; those hidden by their names (``.…``, ``_…``) are left out.

    Raises
    ------
    OSError
        where there is nothing, or it must not be read.
    ValueError
        where there are directories, but no file in them.
    """
    found: dict[str, File] = {}
    for path in paths:
        files, single = listed(path)
        new = [file for file in files if single or not file.basename.startswith((".", "_"))]
        if not new:
            raise ValueError(f"path {path} has no file: {NAME} reads every file whose name does not begin with . or _")
        found |= {file.name: file for file in new}
    return sorted(found.values(), key=lambda file: (file.root, file.folder, file.basename))


def streams(asked: Query) -> list[tuple[str, list[File]]]:
    """The streams of a query, each with its files in order."""
    files = find(asked.paths)
    if not asked.by_directory:
        return [(file.name, [file]) for file in files]
    return [(root + folder, list(some)) for (root, folder), some in groupby(files, key=lambda f: (f.root, f.folder))]


def types(_: Query) -> dict[str, pa.DataType]:
    """Type by name of all columns."""
    return COLUMNS


def docs(asked: Query) -> Mapping[str, str]:
    """What each column means."""
    return DOCS


def schema(asked: Query) -> pa.Schema:
    return pa.schema([pa.field(name, COLUMNS[name]) for name in asked.columns])


def narrowed(asked: Query, comparisons: Sequence[options.Comparison]) -> Query:
    """The query with filters of which all have to hold; rows that do not hold may still be given."""
    for column, operator, value in comparisons:
        if column == "src_id" and operator in ("=", "in") and value is not None:
            kept = frozenset(value if operator == "in" else (value,))
            asked = asked._replace(sources=kept if asked.sources is None else kept & asked.sources)
    return asked


def plan(asked: Query) -> list[tuple[Part, ...]]:
    """The tasks of a query.

    Raises
    ------
    OSError, ValueError
        as `find`.
    """
    parts = [
        part for stream, files in streams(asked) for part in stream_parts(stream, files, asked.max_split_bytes, FRONT)
    ]
    return packed(parts, [_size(part) + FILE_COST for part in parts], asked.max_split_bytes)


def _size(part: Part) -> int:
    """About how many bytes it has."""
    return max(0, min(part.stop, part.file.size) - part.start)


def stream_parts(stream: str, files: Sequence[File], max_bytes: int, begin: Begin) -> list[Part]:
    """The parts of a stream, cut where windows begin; its headers are read only where there is something to cut or to join.

    ``begin`` is where in the first of ``files`` to begin.
    """
    start, previous = begin.position, begin.previous
    window = Open(begin.window)
    if len(files) == 1 and (files[0].compressed or files[0].size - start <= max_bytes):
        return [Part(files[0], stream, start, TO_THE_END, previous, window, UNENDED)]
    parts: list[Part] = []
    waiting: list[int] = []  # parts at whose end the window at hand is open
    for file in files:
        with Source(file) as source:
            events = EventFile(source)
            parts.append(Part(file, stream, start, TO_THE_END, previous, window, UNENDED))
            position, start = start, 0
            while len((rows := events.rows(position, source.size, previous)).kinds):
                found = windows_of(rows, window, None)
                _join(parts, waiting, window, found)
                for at, begun, before in _cuts(rows, found, window, previous, parts[-1].start, max_bytes):
                    if not file.compressed:
                        parts[-1] = parts[-1]._replace(stop=at)
                        parts.append(Part(file, stream, at, TO_THE_END, before, begun, UNENDED))
                window, position, previous = found.after, rows.stop, rows.previous
        previous = NO_VARIANT
        if not window.empty:
            waiting.append(len(parts) - 1)
    return parts


def _join(parts: list[Part], waiting: list[int], window: Open, found: Windows) -> None:
    """Tell parts at whose end ``window`` was open what has become of it."""
    its = np.flatnonzero(found.number == window.number)
    if len(its) and not window.empty:
        for k in waiting:
            parts[k] = parts[k]._replace(beyond=Ending(int(found.start_scn[its[0]]), int(found.scn[its[0]])))
    if found.after.number != window.number or found.after.empty:
        waiting.clear()


def _cuts(
    rows: Rows, found: Windows, window: Open, previous: int, start: int, max_bytes: int
) -> Iterator[tuple[int, Open, int]]:
    """Where to cut after ``start``: the place, its window, and the variant of the event before."""
    for k in np.flatnonzero(found.begins).tolist():
        at = rows.position + int(rows.ends[k])
        if at - start < max_bytes or (k and rows.kinds[k - 1] != END):
            continue
        if k:
            first = int(rows.ends[k - 1])
            previous = int(stream_variant(rows.data, first, int(rows.ends[k]) - first, NO_VARIANT))
        yield at, Open(int(found.number[k])), previous
        start = at


# -- reading


def read(asked: Query, task: Sequence[Part]) -> Iterator[pa.RecordBatch]:
    """The rows of a task.

    Raises
    ------
    ValueError
        with mode FAILFAST where a row has an error, and where a file has been cut since it was planned.
    """
    for part in task:
        with Source(part.file) as source, Source(part.file) as beside:
            reader = _Reader(asked, part, EventFile(beside))
            events = EventFile(source)
            position, previous, window = part.start, part.previous, part.window
            stop = min(part.stop, source.size)
            while len((rows := events.rows(position, stop, previous)).kinds):
                found = windows_of(rows, window, partial(reader.ahead, rows))
                batch = reader.batch(rows, found)
                if batch.num_rows:
                    yield batch
                window, position, previous = found.after, rows.stop, rows.previous


class _Reader:
    """Rows of one part as record batches."""

    def __init__(self, asked: Query, part: Part, beside: EventFile) -> None:
        self.asked = asked
        self.part = part
        self._beside = beside
        self._needs_ends = asked.start is not None or not {"window_scn", "window_start_scn"}.isdisjoint(asked.columns)
        self._known: tuple[int, Ending] | None = None

    def ahead(self, rows: Rows, window: Open) -> Ending:
        """What becomes of the window in which ``rows`` end: looked up once, however many chunks it has."""
        if not self._needs_ends:
            return UNENDED
        if self._known is None or self._known[0] != window.number:
            self._known = window.number, ending(self._beside, rows.stop, rows.previous, self.part.beyond)
        return self._known[1]

    def batch(self, rows: Rows, windows: Windows) -> pa.RecordBatch:
        asked = self.asked
        checked = asked.mode != PERMISSIVE or not _CHECKED.isdisjoint(asked.columns)
        errors = rows.checked() if checked else rows.errors
        events = Events(rows.array())
        kept = self._kept(rows, windows, errors, events)
        if asked.mode == FAILFAST:
            self._fail(rows, errors, kept)
        wanted = [column for column in FIELDS if column.name in asked.columns and column.name not in _CHECKED]
        columns = columns_of(events, wanted)
        count = len(rows.kinds)
        columns |= {
            "stream": pa.repeat(pa.scalar(self.part.stream), count),
            "file": pa.repeat(pa.scalar(self.part.file.name), count),
            "position": primitive(rows.ends[:-1].astype(np.int64) + rows.position),
            "window": primitive(windows.number),
            "window_start_scn": primitive(windows.start_scn, windows.start_scn != NO_SCN),
            "window_scn": primitive(windows.scn, windows.scn != NO_SCN),
            "status": from_codes(status_codes(errors), STATUSES),
            "error": from_codes(errors, ERRORS),
            "is_valid": primitive(errors == OK),
        }
        if "event" in asked.columns:
            starts = rows.ends[:-1].astype(np.int64)
            columns["event"] = gather(rows.data, starts, np.diff(rows.ends).astype(np.int64), pa.binary())
        batch = pa.RecordBatch.from_arrays([columns[name] for name in asked.columns], schema=schema(asked))
        return batch if kept.all() else batch.filter(pa.array(kept))

    def _kept(self, rows: Rows, windows: Windows, errors: npt.NDArray[np.int8], events: Events) -> Bools:
        """Which rows are asked for."""
        asked, is_data = self.asked, rows.kinds == DATA
        kept: Bools = np.ones(len(rows.kinds), np.bool_)
        if asked.mode == DROPMALFORMED:
            kept &= errors == OK
        if asked.sources is not None:
            wanted = np.isin(events.header.fields["src_id"], list(asked.sources))
            kept &= ~is_data | wanted
        if asked.start is not None:
            scn = np.where(windows.scn == NO_SCN, windows.start_scn, windows.scn)
            its = scn == asked.start.scn
            kept &= (scn >= asked.start.scn) | (scn == NO_SCN)
            kept &= ~its if asked.start.skipped < 0 else ~(its & is_data & (windows.rank < asked.start.skipped))
        return kept

    def _fail(self, rows: Rows, errors: npt.NDArray[np.int8], kept: Bools) -> None:
        wrong = np.flatnonzero((errors != OK) & kept)
        if len(wrong):
            position = rows.position + int(rows.ends[wrong[0]])
            raise ValueError(
                f"{self.part.file.name} cannot be read at byte {position}: {ERRORS[errors[wrong[0]]]}; "
                "mode FAILFAST fails there, PERMISSIVE gives a row with error, DROPMALFORMED none"
            )
