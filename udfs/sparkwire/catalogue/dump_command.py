"""``python -m sparkwire dump PATH``: look at the rows of a file, a directory or a bucket without Spark.

The options follow `kafka-dump-log` and `kcat`; the rows are those of `file_tables`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import printable, printable_json, value_error
from sparkwire.catalogue.file_tables import SOURCES, source_of, table_of
from sparkwire.core.sources.storage import listed
from sparkwire.databus.files import databus_table
from sparkwire.kafka.files import kafka_log

_SHOWN: Final[Mapping[str, Sequence[str]]] = {
    "records": ("topic", "partition", "offset", "timestamp", "key", "value", "headers", "error"),
    "batches": (
        "topic", "partition", "position", "size", "base_offset", "last_offset", "magic", "compression", "record_count",
        "producer_id", "is_transactional", "is_control", "crc_valid", "error",
    ),
    "events": ("stream", "position", "window_scn", "sequence", "opcode", "src_id", "timestamp", "key", "value_size", "error"),
    "debezium_change": ("operation", "table", "event_time", "before", "after", "error"),
    "datahub_change": ("operation", "sequence_id", "table", "event_time", "before", "after", "error"),
}  # fmt: skip
"""columns of a printed table, by format; other formats show all columns"""
_WIDEST: Final = 48
"""the longest printed value [characters]"""
_STANDARD_INPUT: Final = "-"
_PAGE: Final = 200
"""number of rows that share the widths of their columns"""


def run(arguments: argparse.Namespace) -> int:
    """Print the rows and return the exit code of the command. Raises ValueError and OSError."""
    if arguments.path == _STANDARD_INPUT:
        raise ValueError("dump does not read standard input: write it to a file, and name that file")
    name, schema, batches = _rows(arguments)
    if arguments.output:
        _save(arguments.output, schema, batches)
    elif arguments.json:
        _print_json(batches, sys.stdout)
    else:
        _print_table(_shown(name, arguments, schema), batches, sys.stdout)
    return 0


def _rows(arguments: argparse.Namespace) -> tuple[str, pa.Schema, Iterator[pa.RecordBatch]]:
    name, schema, batches = table_of(arguments.path, _options(arguments), arguments.format)
    if arguments.corrupt:
        if "error" not in schema.names:
            raise value_error(f"--corrupt needs a column error, and {name} has none")
        batches = _filtered(batches, lambda batch: pc.is_valid(batch.column("error")))
    if arguments.key is not None and name != kafka_log.NAME:
        if "key" not in schema.names:
            raise value_error(f"--key needs a column key, and {name} has none")
        batches = _filtered(batches, lambda batch: pc.equal(batch.column("key").cast(pa.string()), arguments.key))
    if arguments.columns and name not in SOURCES:
        names = _chosen(arguments.columns, schema.names)
        schema = pa.schema([schema.field(each) for each in names])
        batches = (batch.select(names) for batch in batches)
    return name, schema, batches if arguments.head is None else _first(batches, arguments.head)


def _chosen(columns: str, names: Sequence[str]) -> list[str]:
    chosen = [each.strip() for each in columns.split(",")]
    for each in chosen:
        if each not in names:
            raise value_error(f"there is no column {each!r}: choose from {', '.join(names)}")
    return chosen


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    """The options of the data source that reads the path; empty if a function reads it."""
    options = dict[str, str]()
    for each in arguments.option:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise value_error(f"--option takes NAME=VALUE, got {each}")
        options[name] = value
    if arguments.batches:
        options["rows"] = kafka_log.BATCHES
    if arguments.offset is not None:
        options |= {"startingOffset": str(arguments.offset), "endingOffset": str(arguments.offset + 1)}
    if arguments.start is not None:
        options[_start_option(arguments)] = arguments.start
    is_source = arguments.format is not None or _is_source(arguments.path)
    if arguments.columns and is_source:
        options["columns"] = arguments.columns
    if arguments.key is not None and is_source and _format(arguments) == kafka_log.NAME:
        options["key"] = arguments.key
    return options


def _is_source(path: str) -> bool:
    files, single, _ = listed(path)
    try:
        return source_of(path) in SOURCES and not (single and files[0].basename.endswith("index"))
    except ValueError:
        return False


def _format(arguments: argparse.Namespace) -> str:
    """The name of the data source."""
    return arguments.format or source_of(arguments.path)


def _start_option(arguments: argparse.Namespace) -> str:
    if _format(arguments) == databus_table.NAME:
        return "startingScn"
    return "startingOffset" if arguments.start.lstrip("-").isdigit() else "startingTimestamp"


def _filtered(batches: Iterable[pa.RecordBatch], keep: Any) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.filter(keep(batch))


def _first(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return


def _shown(name: str, arguments: argparse.Namespace, schema: pa.Schema) -> list[str]:
    if arguments.columns:
        return list(schema.names)
    kind = {kafka_log.NAME: "batches" if arguments.batches else "records", databus_table.NAME: "events"}.get(name, name)
    return [each for each in _SHOWN.get(kind, schema.names) if each in schema.names]


# -- a table


def _print_table(names: Sequence[str], batches: Iterable[pa.RecordBatch], out: TextIO) -> None:
    widths = [len(each) for each in names]
    head_printed = False
    for batch in batches:
        for start in range(0, batch.num_rows, _PAGE):
            page = batch.select(names).slice(start, _PAGE)
            rows = list(zip(*([_printed(each) for each in column.to_pylist()] for column in page.columns), strict=True))
            widths = [
                max(width, *map(len, column)) for width, column in zip(widths, zip(*rows, strict=True), strict=True)
            ]
            if not head_printed:
                _print_row(names, widths, out)
                head_printed = True
            for row in rows:
                _print_row(row, widths, out)
    if not head_printed:
        _print_row(names, widths, out)


def _print_row(row: Sequence[str], widths: Sequence[int], out: TextIO) -> None:
    out.write("  ".join(each.ljust(width) for each, width in zip(row, widths, strict=True)).rstrip() + "\n")


def _printed(value: Any) -> str:
    plain = _plain(value)
    text = "NULL" if plain is None else printable(plain) if isinstance(plain, str) else printable_json(plain)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


# -- JSON lines


def _print_json(batches: Iterable[pa.RecordBatch], out: TextIO) -> None:
    for batch in batches:
        for row in batch.to_pylist():
            out.write(printable_json(_plain(row)) + "\n")


def _plain(value: Any) -> Any:
    """A value that JSON can hold. Bytes become text if they are UTF-8, else ``0x…``; `--key` accepts both forms."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


# -- a file


def _save(name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    suffix = Path(name).suffix
    if suffix == ".jsonl":
        with Path(name).open("w", encoding="utf-8") as out:
            _print_json(batches, out)
    elif suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(name, schema) as writer:
            _write(writer, batches)
    elif suffix == ".arrow":
        with pa.ipc.new_file(name, schema) as writer:
            _write(writer, batches)
    else:
        raise value_error(f"--output takes a .parquet, .arrow or .jsonl file, got {name}")


def _write(writer: Any, batches: Iterable[pa.RecordBatch]) -> None:
    for batch in batches:
        writer.write_batch(batch)
