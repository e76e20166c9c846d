"""Which kernels `warm` compiles, and which other ones public functions need, as JSON: `tests/kernels/test_warm.py` runs it.

Each call reads or writes what the public function of its name does, without Spark: Spark's workers call the same code with the
same columns.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa

import sparkwire
from sparkwire.avro.schemas import schemas_of
from sparkwire.avro.typed_rows import by_name
from sparkwire.catalogue import FUNCTIONS, SAMPLES
from sparkwire.catalogue.warm import warm
from sparkwire.changes.databus import DatabusSource, databus_changes
from sparkwire.changes.formats import decoder
from sparkwire.changes.records import MessageRecords, ReadPlan
from sparkwire.changes.survey import Survey, survey_messages
from sparkwire.core.names import table_of
from sparkwire.databus.client.buffer import split
from sparkwire.databus.files import databus_table
from sparkwire.databus.files.follow_events import EventFollower
from sparkwire.json import types
from sparkwire.kernels.cache import KernelCache
from tests.databus import test_write_files as events
from tests.kafka import test_write_log as log
from tests.support import cdc_golden as golden
from tests.support import wal2json_golden
from tests.support.databus_members import MEMBER, Members
from tests.support.datahub_history import KEYS, DataHubHistory
from tests.support.system_messages import MAKERS, TABLE

DATA: Final = sparkwire.samples()
CALLS: Final[dict[str, Callable[[], object]]] = {}


def call(function: Callable[[], object]) -> Callable[[], object]:
    CALLS[function.__name__] = function
    return function


def recorded() -> set[str]:
    """The kernels that this process requests from now on: names with the variant of their arguments."""
    names = set[str]()
    load = KernelCache.load_overload

    def load_and_record(self: KernelCache, signature: Any, *others: Any, **named: Any) -> Any:
        names.add(self._file_name(signature))
        return load(self, signature, *others, **named)

    KernelCache.load_overload = load_and_record  # type: ignore[method-assign]
    return names


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    names = recorded()
    requested = {}
    for name, function in {"warm": warm, **CALLS}.items():
        before = set(names)
        function()
        requested[name] = sorted(names - before)
    print(json.dumps(requested))


@call
def functions() -> None:
    """Each function of one column, over all samples as Python values."""
    for function in FUNCTIONS.values():
        if [argument.type for argument in function.arguments if argument.required] == [pa.binary()]:
            function.decode([*SAMPLES.values(), None])


@call
def read() -> None:
    for path in (DATA / "kafka").rglob("*.log"):
        sparkwire.read(path).read_all()
    orders = DATA / "kafka" / "orders-0"
    options: list[dict[str, Any]] = [
        {"rows": "batches"},
        {"isolationLevel": "read_committed"},
        {"key": "k"},
        {"keyPrefix": "k"},
        {"valueContains": "a"},
        {"startingOffset": 100, "endingOffset": 200},
        {"startingTimestamp": "2020-09-13T12:26:45Z"},
        {"columns": "offset, first_lost, last_lost, hidden"},
    ]
    for given in options:
        sparkwire.read(orders, **given).read_all()
    for path in (DATA / "databus").glob("*.bin"):
        sparkwire.read(path).read_all()
        sparkwire.read(path, columns="sequence, event_type").read_all()


@call
def dump() -> None:
    from sparkwire import __main__

    files = [path for path in DATA.rglob("*") if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".jsonl")]
    files += [path for path in DATA.rglob("*") if path.name.endswith((".snapshot", "leader-epoch-checkpoint", ".bin"))]
    for path in [*files, DATA / "kafka" / "orders-0", DATA / "cluster" / "bucket"]:
        for more in ([], ["--json"]):
            sys.argv = ["sparkwire", "dump", str(path), *more]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                __main__.main()


@call
def explain() -> None:
    for sample in SAMPLES.values():
        repr(sparkwire.explain(sample))


@call
def kafka_write() -> None:
    for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
        with folder() as path:
            log.write(path, log.some_rows(1), compression=compression)
            log.write(path, log.rows_of(3, 2**62 + 2**40), compression=compression)
    with folder() as path:
        log.write(path, log.rows_of(300), offsets="assign", segmentBytes="1k")
        log.write(path, log.rows_of(300), offsets="assign", segmentBytes="1k")


@call
def kafka_write_again() -> None:
    """What was read, with headers and both ends of its log."""
    source = DATA / "debezium" / "shop.app.customers-0"
    rows = sparkwire.read(source).read_all()
    with folder() as path:
        log.write(path, rows.combine_chunks().to_batches()[0], sourcePath=str(source), overwrite=True)


@call
def kafka_write_of_committed() -> None:
    """The records of a log with transactions, whose offsets have gaps."""
    columns = "topic, partition, offset, timestamp, key, value"
    rows = sparkwire.read(DATA / "kafka" / "orders-0", isolationLevel="read_committed", columns=columns).read_all()
    with folder() as path:
        log.write(path, rows.combine_chunks().to_batches()[0])


@call
def databus_stream() -> None:
    for path in (DATA / "databus").glob("*.bin"):
        follower = EventFollower(databus_table.query({"path": str(path)}))
        for name, files in follower.logs(False).items():
            follower.parts(name, files, None, follower.end(name, files, None))


@call
def databus_write() -> None:
    with folder() as path:
        events.write(path, events.windows(1, 3))
        events.write(path, events.windows(4, 3), stream="s")


@call
def kafka_check() -> None:
    str(sparkwire.kafka.check(str(DATA / "cluster" / "disk")))


@call
def kafka_picture() -> None:
    sparkwire.kafka.picture(str(DATA / "kafka" / "orders-0"))


@call
def cluster_metadata() -> None:
    metadata = sparkwire.read(DATA / "cluster" / "disk" / "__cluster_metadata-0").read_all().combine_chunks()
    topics = pa.array(["__cluster_metadata"] * metadata.num_rows)
    FUNCTIONS["kafka_internal_record"].decode(topics, metadata["key"].chunk(0), metadata["value"].chunk(0))


@call
def changes_of_debezium() -> None:
    records = sparkwire.read(DATA / "debezium" / "shop.app.customers-0").read_all().combine_chunks()
    columns = ("value", "key", "headers")
    values, keys, headers = (records[name].chunk(0) for name in columns)
    of = MessageRecords(values, keys, headers, offsets=records["offset"].chunk(0))
    plan = ReadPlan(
        table_of("app.customers"),
        {
            "id": "int32",
            "name": "string",
            "photo": "bytes",
            "made": "MicroTimestamp",
            "on": "Date",
            "x": "decimal(9,2)",
        },
        ("id",),
        only_table=True,
    )
    decoder("debezium", plan, with_headers=True)(of)
    decoder("debezium", plan._replace(whole_before=True, by_source=True, keys=None))(of)
    FUNCTIONS["debezium_columns"].decode(values)


@call
def changes_of_debezium_of_each_type() -> None:
    """Each type without arguments, in a column of numbers and in one of texts."""
    for value in (b"1", b'"1"'):
        for name in types._LOGICAL:
            of = MessageRecords(pa.array([b'{"id":1,"x":' + value + b"}"], pa.binary()), offsets=pa.array([0]))
            decoder("debezium", ReadPlan(table_of("t"), {"id": "int32", "x": name}, ("id",)))(of)


@call
def changes_of_each_declaration() -> None:
    columns = {"id": "INT", "name": "STRING", "amount": "DECIMAL(9,2)", "day": "DATE", "at": "TIMESTAMP", "x": "DOUBLE"}
    row = {"id": 1, "name": "amber", "amount": 9.5, "day": "2024-01-31", "at": "2024-01-31 01:02:03", "x": 0.5}
    for format, make in MAKERS.items():
        messages = [make("INSERT", row, None), make("UPDATE", row, {"id": 1}), make("DELETE", None, row)]
        of = MessageRecords(
            pa.array([json.dumps(one).encode() for one in messages], pa.binary()), offsets=pa.array([0, 1, 2])
        )
        survey_messages(format, of, table_of(TABLE))
        given = {name: type for name, type in columns.items() if format != "datahub" or name in ("id", "name")}
        decoder(format, ReadPlan(table_of(TABLE), given, ("id",)))(of)


@call
def changes_of_wal2json() -> None:
    values = pa.array([record.value for record in wal2json_golden.records()], pa.binary())
    for name in wal2json_golden.tables():
        of, table = MessageRecords(values), table_of(name)
        survey = Survey.of(survey_messages("wal2json", of, table), "wal2json", table)
        decoder("wal2json", ReadPlan(table, survey.columns, by_source=True, whole_before=True))(of)


@call
def changes_of_datahub() -> None:
    history = DataHubHistory("h", Random(3))
    history.run(150)
    blobs = pa.array(history.delivered(), pa.binary())
    for name in KEYS:
        columns = {"id": "STRING", "v": "LONG", "b": "BYTES", "d": "DOUBLE", "w": "DATE"}
        decoder("datahub", ReadPlan(table_of(f"h.{name}"), columns, by_source=True, whole_before=True))(
            MessageRecords(blobs)
        )
        survey_messages("datahub", MessageRecords(blobs), table_of(f"h.{name}"))


@call
def changes_of_canal_and_maxwell() -> None:
    """All tables of the golden data, in the records of all shards."""
    for system, variant in (("canal", "flat"), ("maxwell", "default")):
        records = golden.records(system, variant)
        for name in golden.tables(system):
            named = (
                golden.arrow(records)[column] for column in ("value", "key", "headers", "topic", "partition", "offset")
            )
            of, table = MessageRecords(*named), table_of(name)
            survey = Survey.of(survey_messages(system, of, table), system, table)
            if survey.columns:
                decoder(system, ReadPlan(table, survey.columns, by_source=True, whole_before=True))(of)


@call
def changes_of_databus() -> None:
    read = by_name(schemas_of([MEMBER]))["com.shop.Member"]
    sent = pa.array([event.as_py() for event in split(Members(4).sent()).events], pa.binary())
    databus_changes(
        sent, None, pa.array(range(len(sent))), DatabusSource("com.shop.Member", read, ("id",), read.schemas)
    )


if __name__ == "__main__":
    main()
