"""``dump`` of JSON lines: messages of capture systems as rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import sparkwire
from sparkwire.__main__ import main
from tests.support import cdc_golden as golden
from tests.support.system_messages import canal, maxwell

NAMES = ["operation", "database", "table", "time", "before", "after", "error"]


def dumped(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> list[str]:
    assert main(["dump", str(path), *words]) == 0
    return capsys.readouterr().out.splitlines()


def written(folder: Path, *messages: object) -> Path:
    path = folder / "messages.jsonl"
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in messages), "utf-8")
    return path


@pytest.mark.parametrize("system", ["canal", "maxwell"])
def test_the_bundled_messages(capsys: pytest.CaptureFixture[str], system: str) -> None:
    head, *rows = dumped(capsys, sparkwire.samples() / system / "messages.jsonl")
    assert head.split() == NAMES
    assert not [row for row in rows if not row.endswith("NULL")]


@pytest.mark.parametrize(("system", "variant"), [("canal", "flat"), ("maxwell", "full")])
def test_golden_messages(capsys: pytest.CaptureFixture[str], tmp_path: Path, system: str, variant: str) -> None:
    """Each message is there: with a row for each item of Canal's ``data``, and with its own name if it is no change."""
    texts = [record.value.decode() for record in golden.records(system, variant) if record.value is not None]
    rows = [json.loads(line) for line in dumped(capsys, written(tmp_path, *texts), "--json")]
    names = {"bootstrap-insert": "READ"} | {name: name.upper() for name in ("insert", "update", "delete")}
    expected: Counter[str] = Counter()
    for message in map(json.loads, texts):
        images = message.get("data")
        expected[names.get(message["type"], message["type"])] += len(images) if isinstance(images, list) else 1
    assert Counter(row["operation"] for row in rows) == expected
    assert {row["error"] for row in rows} == {None}


def test_a_row(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    update = canal("UPDATE", [{"id": "1", "v": "b"}, {"id": "2", "v": "d"}], [{"v": "a"}, {"v": "c"}], es=1714557600000)
    first, second = (json.loads(line) for line in dumped(capsys, written(tmp_path, update), "--json"))
    assert list(first) == NAMES
    assert (first["operation"], first["time"]) == ("UPDATE", "2024-05-01T10:00:00Z")
    assert [(row["before"], row["after"]) for row in (first, second)] == [
        ('{"v": "a"}', '{"id": "1", "v": "b"}'),
        ('{"v": "c"}', '{"id": "2", "v": "d"}'),
    ]


def test_lines_with_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Half of the lines decide the system; each other line has an error."""
    valid = json.dumps(maxwell())
    path = written(tmp_path, valid, valid, valid[:-1], '{"a": 1}')
    rows = [json.loads(line) for line in dumped(capsys, path, "--json", "--columns", "operation,error")]
    assert [row["error"] for row in rows] == [None, None, "BAD_JSON", "WRONG_FORMAT"]
