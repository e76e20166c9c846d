"""The settings of the connectors of the golden data, and of their variants."""

from __future__ import annotations

_MODE, _FIELDS = "flat.delete.tombstone.handling.mode", "flat.add.fields"

Variants = dict[str, dict[str, dict[str, str]]]
"""the settings of each variant, by connector and name"""


def variants(added: str) -> Variants:
    """The variants of a database. ``added`` are the fields of the source in flattened messages."""
    return {
        "a": {
            "json": {"format": "json"},
            "json-schemas": {"format": "json-schemas"},
            "avro": {"format": "avro"},
            "json-nulls-kept": {"format": "json", "converter.replace.null.with.default": "false"},
            "flat-rewrite": {"format": "json", _MODE: "rewrite", _FIELDS: added},
            "flat-tombstone": {"format": "json", _MODE: "tombstone", _FIELDS: added},
            "flat-rewrite-with-tombstone": {"format": "json", _MODE: "rewrite-with-tombstone", _FIELDS: added},
            "flat-delete-to-tombstone": {"format": "json", _MODE: "delete-to-tombstone", _FIELDS: added},
            "flat-rewrite-schemas": {"format": "json-schemas", _MODE: "rewrite", _FIELDS: added},
            "flat-rewrite-avro": {"format": "avro", _MODE: "rewrite", _FIELDS: added},
            "flat-drop-headers": {"format": "json", _MODE: "drop", "flat.add.headers": added},
        },
        "b": {"alt-json": {"format": "json"}, "alt-json-schemas": {"format": "json-schemas"}},
        "c": {"ext-json": {"format": "json"}, "ext-json-schemas": {"format": "json-schemas"}},
    }


VARIANTS = variants("op,table,lsn,source.ts_ms")
"""the variants of PostgreSQL"""

_OWN: dict[str, dict[str, str]] = {
    "a": {"binary.handling.mode": "bytes"},
    "b": {
        "binary.handling.mode": "bytes",
        "decimal.handling.mode": "string",
        "time.precision.mode": "connect",
        "interval.handling.mode": "string",
        "hstore.handling.mode": "map",
        "provide.transaction.metadata": "true",
        "topic.heartbeat.prefix": "__debezium-heartbeat",
    },
    "c": {
        "binary.handling.mode": "hex",
        "decimal.handling.mode": "double",
        "time.precision.mode": "isostring",
        "include.unknown.datatypes": "true",
        "money.fraction.digits": "2",
        "unavailable.value.placeholder": "<unchanged>",
        "tombstones.on.delete": "false",
        "heartbeat.interval.ms": "5000",
        "signal.data.collection": "app.dbz_signal",
        "incremental.snapshot.chunk.size": "10",
    },
}


def settings(connector: str, port: int) -> dict[str, str]:
    """The properties of a connector for the scenario's database."""
    by_name = {
        "topic.prefix": "shop",
        "database.port": str(port),
        "database.dbname": "shoppg",
        "custom.metric.tags": f"run={connector}",  # otherwise the names of metrics collide, which costs a minute
        "slot.name": f"dbz_{connector}",
        "slot.drop.on.stop": "true",
        "publication.name": "dbz",
        "publication.autocreate.mode": "disabled",
        "status.update.interval.ms": "1000",
        "variants": ",".join(VARIANTS[connector]),
    } | _OWN[connector]
    for variant, own in VARIANTS[connector].items():
        by_name |= {f"variant.{variant}.{name}": value for name, value in own.items()}
    return by_name
