"""Read a file, a directory or a bucket as an Arrow table, without Spark.

`read` returns the rows of the data sources. `table_of` is for ``python -m sparkwire dump``: it also reads
the other files of a broker (indexes, producer snapshots, leader epochs) and JSON lines of capture systems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa

from sparkwire.base.printable import value_error
from sparkwire.catalogue import FUNCTIONS
from sparkwire.changes.explain import message_rows, system_of
from sparkwire.core.sources.format import Files
from sparkwire.core.sources.storage import File, OpenFile, listed
from sparkwire.databus.files import databus_table
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.files.naming import base_offset_of, is_bucket, segments
from sparkwire.kafka.layout import ENTRY, MAGIC, OVERHEAD

SOURCES: Final[Mapping[str, Files]] = {source.NAME: source for source in (kafka_log, databus_table)}
"""data sources by name"""

_OF_SUFFIX: Final = {
    ".index": "kafka_offset_index",
    ".timeindex": "kafka_time_index",
    ".txnindex": "kafka_txn_index",
    ".snapshot": "kafka_producer_snapshot",
    "leader-epoch-checkpoint": "kafka_leader_epochs",
}
"""functions that read a whole file, by the suffix of its name"""
_SNIFFED: Final = 4096
"""size of the part of a file that determines its format [bytes]"""
_MOST_FILES: Final = 100
"""number of files of a directory that are opened to find its format"""
_NEWEST_MAGIC: Final = 2
_LARGEST: Final = 1 << 28
"""the largest file that is read in full, and the longest line [bytes]"""
_BLOCK: Final = 1 << 26
"""size of the lines that are in memory at a time [bytes]"""


class FileTable(NamedTuple):
    """The rows of a path."""

    format: str
    """name of the data source or of the function that reads the rows"""
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def read(
    path: str | Path, format: Literal["kafka_log", "databus"] | None = None, **options: Any
) -> pa.RecordBatchReader:
    """Read files as Arrow record batches without Spark, for pandas, DuckDB or Polars.

    Rows, columns and options are those of the data sources; batches are read while you iterate.

    Parameters
    ----------
    path
        A file, a directory, a glob or a bucket; local or a URI.
    format
        The data source. By default the names of the files and their first bytes decide.
    options
        Options of the data source, such as ``startingOffset=100`` or ``columns="offset, key"``.

    Raises
    ------
    ValueError
        If an option is wrong, or no file at ``path`` is a Kafka segment or holds Databus events.
    FileNotFoundError
        If there is nothing at ``path``.

    Examples
    --------
    >>> sparkwire.read(f"{sparkwire.samples()}/kafka/orders-0", columns="offset, key").read_pandas()
    """
    name = format or source_of(str(path))
    if name not in SOURCES:
        raise ValueError(f"read takes the formats {' and '.join(SOURCES)}, got {name!r}")
    schema, batches = _rows(SOURCES[name], str(path), options)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _rows(source: Files, path: str, options: Mapping[str, Any]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    query = source.query({"path": path} | {name: _as_text(value) for name, value in options.items()})
    schema = source.schema(query)
    tasks = source.plan(query)

    def batches() -> Iterator[pa.RecordBatch]:
        for task in tasks:
            for batch in source.read(query, task):
                yield batch if batch.schema.equals(schema) else batch.cast(schema)

    return schema, batches()


def _as_text(value: Any) -> str:
    """An option's value as Spark passes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def source_of(path: str) -> str:
    """The name of the data source that reads a path; ValueError if neither reads it."""
    files, single, _ = listed(path)
    if not single and (is_bucket(files) or segments(files, False, "")):
        return kafka_log.NAME
    if single and base_offset_of(files[0].basename) is not None:
        return kafka_log.NAME
    for file in files[:_MOST_FILES]:
        source = _sniffed(file)
        if source is not None:
            return source
    which = (
        f"{path} has"
        if len(files) <= _MOST_FILES
        else f"of {path}, {_MOST_FILES} of {len(files)} files were read and have"
    )
    raise value_error(
        f"{which} neither Kafka segments nor Databus events. If there are any, pass the format, {' or '.join(SOURCES)}"
    )


def _sniffed(file: File) -> str | None:
    head = _head(file)
    if not head:
        return None
    if _ask("kafka_valid_bytes", head):
        return kafka_log.NAME
    if any(event["status"] == "OK" for event in _ask("dbus_events", head)):
        return databus_table.NAME
    return kafka_log.NAME if _is_long_batch(head, file) else None


def _is_long_batch(head: bytes, file: File) -> bool:
    """Whether a file may begin with a batch that is longer than the bytes in ``head``."""
    if len(head) < _SNIFFED:
        return False
    end = OVERHEAD + int.from_bytes(head[ENTRY["size"].offset : ENTRY["size"].end], "big", signed=True)
    return _SNIFFED < end <= file.size and head[MAGIC] <= _NEWEST_MAGIC


def _head(file: File) -> bytes:
    with OpenFile(file) as source:
        return bytes(source.read(0, min(_SNIFFED, source.size)))


def _ask(function: str, data: bytes, *arguments: Any) -> Any:
    return (
        FUNCTIONS[function].decode(pa.array([data], pa.binary()), *(pa.array([each]) for each in arguments))[0].as_py()
    )


def table_of(path: str, options: Mapping[str, Any], format: str | None = None) -> FileTable:
    """The rows of any file, directory or bucket that this package can read; ValueError if it cannot read the path.

    ``format`` is a data source's name; by default, the names of the files and their bytes decide.
    """
    files, single, _ = listed(path)
    if single and format is None:
        function = next((name for suffix, name in _OF_SUFFIX.items() if files[0].basename.endswith(suffix)), None)
        rows = _whole_file(files[0], function) if function else _json_lines(files[0])
        if rows is not None:
            if options:
                raise value_error(f"{path} is read by {rows.format}, which has no options: got {', '.join(options)}")
            return rows
    name = format or source_of(str(path))
    return FileTable(name, *_rows(SOURCES[name], path, options))


def _whole_file(file: File, function: str) -> FileTable:
    with OpenFile(file) as source:
        if source.size > _LARGEST:
            raise value_error(
                f"{file.name} has {source.size:,} bytes, and {function} reads files of up to {_LARGEST:,}: those of a "
                "broker are smaller"
            )
        data = bytes(source.read(0, source.size))
    arguments = [pa.array([data], pa.binary())]
    if len(FUNCTIONS[function].arguments) > 1:
        stem = file.basename.partition(".")[0]
        if not stem.isdigit():
            raise value_error(
                f"{file.name} has no base offset in its name, which {function} needs: 00000000000000000000.index"
            )
        arguments.append(pa.array([int(stem)]))
    return _spread(function, FUNCTIONS[function].decode(*arguments).flatten())


def _json_lines(file: File) -> FileTable | None:
    """Messages of a capture system, one on each line; None if the file has none."""
    if not _head(file).lstrip().startswith(b"{"):
        return None
    blocks = _blocks_of_lines(file)
    first = next(blocks)
    name, decode = _decoder_of(first)
    tables = map(pa.RecordBatch.from_struct_array, map(decode, chain([first], blocks)))
    table = next(tables)
    return FileTable(name, table.schema, chain([table], tables))


def _blocks_of_lines(file: File) -> Iterator[pa.Array]:
    """The lines of a file that is not empty, some at a time."""
    with OpenFile(file) as source:
        begun, at = b"", 0
        while at < source.size:
            data = begun + bytes(source.read(at, min(_BLOCK, source.size - at)))
            at += _BLOCK
            end = data.rfind(b"\n") + 1 if at < source.size else len(data)
            begun = data[end:]
            if len(begun) > _LARGEST:
                raise value_error(f"{file.name} has a line of more than {_LARGEST:,} bytes: is it JSON lines?")
            if end:
                yield pa.array(data[:end].splitlines(), pa.binary())


def _decoder_of(lines: pa.Array) -> tuple[str, Callable[[pa.Array], pa.StructArray]]:
    """The name of the system that wrote most of the lines, and the function that reads them."""
    # A flattened Debezium message may be any JSON object, so DataHub comes first.
    datahub = FUNCTIONS["datahub_change"].decode
    if 2 * datahub(lines).field("error").null_count >= len(lines):
        return "datahub_change", datahub
    system = system_of(lines)
    if system is not None:
        return system.name, partial(message_rows, system=system)
    return "debezium_change", FUNCTIONS["debezium_change"].decode


def _spread(function: str, rows: pa.StructArray) -> FileTable:
    table = pa.RecordBatch.from_struct_array(rows)
    return FileTable(function, table.schema, iter([table]))
