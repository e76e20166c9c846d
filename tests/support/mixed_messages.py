"""A topic with messages of many kinds, and what each kind may become in the change table of ``shopdb.customers``.

The table of kinds states the contract for each format, without the package: a message becomes a *row*, becomes a row with an
*error*, or is left *out*. A stroke separates results that are both right. Each other system has its messages, too, and reads no
message but these.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from sparkwire.changes.declarations import SYSTEMS
from tests.support import system_messages as m
from tests.support.cdc_golden import Record
from tests.support.system_messages import MAKERS, canal, envelope, maxwell, maxwell_key, record, with_schema

ORDERS = "shop.shopdb.orders"
OUT = "out"
Make = Callable[[int, Random], Record]


class Kind(NamedTuple):
    name: str
    make: Make
    """a message about the row with this id"""
    debezium: str
    canal: str = "error"
    maxwell: str = "error"
    system: str = ""
    """the other system whose message it is"""

    def expected(self, format: str) -> list[str]:
        """What the message may become in the change table of a format."""
        if format in ("debezium", "canal", "maxwell"):
            return str(getattr(self, format)).split("|")
        return ["row"] if self.system == format else ["error", OUT]


def row(id: int, random: Random) -> dict[str, Any]:
    """A row with numbers as texts, as Canal and a Decimal mode of Debezium write them."""
    return {
        "id": id,
        "name": random.choice(["amber", "", "naïve café", "BEGIN"]),
        "amount": f"{random.randrange(999)}.50",
    }


def texts(id: int, random: Random) -> dict[str, str]:
    return {name: str(value) for name, value in row(id, random).items()}


def key(id: int) -> dict[str, int]:
    return {"id": id}


def change(op: str) -> Make:
    def make(id: int, random: Random) -> Record:
        image = row(id, random)
        return record(envelope(op, image if op == "d" else None, image), key(id))

    return make


def torn(id: int, random: Random) -> Record:
    whole = m.text(envelope(after=row(id, random)))
    return record(whole[: random.randrange(1, len(whole))], key(id))


def garbage(id: int, random: Random) -> Record:
    return record(bytes([random.randrange(0x80, 0xC0), *random.randbytes(random.randrange(1, 40))]), key(id))


def scalar(id: int, random: Random) -> Record:
    return record(random.choice([b"5", b'"text"', b"[]", b"true", b" ", b""]), key(id))


def canal_rows(type: str) -> Make:
    def make(id: int, random: Random) -> Record:
        rows = [texts(id, random) for _ in range(random.choice([1, 1, 3]))]
        old = [{"amount": "0.00"} for _ in rows] if type == "UPDATE" else None
        return record(canal(type, rows, old))

    return make


def maxwell_row(type: str) -> Make:
    def make(id: int, random: Random) -> Record:
        more = {"old": {"name": "x"}} if type == "update" else {}
        return record(maxwell(type, row(id, random), **more), maxwell_key(id=id))

    return make


KINDS = [
    # Debezium: changes of the table
    Kind("insert", change("c"), "row"),
    Kind("update", change("u"), "row"),
    Kind("snapshot", change("r"), "row"),
    Kind("delete", change("d"), "row"),
    Kind("delete without image", lambda k, random: record(envelope("d"), key(k)), "row"),
    Kind("delete without image and key", lambda k, random: record(envelope("d")), "error"),
    Kind("truncate", lambda k, random: record(envelope("t")), "row"),
    Kind(
        "with schema",
        lambda k, random: record(
            with_schema(envelope(after={"id": k, "name": "x", "amount": m.decimal_bytes("1.50")}), m.connect_schema()),
            with_schema(key(k), m.key_schema()),
        ),
        "row",
    ),
    Kind("cloud event", lambda k, random: record(m.cloud_event(envelope(after=row(k, random))), key(k)), "row"),
    Kind("flattened", lambda k, random: record(row(k, random) | {"__op": "c", "__deleted": "false"}, key(k)), "row"),
    Kind("flattened, deleted", lambda k, random: record(row(k, random) | {"__deleted": "true"}, key(k)), "row"),
    Kind("an object like a notice", lambda k, random: record({"id": k, "status": "BEGIN"}, key(k)), "error"),
    Kind("null key columns", lambda k, random: record(envelope(after=row(k, random) | {"id": None})), "error"),
    Kind("unknown operation", lambda k, random: record(envelope("z", after=row(k, random)), key(k)), "error"),
    Kind("no column of the table", lambda k, random: record({"colour": "red"}, b"7"), "error"),
    # Debezium: tombstones
    Kind("tombstone", lambda k, random: record(None, key(k)), "row"),
    Kind("tombstone with schema", lambda k, random: record(None, with_schema(key(k), m.key_schema())), "row"),
    Kind("tombstone as text", lambda k, random: record({"schema": None, "payload": None}, key(k)), "row"),
    Kind("tombstone of one value", lambda k, random: record(None, k), "row"),
    Kind("tombstone of a text", lambda k, random: record(None, b'"abc"'), "error"),
    Kind("tombstone of a struct", lambda k, random: record(None, b"Struct{id=%d}" % k), "error"),
    Kind("tombstone of nobody knows whom", lambda k, random: record(None, key(k), topic="prod.v2"), "error"),
    Kind("tombstone of another table", lambda k, random: record(None, key(k), topic=ORDERS), "out|error"),
    # Debezium: other messages
    Kind("another table", lambda k, random: record(envelope(table="orders"), key(k), topic=ORDERS), "out"),
    Kind(
        "transaction", lambda k, random: record(random.choice([m.BEGIN, m.END]), {"id": "571"}, topic="shop.tx"), "out"
    ),
    Kind(
        "heartbeat",
        lambda k, random: record(m.HEARTBEAT, {"serverName": "shop"}, topic="__debezium-heartbeat.shop"),
        "out",
    ),
    Kind("schema change", lambda k, random: record(m.SCHEMA_CHANGE, {"databaseName": "shopdb"}, topic="shop"), "out"),
    Kind(
        "logical message",
        lambda k, random: record(m.LOGICAL_MESSAGE, {"prefix": "outbox"}, topic="shop.message"),
        "out",
    ),
    # corrupt messages, and other converters
    Kind("torn", torn, "error"),
    Kind("garbage", garbage, "error"),
    Kind("scalar", scalar, "error"),
    Kind("nothing", lambda k, random: record(None), "out", "out", "out"),
    Kind(
        "JSON Schema",
        lambda k, random: record(m.JSON_SCHEMA_FRAME + m.text(envelope(after=row(k, random))), key(k)),
        "row|error",
    ),
    Kind("Avro", lambda k, random: record(m.JSON_SCHEMA_FRAME + b"\x00\x02\x02\x0aamber", key(k)), "error"),
    Kind("struct as text", lambda k, random: record(m.CONNECT_STRUCT, b"Struct{id=1}"), "error"),
    # other systems
    Kind("MongoDB", lambda k, random: record(envelope(after='{"_id":1}', connector="mongodb"), {"id": "1"}), "error"),
    Kind("GoldenGate", lambda k, random: record(m.goldengate(after=row(k, random))), "error"),
    Kind("Canal insert", canal_rows("INSERT"), "error", "row"),
    Kind("Canal update", canal_rows("UPDATE"), "error", "row"),
    Kind("Canal delete", canal_rows("DELETE"), "error", "row"),
    Kind("Canal truncate", lambda k, random: record(canal("TRUNCATE", sql="TRUNCATE TABLE customers")), "error", "row"),
    Kind("Canal statement", lambda k, random: record(canal("ALTER", sql="ALTER TABLE customers …")), "error", "out"),
    Kind("Canal query", lambda k, random: record(canal("QUERY", isDdl=False, database="", table="")), "error", "out"),
    Kind("Canal, another table", lambda k, random: record(canal(table="orders")), "error", "out"),
    Kind("Canal without rows", lambda k, random: record(canal(data=[])), "error", "error"),
    Kind("Canal without key", lambda k, random: record(canal(data=[{"id": None, "name": "x"}])), "error", "error"),
    Kind("Canal protobuf", lambda k, random: record(m.CANAL_PROTOBUF), "error", "error"),
    Kind("Maxwell insert", maxwell_row("insert"), "error", "error", "row"),
    Kind("Maxwell update", maxwell_row("update"), "error", "error", "row"),
    Kind("Maxwell delete", maxwell_row("delete"), "error", "error", "row"),
    Kind("Maxwell bootstrap", maxwell_row("bootstrap-insert"), "error", "error", "row"),
    Kind("Maxwell mark", lambda k, random: record(maxwell("bootstrap-start", {})), "error", "error", "out"),
    Kind("Maxwell, its own table", lambda k, random: record(maxwell(database="maxwell")), "error", "error", "out"),
    Kind("Maxwell, another table", lambda k, random: record(maxwell(table="orders")), "error", "error", "out"),
    Kind(
        "Maxwell statement",
        lambda k, random: record(maxwell("table-drop", None, sql="DROP TABLE …")),
        "error",
        "error",
        "out",
    ),
    Kind("Maxwell without row", lambda k, random: record(maxwell(data=None)), "error", "error", "error"),
]


OTHERS = [format for format in SYSTEMS if format not in ("canal", "maxwell")]
"""all systems without a column in the table"""


def _of_other_system(format: str, op: str) -> Kind:
    def make(id: int, random: Random) -> Record:
        new, old = row(id, random), row(id, random)
        after, before = {"INSERT": (new, None), "UPDATE": (new, old), "DELETE": (None, old)}[op]
        return record(MAKERS[format](op, after, before), key(id))

    return Kind(f"{format} {op}", make, "error", system=format)


KINDS += [_of_other_system(format, op) for format in OTHERS for op in ("INSERT", "UPDATE", "DELETE")]


def mixed(count: int, seed: int) -> tuple[list[Kind], list[Record]]:
    """Messages with their kinds, in random order; offset ``k`` is about the row with id ``k``."""
    random = Random(seed)
    kinds = [KINDS[k % len(KINDS)] for k in range(count)]
    random.shuffle(kinds)
    return kinds, [kind.make(offset, random)._replace(offset=offset) for offset, kind in enumerate(kinds)]
