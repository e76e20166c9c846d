"""Random transactions over seven tables of PostgreSQL. The same seed gives the same statements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

_WORDS: Final = (
    *("Kiste", "Deckel", "Öse", "Schraube", "naïve", "東京", "🚀", "quote'd", "back\\slash", "tab\there", '"doppelt"'),
    *("%s", "{j}", "[]"),
)
_SIZE: Final = 2400  # of a large value [characters]
_CHANGES: Final = 220  # before each moment


class Table(NamedTuple):
    keys: Sequence[str]
    columns: Mapping[str, str]
    """PostgreSQL's types"""


ODD: Final = "Andere Tabelle"
TABLES: Final[dict[str, Table]] = {
    "teile": Table(
        ["nr"],
        {
            "nr": "integer", "klein": "smallint", "gross": "bigint", "preis": "numeric(12,3)", "frei": "numeric", "x": "real",
            "y": "double precision", "ja": "boolean", "c": "char(4)", "v": "varchar(40)", "t": "text",
        },
    ),
    "zeiten": Table(
        ["k1", "k2"],
        {
            "k1": "integer", "k2": "varchar(10)", "d": "date", "ts": "timestamp", "tz": "timestamptz", "ti": "time",
            "iv": "interval",
        },
    ),
    "roh": Table(
        ["id"],
        {
            "id": "uuid", "b": "bytea", "j": "json", "jb": "jsonb", "arr": "integer[]", "tarr": "text[]", "net": "inet",
            "e": "stimmung", "r": "int4range",
        },
    ),
    "lang": Table(["id"], {"id": "integer", "kurz": "text", "gross": "text", "n": "integer"}),
    "voll": Table(["id"], {"id": "integer", "a": "text", "gross": "text"}),
    "index_id": Table(["code"], {"code": "varchar(12)", "menge": "integer", "gross": "text"}),
    ODD: Table(["Der Schlüssel"], {"Der Schlüssel": "integer", "ein.Punkt": "text", 'Mit "Zitat': "text"}),
}  # fmt: skip
_AFTER: Final = """
ALTER TABLE lang ALTER gross SET STORAGE EXTERNAL; ALTER TABLE voll ALTER gross SET STORAGE EXTERNAL;
ALTER TABLE voll REPLICA IDENTITY FULL; ALTER TABLE index_id ALTER code SET NOT NULL;
CREATE UNIQUE INDEX ix ON index_id (code); ALTER TABLE index_id REPLICA IDENTITY USING INDEX ix;
ALTER TABLE index_id ALTER gross SET STORAGE EXTERNAL;
"""


def named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quoted(value: Any) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def create() -> str:
    """The statements that create the tables."""
    statements = ["CREATE TYPE stimmung AS ENUM ('gut','sehr gut','mäßig');"]
    for name, (keys, columns) in TABLES.items():
        parts = [f"{named(column)} {type}" for column, type in columns.items()]
        if name != "index_id":
            parts.append(f"PRIMARY KEY ({', '.join(map(named, keys))})")
        statements.append(f"CREATE TABLE {named(name)} ({', '.join(parts)});")
    return "\n".join([*statements, _AFTER])


class Scenario:
    """The transactions. The scenario knows the keys that exist, but not the rows."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.live: dict[str, set[tuple[Any, ...]]] = {name: set() for name in TABLES}

    def transactions(self) -> Iterator[str]:
        """The transactions before a moment."""
        done = 0
        while done < _CHANGES:
            count = self.random.choice([1, 1, 2, 5])
            done += count
            changes = [self._change() for _ in range(count)]
            if self.random.random() < 0.06:
                changes.insert(0, "SELECT pg_logical_emit_message(true,'x','hallo');")
            yield "\n".join(["BEGIN;", *changes, "COMMIT;"])

    def _change(self) -> str:
        random = self.random
        table = random.choice([*TABLES, "lang", "voll", "index_id"])
        keys, columns = TABLES[table]
        key = self._key(table)
        at = tuple(key.values())
        where = " AND ".join(f"{named(column)} = {quoted(value)}" for column, value in key.items())
        draw = random.random()
        if random.random() < 0.012:
            self.live[table].clear()
            return f"TRUNCATE {named(table)};"
        if at not in self.live[table]:
            self.live[table].add(at)
            row = key | self._others(table)
            values = ", ".join(map(quoted, row.values()))
            return f"INSERT INTO {named(table)} ({', '.join(map(named, row))}) VALUES ({values});"
        if draw < 0.15:
            self.live[table].discard(at)
            return f"DELETE FROM {named(table)} WHERE {where};"
        some = {
            column: value
            for column, value in self._others(table).items()
            if random.random() < 0.4 and column != "gross"
        }
        if draw < 0.4:
            to = self._key(table)
            if tuple(to.values()) not in self.live[table]:
                self.live[table].discard(at)
                self.live[table].add(tuple(to.values()))
                some = to | some
        if draw > 0.9 and columns.get("gross") == "text":
            some["gross"] = self._long()
        if not some:
            some = {column: self._value(type) for column, type in list(columns.items())[-1:] if column not in keys}
        changed = ", ".join(f"{named(column)} = {quoted(value)}" for column, value in some.items())
        return f"UPDATE {named(table)} SET {changed} WHERE {where};"

    def _key(self, table: str) -> dict[str, Any]:
        random = self.random
        match table:
            case "teile":
                return {"nr": random.randrange(30)}
            case "zeiten":
                return {"k1": random.randrange(6), "k2": random.choice("pqrst") + str(random.randrange(3))}
            case "roh":
                return {"id": f"{random.randrange(24):032x}"}
            case "lang":
                return {"id": random.randrange(20)}
            case "voll":
                return {"id": random.randrange(15)}
            case "index_id":
                return {"code": "c" + str(random.randrange(20))}
        return {"Der Schlüssel": random.randrange(12)}

    def _others(self, table: str) -> dict[str, Any]:
        """Values of the columns that are not in the key."""
        keys, columns = TABLES[table]
        return {
            column: self._long()
            if column == "gross" and type == "text" and self.random.random() < 0.7
            else self._value(type)
            for column, type in columns.items()
            if column not in keys
        }

    def _word(self) -> str:
        return self.random.choice(_WORDS) + str(self.random.randrange(1000))

    def _long(self) -> str:
        return "".join(self.random.choice("abcdefgh") for _ in range(_SIZE))

    def _value(self, type: str) -> Any:
        random = self.random
        if random.random() < 0.12:
            return None
        match type:
            case "integer":
                return random.choice([0, 1, -1, 2**31 - 1, -(2**31), random.randrange(10**6)])
            case "bigint":
                return random.choice([2**63 - 1, -(2**63), 0, random.randrange(10**15), 9007199254740993])
            case "varchar(40)" | "text":
                return self._word()
            case "varchar(10)":
                return random.choice("pqrst") + str(random.randrange(5))
            case "varchar(12)":
                return "c" + str(random.randrange(30))
            case "uuid":
                return f"{random.randrange(40):032x}"
            case "bytea":
                return "\\x" + bytes(random.randrange(256) for _ in range(random.randrange(12))).hex()
            case "json":
                return json.dumps({"a": [1, None, self._word()], "b": {"c": 1.50}})
            case "jsonb":
                return json.dumps([self._word(), {"z": 2**53 + 1}])
        return random.choice(_CHOICES[type])


_CHOICES: Final[dict[str, list[Any]]] = {
    "smallint": [0, -32768, 32767, 7],
    "numeric(12,3)": ["0", "1.5", "-123456789.125", "0.001", "999999999.999"],
    "numeric": ["0", "1e-20", "12345678901234567890123456789.5", "NaN", "3.10"],
    "real": ["0", "1.5", "-3.4e38", "1e-30", "NaN", "Infinity"],
    "double precision": ["0.1", "1e308", "-5e-324", "NaN", "-Infinity", "123456.789"],
    "boolean": ["true", "false"],
    "char(4)": ["ab", "", "wxyz"],
    "date": ["2024-02-29", "1582-10-04", "0001-01-01", "9999-12-31", "1970-01-01"],
    "timestamp": ["2024-02-29 12:34:56.789012", "1900-01-01 00:00:00", "9999-12-31 23:59:59.999999"],
    "timestamptz": ["2024-02-29 12:34:56.789012+05:30", "1969-12-31 23:59:59.5-08"],
    "time": ["00:00:00", "23:59:59.999999", "12:00:01.5"],
    "interval": ["1 day", "1 year 2 mons", "-03:04:05.678"],
    "integer[]": ["{}", "{1,NULL,-3}", "{{1,2},{3,4}}"],
    "text[]": ["{}", '{"a b",NULL,"c\\"d"}'],
    "inet": ["10.1.2.3", "::1/64"],
    "stimmung": ["gut", "sehr gut", "mäßig"],
    "int4range": ["[1,5)", "empty"],
}
"""values of types, each as likely as the others"""
