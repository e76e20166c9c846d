"""DataHub: ten fields of a message to columns, compared with JSON libraries; six of them in SQL, with Spark's own JSON."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sparkwire
from benchmarks.report import Row, below, faster, no_slower, table
from benchmarks.sql import discarded, local_spark
from benchmarks.timing import Timing, amount, interleave
from sparkwire import FUNCTIONS
from sparkwire.core.builders import Accessor

MESSAGES = amount(100_000, trial=1000)
BATCH = 10_000  # rows that Spark passes at once
IN_SQL = amount(1_000_000, trial=1000)
FIELDS = {
    "op": "payload.op",
    "sequence_id": "payload.sequenceId",
    "event_time_ms": "payload.timestamp.eventTime",
    "system_time_ms": "payload.timestamp.systemTime",
    "db_type": "schema.source.dbType",
    "database": "schema.source.dbName",
    "table": "schema.source.tableName",
    "before": "payload.before.dataColumn",
    "after": "payload.after.dataColumn",
    "version": "version",
}
SIX = ("op", "sequence_id", "event_time_ms", "table", "before", "after")  # fields that are needed to apply a change
SCHEMA = """
    payload STRUCT<op STRING, sequenceId STRING, timestamp STRUCT<eventTime BIGINT>,
                   before STRUCT<dataColumn STRING>, after STRUCT<dataColumn STRING>>,
    schema STRUCT<source STRUCT<tableName STRING>>
"""


def messages(n: int) -> pa.Array:
    """``n`` different valid messages of about 550 bytes, of four tables."""
    return pa.array((message(i) for i in range(n)), pa.binary())


def message(i: int) -> bytes:
    op = ("INSERT", "UPDATE_BEFOR", "UPDATE_AFTER", "DELETE")[i % 7 % 4]
    types = {"id": "LONG", "name": "STRING", "amount": "DOUBLE", "created": "DATE"}
    row = {"id": i, "name": f"customer {i}", "amount": i % 9973 / 100, "created": 1590315269000 + i}
    time = 1605339932000 + i
    change = {
        "schema": {
            "dataColumn": [{"name": name, "type": type} for name, type in types.items()],
            "primaryKey": ["id"],
            "source": {"dbType": "MySQL", "dbVersion": "8.0", "dbName": "shop", "tableName": f"orders_{i % 4}"},
        },
        "payload": {
            "op": op,
            "before" if op in ("UPDATE_BEFOR", "DELETE") else "after": {"dataColumn": row},
            "sequenceId": str(1605339516000000000 + i),
            "timestamp": {"eventTime": time, "systemTime": time + 736, "checkpointTime": time},
        },
        "version": "0.0.1",
    }
    return json.dumps(change, separators=(",", ":")).encode()


# ---------------------------------------------------------------- the decoder alone


def ours(column: pa.Array) -> list[list[pa.Array]]:
    """The ten columns of each batch, from one scan."""
    return [ten(column[start : start + BATCH]) for start in range(0, len(column), BATCH)]


def ten(batch: pa.Array) -> list[pa.Array]:
    decoders: list[Accessor[Any]] = [FUNCTIONS[f"datahub_{field}"].decoder for field in FIELDS]  # type: ignore[misc]
    scan = decoders[0].scan(batch)
    return [decoder.read(scan) for decoder in decoders]


def with_library(read: Callable[[bytes], list[Any]], blobs: list[bytes]) -> list[pa.Array]:
    """The ten columns, from ten values of each message."""
    return [pa.array(values) for values in zip(*map(read, blobs), strict=True)]


def libraries() -> Iterator[tuple[str, Callable[[bytes], list[Any]]]]:
    """JSON libraries as readers of the ten values: the standard library's, and other installed ones."""
    yield "json", reader(json.loads, json.dumps)
    with suppress(ImportError):
        orjson = importlib.import_module("orjson")
        yield "orjson", reader(orjson.loads, orjson.dumps)
    with suppress(ImportError):
        msgspec = importlib.import_module("msgspec")
        yield "msgspec", reader(msgspec.json.decode, msgspec.json.encode)
    with suppress(ImportError):
        # Its objects are views: only the selected values become Python objects, and an image stays text.
        yield "pysimdjson", reader(importlib.import_module("simdjson").Parser().parse, lambda image: image.mini)


def reader(parse: Callable[[bytes], Any], text: Callable[[Any], Any]) -> Callable[[bytes], list[Any]]:
    """Reads the ten values of a message; an image becomes text again."""
    paths = [(field in ("before", "after"), path.split(".")) for field, path in FIELDS.items()]

    def read(blob: bytes) -> list[Any]:
        document = parse(blob)
        result = []
        for is_image, path in paths:
            value = document
            for key in path:
                value = value.get(key) if value is not None else None
            result.append(text(value) if is_image and value is not None else value)
        return result

    return read


def decoder_rows() -> list[Row]:
    column = messages(MESSAGES)
    few = column[: MESSAGES // 10].to_pylist()
    peers: dict[str, Callable[[], object]] = {name: partial(with_library, read, few) for name, read in libraries()}
    times = interleave({"ours": lambda: ours(column)} | peers, rounds=7, warm=1)
    each = times["ours"].per(MESSAGES)
    size = sum(map(len, few)) // len(few)
    work = f"messages of {size} B: ten fields to columns"
    nanoseconds = Timing(tuple(taken * 1e9 for taken in each.samples))
    result = [below(f"{work}, each (1 M a second)", nanoseconds, "ns", 1000)]
    for name in peers:
        bound = 3 if name == "json" else 1
        result.append(faster(work, each, f"{name} and pa.array", times[name].per(len(few)), bound, 1, "messages"))
    return result


# ---------------------------------------------------------------- in SQL


def sql_rows() -> list[Row]:
    with local_spark() as spark, tempfile.TemporaryDirectory() as folder:
        sparkwire.register(spark)
        path = f"{folder}/messages.parquet"
        blobs = pa.table({"blob": messages(IN_SQL)})
        pq.write_table(blobs, path, row_group_size=IN_SQL // 8, compression="none", use_dictionary=False)
        spark.read.parquet(path).createOrReplaceTempView("messages")
        runs = {name: discarded(spark.sql(sql)) for name, sql in queries().items()}
        ours = runs.pop("ours")
        # Separately, and each once before its timing: else the workers of the faster one would become idle.
        by_path, by_schema = (
            interleave({"ours": ours, name: runs[name]}, rounds, warm=1)
            for name, rounds in (("get_json_object", 3), ("from_json", 7))
        )
    work = "SQL, 1 M messages: six fields"
    return [
        no_slower(work, by_path["ours"], "get_json_object", by_path["get_json_object"], 0.5),
        no_slower(work, by_schema["ours"], "from_json", by_schema["from_json"], 0.7),
    ]


def queries() -> dict[str, str]:
    """Six fields as SELECTs, in three ways."""
    text = "CAST(blob AS STRING)"
    return {
        "ours": f"SELECT {', '.join(f'datahub_{field}(blob)' for field in SIX)} FROM messages",
        "get_json_object": f"SELECT {', '.join(f'''get_json_object({text}, '$.{FIELDS[f]}')''' for f in SIX)} FROM messages",
        "from_json": f"SELECT {', '.join(f'm.{FIELDS[field]}' for field in SIX)} "
        f"FROM (SELECT from_json({text}, '{SCHEMA}') AS m FROM messages)",
    }


def rows() -> list[Row]:
    """The claims about DataHub messages."""
    return decoder_rows() + sql_rows()


def main() -> None:
    print(table(rows()))


if __name__ == "__main__":
    main()
