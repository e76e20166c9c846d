"""The size of a message limits the size of results and the memory for decoding, even if the message has repetitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pytest

from tests.support.arrow import ask
from tests.support.child import run_python

MEGABYTES: Final = 12
MOST: Final = 12  # times the message


def message(schema: Mapping[str, Any], image: Mapping[str, Any] | None = None) -> bytes:
    payload = {"op": "INSERT", "timestamp": {"eventTime": 1}, "after": {"dataColumn": image or {}}}
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


def of_items(member: str, item: str) -> bytes:
    """A message with a list that repeats one item."""
    before, after = message({member: ["HERE"]}).split(b'"HERE"')
    return before + f"{item},".encode() * (MEGABYTES * 1_000_000 // (len(item) + 1)) + item.encode() + after


def of_names() -> bytes:
    names = [f"n{k}" for k in range(MEGABYTES * 1_000_000 // 21)]
    return message({"primaryKey": names}, dict.fromkeys(names, 1))


ATTACKS: Final[Mapping[str, tuple[str, Callable[[], bytes]]]] = {
    "columns that are numbers": ("datahub_columns", lambda: of_items("dataColumn", "1")),
    "columns that are empty": ("datahub_columns", lambda: of_items("dataColumn", "{}")),
    "columns with names": ("datahub_columns", lambda: of_items("dataColumn", '{"name":"a"}')),
    "a key of numbers": ("datahub_primary_key", lambda: of_items("primaryKey", "1")),
    "a key of one name": ("datahub_primary_key", lambda: of_items("primaryKey", '"a"')),
}
CHILD = """
import sys
import pyarrow as pa
from sparkwire import FUNCTIONS
from tests.datahub.test_memory import ATTACKS

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

function, attack = ATTACKS[sys.argv[1]]
decode = FUNCTIONS[function].decode
decode(pa.array([b'{"schema":{"primaryKey":["a"],"dataColumn":[{"name":"a"}, 1]}}']))
column = pa.array([attack()], pa.binary())
with open("/proc/self/clear_refs", "w") as control:
    control.write("5")  # reset the peak
before = peak()
result = decode(column)
print((peak() - before) / len(column[0].as_buffer()))
"""


@pytest.mark.process
@pytest.mark.parametrize("attack", ATTACKS)
def test_memory_is_bounded_by_the_message(attack: str) -> None:
    """The peak memory of a separate process, minus its memory with the message."""
    assert float(run_python("-c", CHILD, attack)) <= MOST


def test_a_key_of_one_name_does_not_repeat_its_value() -> None:
    """The result was the square of the message's size: 100 kB gave 625 MB, and 200 kB failed the query."""
    blob = message({"primaryKey": ["a"] * 20_000}, {"a": "x" * 100_000})
    [answer] = ask("datahub_shard_key", [blob])
    assert answer == json.dumps(["x" * 100_000])
    rows = [message({"primaryKey": ["a"] * 300}, {"a": "x" * 1000})] * 10_000
    assert ask("datahub_shard_key", rows) == [json.dumps(["x" * 1000])] * 10_000


def test_repeated_names_keep_their_first_position() -> None:
    image = {"a": 1, "b": None, "c": "x"}
    rows = [
        (["c", "a", "c", "a", "c"], '["x",1]'),
        (["a"], "[1]"),
        (["b", "z", "b"], "[null,null]"),
        ([None, "a", None, 1, 1], "[null,1,null]"),
        ([], "t"),
    ]
    blobs = [message({"primaryKey": names, "source": {"tableName": "t"}}, image) for names, _ in rows]
    assert ask("datahub_shard_key", blobs) == [answer for _, answer in rows]
    assert ask("datahub_shard_key", blobs[::-1] * 3) == [answer for _, answer in rows[::-1]] * 3


def test_many_lists_and_long_ones_in_pieces() -> None:
    """Lists that end within a piece, at its end and beyond it."""
    sizes = [0, 1, 65_535, 1, 65_536, 65_537, 0, 3, 200_000, 2]
    lists = [[f"n{k % 7}" for k in range(size)] for size in sizes]
    keys = [message({"primaryKey": names}) for names in lists]
    assert ask("datahub_primary_key", keys) == lists
    columns = [[{"name": name, "type": "LONG"} if k % 3 else k for k, name in enumerate(names)] for names in lists]
    expected = [[item if isinstance(item, dict) else None for item in items] for items in columns]
    assert ask("datahub_columns", [message({"dataColumn": items}) for items in columns]) == expected


def test_a_text_that_looks_like_a_column() -> None:
    assert ask("datahub_columns", [message({"dataColumn": ["{}", {"name": "a"}]})]) == [
        [None, {"name": "a", "type": None}]
    ]


def test_no_rows_and_no_lists() -> None:
    assert ask("datahub_primary_key", []) == []
    assert ask("datahub_columns", [b"", b"{}"], pa.large_binary()) == [None, None]
