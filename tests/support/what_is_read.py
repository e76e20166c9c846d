"""A case for each line of docs/what-is-read.md: messages, and the changes that they give.

The messages are those of ``tests.support.system_messages``, which names their origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.support import system_messages as m
from tests.support.cdc_golden import Record
from tests.support.system_messages import COLUMNS, ROW, canal, envelope, maxwell, maxwell_key, record, with_schema

KEY = {"id": 1}
INSERT, READ, UPSERT, DELETE, TRUNCATE = "INSERT", "READ", "UPSERT", "DELETE", "TRUNCATE"


class Case(NamedTuple):
    """Messages and the operations, ids and errors of their changes."""

    records: Sequence[Record]
    changes: Sequence[tuple[str | None, int | None, str | None]] = ()
    format: str = "debezium"
    options: Mapping[str, Any] = {}


def rows(*ops: str) -> list[tuple[str | None, int | None, str | None]]:
    """Changes of the row with the id 1."""
    return [(op, None if op == TRUNCATE else 1, None) for op in ops]


def error(code: str) -> list[tuple[str | None, int | None, str | None]]:
    """A message with an error. Whether its row has an operation or an id is not said."""
    return [(None, None, code)]


def of_connector(name: str, after: Any = ROW) -> Case:
    return Case([record(envelope(connector=name, after=after), KEY)], rows(INSERT))


def of_canal(*messages: Any, changes: Sequence[Any] = (), **options: Any) -> Case:
    return Case([record(message) for message in messages], changes, "canal", options)


def of_system(format: str, *messages: Any, changes: Sequence[Any] = (), **options: Any) -> Case:
    return Case([record(message) for message in messages], changes, format, options)


def of_maxwell(*messages: Any, changes: Sequence[Any] = (), key: Any = None, **options: Any) -> Case:
    return Case([record(message, key or maxwell_key(id=1)) for message in messages], changes, "maxwell", options)


def tombstone(key: Any, changes: Sequence[Any], **options: Any) -> Case:
    """A tombstone after a row of the same topic."""
    return Case([record(envelope(), KEY), record(None, key)], [*rows(INSERT), *changes], options=options)


DECIMAL = {"id": "INT", "name": "STRING", "amount": "Decimal(10,2)"}
TEXTS = {name: str(value) for name, value in ROW.items()}
WRAPPED = with_schema(envelope(after=ROW | {"amount": m.decimal_bytes("9.50")}), m.connect_schema())
FLAT = ROW
MOVED = [
    record(envelope("d", ROW), KEY, headers=[("__debezium.newkey", b'{"id":2}')]),
    record(None, KEY, headers=[("__debezium.newkey", b'{"id":2}')]),
    record(envelope(after=ROW | {"id": 2}), {"id": 2}, headers=[("__debezium.oldkey", b'{"id":1}')]),
]
COCKROACHDB = {
    "before": None,
    "after": ROW,
    "op": "c",
    "source": {
        "changefeed_sink": "kafka",
        "database_name": "shopdb",
        "schema_name": "public",
        "table_name": "customers",
    },
    "ts_ns": 1_700_000_000_000_000_000,
}
WATERMARK = canal("TIDB_WATERMARK", isDdl=False, database="", table="", _tidb={"watermarkTs": 1})

SECTIONS: dict[str, dict[str, Case]] = {
    "Debezium's connectors": {
        "MySQL, MariaDB": Case(
            [record(envelope(connector=name), KEY) for name in ("mysql", "mariadb")], rows(INSERT, INSERT)
        ),
        "PostgreSQL": of_connector("postgresql"),
        "SQL Server": of_connector("sqlserver"),
        "Oracle": of_connector("oracle"),
        "Db2": of_connector("db2"),
        "Informix": of_connector("informix"),
        "Vitess": of_connector("vitess"),
        "Spanner": of_connector("spanner"),
        "Spanner, an update with `OLD_AND_NEW_VALUES`": Case(
            [record(envelope("u", ROW, connector="spanner", value_capture_type="OLD_AND_NEW_VALUES"), KEY)],
            rows("UPDATE"),
        ),
        "Spanner, an update with `NEW_VALUES`": Case(
            [record(envelope("u", connector="spanner", value_capture_type="NEW_VALUES"), KEY)], error("WRONG_FORMAT")
        ),
        "Cassandra": Case(
            [record(envelope("i", after=m.cassandra_cells(ROW), connector="cassandra"), KEY)], rows(INSERT)
        ),
        "Cassandra, range tombstone": Case(
            [record(envelope("r", after=m.cassandra_cells(ROW), connector="cassandra"), KEY)], error("UNKNOWN_OPCODE")
        ),
        "TiCDC, `protocol=debezium`": of_connector("TiCDC"),
        "TiCDC, `debezium-disable-schema`": Case(
            [record({"payload": envelope(connector="TiCDC")}, {"payload": KEY})], rows(INSERT)
        ),
        "CockroachDB, changefeed with `envelope=enriched`": Case([record(COCKROACHDB, KEY)], rows(INSERT)),
        "MongoDB": Case([record(envelope(connector="mongodb", after='{"_id":1}'), {"id": "1"})], error("WRONG_FORMAT")),
        "YugabyteDB, ScyllaDB, whose columns are objects with a value": Case(
            [record(envelope(after={"id": {"value": 1}, "name": None}, connector="scylla"), KEY)], error("WRONG_FORMAT")
        ),
    },
    "Debezium's messages": {
        "create, update, delete": Case(
            [
                record(envelope(), KEY),
                record(envelope("u", ROW), KEY),
                record(envelope("d", ROW), KEY),
            ],
            rows(INSERT, "UPDATE", DELETE),
        ),
        "row of a snapshot, also incremental": Case(
            [record(envelope("r", snapshot=kind), KEY) for kind in ("true", "incremental")], rows(READ, READ)
        ),
        'row of an incremental snapshot without a position, `order="source"`': Case(
            [record(envelope("r", connector="postgresql", snapshot="incremental", lsn=None, sequence=None), KEY)],
            error("MISSING_FIELD"),
            options={"order": "source"},
        ),
        "truncate": Case([record(envelope("t"))], rows(TRUNCATE)),
        "tombstone with a key": tombstone(KEY, rows(DELETE)),
        "delete without `before`": Case([record(envelope("d"), KEY)], rows(DELETE)),
        "delete without `before` and key": Case([record(envelope("d"))], error("MISSING_FIELD")),
        "change of the key": Case(MOVED, [*rows(DELETE, DELETE), (INSERT, 2, None)]),
        "record with neither key nor value": Case([record(None)]),
        "row of another table": Case([record(envelope(table="orders"), KEY)]),
        "transaction's begin and end": Case([record(one, {"id": "571"}) for one in (m.BEGIN, m.END)]),
        "heartbeat": Case([record(m.HEARTBEAT, {"serverName": "shop"})]),
        "schema change": Case([record(m.SCHEMA_CHANGE, {"databaseName": "shopdb"})]),
        "logical decoding message": Case([record(m.LOGICAL_MESSAGE, {"prefix": "outbox"})]),
        "row of the signal table": Case([record(envelope(table="dbz_signal", after={"id": "1", "type": "x"}))]),
        "unknown operation": Case([record(envelope("z"), KEY)], error("UNKNOWN_OPCODE")),
    },
    "Converters": {
        "JsonConverter with schemas": Case(
            [record(WRAPPED, with_schema(KEY, m.key_schema()))], rows(INSERT), options={"columns": None}
        ),
        "JsonConverter without schemas": Case(
            [record(WRAPPED["payload"], KEY)], rows(INSERT), options={"columns": DECIMAL}
        ),
        "JsonConverter, `decimal.format=NUMERIC`": Case(
            [record(m.text(envelope()).replace(b'"9.50"', b"9.50"), KEY)], rows(INSERT), options={"columns": DECIMAL}
        ),
        "CloudEventsConverter, JSON": Case([record(m.cloud_event(envelope()), KEY)], rows(INSERT)),
        "CloudEventsConverter, JSON with schemas": Case(
            [record(m.cloud_event(envelope()) | {"data": WRAPPED}, with_schema(KEY, m.key_schema()))],
            rows(INSERT),
            options={"columns": None},
        ),
        "CloudEventsConverter, data in Avro": Case(
            [
                record(
                    m.cloud_event(envelope())
                    | {"datacontenttype": "application/avro", "dataschema": "http://registry/7", "data": "AAAAAAcC"},
                    KEY,
                )
            ],
            error("WRONG_FORMAT"),
        ),
        "Avro without `schemas`": Case([record(m.JSON_SCHEMA_FRAME + b"\x00\x02\x02\x0aamber")], error("WRONG_FORMAT")),
        "Confluent's JsonSchemaConverter": Case(
            [record(m.JSON_SCHEMA_FRAME + m.text(envelope()), m.JSON_SCHEMA_FRAME + m.text(KEY))], rows(INSERT)
        ),
        "ProtobufConverter": Case(
            [record(m.JSON_SCHEMA_FRAME + b"\x00\x12\x09\x08\x01\x12\x05amber")], error("WRONG_FORMAT")
        ),
        "StringConverter": Case([record(m.CONNECT_STRUCT, b"Struct{id=1}")], error("WRONG_FORMAT")),
        "truncated JSON": Case([record(m.text(envelope())[:60], KEY)], error("BAD_JSON")),
    },
    "Keys": {
        "object": tombstone(KEY, rows(DELETE)),
        "object with schema": tombstone(with_schema(KEY, m.key_schema()), rows(DELETE)),
        "one value, table with one key column": tombstone(1, rows(DELETE)),
        "one value, table with two key columns": tombstone(1, error("MISSING_FIELD"), keys=("id", "name")),
        "text that is not JSON": tombstone(b"Struct{id=1}", error("MISSING_FIELD")),
        "number in a registry's frame": tombstone(m.JSON_SCHEMA_FRAME + b"1", error("MISSING_FIELD")),
        "object without the key's columns": tombstone({"name": "amber"}, error("MISSING_FIELD")),
        "object without one of the key's columns": tombstone(
            {"name": "amber"}, error("MISSING_FIELD"), keys=("id", "name")
        ),
        "object with a NULL": Case(
            [record(envelope(), KEY | {"name": "amber"}), record(None, KEY | {"name": None})],
            [*rows(INSERT), *error("MISSING_FIELD")],
            options={"keys": None},
        ),
    },
    "Transforms": {
        "ExtractNewRecordState": Case([record(FLAT, KEY), record(None, KEY)], rows(UPSERT, DELETE)),
        "ExtractNewRecordState, `add.fields=op,table`": Case(
            [record(FLAT | {"__op": op, "__table": "customers"}, KEY) for op in "cur"],
            rows(INSERT, "UPDATE", READ),
        ),
        "ExtractNewRecordState, `delete.tombstone.handling.mode=rewrite`": Case(
            [record(FLAT | {"__deleted": deleted}, KEY) for deleted in ("false", "true")], rows(UPSERT, DELETE)
        ),
        "ExtractNewRecordState, `add.fields=table` of another table": Case([record(FLAT | {"__table": "orders"}, KEY)]),
        "ExtractNewRecordState, columns like those of a notice": Case(
            [record({"id": 1, "status": status}, KEY) for status in ("BEGIN", "END")],
            rows(UPSERT, UPSERT),
            options={"columns": {"id": "INT", "status": "STRING"}},
        ),
        "ByLogicalTableRouter": Case(
            [record(envelope(), KEY | {"__dbz__physicalTableIdentifier": "shop.shopdb.customers_7"})], rows(INSERT)
        ),
        "RegexRouter, tombstone in a renamed topic": Case(
            [record(one, KEY, topic="prod.cdc.customers_v2") for one in (envelope(), None)], rows(INSERT, DELETE)
        ),
        "RegexRouter, tombstone of an unknown table": Case(
            [
                record(envelope(), KEY, topic="prod.cdc.a"),
                record(envelope(table="orders"), KEY, topic="prod.cdc.b"),
                record(None, KEY, topic="prod.cdc.c"),
            ],
            [*rows(INSERT), *error("MISSING_FIELD")],
        ),
        "ReplaceField, a column left out": Case([record({"id": 1, "name": "amber"}, KEY)], rows(UPSERT)),
        "ReplaceField, a column of the key left out": Case([record({"name": "amber"}, KEY)], rows(UPSERT)),
        "ReplaceField, all columns left out": Case([record({"colour": "red"}, KEY)], error("MISSING_FIELD")),
        "ReplaceField, `source` left out": Case(
            [record({name: value for name, value in envelope().items() if name != "source"}, KEY)], rows(INSERT)
        ),
        "Flatten": Case(
            [
                record({"after.id": 1, "after.name": "amber", "source.table": "customers", "op": "c"}, KEY),
                record({"before.id": 1, "after": None, "source.table": "customers", "op": "d"}, KEY),
            ],
            error("MISSING_FIELD") * 2,
        ),
        "HoistField": Case([record({"line": FLAT}, KEY)], error("MISSING_FIELD")),
        "EventRouter (outbox)": Case(
            [record({"aggregateid": "1", "payload": '{"total":5}'}, b"1")], error("MISSING_FIELD")
        ),
        "an object without an envelope, in a topic of envelopes": Case(
            [record(envelope(), KEY), record({"id": 5, "level": "INFO"}, KEY)], [*rows(INSERT), *error("MISSING_FIELD")]
        ),
        "a flattened row with `__op` and `__deleted` that differ": Case(
            [record(FLAT | {"__op": "u", "__deleted": "true"}, KEY)], error("BAD_FIELD")
        ),
    },
    "Canal and Maxwell": {
        "Canal: INSERT, UPDATE, DELETE": of_canal(
            canal("INSERT", [TEXTS, TEXTS]),
            canal("UPDATE", [TEXTS], [{"name": "x"}]),
            canal("DELETE", [TEXTS]),
            changes=rows(INSERT, INSERT, "UPDATE", DELETE),
        ),
        "Canal: TRUNCATE": of_canal(canal("TRUNCATE", sql="TRUNCATE TABLE customers"), changes=rows(TRUNCATE)),
        "Canal: TRUNCATE with rows, INSERT with `isDdl`": of_canal(
            canal("TRUNCATE") | {"data": [TEXTS]}, canal(isDdl=True), changes=error("BAD_FIELD") * 2
        ),
        "Canal, Maxwell: a row without the names of its table and database": of_canal(
            canal(database=None, table=None), changes=error("MISSING_FIELD")
        ),
        "Canal: other DDL": of_canal(
            *(canal(one, sql="…") for one in ("CREATE", "ALTER", "ERASE", "RENAME", "CINDEX"))
        ),
        "Canal: QUERY": of_canal(canal("QUERY", isDdl=False, database="", table="", sql="UPDATE customers …")),
        "Canal: row of another table": of_canal(canal(table="orders")),
        "Canal: `flatMessage=false`": of_canal(m.CANAL_PROTOBUF, changes=error("WRONG_FORMAT")),
        "Canal: without rows": of_canal(canal(data=[]), changes=error("MISSING_FIELD")),
        "TiCDC, `protocol=canal-json`": of_canal(
            canal(id=0, es=1_700_000_000_000, _tidb={"commitTs": 163_963_309_467_037_594}), changes=rows(INSERT)
        ),
        "TiCDC, `protocol=canal-json`, watermark": of_canal(WATERMARK),
        "TiCDC, a row that is larger than a message may be": of_canal(
            canal(data=[{"id": "1"}], _tidb={"commitTs": 163_963_309_467_037_594, "onlyHandleKey": True}),
            changes=error("MISSING_FIELD"),
        ),
        "Flink's `canal-json`": of_canal(
            {"data": [ROW], "type": "INSERT"}, {"data": [ROW], "type": "DELETE"}, changes=rows(INSERT, DELETE)
        ),
        "Maxwell: insert, update, delete": of_maxwell(
            maxwell(), maxwell("update", old={"name": "x"}), maxwell("delete"), changes=rows(INSERT, "UPDATE", DELETE)
        ),
        "Maxwell: bootstrap-insert": of_maxwell(maxwell("bootstrap-insert"), changes=rows(READ)),
        "Maxwell: bootstrap-start, bootstrap-complete": of_maxwell(
            *(maxwell(type, {}) for type in ("bootstrap-start", "bootstrap-complete")), key=maxwell_key(_uuid="a")
        ),
        "Maxwell: DDL": of_maxwell(
            *(
                {"database": "shopdb", "table": "customers", "type": type, "ts": 1_700_000_000_000, "sql": "…"}
                for type in ("table-create", "table-alter", "table-drop", "database-create", "database-drop")
            ),
            key=b"79404266-0e83-4927-835e-b2ec9477be80",
        ),
        "Maxwell: its own tables": of_maxwell(maxwell(database="maxwell", table="bootstrap")),
        "Maxwell: row of another table": of_maxwell(maxwell(table="orders")),
        "Maxwell: `kafka_key_format=array`": of_maxwell(
            maxwell(), changes=rows(INSERT), key=["shopdb", "customers", [{"id": 1}]]
        ),
        "Maxwell: `output_nulls=false`": of_maxwell(maxwell(data={"id": 1}), changes=rows(INSERT), nulls="absent"),
        "Maxwell: a column that `data` does not have": of_maxwell(maxwell(data={"id": 1}), changes=rows(INSERT)),
        "Flink's `maxwell-json`": of_maxwell(
            {"data": ROW, "type": "insert"}, {"data": ROW, "type": "delete"}, changes=rows(INSERT, DELETE)
        ),
        "Flink's `debezium-json`": Case(
            [
                record({"before": None, "after": ROW, "op": "c"}),
                record({"before": ROW, "after": None, "op": "d"}),
            ],
            rows(INSERT, DELETE),
        ),
    },
    "AWS DMS and wal2json": {
        "DMS: insert, update, delete": of_system(
            "dms", m.dms(), m.dms("update"), m.dms("delete"), changes=rows(INSERT, "UPDATE", DELETE)
        ),
        "DMS: load": of_system("dms", m.dms("load"), changes=rows(READ)),
        "DMS: truncate-table, drop-table": of_system(
            "dms", m.dms("truncate-table"), m.dms("drop-table"), changes=rows(TRUNCATE, TRUNCATE)
        ),
        "DMS: create-table and other control records": of_system(
            "dms", m.dms("create-table", control=m.DMS_TABLE), m.dms("add-column"), m.dms("rename-table")
        ),
        "DMS: row of another table": of_system("dms", m.dms(metadata={"table-name": "orders"})),
        "DMS: a column that `data` does not have": of_system("dms", m.dms(data={"id": 1}), changes=rows(INSERT)),
        "DMS: truncate-table without the name of a table": of_system(
            "dms", m.dms("truncate-table", metadata={"table-name": ""}), changes=error("MISSING_FIELD")
        ),
        "wal2json: I, U, D": of_system(
            "wal2json",
            m.wal2json(),
            m.wal2json("U", identity=KEY),
            m.wal2json("D", None, KEY),
            changes=rows(INSERT, "UPDATE", DELETE),
        ),
        "wal2json: T": of_system("wal2json", m.wal2json("T", None), changes=rows(TRUNCATE)),
        "wal2json: B, C, M": of_system(
            "wal2json",
            *({"action": action, "xid": 571, "lsn": "0/1561028"} for action in "BC"),
            {"action": "B"},
            {"action": "M", "transactional": True, "prefix": "x", "content": "hello"},
        ),
        "wal2json: row of another table": of_system("wal2json", m.wal2json(table="orders")),
        "wal2json: a column that `columns` does not have": of_system(
            "wal2json", m.wal2json("U", {"id": 1}, KEY), changes=rows("UPDATE")
        ),
        "wal2json: an item without a value": of_system(
            "wal2json", m.wal2json(columns=[{"name": "id", "type": "integer"}]), changes=error("BAD_FIELD")
        ),
        "wal2json: format version 1": of_system(
            "wal2json", {"change": [{"kind": "insert"}]}, changes=error("WRONG_FORMAT")
        ),
    },
    "GoldenGate and DataHub": {
        "GoldenGate: I, U, D": of_system(
            "ogg",
            m.goldengate("I"),
            m.goldengate("U", ROW),
            m.goldengate("D", ROW, None),
            changes=rows(INSERT, "UPDATE", DELETE),
            table="SHOPDB.CUSTOMERS",
        ),
        "GoldenGate: T": of_system(
            "ogg", m.goldengate("T", None, None), changes=rows(TRUNCATE), table="SHOPDB.CUSTOMERS"
        ),
        "GoldenGate: a column that `after` does not have": of_system(
            "ogg", m.goldengate(after={"id": 1}), changes=rows(INSERT), table="SHOPDB.CUSTOMERS"
        ),
        "GoldenGate: row of another table": of_system(
            "ogg", m.goldengate(table="SHOPDB.ORDERS"), table="SHOPDB.CUSTOMERS"
        ),
        "Flink's `ogg-json`": of_system(
            "ogg",
            {"before": None, "after": ROW, "op_type": "I"},
            {"before": ROW, "after": None, "op_type": "D"},
            changes=rows(INSERT, DELETE),
        ),
        "DataHub: INSERT, UPDATE, DELETE": of_system(
            "datahub",
            m.datahub(),
            m.datahub("UPDATE", before=ROW, after=ROW),
            m.datahub("DELETE", before=ROW),
            changes=rows(INSERT, "UPDATE", DELETE),
            columns={"id": "LONG", "name": "STRING", "amount": "DECIMAL(10,2)"},
        ),
        "DataHub: TRUNCATE": of_system(
            "datahub",
            m.datahub("TRUNCATE", before=None),
            changes=rows(TRUNCATE),
            columns={"id": "LONG", "name": "STRING"},
        ),
        "DataHub: transactions, heartbeats and DDL": of_system(
            "datahub", *(m.datahub(op) for op in ("TRANSACTION_END", "MHEARTBEAT", "ALTER")), columns={"id": "LONG"}
        ),
    },
    "Messages of other systems": {
        "Canal, read as Debezium": Case([record(canal())], error("WRONG_FORMAT")),
        "Maxwell, read as Debezium": Case([record(maxwell())], error("WRONG_FORMAT")),
        "Debezium, read as Canal": of_canal(envelope(), changes=error("WRONG_FORMAT")),
        "Maxwell, read as Canal": of_canal(maxwell(), changes=error("WRONG_FORMAT")),
        "Debezium, read as Maxwell": of_maxwell(envelope(), changes=error("WRONG_FORMAT")),
        "Canal, read as Maxwell": of_maxwell(canal(), changes=error("WRONG_FORMAT")),
        "GoldenGate, read as Debezium": Case([record(m.goldengate())], error("WRONG_FORMAT")),
        "DataHub, read as Debezium": Case([record(m.datahub())], error("WRONG_FORMAT")),
        "AWS DMS, read as Debezium": Case([record(m.dms())], error("WRONG_FORMAT")),
        "wal2json, read as Debezium": Case([record(m.wal2json())], error("WRONG_FORMAT")),
        "rows with `_fivetran_deleted`, `_change_type`, `METADATA$ACTION`, `Op`, `op_type`": Case(
            [
                record(ROW | mark, KEY)
                for mark in (
                    {"_fivetran_deleted": True},
                    {"_change_type": "delete"},
                    {"METADATA$ACTION": "DELETE"},
                    {"Op": "D"},
                    {"op_type": "D"},
                )
            ],
            error("WRONG_FORMAT") * 5,
        ),
        "TiCDC, open protocol": Case([record(m.TICDC_OPEN)], error("MISSING_FIELD")),
        "TiCDC, simple protocol": Case([record(m.TICDC_SIMPLE)], error("WRONG_FORMAT")),
        "JSON that is no change": Case([record({"colour": "red"})], error("MISSING_FIELD")),
        "JSON that is no object": Case([record(one) for one in (b"5", b"[]", b'"a"')], error("BAD_JSON") * 3),
        "an update without its new row": Case([record(envelope("u", ROW, None), KEY)], error("MISSING_FIELD")),
        "a row that is no object": Case([record(envelope("c", None, "x"), KEY)], error("BAD_FIELD")),
    },
}
"""by the headings and the first cells of the page"""

OPTIONS: dict[str, Any] = {"columns": COLUMNS, "keys": ("id",)}
"""what cases do not say"""
POSITIONS: dict[str, tuple[Any, ...] | None] = {
    "MySQL, MariaDB": ("binlog", 3, 4711, 0),
    "PostgreSQL": (24, 42),
    "SQL Server": ("00000027:00000758:0005/00000027:00000758:0003", 1),
    "Oracle": (2_122_190, 2_122_185, 0),
    "Db2": ("00000000:00000000:0005/00000000:00000000:0003",),
    "CockroachDB, changefeed with `envelope=enriched`": None,
    "Vitess": None,
    "Spanner": None,
    "Cassandra": ("CommitLog-6-123.log", 54),
    "TiCDC, `protocol=debezium`": (447_507_027_004_751_877,),
}
"""the parts of ``_order_`` with ``order="source"``, without the epoch; None if a connector has no position"""
