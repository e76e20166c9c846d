"""Messages of many systems about the table ``shopdb.customers``, made by hand.

The golden data are of few connectors and converters. These messages have the form that the documentation of each system
describes: Debezium 3.3, TiCDC 8.5, Oracle GoldenGate for Big Data 21, AWS DMS 3.5. Canal's, Maxwell's, wal2json's and
PostgreSQL's have that of the golden data.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.cdc_golden import Record

TABLE = "shopdb.customers"
TOPIC = "shop.shopdb.customers"
COLUMNS = {"id": "INT", "name": "STRING", "amount": "DECIMAL(10,2)"}
ROW = {"id": 1, "name": "amber", "amount": "9.50"}

_COMMON = {"version": "3.3.0.Final", "name": "shop", "ts_ms": 1_700_000_000_000, "snapshot": "false", "db": "shopdb"}
_BINLOG = {"table": "customers", "server_id": 1, "file": "binlog.000003", "pos": 4711, "row": 0, "thread": 7}
_IN_SCHEMA = {"schema": "shopdb", "table": "customers"}
SOURCES: dict[str, dict[str, Any]] = {
    "mysql": _BINLOG | {"gtid": None},
    "mariadb": _BINLOG | {"gtid": "0-1-2"},
    "postgresql": _IN_SCHEMA | {"sequence": '["24","42"]', "txId": 5, "lsn": 42, "xmin": None},
    "sqlserver": _IN_SCHEMA
    | {"change_lsn": "00000027:00000758:0003", "commit_lsn": "00000027:00000758:0005", "event_serial_no": 1},
    "oracle": _IN_SCHEMA | {"txId": "6.28.807", "scn": "2122185", "commit_scn": "2122190", "ssn": 0, "redo_thread": 1},
    "db2": _IN_SCHEMA | {"change_lsn": "00000000:00000000:0003", "commit_lsn": "00000000:00000000:0005"},
    "informix": _IN_SCHEMA | {"commit_lsn": "38654714268", "change_lsn": "38654714264", "txId": "36", "begin_lsn": "3"},
    "vitess": {
        "keyspace": "shopdb",
        "table": "customers",
        "shard": "-80",
        "vgtid": '[{"keyspace":"shopdb","gtid":"x"}]',
    },
    "spanner": {"table": "customers", "sequence": "1", "server_transaction_id": "a", "value_capture_type": "NEW_ROW"},
    "yugabytedb": _IN_SCHEMA | {"lsn": "1:2:::0:1", "txId": "", "snapshot_time": 1},
    "scylla": {"keyspace_name": "shopdb", "table_name": "customers"},
    "cassandra": {"db": "NULL", "keyspace": "shopdb", "table": "customers", "file": "CommitLog-6-123.log", "pos": 54},
    "mongodb": {"collection": "customers", "rs": "rs0", "ord": 31, "lsid": None, "txnNumber": None},
    "TiCDC": _BINLOG | {"file": "", "pos": 0, "commit_ts": 447_507_027_004_751_877, "cluster_id": "default"},
}
"""what each connector adds to the common fields of ``source``"""


def text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def record(value: Any, key: Any = None, *, topic: str = TOPIC, headers: Sequence[tuple[str, bytes]] = ()) -> Record:
    """A record; values and keys that are not bytes become JSON, None means no bytes."""
    return Record(topic, 0, 0, _bytes(key), _bytes(value), list(headers))


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else text(value)


def numbered(records: Sequence[Record]) -> list[Record]:
    """The records with consecutive offsets."""
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


# ---------------------------------------------------------------- Debezium


def envelope(
    op: str = "c",
    before: Any = None,
    after: Any = ROW,
    connector: str = "mysql",
    *,
    table: str = "customers",
    **source: Any,
) -> dict[str, Any]:
    of_connector = {"connector": connector, **_COMMON, **SOURCES[connector], **source}
    if "table" in of_connector:
        of_connector["table"] = table
    return {
        "before": before,
        "after": None if op in "dt" else after,
        "source": of_connector,
        "transaction": None,
        "op": op,
        "ts_ms": 1_700_000_000_500,
    }


def connect_schema(name: str = "shop.shopdb.customers.Envelope") -> dict[str, Any]:
    """Kafka Connect's schema of ``envelope``, as far as readers need it."""
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1}
    row = [
        {"type": "int32", "optional": False, "field": "id"},
        {"type": "string", "optional": True, "field": "name"},
        {
            **decimal,
            "parameters": {"scale": "2", "connect.decimal.precision": "10"},
            "optional": True,
            "field": "amount",
        },
    ]
    images = [{"type": "struct", "fields": row, "optional": True, "field": side} for side in ("before", "after")]
    source = {"type": "struct", "fields": [], "optional": False, "field": "source"}
    op = {"type": "string", "optional": False, "field": "op"}
    return {"type": "struct", "fields": [*images, source, op], "optional": False, "name": name}


def key_schema() -> dict[str, Any]:
    fields = [{"type": "int32", "optional": False, "field": "id"}]
    return {"type": "struct", "fields": fields, "optional": False, "name": "shop.shopdb.customers.Key"}


def decimal_bytes(text: str) -> str:
    """Connect's Decimal with scale 2 in JSON: base64."""
    number = int(text.replace(".", ""))
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


def with_schema(payload: Any, schema: Any) -> dict[str, Any]:
    return {"schema": schema, "payload": payload}


def cloud_event(message: Mapping[str, Any]) -> dict[str, Any]:
    """An envelope as Debezium's CloudEventsConverter writes it."""
    attributes = {
        f"iodebezium{name.replace('_', '')}": None if value is None else str(value)
        for name, value in message["source"].items()
    }
    return {
        "id": "name:shop;file:binlog.000003;pos:4711",
        "source": f"/debezium/{message['source']['connector']}/shop",
        "specversion": "1.0",
        "type": f"io.debezium.connector.{message['source']['connector']}.DataChangeEvent",
        "time": "2023-11-14T22:13:20.000Z",
        "datacontenttype": "application/json",
        "iodebeziumop": message["op"],
        **attributes,
        "iodebeziumtxid": None,
        "data": {"before": message["before"], "after": message["after"]},
    }


def cassandra_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as Debezium's connector for Cassandra writes it. A cell that a statement does not set is null."""
    return {name: {"value": value, "deletion_ts": None, "set": True} for name, value in row.items()}


BEGIN = {"status": "BEGIN", "id": "571", "event_count": None, "data_collections": None, "ts_ms": 1_700_000_000_000}
END = BEGIN | {
    "status": "END",
    "event_count": 1,
    "data_collections": [{"data_collection": "shopdb.customers", "event_count": 1}],
}
HEARTBEAT = {"ts_ms": 1_700_000_000_000}
SCHEMA_CHANGE = {
    "source": {"connector": "mysql", **_COMMON, **_BINLOG},
    "ts_ms": 1_700_000_000_000,
    "databaseName": "shopdb",
    "schemaName": None,
    "ddl": "ALTER TABLE customers ADD note TEXT",
    "tableChanges": [],
}
LOGICAL_MESSAGE = {
    "op": "m",
    "ts_ms": 1_700_000_000_000,
    "source": {"connector": "postgresql", **_COMMON, "schema": "", "table": "", "lsn": 40},
    "transaction": None,
    "message": {"prefix": "outbox", "content": "AQI="},
}


# ---------------------------------------------------------------- other systems


def canal(type: str = "INSERT", data: Any = None, old: Any = None, **more: Any) -> dict[str, Any]:
    is_ddl = type not in ("INSERT", "UPDATE", "DELETE")
    types = {"id": "int", "name": "varchar(80)", "amount": "decimal(10,2)"}
    return {
        "data": None if is_ddl else [{name: str(value) for name, value in ROW.items()}] if data is None else data,
        "database": "shopdb",
        "es": 1_700_000_000_000,
        "gtid": "",
        "id": 17,
        "isDdl": is_ddl,
        "mysqlType": None if is_ddl else types,
        "old": old,
        "pkNames": None if is_ddl else ["id"],
        "sql": "",
        "sqlType": None if is_ddl else {"id": 4, "name": 12, "amount": 3},
        "table": "customers",
        "ts": 1_700_000_000_100,
        "type": type,
        **more,
    }


def maxwell(type: str = "insert", data: Any = ROW, **more: Any) -> dict[str, Any]:
    head = {"database": "shopdb", "table": "customers", "type": type, "ts": 1_700_000_000, "xid": 571, "commit": True}
    return head | ({} if data is None else {"data": data}) | more


def maxwell_key(**key: Any) -> dict[str, Any]:
    return {"database": "shopdb", "table": "customers", **{f"pk.{name}": value for name, value in key.items()}}


def goldengate(op_type: str = "I", before: Any = None, after: Any = ROW, **more: Any) -> dict[str, Any]:
    head = {
        "table": "SHOPDB.CUSTOMERS",
        "op_type": op_type,
        "op_ts": "2023-11-14 22:13:20.000000",
        "current_ts": "2023-11-14 22:13:21.000000",
        "pos": "00000000000000000000143",
        "primary_keys": ["id"],
    }
    return head | ({} if before is None else {"before": before}) | ({} if after is None else {"after": after}) | more


def datahub(op: str = "INSERT", **images: Any) -> dict[str, Any]:
    """A message of Alibaba's DataHub, for a column of BLOBs."""
    sides = {side: {"dataColumn": row} for side, row in (images or {"after": ROW}).items()}
    payload = {"op": op, "timestamp": {"eventTime": 1_700_000_000_000}, "sequenceId": "17", **sides}
    return {
        "schema": {"primaryKey": ["id"], "source": {"dbName": "shopdb", "tableName": "customers"}},
        "payload": payload,
    }


def dms(operation: str = "insert", data: Any = ROW, **more: Any) -> dict[str, Any]:
    """A record of AWS DMS, as its user guide and messages in public show it. ``more`` has its other members."""
    is_control = operation not in ("load", "insert", "update", "delete")
    metadata = {
        "timestamp": "2023-11-14T22:13:21.000000Z",
        "record-type": "control" if is_control else "data",
        "operation": operation,
        "partition-key-type": "schema-table",
        "schema-name": "shopdb",
        "table-name": "customers",
        "transaction-id": 571,
    }
    image = {} if is_control or data is None else {"data": data}
    return image | more | {"metadata": metadata | more.get("metadata", {})}


DMS_TABLE = {
    "table-def": {
        "columns": {
            "id": {"type": "INT32", "nullable": False},
            "name": {"type": "STRING", "length": 80, "nullable": True},
            "amount": {"type": "NUMERIC", "precision": 10, "scale": 2, "nullable": True},
        },
        "primary-key": ["id"],
    }
}
"""the member ``control`` of a ``create-table`` with IncludeControlDetails"""


def wal2json(action: str = "I", columns: Any = ROW, identity: Any = None, **more: Any) -> dict[str, Any]:
    """A message of wal2json's format version 2. Rows are given as objects."""
    types = {"id": "integer", "name": "character varying(80)", "amount": "numeric(10,2)"}

    def items(row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        return [{"name": name, "type": types.get(name, "text"), "value": value} for name, value in row.items()]

    images = {name: items(row) for name, row in (("columns", columns), ("identity", identity)) if row is not None}
    head = {"action": action, "xid": 571, "timestamp": "2023-11-14 22:13:20.5+00", "lsn": "0/1561EA8"}
    table = {"schema": "shopdb", "table": "customers"}
    return head | table | images | {"pk": [{"name": "id", "type": "integer"}]} | more


Make = Callable[[str, Any, Any], dict[str, Any]]
MAKERS: dict[str, Make] = {
    "datahub": lambda op, row, old: datahub(
        op,
        **{side: image for side, image in (("before", old), ("after", row)) if image is not None} or {"before": None},
    ),
    "canal": lambda op, row, old: canal(
        op,
        None if row is old is None else [_texts(old if row is None else row)],
        None if row is None or old is None else [_texts(old)],
    ),
    "maxwell": lambda op, row, old: maxwell(
        op.lower(), old if row is None else row, **({} if row is None or old is None else {"old": old})
    ),
    "dms": lambda op, row, old: dms(
        "truncate-table" if op == "TRUNCATE" else op.lower(),
        old if row is None else row,
        **({} if row is None or old is None else {"before-image": old}),
    ),
    "wal2json": lambda op, row, old: wal2json(op[0], row, old),
    "ogg": lambda op, row, old: goldengate(op[0], old, row, table=TABLE),
}
"""by declaration: a message of INSERT, UPDATE, DELETE or TRUNCATE from its new and its old row, which may be None

`tests/changes/test_declarations.py`, `test_mutated_messages.py` and `tests/spark/test_conservation.py` test each of them.
"""


def _texts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if value is None else str(value) for name, value in row.items()}


TICDC_OPEN = {"u": {"id": {"t": 3, "h": True, "f": 11, "v": 1}, "name": {"t": 15, "f": 64, "v": "amber"}}}
TICDC_SIMPLE = {
    "version": 1,
    "database": "shopdb",
    "table": "customers",
    "tableID": 148,
    "type": "INSERT",
    "commitTs": 447_507_027_004_751_877,
    "buildTs": 1_700_000_000_000,
    "schemaVersion": 447_507_026_559_631_361,
    "data": {"id": "1", "name": "amber", "amount": "9.50"},
}
CANAL_PROTOBUF = base64.b64decode(
    "EAEYBypjEmEKMAgBEg1iaW5sb2cuMDAwMDAyGJvAEyDnJCoFVVRGLTgwwIScxaE0OAJCAEoAUD5YBxACGisQB1onVVBEQVRFIGV2b2x2aW5nIFNFVCBh"
    "ID0gMTEgV0hFUkUgaWQgPSAx"
)
"""a packet that Canal 1.1.7 wrote with flatMessage=false"""
CONNECT_STRUCT = b"Struct{id=1,name=amber,amount=9.50}"
"""what Kafka Connect's StringConverter writes"""
JSON_SCHEMA_FRAME = b"\x00\x00\x00\x00\x07"
"""the prefix of Confluent's serializers: zero and the schema's id"""
