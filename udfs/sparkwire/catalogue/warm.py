"""Compile every kernel of functions, data sources, Avro rows and Databus consumers into a cache that you can ship.

    python -m sparkwire warm [DIRECTORY]

The command writes the cache to DIRECTORY. Put the directory on the executors' image, or in the archive of their Python, and
set ``NUMBA_CACHE_DIR`` to it there; it may be read-only. Without DIRECTORY, the command fills the cache of this Python, which is
inside the package if that is writable. The cache is valid for the same package, Python and kind of processor. Other processes
compile their own kernels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from sparkwire.avro.typed_values import encoded, typed
from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.core.arguments import Argument
from sparkwire.core.function import Function
from sparkwire.databus.client.consumer import Consumer
from sparkwire.databus.client.run import dispatch
from sparkwire.databus.explain import explain
from sparkwire.databus.files import databus_table
from sparkwire.kafka.codecs import writable
from sparkwire.kafka.files import kafka_log

_AVRO: Final = """{"type": "record", "name": "r", "fields": [
    {"name": "i", "type": "long"}, {"name": "d", "type": ["null", "double"]}, {"name": "b", "type": "bytes"},
    {"name": "s", "type": {"type": "array", "items": "string"}}, {"name": "m", "type": {"type": "map", "values": "int"}}]}"""


def warm(progress: Callable[[int, int], None] = lambda done, steps: None) -> int:
    """Call every function on sample bytes with every column layout that Spark uses. Return the number of calls.

    A column of bytes has 32-bit or 64-bit offsets, with or without NULLs; each layout needs a separate kernel. ``progress``
    receives the number of finished calls and the number of all calls.
    """
    steps: list[Callable[[], object]] = [partial(function.decode, *arguments) for function, arguments in _calls()]
    steps += [_read_files, _decode_avro, _dispatch]
    for done, step in enumerate(steps):
        progress(done, len(steps))
        step()
    progress(len(steps), len(steps))
    return len(steps)


def _calls() -> Iterator[tuple[Function, Sequence[pa.Array]]]:
    samples = [*SAMPLES.values(), b""]
    for rows in (samples, [*samples, None]):
        for type in (pa.binary(), pa.large_binary()):
            column = pa.array(rows, type)
            for function in FUNCTIONS.values():
                if function.name != "to_kafka_records":
                    yield function, [_given(argument, column) for argument in function.arguments if argument.required]
    writer = FUNCTIONS["to_kafka_records"]
    records = FUNCTIONS["kafka_records"].decode(pa.array([SAMPLES["segment"]], pa.binary()))
    for magic in (0, 1, 2):
        for codec in writable(magic):
            given = (_records(records, magic), pa.array([0]), pa.array([codec]), pa.array([magic], pa.int32()))
            yield writer, given


def _read_files() -> None:
    """Read the example files with the data sources, as a batch query and as a new stream."""
    files = Path(__file__).parents[1] / "data"
    options: list[dict[str, str]] = [{}, {"rows": "batches"}, {"rows": "batches", "columns": "base_offset"}]
    options += [{"isolationLevel": "read_committed", "startingOffset": "1"}, {"startingTimestamp": "1"}, {"key": "u"}]
    for given in options:
        query = kafka_log.query({"path": str(files / "kafka" / "orders-0"), "maxSplitBytes": "4k", **given})
        _drain(kafka_log.read(query, task) for task in kafka_log.plan(query))
    for events in sorted((files / "databus").glob("*.bin")):
        read = databus_table.query({"path": str(events)})
        _drain(databus_table.read(read, task) for task in databus_table.plan(read))


def _drain(tasks: Iterable[Iterable[pa.RecordBatch]]) -> None:
    for batches in tasks:
        for _ in batches:
            pass


def _decode_avro() -> None:
    """Read and write typed columns."""
    schema = json.loads(_AVRO)
    for type in (pa.binary(), pa.large_binary()):
        for rows in ([b"\2\0\0\0\0"], [b"\2\0\0\0\0", None]):
            encoded(typed(schema).decode(pa.array(rows, type)), json.dumps(schema))


def _dispatch() -> None:
    """Pass the example events to a consumer, including the search for corrupt events."""
    relay = (Path(__file__).parents[1] / "data" / "databus" / "relay_v1.bin").read_bytes()
    dispatch([relay], Consumer())
    explain(relay[:65] + b"!")


def _records(records: pa.ListArray, magic: int) -> pa.ListArray:
    """The records without the fields that the magic lacks: only magic 2 has headers."""
    fields = ("key", "value", "timestamp_ms", "headers") if magic == 2 else ("key", "value", "timestamp_ms")
    items = records.flatten()
    names = [field.name for field in items.type]
    chosen = pa.StructArray.from_arrays([items.field(names.index(field)) for field in fields], list(fields))
    return pa.ListArray.from_arrays(records.offsets, chosen)


def _given(argument: Argument, column: pa.Array) -> pa.Array:
    """A column of an argument's type: the samples, values decoded from them, or zeros."""
    if pa.types.is_binary(argument.type):
        return column
    if argument.name == "json":
        return FUNCTIONS["dbus_to_json"].decode(column)
    if argument.name == "schema":
        return pa.array([_AVRO] * len(column))
    if argument.name == "topic":
        return pa.array(["__consumer_offsets"] * len(column))
    if argument.name == "headers":
        return pa.array([[{"key": "k", "value": b"v"}]] * len(column), argument.type)
    if pa.types.is_struct(argument.type):
        wanted = {field.name for field in argument.type}
        readers = [f for f in FUNCTIONS.values() if pa.types.is_struct(f.return_type)]
        reader = next(f for f in readers if wanted == {field.name for field in f.return_type})
        # Encoders reject values that no valid message has.
        intact = [row for row in reader.decode(column).to_pylist() if row is None or row["error"] is None]
        return pa.array(intact, reader.return_type)
    return pa.array([1] * len(column), argument.type)
