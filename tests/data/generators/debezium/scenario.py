"""Run the scenario: three connectors write its messages, and the database prints its tables at each point."""

from __future__ import annotations

import base64
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

from tests.data.generators.comparison import Compared
from tests.data.generators.debezium.comparison import differences
from tests.data.generators.debezium.variants import Variants
from tests.integration.capture import connector, running_engine
from tests.integration.jars import jar
from tests.support import debezium_golden as golden

_AVRO = "org.apache.avro:avro:1.11.4"
_CONVERTER = (
    "io.apicurio:apicurio-registry-utils-converter:2.6.2.Final",
    "io.apicurio:apicurio-registry-serdes-avro-serde:2.6.5.Final",
)
_PATIENCE = 600  # [s]
_QUIET = 1.0  # [s]
_QUIET_WITH_SIGNALS = 4.0  # [s]; an incremental snapshot continues long after its signal
_SIGNALS_FROM = 8  # the first point with signals


class Messages:
    """The messages that a variant has written so far."""

    def __init__(self, file: Path) -> None:
        self.file, self.read = file, 0
        self.lines: list[dict[str, Any]] = []

    def look(self) -> list[dict[str, Any]]:
        if self.file.exists():
            with self.file.open("rb") as file:
                file.seek(self.read)
                whole = file.read().rpartition(b"\n")
            self.read += len(whole[0] + whole[1])
            self.lines += map(json.loads, whole[0].splitlines())
        return self.lines

    def value(self, line: dict[str, Any]) -> dict[str, Any]:
        """The value of a message, for a variant in JSON."""
        document: dict[str, Any] = json.loads(base64.b64decode(line["value_b64"] or "bnVsbA==")) or {}
        return document

    def next_offsets(self) -> dict[str, int]:
        return {line["topic"]: line["offset"] + 1 for line in self.look()}


class Redelivery(NamedTuple):
    """A connector crashes after one point, and a new one continues from the offsets of an earlier point."""

    connector: str
    variant: str
    """the variant of the connector that the broker has until the crash"""
    offsets_of: int
    crash_after: int
    settings: Mapping[str, str]
    """what the new connector has of its own, with its only variant"""

    @property
    def result(self) -> str:
        """The variant with the messages of both connectors."""
        return self.settings["variants"]


class Database(NamedTuple):
    """The database of a scenario, with its connectors."""

    scenario: Path
    variants: Variants
    settings: Callable[[str], Mapping[str, str]]
    """the properties of a connector"""
    execute: Callable[[str], object]
    """runs statements"""
    tables: Callable[[], list[dict[str, Any]]]
    """prints its tables, as lines of truth"""
    artifacts: tuple[str, ...] = ()
    """those of its connector, in addition to PostgreSQL's"""
    redelivery: Redelivery | None = None
    """what a connector sends again"""


def run(place: Path, database: Database) -> None:
    """Write messages, schemas and truth to an existing directory, in the files of the golden archive."""
    before, *rest = re.split(r"-- @snapshot\n|-- @point (\d+) (.*)\n", database.scenario.read_text("utf-8"))
    _, _, *rest = rest
    (place / "truth").mkdir()
    variants = database.variants
    database.execute(before)
    files = [connector(place, name, database.settings(name)) for name in variants]
    with _engine(place, database, files) as engine:
        written = {
            variant: Messages(place / f"messages.{variant}.jsonl") for own in variants.values() for variant in own
        }
        tellers = [written[next(iter(own))] for own in variants.values()]
        settle(engine, place, written.values(), tellers, _is_last_of_snapshot, _QUIET)
        for sql, number, label in zip(rest[::3], rest[1::3], rest[2::3], strict=False):
            database.execute(sql)
            quiet = _QUIET_WITH_SIGNALS if int(number) >= _SIGNALS_FROM else _QUIET
            settle(engine, place, written.values(), tellers, _is_point(int(number)), quiet)
            point = {"kind": "point", "point": int(number), "label": label}
            offsets = {variant: messages.next_offsets() for variant, messages in written.items()}
            lines = [point | {"next_offsets": offsets}, *database.tables()]
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (place / "truth" / f"point{int(number):02}.jsonl").write_text(text, "utf-8")
            if database.redelivery and int(number) == database.redelivery.offsets_of:
                for file in place.glob(f"{database.redelivery.connector}.*"):
                    shutil.copy(file, place / f"redelivery{file.suffix}")
    if database.redelivery:
        _redeliver(place, database, database.redelivery, _is_point(int(number)))


def _engine(place: Path, database: Database, files: Sequence[Path]) -> AbstractContextManager[Popen[bytes]]:
    """The engine with a connector for each file of properties."""
    program = Path(__file__).with_name("Messages.java")
    jars = [jar(coordinates, place) for coordinates in _CONVERTER]
    return running_engine(program, [str(place), *map(str, files)], place, _AVRO, *database.artifacts, jars=jars)


def _redeliver(
    place: Path, database: Database, redelivery: Redelivery, is_end: Callable[[str, dict[str, Any]], bool]
) -> None:
    """Run the new connector. Its messages get the offsets after those of the old one."""
    files = {str(file): str(place / f"redelivery{file.suffix}") for file in place.glob(f"{redelivery.connector}.*")}
    old_settings = {name: files.get(value, value) for name, value in database.settings(redelivery.connector).items()}
    file = connector(place, "redelivery", {"name": redelivery.connector, **old_settings, **redelivery.settings})
    sent = Messages(place / f"messages.{redelivery.result}.jsonl")
    with _engine(place, database, [file]) as engine:
        settle(engine, place, [sent], [sent], is_end, _QUIET)
    point = json.loads(
        (place / "truth" / f"point{redelivery.crash_after:02}.jsonl").read_text("utf-8").partition("\n")[0]
    )
    ends = point["next_offsets"][redelivery.variant]
    old = Messages(place / f"messages.{redelivery.variant}.jsonl").look()
    lines = [line for line in old if line["offset"] < ends.get(line["topic"], 0)]
    lines += [line | {"offset": line["offset"] + ends.get(line["topic"], 0)} for line in sent.look()]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    sent.file.write_text(text, "utf-8")


def compared(name: str, database: Database, place: Path) -> Compared:
    """Compare the generated files with the archive of a database."""
    made = {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*.json*")}
    messages = sum(text.count(b"\n") for file, text in made.items() if file.startswith("messages."))
    names = [variant for own in database.variants.values() for variant in own]
    names += [database.redelivery.result] if database.redelivery else []
    found = list(differences(golden.files(name), made, names))
    return Compared(messages, f"messages of {name} written again", found)


def _is_last_of_snapshot(topic: str, value: dict[str, Any]) -> bool:
    return (value.get("source") or {}).get("snapshot") == "last"


def _is_point(number: int) -> Callable[[str, dict[str, Any]], bool]:
    return lambda topic, value: topic.endswith(".sync_point") and (value.get("after") or {}).get("n") == number


def settle(
    engine: Popen[bytes],
    place: Path,
    written: Iterable[Messages],
    tellers: Iterable[Messages],
    is_end: Callable[[str, dict[str, Any]], bool],
    quiet: float,
) -> None:
    """Wait until each connector has sent the end, and then only heartbeats arrive for a while."""
    begun = changed = time.monotonic()
    count = -1
    while not (time.monotonic() - changed > quiet and all(_tells(one, is_end) for one in tellers)):
        assert engine.poll() is None, (place / "engine.log").read_text("utf-8")[-3000:]
        assert time.monotonic() - begun < _PATIENCE, "the engine has not written all changes of the database"
        time.sleep(0.1)
        now = sum("heartbeat" not in line["topic"] for messages in written for line in messages.look())
        if now != count:
            count, changed = now, time.monotonic()


def _tells(messages: Messages, is_end: Callable[[str, dict[str, Any]], bool]) -> bool:
    return any(is_end(line["topic"], messages.value(line)) for line in reversed(messages.look()))
