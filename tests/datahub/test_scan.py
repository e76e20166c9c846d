"""Scans that compare messages with a template, and masks that find quotes: each row as if it were alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from random import Random

import pyarrow as pa
import pytest

from sparkwire.core.column import binary_of
from sparkwire.datahub.layout import MESSAGE
from sparkwire.json.grammar import ABSENT, OBJECT
from sparkwire.json.scan import Paths, tree_of
from sparkwire.json.values import Documents, documents, integers
from sparkwire.kernels import CHECKED
from tests.support import datahub_cases, datahub_messages
from tests.support.arrow import ask
from tests.support.child import run_python
from tests.support.guard import guarded_column
from tests.support.oracles import datahub as oracle

MARK = b"\xef\xbb\xbf"


def scan(column: pa.Array, tree: Paths = MESSAGE) -> Documents:
    source = binary_of(column)
    return documents(source.data, source.offsets[:-1], source.offsets[1:], tree, nulls=tree is not MESSAGE)


def spans(column: pa.Array, tree: Paths) -> list[list[tuple[int, ...]]]:
    """The scan's results for each row: its validity, and each slot's kind, position, size and members."""
    documents, begins = scan(column, tree), binary_of(column).offsets[:-1]
    leaves = {int(node["slot"]) for node in tree.nodes if node["first"] == node["last"]}
    said: list[list[tuple[int, ...]]] = [[(int(intact),)] for intact in documents.intact]
    for slot in range(tree.slots):
        value = documents.value(slot)
        found = (value.kinds, value.starts - begins, value.sizes, value.counts)
        for row, (kind, start, size, count) in enumerate(zip(*(items.tolist() for items in found), strict=True)):
            if kind == ABSENT:
                said[row].append((kind, size))
            else:
                counts = (count,) if kind >= OBJECT and slot in leaves else ()
                said[row].append((kind, start, size, *counts))
    return said


def check_as_alone(rows: Sequence[bytes | None], column: pa.Array | None = None, tree: Paths = MESSAGE) -> None:
    column = pa.array(rows, pa.binary()) if column is None else column
    alone = {blob: spans(pa.array([blob or b""], pa.binary()), tree)[0] for blob in set(rows)}
    for row, (blob, said) in enumerate(zip(rows, spans(column, tree), strict=True)):
        assert said == alone[blob], (rows[max(row - 1, 0)], blob)


def check(blobs: Sequence[bytes]) -> None:
    """The fields that a scan finds, against the oracle."""
    expected = [oracle.answers(blob) for blob in blobs]
    for name in ("datahub_op", "datahub_table", "datahub_version", "datahub_before", "datahub_after", "datahub_error"):
        assert ask(name, list(blobs)) == [answers[name] for answers in expected], name


def edited(random: Random, blob: bytes) -> bytes:
    """The message with a small edit, more often late than early: the common prefix with the previous message ends there."""
    at = max(random.randrange(len(blob) + 1), random.randrange(len(blob) + 1))
    piece = random.choice(
        [b'"', b"\\", b" ", b"\n", b",", b":", b"{", b"}", b"{}", b"[1,2]", b"null", b"0", b"\xff", b'"op":1,']
    )
    match random.randrange(4):
        case 0:
            return blob[:at] + piece + blob[at:]
        case 1:
            return blob[:at] + piece + blob[at + 1 :]
        case 2:
            return blob[:at]
        case _:
            return blob[:at] + blob[at + random.randrange(40) :]


# ---------------------------------------------------------------- rows that begin alike


SCHEMA = b'{"schema":{"dataColumn":[{"name":"id","type":"LONG"}],"source":{"dbType":"MySQL","dbName":"shop","tableName":"t"}},'
WHOLE = SCHEMA + b'"payload":{"op":"INSERT","after":{"dataColumn":{"id":1}},"timestamp":{"eventTime":1}},"version":"1"}'
ALIKE: dict[str, list[bytes]] = {
    "the same": [WHOLE, WHOLE, WHOLE],
    "one byte of the schema": [WHOLE, WHOLE.replace(b"shop", b"shoq"), WHOLE],
    "one byte shorter": [WHOLE, WHOLE.replace(b"MySQL", b"MySQ"), WHOLE],
    "a beginning": [WHOLE, SCHEMA, WHOLE, SCHEMA[:-1], SCHEMA + b"}", WHOLE],
    "a key written with an escape": [WHOLE, WHOLE.replace(b"dbName", b"db\\u004eame"), WHOLE],
    "a value written with an escape": [WHOLE, WHOLE.replace(b"shop", b"sh\\u006fp"), WHOLE],
    "an escape that is none": [WHOLE, WHOLE.replace(b"shop", b"sh\\xop"), WHOLE],
    "corruption where the last one was valid": [WHOLE, WHOLE.replace(b'"t"', b'"t'), WHOLE],
    "nothing between": [WHOLE, b"", WHOLE, b"{}", WHOLE, b"null", WHOLE],
    "white space after the comma": [
        WHOLE,
        WHOLE.replace(b',"dbName"', b', \n"dbName"'),
        WHOLE,
        WHOLE.replace(b",", b" , "),
    ],
    "nothing after the comma": [
        WHOLE,
        SCHEMA[:-1] + b",}",
        SCHEMA + b" ",
        SCHEMA[: SCHEMA.index(b'"dbName"')] + b"}}}",
    ],
    "empty where the last one was not": [
        b'{"payload":{"op":"INSERT","sequenceId":1}}',
        b'{"payload":{}}',
        b'{"payload":{"op":"INSERT"}}',
        b'{"payload":{"op":"INSERT","sequenceId":1,"timestamp":{"eventTime":1,"systemTime":2}}}',
        b'{"payload":{"op":"INSERT","sequenceId":1,"timestamp":{}}}',
    ],
    "a key again": [
        b'{"version":"1","payload":{"op":"A","sequenceId":1},"payload":{"sequenceId":2,"op":"B"}}',
        b'{"version":"1","payload":{"op":"A","sequenceId":1},"payload":{"sequenceId":3}}',
        b'{"version":"1","payload":{"op":"A","sequenceId":1},"version":null}',
        b'{"version":"1","payload":{"op":"A","sequenceId":1},"version":2}',
        b'{"version":"1","payload":{"op":"A","sequenceId":1}}',
    ],
    "an image again, inside of the payload": [
        b'{"payload":{"before":{"x":1,"dataColumn":{"a":1},"y":2},"before":{"x":1,"dataColumn":{"b":2}}}}',
        b'{"payload":{"before":{"x":1,"dataColumn":{"a":1},"y":2},"before":{"x":1,"dataColumn":{"c":[3]},"z":1}}}',
        b'{"payload":{"before":{"x":1,"dataColumn":{"a":1},"y":2}}}',
        b'{"payload":{"before":{"x":1,"dataColumn":{"a":1},"y":2,"dataColumn":null}}}',
        b'{"payload":{"before":{"x":1,"dataColumn":{"a":1},"y":2,"dataColumn":{"d":4}',
        b'{"payload":{"before":{"x":1,"dataColumn":{"a":1},"y":2}},"version":1}',
    ],
    "an object again, of which nothing was found": [
        b'{"payload":{"x":1,"y":{"op":1}},"payload":{"op":"A","x":1}}',
        b'{"payload":{"x":1,"y":{"op":1}},"payload":{"op":"B"}}',
        b'{"payload":{"x":1,"y":{"op":1}},"op":{"op":"B"}}',
    ],
    "a byte-order mark": [WHOLE, MARK + WHOLE, MARK + WHOLE, MARK + MARK + WHOLE, WHOLE],
    "the end in a text": [SCHEMA[: SCHEMA.index(b"shop") + 2], WHOLE, SCHEMA[: SCHEMA.index(b"tableName") + 2], WHOLE],
    "more commas than marks": [
        b'{"a":{'
        + b'"x":1,' * 50
        + b'"y":2},"payload":{'
        + b'"x":1,' * 50
        + b'"op":"'
        + op
        + b'"},"version":'
        + version
        + b"}"
        for op, version in ((b"A", b"1"), (b"A", b"2"), (b"B", b"2"), (b"B", b'"'))
    ],
    "not what the tree wants": [
        b'{"payload":[{"op":"A","sequenceId":1},2],"version":1}',
        b'{"payload":[{"op":"A","sequenceId":2},2],"version":1}',
        b'{"payload":{"before":{"dataColumn":[1,2,{"a":[]}],"x":1}},"version":1}',
        b'{"payload":{"before":{"dataColumn":[1,2,{"a":[]}],"x":2}},"version":1}',
    ],
    "digits in the place of digits": [
        b'{"version":%s,"x":[%s,-%s],"payload":{"sequenceId":%s}}' % (number, number, number, number)
        for number in (
            b"10",
            b"99",
            b"01",
            b"1e",
            b"00",
            b"1.",
            b" 1",
            b"-1",
            b"1 ",
            b"5",
            b"0",
            b"0.5",
            b"7.0",
            b"00.",
        )
    ],
    "digits of an exponent": [
        b'{"version":%s}' % number for number in (b"1.5e+07", b"2.0e+00", b"0.5e-07", b"01.e+07", b"1.5e+0", b"1.5ee07")
    ],
    "characters in the place of characters": [
        b'{"version":"%s","x":["%s"],"payload":{"op":"%s"}}' % (text, text, text)
        for text in (
            b"abcdef",
            b"ABC\x7f  ",
            b'ab"def',
            b"ab\\def",
            b"ab\\nef",
            b"ab\ndef",
            b"\xc3\xa9cdef",
            b"ab\xc3def",
        )
    ],
    "characters beside escapes": [
        b'{"version":"%s"}' % text
        for text in (
            b"a\\u00e9b",
            b"c\\u00e9d",
            b"a\\u00f9b",
            b"a\\nu0e9b",
            b'a\\"00e9b',
            b"a\xc3\xa9u0eb",
            b"a\xc3\xa8u0eb",
        )
    ],
    "a key of the same size": [
        b'{"x":1,"version":2}',
        b'{"x":1,"versioo":2}',
        b'{"x":1,"payload":{"op":"A"}}',
        b'{"version":1,"x":2}',
    ],
    "members in another order": [
        b'{"version":"1","payload":{"op":"A","sequenceId":1,"timestamp":{"eventTime":1}},"x":1}',
        b'{"payload":{"sequenceId":1,"op":"A","timestamp":{"eventTime":1}},"x":1,"version":"1"}',
        b'{"x":1,"payload":{"timestamp":{"eventTime":1},"op":"A","op":"B"},"version":"1","payload":{"op":"C"}}',
    ],
    "a key again, of which the template has less": [
        b'{"payload":{"op":"A"},"x":1}',
        b'{"payload":{"op":"BB","sequenceId":1},"payload":{"op":"A"},"x":1}',
        b'{"payload": {"sequenceId":1},"payload":{"op":"A"},"x":1}',
    ],
    "what is beside the digits": [b'{"version":10}', b'{"version"::0}', b'{"version":/0}', b'{"version":1:}'],
    "an escape without its digits": [b'{"version":"a\\u00e9b"}', b'{"version":"a\\u00zzb"}'],
    "members more and less": [
        b'{"version":"1","payload":{"op":"A","timestamp":{"eventTime":1}},"x":1}',
        b'{"version":"1","payload":{"op":"A","ddl":{"text":"T"},"timestamp":{"eventTime":1}},"x":1}',
        b'{"payload":{"timestamp":{"eventTime":1}}}',
        b'{"version":"1","payload":null,"x":1}',
        b'{"version":"1","payload":{},"x":1}',
        b'{"version":"1","payload":{ },"x":1}',
        b'{"version":"1","payload":{"op":"A","timestamp":{}},"x":1}',
        b'{"version":"1","payload":{"op":"A",},"x":1}',
        b'{"version":"1","payload":{"op":"A","timestamp":{"eventTime":1}},"x":1,}',
        b'{"version":"1","payload":{"op":"A","timestamp":{"eventTime":1}},"x":1}}',
        b'{"version":"1","payload":{"op":"A","timestamp":{"eventTime":1}},"x":1} ',
        b'{"version":"1","payload":{"op":"A","timestamp":{"eventTime":1}},"x":1',
    ],
    "hundreds of members": [
        b"{%s}" % b",".join([*(b'"x%d":%d' % (i, i) for i in range(300)), b'"version":"1"', *last])
        for last in (
            [],
            [b'"payload":{"op":"A"}'],
            [b'"payload":{"op":"B"}'],
            [b'"version":"2"'],
            [b'"version":"2"', b'"x":1'],
        )
    ],
    "too long for a template": [
        b'{"version":"%s","payload":{"op":"%s"}}' % (b"x" * 70_000, op) for op in (b"A", b"B", b"\\n")
    ],
}


@pytest.mark.parametrize("name", ALIKE)
def test_alike(name: str) -> None:
    rows = ALIKE[name]
    for first in rows:
        check_as_alone([first, *rows, *rows[::-1]])
    check(rows)
    check(rows[::-1])


def test_alike_cut_at_every_byte() -> None:
    for blob in {blob for rows in ALIKE.values() if max(map(len, rows)) < 1000 for blob in rows}:
        check_as_alone([row for end in range(len(blob)) for row in (blob, blob[:end])])


def test_the_rest_in_the_next_row() -> None:
    """The bytes after the end of a row are the same as those in the previous row."""
    long = WHOLE.replace(b"}}}", b',"note":"%s"}}}' % (b"x" * 200))
    for end in range(len(long)):
        check_as_alone([long, long[:end], long[end:] + b" " * 64])


def test_null_between() -> None:
    check_as_alone([WHOLE, None, WHOLE, None, None, WHOLE.replace(b"shop", b"shoq")])


@pytest.mark.parametrize("seed", range(20))
def test_edited(seed: int) -> None:
    """Messages and their edits: whatever they share, no value of one appears in another."""
    random = Random(seed)
    rows = edited_rows(random, 40)
    check_as_alone(rows)
    check(rows)


def edited_rows(random: Random, count: int) -> list[bytes]:
    rows: list[bytes] = []
    for _ in range(count):
        blob = random.choice([datahub_messages.message(random), WHOLE, next(datahub_cases.samples()).data])
        for _ in range(random.randrange(6)):
            rows.append(blob if random.random() < 0.4 else edited(random, blob))
            if random.random() < 0.3:
                blob = rows[-1]
    return rows or [WHOLE]


def members(random: Random, depth: int) -> bytes:
    """An object with keys of the format at any depth, in any order, and some twice."""
    keys = ["payload", "timestamp", "before", "dataColumn", "op", "eventTime", "sequenceId", "version", "x", "y"]
    chosen = random.sample(keys, random.randrange(len(keys)))
    if random.random() < 0.2:
        chosen += chosen[:2]
    return b"{%s}" % b",".join(b'"%s":%s' % (key.encode(), value(random, depth)) for key in chosen)


def value(random: Random, depth: int) -> bytes:
    if depth and random.random() < 0.5:
        return members(random, depth - 1)
    return random.choice(
        [b"null", b"true", b"[1,2]", b"{}", b"%d" % random.randrange(300), b'"%d"' % random.randrange(300)]
    )


@pytest.mark.parametrize("seed", range(20))
def test_structures(seed: int) -> None:
    """Rows whose members are in any order, repeated, absent, or of another kind; many rows, so that templates change."""
    random = Random(seed)
    few = [members(random, 3) for _ in range(6)]
    rows = [blob if random.random() < 0.5 else edited(random, blob) for blob in random.choices(few, k=80)]
    check_as_alone(rows)
    check(rows)


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_read_beside_the_column(seed: int) -> None:
    rows = edited_rows(Random(seed), 10)
    for at_end in (True, False):
        check_as_alone(rows, guarded_column(rows, at_end=at_end))


def test_slices() -> None:
    rows = edited_rows(Random(1), 30)
    column = pa.array(rows, pa.binary())
    for start in range(0, len(rows), 7):
        check_as_alone(rows[start : start + 5], column[start : start + 5])
    check_as_alone([], column[:0])


# ---------------------------------------------------------------- keys


def key(random: Random) -> str:
    """Many keys share their first bytes, their last ones, or both."""
    middle = "".join(random.choices("ab", k=random.randrange(1, 12)))
    return random.choice(["", "__source", "ä"]) + middle + random.choice(["", "_of_a_change"])


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 1000])
def test_keys_of_a_tree(count: int) -> None:
    """Each key has its value, keys that are not in the tree have none, however the documents order them."""
    random = Random(count)
    wanted = list(dict.fromkeys(key(random) for _ in range(count)))
    tree = tree_of([(name,) for name in wanted])
    rows = []
    for _ in range(20):
        names = [*random.sample(wanted, len(wanted) // 2), *(key(random) for _ in range(50)), "", "a\0b"]
        random.shuffle(names)
        rows.append({name: i for i, name in enumerate(names)})
    blobs = [json.dumps(row, ensure_ascii=random.random() < 0.5).encode() for row in rows]
    found = scan(pa.array(blobs, pa.binary()), tree)
    for slot, name in enumerate(wanted):
        numbers, valid = integers(found.value(slot))
        expected = [row.get(name) for row in rows]
        assert [int(n) if v else None for n, v in zip(numbers, valid, strict=True)] == expected, name
    check_as_alone(blobs, tree=tree)


def test_values_that_only_late_rows_have() -> None:
    rows = [b'{"payload":{}}'] * 5 + [WHOLE] + [b'{"payload":{"ddl":{"text":"x"}}}', b"{}"]
    check_as_alone(rows)
    found = scan(pa.array(rows, pa.binary()))
    assert found.counts().tolist() == [0] * 5 + [9, 1, 0]
    assert len(found.values) == 10


def test_more_values_than_usual() -> None:
    """Memory is allocated for some tens of values; a late row may have more."""
    names = [f"column_{i}" for i in range(90)]
    tree = tree_of([(name,) for name in names])
    rows = [json.dumps(dict.fromkeys(names[: 3 * i], i)).encode() for i in range(31)]
    check_as_alone(rows, tree=tree)
    check_as_alone(rows[::-1], tree=tree)


# ---------------------------------------------------------------- masks


def documents_of(values: Iterable[bytes]) -> list[bytes]:
    return [b'{"version":%s,"payload":{"op":%s},"x":[%s,%s]}' % (value, value, value, value) for value in values]


def test_quotes_at_any_position() -> None:
    """Every distance between quotes, across the bounds of blocks, and after long texts without quotes."""
    texts = [b"x" * size for size in range(200)]
    check(documents_of(b'"' + text + b'"' for text in texts))
    check(documents_of(b" " * size + b'"x"' for size in range(200)))
    check(documents_of(b"\n" * (size % 3) + b"\t" * size + b'"x"' for size in range(100)))
    check(documents_of(b"1" * size + b',"x":"y"' for size in range(1, 200)))
    check([b'{"a":[' + b"1" * size + b',"x","y"],"version":"z"}' for size in range(1, 200)])
    check([b'{"a":[' + b"[" * size + b'"x"' + b"]" * size + b'],"version":"z"}' for size in range(1, 200)])


@pytest.mark.parametrize("piece", [b"\\n", b'\\"', b"\\\\", b"\\u00e9", "é".encode(), "客户".encode(), "😀".encode()])
def test_stops_that_are_no_quotes(piece: bytes) -> None:
    for text in (piece, piece * 3, piece + b"x" * 70 + piece):
        check(documents_of(b'"' + b"x" * size + text + b'"' for size in range(140)))


@pytest.mark.parametrize(
    "piece", [b"\x1f", b"\n", b"\\x", b"\\u12", b"\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe5\xae"]
)
def test_corruption_at_any_position(piece: bytes) -> None:
    check(documents_of(b'"' + b"x" * size + piece + b'"' for size in range(140)))


def test_ends_within_a_block() -> None:
    """The masks see the next row, and must not find a row's quote there."""
    for size in range(70):
        check([b'{"version":"' + b"x" * size, b'","op":"y"}', b'{"version":' + b"1" * size, b'2,"op":"y"}' + b" " * 40])


# ---------------------------------------------------------------- numbers


def test_integers() -> None:
    digits = "9876543210123456789"
    numbers = [
        int(sign + digits[start : start + size]) for sign in ("", "-") for size in range(1, 20) for start in range(3)
    ]
    numbers += [0, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**18, 10**19, 10**25]
    blobs = [b'{"payload":{"timestamp":{"eventTime":%d}}}' % number for number in numbers]
    expected = [number if -(2**63) <= number < 2**63 else None for number in numbers]
    assert ask("datahub_event_time_ms", blobs) == expected


NUMBERS = """
    0 -0 00 01 1. 1.0 1.5e3 1e5 1E+5 1e- .5 - -1 --1 1.2.3 0.1 00.1 12345678901234567 1.1234567890123456789 1e 0x1 1a
""".split()  # noqa: SIM905


def test_numbers() -> None:
    blobs = [
        b'{"payload":{"timestamp":{"eventTime":%s}},"version":[%s]}' % ((number.encode(),) * 2) for number in NUMBERS
    ]
    blobs += [b'{"version":%s' % number.encode() for number in NUMBERS]
    padded = [blob + b" " * 40 for blob in blobs]  # with and without room for a vector
    check(blobs)
    check(padded)


# ---------------------------------------------------------------- keys of images


def image(*keys: str) -> bytes:
    members = ",".join(f"{json.dumps(key)}:{i}" for i, key in enumerate(keys))
    return b'{"payload":{"op":"INSERT","timestamp":{"eventTime":1},"after":{"dataColumn":{%s}}}}' % members.encode()


MANY = [f"column_{i}" for i in range(70)]
IMAGES = [
    ("a", "b", "c"),
    ("a", "b", "c"),
    ("a", "b", "a"),
    ("a", "b", "c"),
    ("a", "b", "b"),
    ("a", "c", "b", "c"),
    ("a", "c", "b"),
    (),
    ("a", "a"),
    ("a", "c"),
    ("a", "c", "c"),
    ("a", "b", "c"),
    ("long_key_1", "long_key_2"),
    ("long_key_1", "long_key_1"),
    ("long_key_1", "long_key_2", "long_key_1"),
    ("long_key_1", "long_key_2", "long_key_3"),
    ("long_key_1", "long_key_22"),
    ("long_key", "long_key_"),
    ("long_key", "long_key"),
    ("é", "a", 'q"'),
    ("é", "a", "é"),
    ("", ""),
    ("",),
    (*MANY[:63],),
    (*MANY[:64],),
    (*MANY[:65],),
    (*MANY[:64], "column_0"),
    (*MANY[:63], "column_62"),
    (*MANY[:30], "x", *MANY[30:60]),
    (*MANY[:30], "x", *MANY[30:60], "x"),
]


def test_keys_that_repeat() -> None:
    blobs = [image(*keys) for keys in IMAGES]
    check(blobs)
    check(blobs[::-1])
    for _ in range(5):
        check(Random(1).sample(blobs, len(blobs)))
    for blob in blobs:
        check([blob])
        check([blobs[0], blob, blob])


def test_lone_surrogates_at_any_position() -> None:
    texts = [b"x" * size + rb"\ud83d" + b"y" * 70 + rb"\\\ude00" + rb"\ud83d\ude00" for size in range(140)]
    check([image("a").replace(b":0", b':"' + text + b'"') for text in texts])


# ---------------------------------------------------------------- the checked build


@pytest.mark.process
def test_checked_build() -> None:
    """The same with every load checked: a read outside the column would be an IndexError."""
    environment = {"SPARKWIRE_CHECKED": "1"}
    run_python("-c", "from tests.datahub.test_scan import read_checked as f; f()", environment=environment)


def read_checked() -> None:
    assert CHECKED
    for rows in ALIKE.values():
        check_as_alone(rows)
    for seed in range(3):
        check_as_alone(edited_rows(Random(seed), 30))
        test_structures(seed)
    test_quotes_at_any_position()
    test_integers()
    test_numbers()
    test_keys_that_repeat()
    test_lone_surrogates_at_any_position()
