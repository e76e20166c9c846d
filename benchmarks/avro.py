"""Avro: data to columns and to JSON, against fastavro and pyruhvro; typed rows in SQL, against Spark's own and a pandas UDF."""

from __future__ import annotations

import datetime
import importlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from benchmarks.report import Row, below, faster, no_slower, table
from benchmarks.sql import discarded, local_spark
from benchmarks.timing import Timing, amount, interleave
from sparkwire import FUNCTIONS, avro
from sparkwire.avro.arrow_columns import decode, plan
from sparkwire.avro.schema import parse
from sparkwire.avro.typed_values import typed
from sparkwire.core.column import spans_of

RECORDS = amount(200_000, trial=1000)
BATCH = 10_000  # rows, as Spark hands them over
FEW = 10  # a peer reads every so manieth
IN_SQL = amount(1_000_000, trial=1000)
TYPES = amount(50, trial=3)
JAR = "spark-avro is not in this session: PYSPARK_SUBMIT_ARGS='--packages org.apache.spark:spark-avro_2.13:… pyspark-shell'"

FLAT: dict[str, Any] = {
    "type": "record",
    "name": "Flat",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "quantity", "type": "int"},
        {"name": "name", "type": "string"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "total", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "SENT", "CLOSED"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}]}
NESTED: dict[str, Any] = {
    "type": "record",
    "name": "Nested",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
    ],
}
EPOCH = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def flat(i: int) -> dict[str, Any]:
    """A record of about 90 bytes."""
    return {
        "id": 10**11 + i * 7919,
        "quantity": i % 1000 - 500,
        "name": f"customer number {i % 1000} of the shop",
        "note": None if i % 3 == 0 else f"a note {i} of some words and more",
        "total": i / 7,
        "paid": i % 2 == 0,
        "kind": ("NEW", "SENT", "CLOSED")[i % 3],
        "at": EPOCH + datetime.timedelta(microseconds=i * 1_234_567),
    }


def nested(i: int) -> dict[str, Any]:
    """A record with five records in an array, and three entries in a map."""
    lines = [{"sku": f"part {i % 100} {k}", "n": i % 50 + k} for k in range(5)]
    return {"id": i, "lines": lines, "tags": {f"tag {k}": i / (k + 3) for k in range(3)}}


def data(schema: dict[str, Any], record: Callable[[int], dict[str, Any]], n: int) -> pa.Array:
    """``n`` data of a schema, written by fastavro."""
    ready, rows = fastavro.parse_schema(schema), []
    for i in range(n):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, ready, record(i))
        rows.append(out.getvalue())
    return pa.array(rows, pa.binary())


# ---------------------------------------------------------------- one core


def ours(schema: dict[str, Any], column: pa.Array) -> list[pa.Array]:
    """The columns of each batch."""
    decoder = typed(schema)
    return [decoder.decode(column[start : start + BATCH]) for start in range(0, len(column), BATCH)]


def with_fastavro(schema: dict[str, Any], rows: list[bytes]) -> pa.Array:
    """The columns, out of a dict a record."""
    ready = fastavro.parse_schema(schema)
    return pa.array([fastavro.schemaless_reader(io.BytesIO(row), ready, None) for row in rows], typed(schema).type)


def our_json(schema: dict[str, Any], column: pa.Array) -> list[pa.Array]:
    """The texts of each batch."""
    text = json.dumps(schema)
    batches = (column[start : start + BATCH] for start in range(0, len(column), BATCH))
    return [FUNCTIONS["avro_json"].decode(batch, schema=text) for batch in batches]


def fastavro_json(schema: dict[str, Any], rows: list[bytes]) -> pa.Array:
    """The texts, out of a dict a record."""
    ready = fastavro.parse_schema(schema)
    read = (fastavro.schemaless_reader(io.BytesIO(row), ready, None) for row in rows)
    return pa.array([json.dumps(record, default=str) for record in read])


def with_pyruhvro(schema: dict[str, Any], column: pa.Array) -> Callable[[], object] | None:
    """A call of pyruhvro, on one core, where it is installed."""
    with suppress(ImportError):
        module = importlib.import_module("pyruhvro")
        text = json.dumps(schema)
        values = column.to_pylist()  # what it takes
        return lambda: module.deserialize_array(values, text)
    return None


def decoder_rows() -> list[Row]:
    result = []
    for name, schema, record, bound in (
        ("8 fields", FLAT, flat, 15),
        ("5 records and 3 entries inside", NESTED, nested, 8),
    ):
        column = data(schema, record, RECORDS)
        few = column[: RECORDS // FEW].to_pylist()
        times = interleave(
            {
                "ours": partial(ours, schema, column),
                "fastavro": partial(with_fastavro, schema, few),
                "our json": partial(our_json, schema, column),
                "fastavro json": partial(fastavro_json, schema, few),
            },
            rounds=5,
            warm=1,
        )
        each = times["ours"].per(RECORDS)
        work = f"records of {column.nbytes // RECORDS - 4} B, {name}"
        if schema is FLAT:
            nanoseconds = Timing(tuple(taken * 1e9 for taken in each.samples))
            result.append(below(f"{work}: to columns, each (6 M a second)", nanoseconds, "ns", 1000 / 6))
        peer = times["fastavro"].per(len(few))
        result.append(faster(f"{work}: to columns", each, "fastavro and pa.array", peer, bound, 1, "records"))
        result += pyruhvro_rows(work, schema, column)
        texts, peers = times["our json"].per(RECORDS), times["fastavro json"].per(len(few))
        result.append(faster(f"{work}: to JSON", texts, "fastavro and json", peers, 5, 1, "records"))
    return result


def pyruhvro_rows(work: str, schema: dict[str, Any], column: pa.Array) -> list[Row]:
    peer = with_pyruhvro(schema, column)
    if peer is None or schema is not FLAT:
        return []
    times = interleave({"ours": partial(ours, schema, column), "pyruhvro": peer}, rounds=5, warm=1)
    return [faster(f"{work}: to columns", times["ours"], "pyruhvro", times["pyruhvro"], 4, RECORDS, "records")]


def new_schema_row() -> Row:
    """A schema that nobody has seen: to its first row."""
    column = data(FLAT, flat, 1)
    taken = []
    for k in range(9):
        text = json.dumps(FLAT | {"name": f"New{k}"})

        def first(text: str = text) -> None:
            schema = parse(text)
            decode(plan([schema], schema), spans_of(column))

        taken.append(interleave({"first": first}, rounds=1)["first"].samples[0] * 1000)
    return below("a new schema, its first row", Timing(tuple(taken)), "ms", 20)


# ---------------------------------------------------------------- in SQL


def sql_rows() -> list[Row]:
    """Payloads of three schemas by their ids; Spark's own reads the same number of data of one schema."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        schemas = {k: FLAT | {"name": f"Flat{k}"} for k in range(3)}
        write(spark, Path(folder))
        frame = spark.table("payloads")
        typed_rows = avro.rows(frame, "value", schemas, by="schema_id", keep_payload=False)
        runs: dict[str, Callable[[], object]] = {
            "ours": discarded(typed_rows),
            "crossing": discarded(crossing_alone(frame, typed_rows.schema)),
            "pandas": discarded(frame.limit(IN_SQL // FEW).select(pandas_udf()("value", "schema_id"))),
        }
        try:
            runs["from_avro"] = discarded(frame.select(spark_from_avro("value").alias("r")).select("r.*"))
        except AnalysisException:
            sys.stderr.write(f"No comparison with from_avro: {JAR}\n")
        times = interleave(runs, rounds=3, warm=1)
    work = "SQL, 1 M payloads of 3 schemas: 8 typed columns"
    pandas = times["pandas"].per(1 / FEW)
    floor = "as many bytes to Python and columns back, nothing decoded"
    result = [
        faster(work, times["ours"], "pandas UDF with fastavro", pandas, 5, IN_SQL, "records"),
        no_slower(work, times["ours"], floor, times["crossing"], 1.3),
    ]
    if "from_avro" in times:
        result.append(no_slower(work, times["ours"], "from_avro of one schema", times["from_avro"], 1))
        result.append(no_slower(floor, times["crossing"], "from_avro of one schema", times["from_avro"], 1))
    return result


def registry_rows() -> list[Row]:
    """Messages of 50 types by a registry's topic: beside a mapping that is given, and a table for each of them."""
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        schemas = {k + 1: json.dumps(FLAT | {"name": f"Flat{k}"}) for k in range(TYPES)}
        write(spark, Path(folder))
        prefix = F.unhex(F.concat(F.lit("000000"), F.lpad(F.hex(F.pmod(F.col("n"), F.lit(TYPES)) + 1), 4, "0")))
        frame = spark.table("payloads").withColumn("n", F.monotonically_increasing_id())
        frame = frame.select("n", F.concat(prefix, "value").alias("value")).persist()
        topic = [
            (id, _json(keytype="SCHEMA", subject=f"{id}", version=1), _json(id=id, schema=schemas[id]))
            for id in schemas
        ]
        records = spark.createDataFrame(topic, "offset BIGINT, key BINARY, value BINARY")
        registry, subjects = avro.Registry.topic(records), [f"{id}" for id in schemas]
        knowing = avro.Registry.topic(records, subjects=subjects)

        def of(schemas: Any) -> Callable[[], object]:
            return lambda: discarded(avro.rows(frame, "value", schemas, keep_payload=False))()

        def tables() -> None:
            for name, table in avro.rows_by_type(frame, "value", registry, keep_payload=False).items():
                if name.startswith("Flat"):
                    discarded(table)()

        def floor() -> None:
            for id in schemas:
                some = frame.where(F.substring("value", 1, 5) == F.lit(id.to_bytes(5, "big")))
                discarded(some.mapInArrow(lambda batches: batches, frame.schema))()

        runs = {
            "registry": of(registry),
            "knowing": of(knowing),
            "mapping": of(schemas),
            "tables": tables,
            "floor": floor,
        }
        times = interleave(runs, rounds=5, warm=1)
    work, many = f"SQL, 1 M messages of {TYPES} types", f"{TYPES} such parts, not decoded"
    return [
        no_slower(f"{work}, by a registry's subjects", times["knowing"], "by a mapping", times["mapping"], 1 / 0.9),
        no_slower(f"{work}, by the ids in the data", times["registry"], "by a mapping", times["mapping"], 1.5),
        no_slower(f"{work}: {TYPES} tables, the frame cached", times["tables"], many, times["floor"], 1.5),
    ]


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def crossing_alone(frame: DataFrame, schema: StructType) -> DataFrame:
    """The floor of what decodes in Python: a batch comes in, the columns of another go out, of the same types and sizes."""
    decoder = typed(FLAT)

    def answered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready = None
        for batch in batches:
            if ready is None or ready.num_rows < batch.num_rows:
                rows, ids = decoder.decode(batch.column(0)), batch.column(1)
                columns = dict(zip(rows.type.names, rows.flatten(), strict=True))
                columns |= {
                    "schema_id": ids,
                    "_schema_id_": ids.cast(pa.string()),
                    "_error_": pa.nulls(len(ids), pa.string()),
                }
                ready = pa.RecordBatch.from_pydict({name: columns[name] for name in schema.names})
            yield ready.slice(0, batch.num_rows)

    return frame.mapInArrow(answered, schema)


def write(spark: SparkSession, folder: Path) -> None:
    few = data(FLAT, flat, RECORDS)
    columns = pa.chunked_array([few] * (IN_SQL // RECORDS))
    ids = pa.array([i % 3 for i in range(IN_SQL)], pa.int32())
    path = str(folder / "payloads.parquet")
    rows = pa.table({"value": columns, "schema_id": ids})
    pq.write_table(rows, path, row_group_size=IN_SQL // 8, compression="none", use_dictionary=False)
    spark.read.parquet(path).createOrReplaceTempView("payloads")


def pandas_udf() -> Any:
    def read(values: pd.Series, ids: pd.Series) -> pd.DataFrame:
        ready = [fastavro.parse_schema(FLAT | {"name": f"Flat{k}"}) for k in range(3)]
        pairs = zip(values, ids, strict=True)
        return pd.DataFrame([fastavro.schemaless_reader(io.BytesIO(row), ready[id], None) for row, id in pairs])

    return F.pandas_udf(read, from_arrow_type(typed(FLAT).type))


def spark_from_avro(column: str) -> Any:
    from pyspark.sql.avro.functions import from_avro

    return from_avro(column, json.dumps(FLAT), {"mode": "PERMISSIVE"})


def rows() -> list[Row]:
    """The claims about Avro payloads."""
    return [*decoder_rows(), new_schema_row(), *sql_rows(), *registry_rows()]


def main() -> None:
    print(table(rows()))


if __name__ == "__main__":
    main()
