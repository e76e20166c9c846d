"""Records by key or by content of the value: the same as with a filter on all rows, and every row with an error."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.search import Search
from tests.kafka.test_damage import batch, record
from tests.kafka.test_files import FEW, Row, only, rows
from tests.kafka.test_oracle import mutated
from tests.support import kafka_cases as golden
from tests.support.kafka_cases import Damaged, Log

Found = list[Row]
ALL = {"controlRecords": "true"}


def shown(content: bytes) -> str:
    return f"0x{content.hex()}"


def expected(rows: Found, has: Any) -> Found:
    """The matching rows, the control records, and the rows with errors."""
    return [row for row in rows if row["error"] is not None or row["is_control"] or has(row)]


def searches(rows: Found) -> list[tuple[dict[str, str], Any]]:
    """Existing keys, their prefixes, parts of values, and patterns that do not occur."""
    keys = Counter(row["key"] for row in rows if row["key"]).most_common()
    values = [row["value"] for row in rows if row["value"]]
    chosen: list[tuple[dict[str, str], Any]] = [({"key": "nobody has it"}, lambda row: False)]
    for key in {key for key, _ in (*keys[:1], *keys[-1:])}:
        chosen.append(({"key": shown(key)}, lambda row, key=key: row["key"] == key))
        begin = key[: max(1, len(key) // 2)]
        chosen.append(({"keyPrefix": shown(begin)}, lambda row, at=begin: (row["key"] or b"\0").startswith(at)))
    for value in values[:: len(values) // 3 + 1]:
        part = value[len(value) // 3 : len(value) // 3 + 11]
        chosen.append(({"valueContains": shown(part)}, lambda row, part=part: part in (row["value"] or b"")))
    return chosen


@pytest.mark.parametrize("case", golden.logs()[::2], ids=lambda case: case.name)
def test_golden_logs(case: Log, tmp_path: Path) -> None:
    path = tmp_path / "file.log"
    path.write_bytes(case.data)
    everything = rows(path, **ALL)
    for options, has in searches(everything):
        assert rows(path, **ALL, **options) == expected(everything, has)
        if len(case.data) > 2000:
            few = rows(path, **ALL, **options, maxSplitBytes="2000", columns=", ".join(FEW))
            assert few == only(FEW, expected(everything, has))


@pytest.mark.parametrize("case", golden.damaged()[::6], ids=lambda case: case.name)
def test_rows_with_errors_stay(case: Damaged, tmp_path: Path) -> None:
    path = tmp_path / "file.log"
    path.write_bytes(case.data)
    with_losses = {**ALL, "columns": ", ".join([*kafka_log.COLUMNS["records"], "first_lost", "last_lost"])}
    everything = rows(path, **with_losses)
    for options, has in searches(everything):
        assert rows(path, **with_losses, **options) == expected(everything, has)
        few = rows(
            path, **ALL, **options, columns=", ".join(FEW)
        )  # without losses the search is pushed into the decoder
        assert few == only(FEW, expected(everything, has))


@pytest.mark.parametrize("seed", range(20))
def test_mutations(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    path = tmp_path / "file.log"
    path.write_bytes(b"".join(mutated(chance) for _ in range(chance.randrange(1, 8))))
    everything = rows(path, **ALL)
    for options, has in searches(everything):
        assert rows(path, **ALL, **options) == expected(everything, has)


def test_every_position_within_a_value(tmp_path: Path) -> None:
    """The pattern at each position of values of many sizes, beside bytes that nearly match."""
    path = tmp_path / "file.log"
    needles = [b"n", b"needle", b"needleneedle", b"nnnnnnnnnnnnnnnn"]
    values = [b"n" * k + needle + b"e" * j for needle in needles for k in range(20) for j in (0, 1, 9)]
    values += [b"needl" * k for k in range(9)] + [b"", b"needl"]
    path.write_bytes(batch(b"".join(record(value, k) for k, value in enumerate(values)), count=len(values)))
    for needle in needles:
        result = rows(path, valueContains=needle.decode(), columns="value")
        assert [row["value"] for row in result] == [value for value in values if needle in value]


def test_filters_become_key_searches() -> None:
    query = kafka_log.query({"path": "x"})
    assert kafka_log.with_filters(query, [("key", "=", b"a")]).search == Search((b"a",))
    assert kafka_log.with_filters(query, [("key", "in", [b"a", None, b""])]).search == Search((b"a", b""))
    assert kafka_log.with_filters(query, [("key", "<", b"a")]).search == Search()
    assert kafka_log.with_filters(query, [("key", "in", [b"%d" % k for k in range(1000)])]).search == Search()
    given = kafka_log.query({"path": "x", "keyPrefix": "a"})
    assert kafka_log.with_filters(given, [("key", "=", b"b")]).search == Search((b"a",), True)


def test_no_key_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file.log"
    path.write_bytes(batch(record(b"v", 0), count=1))
    query = kafka_log.with_filters(kafka_log.query({"path": str(path)}), [("key", "in", [None])])
    assert query.search == Search(())
    assert sum(part.num_rows for task in kafka_log.plan(query) for part in kafka_log.read(query, task)) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"key": "a", "keyPrefix": "b"}, r"kafka_log takes key or keyPrefix, got both"),
        ({"key": "0x1"}, r"kafka_log takes key text, or bytes as 0x and pairs of hexadecimal digits, got '0x1'"),
        (
            {"valueContains": "a", "rows": "batches"},
            r"kafka_log takes key, keyPrefix and valueContains only with rows => records",
        ),
    ],
)
def test_wrong_options_are_a_clear_error(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        kafka_log.query({"path": "x", **options})
