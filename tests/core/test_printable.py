"""No text from data or file names can change a screen: what is printed, and messages of errors and of the log."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unicodedata import category

import pyarrow as pa
import pytest

import sparkwire
from sparkwire import databus, kafka
from sparkwire.__main__ import main
from sparkwire.base.printable import printable, printable_json
from sparkwire.catalogue.diagnosis import examine, report
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import JobState, save, this_process
from tests.support.log_files import entry, segment

CONTROLS = "".join(map(chr, [*range(1, 0x20), *range(0x7F, 0xA0)]))
FORMATS = "\u061c\u200b\u200d\u200e\u200f\u2028\u2029\u202a\u202d\u202e\u2066\u2067\u2069\ufeff\U000e0001"
NAME = CONTROLS + FORMATS
"""a part of a file's name"""
TOPIC = NAME.replace("\n", "")
NOT_UTF8 = f"{NAME}\udcff"
"""the same, with a byte that is not UTF-8"""
TEXT = f"\0{NAME} é\N{IDEOGRAPHIC SPACE}漢"
"""a text in data"""


def assert_harmless(text: str) -> None:
    harmful = {one for one in text if category(one) in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")} - {"\n"}
    assert not harmful, sorted(map(ascii, harmful))


# -- the escapes


def test_every_character_is_printable_or_escaped() -> None:
    text = "".join(map(chr, range(sys.maxunicode + 1)))
    assert_harmless(printable(text))
    assert "\n" not in printable(text)
    assert printable(printable(text)) == printable(text)
    letters = "".join(one for one in text if one.isprintable())
    assert printable(letters) == letters
    assert printable("\x1b\x9b\u202e\U000e0001\udcff\n\\") == r"\x1b\x9b\u202e\U000e0001\udcff\n" + "\\"


def test_json_keeps_its_value() -> None:
    text = "".join(chr(one) for one in range(sys.maxunicode + 1) if not 0xD800 <= one < 0xE000)
    for value in (text, {text: [text]}, "\udcff"):
        assert_harmless(printable_json(value))
        assert "\n" not in printable_json(value)
        assert json.loads(printable_json(value)) == value
    assert printable_json("é\x9b\U000e0001") == r'"é\u009b\udb40\udc01"'


# -- the commands


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process; its output and its errors are harmless."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sparkwire", *arguments])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        assert_harmless(out)
        assert_harmless(err)
        return code, out, err

    return run


def log(top: Path) -> Path:
    """A log whose topic and values have all harmful characters."""
    folder = top / f"{TOPIC}-0"
    segment(folder, 0, [entry(0, [TEXT.encode(), b"\x1b\xff"])])
    return folder


@pytest.mark.parametrize("options", [[], ["--json"], ["--batches"], ["--batches", "--json"], ["--head", "1"]])
def test_dump_of_a_log(run: Callable[..., tuple[int, str, str]], tmp_path: Path, options: list[str]) -> None:
    code, out, _ = run("dump", str(log(tmp_path)), *options)
    assert code == 0
    assert "\\u009b" in out if "--json" in options else "\\x01" in out


def test_json_lines_have_the_values_of_the_log(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    rows = [json.loads(line) for line in run("dump", str(log(tmp_path)), "--json")[1].splitlines()]
    assert [row["value"] for row in rows] == [TEXT, "0x1bff"]
    assert rows[0]["topic"] == TOPIC


def test_dump_of_json_lines(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    value = {"op": "c", "after": {TEXT: TEXT}, "source": {"connector": TEXT, "table": TEXT, "ts_ms": 1}}
    path = tmp_path / f"{NAME}.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    for options in ([], ["--json"]):
        code, out, _ = run("dump", str(path), *options)
        assert code == 0
        assert out


def wrong_commands(top: Path) -> Iterator[list[str]]:
    folder = str(log(top))
    yield ["dump", folder, "--columns", TEXT[1:]]
    yield ["dump", folder, "--option", TEXT[1:]]
    yield ["dump", folder, "--option", f"{TEXT[1:]}=1"]
    yield ["dump", folder, "--output", f"{top}/{NAME}"]
    yield ["dump", f"{folder}/nothing"]
    yield ["dump", f"{folder}/*.index"]
    yield ["dump", folder, NOT_UTF8]
    yield ["dump", f"{top}/{NOT_UTF8}"]
    yield ["dump", folder, "--offset", NAME]
    yield [NOT_UTF8]
    yield ["publish", f"`{NAME}`.schema", "wheel"]
    yield ["recover", f"{folder}/nothing"]
    (top / "text").write_text(TEXT)
    yield ["dump", str(top / "text")]
    (top / NAME).write_text(TEXT)
    yield ["dump", str(top / NAME)]


def test_errors_of_the_commands(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    for command in wrong_commands(tmp_path):
        code, out, err = run(*command)
        assert code, command
        assert err, command
        assert not out, command


def test_recover(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """Another machine's name and time are in the file of a job."""
    folder = tmp_path / NAME
    folder.mkdir()
    owner = this_process()._replace(host=TEXT, machine="elsewhere")
    save(Folder(str(folder)), JobState("job", owner, TEXT, ".log"))
    for options in ([], ["--job", "job"]):
        code, out, _ = run("recover", str(folder), *options)
        assert code == 0
        assert "\\x9b" in out
    assert NAME not in run("recover", str(folder))[1]


def test_warm(run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkwire.catalogue.warm.warm", lambda _: 1)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    run("warm", str(tmp_path / NAME))
    (tmp_path / "file").touch()
    monkeypatch.setattr("sparkwire.kernels.cache.cached_kernels", lambda: None)
    monkeypatch.setattr("sparkwire.kernels.cache.why_none", lambda: NAME)
    code, _, err = run("warm")
    assert code == 1
    assert "\\x9b" in err


# -- what Python prints


def test_texts_and_representations(tmp_path: Path) -> None:
    log(tmp_path)
    facts = examine()._replace(host=TEXT, cache=TEXT, wrong=[TEXT])
    checkpoint = databus.Checkpoint.parse(json.dumps({"consumption_mode": "INIT", TEXT: TEXT}))
    shown = [
        kafka.check(str(tmp_path)),
        *kafka.check(str(tmp_path)).findings,
        *kafka.check(str(tmp_path)).partitions,
        report([TEXT], facts, [facts]),
        sparkwire.explain((tmp_path / f"{TOPIC}-0" / f"{0:020}.log").read_bytes()),
        sparkwire.explain(TEXT.encode()),
        checkpoint,
        kafka.picture(str(tmp_path)),
    ]
    for one in shown:
        assert_harmless(str(one))
        assert_harmless(repr(one))
    assert json.loads(str(checkpoint))[TEXT] == TEXT
    assert_harmless(sparkwire.explain(TEXT.encode())._repr_html_())


# -- errors and the log


def test_the_error_about_replicas(tmp_path: Path) -> None:
    for disk in ("a", f"b{TOPIC}"):
        log(tmp_path / disk)
    with pytest.raises(ValueError, match="x9b") as error:
        sparkwire.read(str(tmp_path), replicas="fail").read_all()
    assert_harmless(str(error.value))


def test_errors_of_arguments(tmp_path: Path) -> None:
    calls: list[Callable[[], object]] = [
        lambda: sparkwire.read(str(tmp_path / NAME)),
        lambda: sparkwire.read(str(log(tmp_path)), columns=NAME),
        lambda: sparkwire.FUNCTIONS["dbus_event"].decode(pa.array([{TEXT: 1}])),
        lambda: sparkwire.FUNCTIONS["to_dbus_event"].decode(pa.array([{TEXT: 1}])),
        lambda: kafka.check(str(tmp_path / NAME)),
        lambda: sparkwire.avro.decode(pa.array([b""]), f'{{"type": "{TEXT[-1]}\u202e"}}'),
    ]
    for call in calls:
        with pytest.raises((ValueError, TypeError, OSError)) as error:
            call()
        assert_harmless(str(error.value))


def test_errors_of_sparkwire() -> None:
    for name in sparkwire.errors.__all__:
        error = getattr(sparkwire.errors, name)(f"{TEXT}: check it")
        assert_harmless(str(error))
        assert str(type(error)(*error.args)) == str(error)  # as pickle does it


def test_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "orders-0").mkdir()
    folder = Folder(str(tmp_path / NAME))
    save(folder, JobState("job", this_process()._replace(born="before"), TEXT, ".log"))
    with caplog.at_level(logging.WARNING, "sparkwire"):
        sparkwire.core.sources.job.begin(folder, "other", ".log", replaces=False)
    assert "x9b" in caplog.text
    assert_harmless("\n".join(each.getMessage() for each in caplog.records))
