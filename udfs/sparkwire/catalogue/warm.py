"""Compile the kernels of all public functions into a cache that you can ship.

    python -m sparkwire warm [DIRECTORY]

The command writes the cache to DIRECTORY. Put the directory on the executors' image, or in the archive of their Python, and
set ``NUMBA_CACHE_DIR`` to it there; it may be read-only. Without DIRECTORY, the command fills the cache of this Python, which is
inside the package if that is writable. The cache is valid for the same package, Python and kind of processor. Other processes
compile their own kernels. ``tests/kernels/test_warm.py`` finds public functions that need other kernels than these.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from sparkwire.avro.typed_values import encoded, typed
from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.catalogue.file_tables import table_of as rows_of_file
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.formats import decoder, in_json
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.survey import Survey, survey_debezium, survey_messages
from sparkwire.core.arguments import Argument
from sparkwire.core.function import Function
from sparkwire.core.names import Table, table_of
from sparkwire.databus.client.consumer import Consumer
from sparkwire.databus.client.run import dispatch
from sparkwire.databus.explain import explain
from sparkwire.databus.files import databus_table, follow_events
from sparkwire.kafka.codecs import writable
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.write import write_log

_SAMPLES: Final = Path(__file__).parent / "samples"
_CANAL: Final = {
    "int": "1", "bigint unsigned": "18446744073709551615", "double": "0.5", "decimal(10,2)": "1.50", "varchar(9)": "\u00e9",
    "blob": "\u00ff", "date": "2024-01-31", "time(6)": "-01:02:03.5", "datetime(6)": "2024-01-31 01:02:03.5",
    "timestamp": "2024-01-31 01:02:03", "json": '{"a": [1]}', "enum('a','b')": "2", "set('a','b')": "3", "bit(8)": "5",
    "year": "2024",
}  # fmt: skip
"""a value of each type of MySQL, as Canal writes it"""
_DEBEZIUM: Final = (
    "int64",
    "Time",
    "MicroTime",
    "NanoTime",
    "MicroTimestamp",
    "NanoTimestamp",
    "NanoDuration",
    "Instant",
)
"""types of Debezium with values that are numbers"""
_AVRO: Final = """{"type": "record", "name": "r", "fields": [
    {"name": "i", "type": "long"}, {"name": "d", "type": ["null", "double"]}, {"name": "b", "type": "bytes"},
    {"name": "s", "type": {"type": "array", "items": "string"}}, {"name": "m", "type": {"type": "map", "values": "int"}}]}"""


def warm(progress: Callable[[int, int], None] = lambda done, steps: None) -> int:
    """Call every function on sample bytes with every column layout that Spark uses. Return the number of calls.

    A column of bytes has 32-bit or 64-bit offsets, with or without NULLs; each layout needs a separate kernel. ``progress``
    receives the number of finished calls and the number of all calls.
    """
    steps: list[Callable[[], object]] = [partial(function.decode, *arguments) for function, arguments in _calls()]
    steps += [_read_files, _write_files, decode_debezium, _decode_changes, _decode_avro, _dispatch]
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
                    yield (
                        function,
                        [_column_of(argument, column) for argument in function.arguments if argument.required],
                    )
    writer = FUNCTIONS["to_kafka_records"]
    records = FUNCTIONS["kafka_records"].decode(pa.array([SAMPLES["segment"]], pa.binary()))
    for magic in (0, 1, 2):
        for codec in writable(magic):
            arguments = (_records(records, magic), pa.array([0]), pa.array([codec]), pa.array([magic], pa.int32()))
            yield writer, arguments


def _read_files() -> None:
    """Read the example files with the data sources, as a batch query and as a new stream."""
    options: list[dict[str, str]] = [{}, {"rows": "batches"}, {"rows": "batches", "columns": "base_offset"}]
    options += [{"isolationLevel": "read_committed", "startingOffset": "1"}, {"startingTimestamp": "1"}, {"key": "u"}]
    for chosen in options:
        _drain(_log("kafka/orders-0", maxSplitBytes="4k", **chosen))
    for log in sorted((_SAMPLES / "kafka").glob("*.log")):
        _drain(_log(f"kafka/{log.name}"))
    for events in sorted((_SAMPLES / "databus").glob("*.bin")):
        read = databus_table.query({"path": str(events)})
        for task in databus_table.plan(read):
            _drain(databus_table.read(read, task))
        for _, files in databus_table.streams(read):
            follow_events.last_boundary(files, follow_events.FRONT, files[0].size)
    for lines in sorted(_SAMPLES.glob("*/messages.jsonl")):
        _drain(rows_of_file(str(lines), {}).batches)


def _log(path: str, **options: str) -> Iterator[pa.RecordBatch]:
    """The records of example segments."""
    query = kafka_log.query({"path": str(_SAMPLES / path), **options})
    for task in kafka_log.plan(query):
        yield from kafka_log.read(query, task)


def _drain(batches: Iterable[pa.RecordBatch]) -> None:
    for _ in batches:
        pass


def _write_files() -> None:
    """Write the records of an example log, which also cuts them into segments."""
    every = list(_log("debezium/shop.app.customers-0"))
    committed = _log("kafka/orders-0", isolationLevel="read_committed")
    gaps = [batch.select(["topic", "partition", "offset", "timestamp", "key", "value"]) for batch in committed]
    for rows, options in ((every, {"compression": "zstd"}), (every, {"offsets": "assign"}), (gaps, {})):
        with tempfile.TemporaryDirectory() as folder:
            write = write_log.write_of({"path": folder, **options}, rows[0].schema, False)
            write_log.begin(write, "warm")
            write_log.commit(write, "warm", write_log.write_rows(write, rows, "warm", "0", 0))


def decode_debezium() -> None:
    """Decode Debezium's messages as `sparkwire.changes` does."""
    topic = pa.Table.from_batches(list(_log("debezium/shop.app.customers-0"))).combine_chunks()
    values, keys, headers, offsets = (topic[name].chunk(0) for name in ("value", "key", "headers", "offset"))
    records, table = MessageRecords(values, keys, headers, offsets=offsets), table_of("app.customers")
    facts = survey_debezium(in_json(values, headers), in_json(keys, headers), records, table)
    survey = Survey.of(facts, "debezium", table)
    plan = ReadPlan(table, survey.columns, survey.keys, only_table=True)
    for chosen in (plan, plan._replace(keys=None, whole_before=True, by_source=True)):
        decoder("debezium", chosen, with_headers=True)(records)
    FUNCTIONS["debezium_columns"].decode(values)
    every = MessageRecords(pa.array([json.dumps(dict.fromkeys(_DEBEZIUM, 1))], pa.binary()), offsets=pa.array([0]))
    decoder("debezium", ReadPlan(Table("t"), {name: name for name in _DEBEZIUM}, ()))(every)


def _decode_changes() -> None:
    """Decode the messages of DataHub and of the systems that are declarations as `sparkwire.changes` does."""
    blobs = (_SAMPLES / "datahub" / "messages.jsonl").read_bytes().splitlines()
    more = {"d": "DATE", "b": "BYTES", "f": "DOUBLE", "t": "BOOLEAN"}
    examples = [(system.name, "d.t", [system.example.encode()], {"id": "INT"}) for system in SYSTEMS.values()]
    for format, name, messages, columns in (
        *examples,
        ("datahub", "example_db.example_table_pk", blobs, more),
        ("canal", "d.t", [_canal()], {}),
    ):
        for rows in (messages, [*messages, None]):
            records, table = MessageRecords(pa.array(rows, pa.binary())), table_of(name)
            survey = Survey.of(survey_messages(format, records, table), format, table)
            plan = ReadPlan(table, survey.columns | columns, by_source=True, whole_before=True)
            decoder(format, plan)(records)


def _canal() -> bytes:
    """A message with a column of each type."""
    columns = {f"c{k}": type for k, type in enumerate(_CANAL)}
    row = dict(zip(columns, _CANAL.values(), strict=True))
    message = {
        "database": "d",
        "table": "t",
        "type": "UPDATE",
        "isDdl": False,
        "id": 1,
        "es": 1,
        "ts": 1,
        "pkNames": ["c0"],
    }
    return json.dumps(message | {"mysqlType": columns, "sqlType": {}, "old": [row], "data": [row]}).encode()


def _decode_avro() -> None:
    """Read and write typed columns."""
    schema = json.loads(_AVRO)
    for type in (pa.binary(), pa.large_binary()):
        for rows in ([b"\2\0\0\0\0"], [b"\2\0\0\0\0", None]):
            encoded(typed(schema).decode(pa.array(rows, type)), json.dumps(schema))


def _dispatch() -> None:
    """Pass the example events to a consumer, including the search for corrupt events."""
    relay = (_SAMPLES / "databus" / "relay_v1.bin").read_bytes()
    dispatch([relay], Consumer())
    explain(relay[:65] + b"!")


def _records(records: pa.ListArray, magic: int) -> pa.ListArray:
    """The records without the fields that the magic lacks: only magic 2 has headers."""
    fields = ("key", "value", "timestamp_ms", "headers") if magic == 2 else ("key", "value", "timestamp_ms")
    items = records.flatten()
    names = [field.name for field in items.type]
    chosen = pa.StructArray.from_arrays([items.field(names.index(field)) for field in fields], list(fields))
    return pa.ListArray.from_arrays(records.offsets, chosen)


def _column_of(argument: Argument, column: pa.Array) -> pa.Array:
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
