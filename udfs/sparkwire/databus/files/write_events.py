"""Write event files for `databus`. Each has whole windows and stays hidden until the job commits.

    path/0000000000.bin               consecutive windows, each with its end of period
    path/<stream>/0000000000.bin      the same, if rows or an option name their stream

The numbers of files follow the order of tasks and of rows in a task, so with ``stream => directory`` they are one stream. It
writes a column ``event`` byte for byte. Without that column, `to_dbus_event` encodes the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import ERRORS, OK
from sparkwire.base.printable import value_error
from sparkwire.core.column import binary_of
from sparkwire.core.sources import job as jobs
from sparkwire.core.sources import options
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job import JOB_ID, Staging
from sparkwire.core.sources.job_file import Once, Process
from sparkwire.core.sources.options import Option
from sparkwire.core.sources.partition_versions import Change
from sparkwire.databus import layout
from sparkwire.databus.event_fields import FIELDS
from sparkwire.databus.files import databus_table
from sparkwire.databus.files.databus_table import COLUMNS, DIRECTORY, NAME, directories_read
from sparkwire.databus.functions import FUNCTIONS
from sparkwire.databus.scan import Events

__all__ = ["abort", "begin", "commit", "write_of", "write_rows"]

_SUFFIX: Final = ".bin"
_DIGITS: Final = 10
_NUMBERED: Final = re.compile(rf"(.*?)(\d{{{_DIGITS}}}){re.escape(_SUFFIX)}", re.DOTALL)
_LONGEST_NAME: Final = 255
"""[bytes]"""
_TO_EVENT: Final = next(function for function in FUNCTIONS if function.name == "to_dbus_event")
_FIELDS: Final = frozenset(column.name for column in FIELDS)


def _stream(value: str) -> str:
    if not value or "/" in value or value.startswith((".", "_")):
        raise ValueError("a directory's name, without / and not beginning with . or _")
    return value


WRITE_OPTIONS: Final = (
    Option("path", options.text, "", "a directory"),
    Option(
        "stream",
        _stream,
        None,
        "a directory in `path`, for all rows. Default: the last part of each row's `stream`, if any",
    ),
    Option(
        "sourcePath",
        options.text,
        "",
        "with `overwrite`: the directory that the rows come from. Its streams without a remaining row become empty",
    ),
    Option("fileBytes", options.size, 128 << 20, "a file ends with the window in which it reaches this size [bytes]"),
    Option("wholeWindows", options.boolean, True, "whether to reject a window without its end-of-period event"),
    JOB_ID,
    Option("checkpointLocation", options.text, "", "streaming: Spark's checkpoint"),
)


class EventsWrite(NamedTuple):
    """The options of a write."""

    path: str
    stream: str | None
    names_streams: bool
    """whether each row names its stream"""
    source: tuple[str, ...]
    """the directories that the rows come from; empty if nothing names them"""
    is_source_named: bool
    """whether the user has named them"""
    file_bytes: int
    whole_windows: bool
    overwrite: bool
    job_id: str | None


class StagedEvents(NamedTuple):
    """A written file that does not have its final name yet."""

    stream: str
    task: int
    number: int
    """number among the task's files of this stream"""
    file: str


def write_of(texts: Mapping[str, str], schema: pa.Schema, overwrite: bool) -> EventsWrite:
    """Read the options of a write; ``schema`` has the rows' columns.

    ValueError if an option or a column is wrong or missing.
    """
    o = options.parsed(NAME, WRITE_OPTIONS, texts)
    if not o["path"]:
        raise ValueError(f"{NAME} needs path: the directory that files are written to")
    for field in schema:
        if field.name not in COLUMNS:
            raise ValueError(
                f"{NAME} has no column {field.name!r} to write: it takes event, or the fields of dbus_event"
            )
    source = o["sourcePath"]
    if source and not overwrite:
        raise ValueError(f"{NAME} takes sourcePath with mode overwrite alone: an append leaves all streams as they are")
    names_streams = o["stream"] is None and "stream" in schema.names
    return EventsWrite(
        o["path"], o["stream"], names_streams, (source,) if source else directories_read(schema), bool(source), o["fileBytes"],
        o["wholeWindows"], overwrite, o["jobId"],
    )  # fmt: skip


def begin(write: EventsWrite, job: str, owner: Process | None = None) -> None:
    """Begin a job, before any task runs; errors as `jobs.begin`."""
    jobs.begin(Folder(write.path), job, "", write.overwrite, owner)


def write_rows(
    write: EventsWrite, batches: Iterable[pa.RecordBatch], job: str, attempt: str, task: int
) -> list[StagedEvents]:
    """Write the files of one attempt of a task, without their final names.

    ValueError if a row is not a valid event, a window has no end, or another job writes to the stream.
    """
    staging = Staging(Folder(write.path), job, attempt)
    streams: dict[str, _StreamWriter] = {}
    try:
        for batch in batches:
            for stream, events in _by_stream(write, batch):
                if stream not in streams:
                    staging.lock(stream)
                    streams[stream] = _StreamWriter(write, staging, stream, task)
                streams[stream].add(events)
        staged_files = [staged for writer in streams.values() for staged in writer.close()]
        staging.finish()
        return staged_files
    except BaseException:
        staging.discard()
        raise


def _by_stream(write: EventsWrite, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    """The events of each stream, in order."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    events = columns["event"].cast(pa.binary()) if "event" in columns else _encoded(columns, batch.num_rows)
    if not write.names_streams:
        yield write.stream or "", events
        return
    names = columns["stream"].cast(pa.string()).dictionary_encode()
    for code, name in enumerate(names.dictionary.to_pylist()):
        yield _stream_of(name), events.filter(pc.equal(names.indices, code))
    if names.null_count:
        raise ValueError(f"{NAME} cannot write a row whose stream is NULL: pass the option stream")


def _stream_of(name: str) -> str:
    try:
        return _stream(name.rstrip("/").rpartition("/")[2])
    except ValueError as error:
        raise value_error(f"{NAME} takes as the last part of stream {error}, got {name!r}") from None


def _encoded(columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    fields = {name: column for name, column in columns.items() if name in _FIELDS}
    if not fields:
        raise ValueError(f"{NAME} needs event, or fields of dbus_event")
    return _TO_EVENT.decode(pa.StructArray.from_arrays(list(fields.values()), list(fields)))


class _StreamWriter:
    """Writes a task's files of one stream."""

    def __init__(self, write: EventsWrite, staging: Staging, stream: str, task: int) -> None:
        self._write = write
        self._staging = staging
        self._stream = stream
        self._task = task
        self._done: list[StagedEvents] = []
        self._output: Any = None
        self._size = 0
        self._ended = True
        self._last = 0

    def add(self, column: pa.Array) -> None:
        events = Events(column, check=True)
        self._check(column, events)
        ends = np.asarray(events.header.fields["src_id"]) == layout.END_OF_PERIOD
        if len(column):
            self._last = int(events.header.fields["sequence"][-1])
        source = binary_of(column)
        begin = 0
        for end in [*(np.flatnonzero(ends) + 1).tolist(), len(column)]:
            if end > begin:
                self._append(source.data[source.offsets[begin] : source.offsets[end]], bool(ends[end - 1]))
            begin = end

    def _check(self, column: pa.Array, events: Events) -> None:
        """Raise an error for rows that a reader would not return."""
        if column.null_count:
            raise ValueError(f"{NAME} cannot write a NULL event, in stream {self._stream!r}")
        wrong = events.errors != OK
        lengths = np.asarray(pc.binary_length(column))
        odd = ~wrong & (lengths != events.header.fields["length"])
        for marks, what in ((wrong, "is corrupt"), (odd, "has bytes after its end")):
            if marks.any():
                at = int(marks.argmax())
                reason = f" ({ERRORS[int(events.errors[at])]})" if wrong[at] else ""
                self._reject(int(events.header.fields["sequence"][at]), f"the event {what}{reason}")

    def _append(self, data: Any, is_end: bool) -> None:
        if self._output is None:
            name, self._output = self._staging.create(f"{len(self._done):0{_DIGITS}}{_SUFFIX}")
            self._done.append(StagedEvents(self._stream, self._task, len(self._done), name))
            self._size = 0
        self._output.write(data)
        self._size += len(data)
        self._ended = is_end
        if is_end and self._size >= self._write.file_bytes:
            self._end_file()

    def _end_file(self) -> None:
        if self._output is not None:
            self._output.close()
            self._output = None

    def close(self) -> list[StagedEvents]:
        if not self._ended and self._write.whole_windows:
            self._reject(
                self._last,
                "its window has no end of period in this task: a window's rows have to be in one task, in their order; "
                "wholeWindows => false writes it as it is",
            )
        self._end_file()
        return self._done

    def _reject(self, sequence: int, what: str) -> NoReturn:
        raise value_error(f"{NAME} cannot write stream {self._stream!r}, sequence {sequence}: {what}")


def commit(write: EventsWrite, job: str, staged: Sequence[StagedEvents], once: Once | None = None) -> None:
    """Give the files of a job their names, which follow the names of existing files; ``once`` as in `jobs.commit`.

    ValueError if no name can follow the name of an existing file.
    """
    folder = Folder(write.path)
    streams = {name: list(files) for name, files in groupby(sorted(staged), key=lambda file: file.stream)}

    def changes() -> list[Change]:
        without_rows = _emptied(write, folder, streams)
        for name in without_rows:
            jobs.lock(folder, job, name)
        result = []
        for name, files in {**{name: [] for name in without_rows}, **streams}.items():
            existing = _files_of(folder, name)
            names = _names_after(None if write.overwrite else max(existing, default=None), len(files))
            placed = dict(zip((file.file for file in files), names, strict=True))
            result.append(Change(name, placed, existing if write.overwrite else ()))
        return result

    jobs.commit(folder, job, changes, once)


def _emptied(write: EventsWrite, folder: Folder, staged: Collection[str]) -> list[str]:
    """The streams that an overwrite leaves without rows; ``staged`` are the streams with rows.

    ValueError if it is not clear whether to empty a stream.
    """
    if not write.overwrite:
        return []
    if write.stream is not None:
        return [] if write.stream in staged else [write.stream]
    empty = [] if write.names_streams or staged or not _files_of(folder, "") else [""]
    for place in _directories(write):
        name = _name_in(folder, place)
        if name is None and write.is_source_named and write.names_streams:
            name = place.rpartition("/")[2]
        if name is None or name in staged or name in empty or not _files_of(folder, name):
            continue
        if not write.is_source_named:
            raise value_error(
                f"{place} was read, but no row of it is left to write. Pass sourcePath: a path with this stream empties "
                "it, a path without it leaves it unchanged"
            )
        empty.append(name)
    return empty


def _directories(write: EventsWrite) -> list[str]:
    """The existing directories that the rows come from."""
    if not write.source:
        return []
    try:
        query = databus_table.query({"paths": json.dumps(write.source), "stream": DIRECTORY})
        return [place for place, _ in databus_table.streams(query)]
    except (FileNotFoundError, ValueError):
        if write.is_source_named:
            raise
        return []


def _name_in(folder: Folder, place: str) -> str | None:
    """The name of a stream whose directory is this one; None if it is elsewhere."""
    if place == folder.shown(""):
        return ""
    above, _, name = place.rpartition("/")
    return name if above == folder.shown("") else None


def _files_of(folder: Folder, stream: str) -> list[str]:
    return [file for file in folder.names(stream) if not file.startswith((".", "_"))]


def _names_after(last: str | None, count: int) -> list[str]:
    """File names in ascending order, all after ``last``, because a reader reads files in the order of their names."""
    if last is None:
        prefix, first = "", 0
    else:
        match = _NUMBERED.fullmatch(last)
        prefix, first = (match[1], int(match[2]) + 1) if match else (f"{last}.", 0)
        if first + count > 10**_DIGITS:
            prefix, first = f"{last}.", 0
    names = [f"{prefix}{first + k:0{_DIGITS}}{_SUFFIX}" for k in range(count)]
    if names and len(names[-1].encode()) > _LONGEST_NAME:
        raise value_error(f"{NAME} has no file name after {last}: rename that file, or write elsewhere")
    return names


def abort(write: EventsWrite, job: str) -> None:
    """Delete all files that a job's tasks have written."""
    jobs.abort(Folder(write.path), job)
