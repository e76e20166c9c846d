"""Histories of a database as DataHub messages, with the resulting tables."""

from __future__ import annotations

import json
from random import Random
from typing import Any

KEYS = {"one": ["id"], "two": ["a", "b"]}
Row = dict[str, Any]


class DataHubHistory:
    """A database with two tables, and the messages of its changes."""

    def __init__(self, name: str, random: Random) -> None:
        self.name, self.random = name, random
        self.tables: dict[str, dict[str, Row]] = {table: {} for table in KEYS}
        self.messages: list[bytes] = []
        self.sequence = random.choice([1, 95, 9_990, 10**38 - 20])  # so that sequence ids have different lengths

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.sequence += self.random.choice([1, 1, 3, 7])
            self.change(self.random.choice(list(KEYS)))

    def change(self, table: str) -> None:
        rows = self.tables[table]
        kind = self.random.choice("iiiiuuuuuurrddxt")
        if kind == "i" or (not rows and kind in "urd"):
            self.insert(table)
        elif kind == "d":
            self.say(table, "DELETE", before=rows.pop(self.random.choice(list(rows))))
        elif kind in "ur":
            self.update(table, moves=kind == "r")
        elif kind == "x":
            self.say(table, self.random.choice(["ALTER", "TRANSACTION_END", "MHEARTBEAT", "UPSERT"]))
        elif self.random.random() < 0.2:
            rows.clear()
            self.say(table, self.random.choice(["TRUNCATE", "ERASE"]))

    def insert(self, table: str) -> None:
        row = self.row(table)
        if key_of(table, row) not in self.tables[table]:
            self.tables[table][key_of(table, row)] = row
            self.say(table, "INSERT", after=row)

    def update(self, table: str, moves: bool) -> None:
        rows = self.tables[table]
        old = rows[self.random.choice(list(rows))]
        new = self.row(table) if moves else old | {"v": self.random.randrange(10**9)}
        if moves and key_of(table, new) in rows:
            return
        del rows[key_of(table, old)]
        rows[key_of(table, new)] = new
        form = self.random.randrange(3)
        if form == 0:
            self.say(table, "UPDATE", before=old, after=new)
            return
        both = {"before": old, "after": new} if form == 1 else {}
        self.say(table, self.random.choice(["UPDATE_BEFOR", "UPDATE_BEFORE"]), **(both or {"before": old}))
        self.say(table, "UPDATE_AFTER", **(both or {"after": new}))

    def row(self, table: str) -> Row:
        key = {name: self.random.choice(["1", "2", "3", "x", 'q"']) for name in KEYS[table]}
        return key | {"v": self.random.randrange(10**9)}

    def say(self, table: str, op: str, **images: Row) -> None:
        payload: Row = {"op": op, "timestamp": {"eventTime": self.random.randrange(10**13)}}
        payload["sequenceId"] = self.random.choice([str(self.sequence), "0" + str(self.sequence)])
        payload |= {side: {"dataColumn": row} for side, row in images.items()}
        source = {"dbName": self.name, "tableName": table}
        self.messages.append(
            json.dumps({"schema": {"primaryKey": KEYS[table], "source": source}, "payload": payload}).encode()
        )

    def delivered(self) -> list[bytes]:
        """The messages in random order, some repeated, with invalid bytes in between."""
        messages = self.messages + self.random.choices(self.messages, k=len(self.messages) // 3) + [b"{", b""]
        self.random.shuffle(messages)
        return messages


def key_of(table: str, row: Row) -> str:
    return json.dumps([row[name] for name in KEYS[table]])
