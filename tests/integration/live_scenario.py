"""A table of orders that random statements change, and its content according to PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from tests.integration.postgres import Postgres

TABLE = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (
    shop text, id int, amount numeric(12, 2) NOT NULL, rate float8, is_paid boolean, sold date, seen timestamp,
    placed timestamptz, tags text[], serial uuid, page text, photo bytea, PRIMARY KEY (shop, id));
ALTER TABLE shop.orders ALTER page SET STORAGE EXTERNAL, ALTER photo SET STORAGE EXTERNAL;
"""
COLUMNS = {
    "shop": "STRING",
    "id": "INT",
    "amount": "Decimal(12,2)",
    "rate": "DOUBLE",
    "is_paid": "BOOLEAN",
    "sold": "Date",
    "seen": "MicroTimestamp",
    "placed": "ZonedTimestamp",
    "tags": "array<string>",
    "serial": "STRING",
    "page": "STRING",
    "photo": "BINARY",
}
NEW = "discount"
_MOST = 15  # rows
ALTER = f"ALTER TABLE shop.orders ADD COLUMN {NEW} numeric(6, 3);"


class Scenario:
    """Random statements that change the table. The scenario knows the existing keys, but not the rows."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.keys: list[tuple[str, int]] = []
        self.has_new = False
        self.done: Counter[str] = Counter()

    def steps(self, number: int) -> str:
        """Yield a number of transactions with one or several statements; some are rolled back."""
        said = []
        for _ in range(number):
            before, end = list(self.keys), "ROLLBACK" if self.random.random() < 0.05 else "COMMIT"
            statements = [self.statement() for _ in range(self.random.choice((1, 1, 1, 2, 4)))]
            said.append("\n".join(["BEGIN;", *statements, f"{end};"]))
            if end == "ROLLBACK":
                self.keys = before
            self.done[end] += 1
        return "\n".join(said)

    def truncate(self) -> str:
        self.keys = []
        return "TRUNCATE shop.orders;"

    def statement(self) -> str:
        draw = self.random.random()
        if not self.keys or (draw < 0.35 and len(self.keys) < _MOST):
            return self.insert()
        shop, id = key = self.random.choice(self.keys)
        where = f"WHERE shop = '{shop}' AND id = {id};"
        if draw < 0.5:
            self.keys.remove(key)
            return f"DELETE FROM shop.orders {where}"
        if draw < 0.65:
            self.keys.remove(key)
            shop, id = self.new_key()
            change = f"shop = '{shop}', id = {id}"  # large values do not change
            return f"UPDATE shop.orders SET {change} {where}"
        names = self.random.sample(self.changeable(), self.random.randint(1, 4))
        return f"UPDATE shop.orders SET {', '.join(f'{name} = {self.value(name)}' for name in names)} {where}"

    def insert(self) -> str:
        shop, id = self.new_key()
        names = self.changeable()
        values = ", ".join([f"'{shop}'", str(id), *map(self.value, names)])
        return f"INSERT INTO shop.orders (shop, id, {', '.join(names)}) VALUES ({values});"

    def new_key(self) -> tuple[str, int]:
        """A key that does not exist now. There are few, so that most have been those of other rows before."""
        free = [(shop, id) for shop in ("north", "süd") for id in range(10) if (shop, id) not in self.keys]
        self.keys.append(self.random.choice(free))
        return self.keys[-1]

    def changeable(self) -> list[str]:
        return [name for name in COLUMNS if name not in ("shop", "id")] + [NEW] * self.has_new

    def value(self, name: str) -> str:
        """A random value as a SQL literal."""
        random = self.random
        if name != "amount" and random.random() < 0.1:
            return "NULL"
        micros = f"{random.randrange(10**6):06d}"
        time = f"{random.randrange(1902, 2200)}-{random.randrange(1, 13):02d}-07 11:12:13.{micros}"
        values: dict[str, Callable[[], str]] = {
            "amount": lambda: str(Decimal(random.randrange(-(10**12) + 1, 10**12)) / 100),
            "rate": lambda: repr(random.uniform(-1e9, 1e9)),
            "is_paid": lambda: random.choice(("true", "false")),
            "sold": lambda: f"'{time[:10]}'",
            "seen": lambda: f"'{time}'",
            "placed": lambda: f"'{time}+{random.randrange(12):02d}'",
            "tags": lambda: f"ARRAY[{', '.join(random.choices(['NULL', repr('a'), repr('ü, b')], k=2))}]::text[]",
            "serial": lambda: f"'{random.randbytes(16).hex()}'",
            "page": lambda: f"'{random.randbytes(random.choice((5, 3000))).hex()}'",
            "photo": lambda: f"'\\x{random.randbytes(random.choice((5, 3000))).hex()}'",
            NEW: lambda: str(Decimal(random.randrange(-(10**6) + 1, 10**6)) / 1000),
        }
        return values[name]()


def truth(database: Postgres) -> list[dict[str, Any]]:
    """The database's rows with the Python types of Spark's rows."""
    read: dict[str, Callable[[Any], Any]] = {
        "amount": lambda value: Decimal(value).quantize(Decimal("0.01")),
        "rate": float,
        "sold": date.fromisoformat,
        "seen": datetime.fromisoformat,
        "placed": lambda value: datetime.fromisoformat(value).replace(tzinfo=None),
        "photo": lambda value: bytearray.fromhex(value.removeprefix("\\x")),
        NEW: lambda value: Decimal(value).quantize(Decimal("0.001")),
    }
    rows = [
        {name: value if value is None else read.get(name, lambda same: same)(value) for name, value in row.items()}
        for row in database.rows("shop.orders")
    ]
    return in_order(rows)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Some of the tables may have the new column before the others.
    reported = [{NEW: None} | {name: value for name, value in row.items() if not name.startswith("_")} for row in rows]
    return sorted(reported, key=lambda row: (row["shop"], row["id"]))
