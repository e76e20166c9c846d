"""Random DataHub messages: every op, any order of keys, any white space, any escapes, odd values.

Here, an object is a list of pairs, so that it can have repeated keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

OPS = """
    INSERT UPDATE_BEFOR UPDATE_BEFORE UPDATE_AFTER UPDATE DELETE TRANSACTION_BEGIN TRANSACTION_END GTID XACOMMIT XAROLLBACK
    CREATE ALTER ERASE QUERY TRUNCATE RENAME CINDEX DINDEX MHEARTBEAT insert UPSERT
""".split()  # noqa: SIM905
TYPES = ["LONG", "STRING", "DOUBLE", "BOOLEAN", "DATE", "BYTES", "DECIMAL"]
NAMES = ["id", "name", "at", "blob", "price", "ok", "naïve", "名前", 'a"b', "back\\slash", "dataColumn", "op", ""]
STRINGS = [
    "",
    "joe",
    'say "hi"',
    "back\\slash",
    "tab\tline\n",
    "Zürich",
    "東京",
    "😀",
    "\u2028",
    "\x7f",
    '{"a":1}',
    "\x00",
    "a/b",
]
NUMBERS = [
    "0",
    "-0",
    "1",
    "9007199254740993",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551617",
    "1" * 40,
    "3.14",
    "1e5",
    "-2E-3",
]
TIMES = [
    "1605339932000",
    "0",
    "-1",
    "253402300799999",
    "253402300800000",
    "-62135596800000",
    "-62135596800001",
    "1590315269000",
]


@dataclass(frozen=True)
class Raw:
    """A JSON text that is written unchanged."""

    text: str


Pairs = list[tuple[str, Any]]


def message(random: Random) -> bytes:
    """One message. Most are valid; some lack a field, or have a field of a wrong type."""
    text = write(random, tree(random))
    blob = blanks(random) + text + blanks(random)
    return (b"\xef\xbb\xbf" if random.random() < 0.05 else b"") + blob.encode("utf-8", "surrogatepass")


def tree(random: Random) -> Pairs:
    columns = [(random.choice(NAMES), random.choice(TYPES)) for _ in range(random.randrange(6))]
    pairs = [
        ("schema", odd(random, schema(random, columns))),
        ("payload", odd(random, payload(random, columns))),
        ("version", odd(random, random.choice(["0.0.1", "1.0.0", Raw("1.0")]))),
    ]
    return mixed(random, pairs)


def schema(random: Random, columns: list[tuple[str, str]]) -> Pairs:
    items: list[Any] = [odd(random, mixed(random, [("name", n), ("type", t)])) for n, t in columns]
    key = [odd(random, n) for n, _ in columns[: random.randrange(3)]]
    source = [
        (k, odd(random, random.choice(STRINGS))) for k in ("dbType", "dbVersion", "dbName", "schemaName", "tableName")
    ]
    return mixed(
        random,
        [
            ("dataColumn", odd(random, items)),
            ("primaryKey", odd(random, key)),
            ("source", odd(random, mixed(random, source))),
        ],
    )


def payload(random: Random, columns: list[tuple[str, str]]) -> Pairs:
    times = [(k, odd(random, Raw(random.choice(TIMES)))) for k in ("eventTime", "systemTime", "checkpointTime")]
    sequence = random.choice(["1605339516000000004", Raw("1605339516000000004"), Raw("12345678901234567890123")])
    pairs: Pairs = [
        ("op", odd(random, random.choice(OPS))),
        ("sequenceId", odd(random, sequence)),
        ("timestamp", odd(random, mixed(random, times))),
    ]
    for image in ("before", "after"):
        if random.random() < 0.7:
            pairs.append((image, odd(random, mixed(random, [("dataColumn", odd(random, row(random, columns)))]))))
    if random.random() < 0.3:
        meta = random.choice(["", "AA==", "AA", "AAA", "rO0ABXNy", "rO0/+w==", "a_b=", "AA=", "A", "====", " AA=="])
        pairs.append(
            ("ddl", odd(random, mixed(random, [("text", odd(random, "alter table")), ("ddlMeta", odd(random, meta))])))
        )
    return mixed(random, pairs)


def row(random: Random, columns: list[tuple[str, str]]) -> Pairs:
    pairs = [(name, value(random, type)) for name, type in columns]
    if random.random() < 0.2:
        pairs += [(random.choice(NAMES), value(random, "DATE")) for _ in range(random.choice([1, 2, 70]))]
    random.shuffle(pairs)
    return pairs


def value(random: Random, type: str) -> Any:
    if random.random() < 0.1:
        return anything(random, 3)
    if type == "DATE":
        return Raw(random.choice(TIMES))
    if type == "BOOLEAN":
        return Raw(random.choice(["true", "false", "null"]))
    if type in ("LONG", "DOUBLE"):
        return Raw(random.choice(NUMBERS))
    return random.choice(STRINGS)


def odd(random: Random, usual: Any) -> Any:
    return anything(random, 2) if random.random() < 0.03 else usual


def anything(random: Random, depth: int) -> Any:
    kind = random.randrange(6 if depth else 4)
    if kind == 0:
        return random.choice(STRINGS)
    if kind == 1:
        return Raw(random.choice(NUMBERS + TIMES))
    if kind in (2, 3):
        return Raw(random.choice(["true", "false", "null"]))
    if kind == 4:
        return [anything(random, depth - 1) for _ in range(random.randrange(4))]
    return [(random.choice(NAMES), anything(random, depth - 1)) for _ in range(random.randrange(4))]


def mixed(random: Random, pairs: Pairs) -> Pairs:
    """The pairs in random order, some missing, some repeated, with other pairs in between."""
    pairs = [pair for pair in pairs if random.random() > 0.03]
    if random.random() < 0.1 and pairs:
        pairs.append((random.choice(pairs)[0], anything(random, 2)))
    if random.random() < 0.1:
        pairs.append((random.choice(NAMES), anything(random, 2)))
    if random.random() < 0.5:
        random.shuffle(pairs)
    return pairs


def write(random: Random, node: Any) -> str:
    if isinstance(node, Raw):
        return node.text
    if isinstance(node, str):
        return quoted(random, node)
    keyed = bool(node) and isinstance(node[0], tuple)
    items = [
        f"{quoted(random, i[0])}{space(random)}:{space(random)}{write(random, i[1])}" if keyed else write(random, i)
        for i in node
    ]
    inside = f"{space(random)},{space(random)}".join(items)
    left, right = "{}" if keyed or (not node and random.random() < 0.5) else "[]"
    return f"{left}{space(random)}{inside}{space(random)}{right}"


def quoted(random: Random, text: str) -> str:
    escape_some = random.random() < 0.2
    return '"' + "".join(escaped(random, c) if escape_some and random.random() < 0.5 else plain(c) for c in text) + '"'


def plain(character: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return short.get(character) or (f"\\u{ord(character):04x}" if character < " " else character)


def escaped(random: Random, character: str) -> str:
    if random.random() < 0.1:
        return random.choice(
            [
                "\\ud800",
                "\\udc00x",
                "\\ud83d\\u0041",
                "\\ud800\\ud83d\\ude00",
                "\\ud83d\\ue000",
                "\\ud83d\\uffff",
                "\\/",
                "\\b",
                "\\f",
                "\\r",
            ]
        )
    units = character.encode("utf-16-be", "surrogatepass")
    codes = [f"\\u{int.from_bytes(units[i : i + 2], 'big'):04x}" for i in range(0, len(units), 2)]
    return "".join(code.upper().replace("\\U", "\\u") if random.random() < 0.5 else code for code in codes)


def space(random: Random) -> str:
    return random.choice(["", "", "", " ", " ", "\n", "\t", "\r\n  "])


def blanks(random: Random) -> str:
    return space(random)


def mutated(random: Random, blob: bytes) -> bytes:
    """The message with a few bytes changed, removed, repeated or inserted."""
    data = bytearray(blob)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        if not data:
            break
        at, size = random.randrange(len(data)), random.choice([1, 1, 2, 5, 20])
        kind = random.randrange(5)
        if kind == 0:
            data[at] = random.choice(b'{}[]",:\\ \x00\x1f\x7f\x80\xc3\xe4\xed\xf0\xff0123456789eE.-+tfnu')
        elif kind == 1:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = data[at : at + size]
        else:
            del data[at:]
    return bytes(data)
