"""The settings of the connectors of MariaDB's golden data, and of their variants."""

from __future__ import annotations

from pathlib import Path

from tests.data.generators.debezium.comparison import REDELIVERED
from tests.data.generators.debezium.scenario import Redelivery
from tests.data.generators.debezium.variants import variants
from tests.integration.mariadb import USER

VARIANTS = variants("op,table,source.file,source.pos,source.ts_ms")
"""the variants by connector"""
REDELIVERY = Redelivery(
    connector="a",
    variant="json",
    offsets_of=5,
    crash_after=7,
    settings={
        "variants": REDELIVERED,
        f"variant.{REDELIVERED}.format": "json",
        "database.server.id": "9200",
    },
)
"""The connector crashes after point 7, and continues from point 5."""

_OWN: dict[str, dict[str, str]] = {
    "a": {"binary.handling.mode": "bytes"},
    "b": {
        "binary.handling.mode": "bytes",
        "decimal.handling.mode": "string",
        "time.precision.mode": "connect",
        "provide.transaction.metadata": "true",
        "topic.heartbeat.prefix": "__debezium-heartbeat",
        "bigint.unsigned.handling.mode": "precise",
    },
    "c": {
        "binary.handling.mode": "hex",
        "decimal.handling.mode": "double",
        "time.precision.mode": "isostring",
        "heartbeat.interval.ms": "5000",
        "tombstones.on.delete": "false",
        "signal.data.collection": "shopdb.dbz_signal",
        "incremental.snapshot.chunk.size": "10",
        "converters": "bool",
        "bool.type": "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
        "bigint.unsigned.handling.mode": "precise",
        "include.query": "false",
    },
}


def settings(connector: str, port: int, place: Path) -> dict[str, str]:
    """The properties of a connector for the scenario's database."""
    found = {
        "topic.prefix": "shop",
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.port": str(port),
        "database.user": USER,
        "database.password": USER,
        "database.ssl.mode": "disable",
        "database.server.id": str(9000 + ord(connector)),
        "database.include.list": "shopdb",
        "include.schema.changes": "true",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(place / f"{connector}.history"),
        "schema.history.internal.store.only.captured.tables.ddl": "true",
        "custom.metric.tags": f"run={connector}",
        "variants": ",".join(VARIANTS[connector]),
    } | _OWN[connector]
    for variant, own in VARIANTS[connector].items():
        found |= {f"variant.{variant}.{name}": value for name, value in own.items()}
    return found
