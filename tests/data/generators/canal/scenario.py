"""Run the scenario: Canal writes its messages, and the database prints its tables at each point."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.data.generators.canal.truth import tables
from tests.data.generators.canal.variants import DATABASES, Position, settings
from tests.data.generators.debezium.scenario import Messages, settle
from tests.integration.broker import SHORT_LIVED, java
from tests.integration.capture import running_command
from tests.integration.mariadb import MariaDB

SCENARIO = Path(__file__).with_name("mariadb.sql")
CANAL = "1.1.7"
_ARTIFACTS = (f"com.alibaba.otter:canal.server:{CANAL}", f"com.alibaba.otter:connector.kafka:{CANAL}")
_QUIET = 1.3  # [s]
_AGAIN_FROM, _AGAIN_AFTER = 4, 6
"""After the second point, Canal starts again at the position of the first, if it sends messages twice."""


def run(place: Path, server: MariaDB, variants: Mapping[str, dict[str, str]], sends_twice: bool = False) -> None:
    """Write messages and truth to an existing directory, in the files of the golden archive."""
    (place / "truth").mkdir()
    files = _properties(place, variants, server.port, _first_position(server))
    program = Path(__file__).with_name("Messages.java")
    options = (*SHORT_LIVED, "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")
    command = java((str(program), str(place), *map(str, files)), *_ARTIFACTS, options=options)
    sent = {variant: Messages(place / f"messages.{variant}.jsonl") for variant in variants}
    parts = re.split(r"-- @point (\d+) (.*)\n", SCENARIO.read_text("utf-8"))
    positions: dict[int, Position] = {}
    with running_command(command, place) as canal:
        for sql, number, label in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
            point = int(number)
            server.run(sql)
            _settle(canal, place, sent.values(), point)
            positions[point] = _position(server)
            about = {"kind": "point", "point": point, "label": label} | _progress(positions[point], sent)
            lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [about, *tables(server)])
            (place / "truth" / f"point{point:02}.jsonl").write_text(lines, "utf-8")
            if sends_twice and point == _AGAIN_AFTER:
                _send_twice(canal, place, sent.values(), positions[_AGAIN_FROM])


def _first_position(server: MariaDB) -> Position:
    """The start of a new binlog without the databases.

    Canal cannot read MariaDB's first binlog by GTID, because its list of GTIDs is empty.
    """
    server.run("".join(f"DROP DATABASE IF EXISTS {database};" for database in DATABASES) + "RESET MASTER;")
    server.run("CREATE DATABASE gold_dummy; DROP DATABASE gold_dummy; FLUSH BINARY LOGS;")
    return _position(server)._replace(offset=4)


def _position(server: MariaDB) -> Position:
    (status,) = server.run("SHOW MASTER STATUS;")
    file, offset = status.split("\t")[:2]
    (gtid,) = server.run("SELECT @@global.gtid_binlog_pos;")
    return Position(file, int(offset), gtid)


def _properties(place: Path, variants: Mapping[str, dict[str, str]], port: int, position: Position) -> list[Path]:
    """Write a file of properties for each variant."""
    files = []
    for variant, own in variants.items():
        file = place / f"{variant}.properties"
        escaped = {name: value.replace("\\", r"\\") for name, value in settings(own, port, position).items()}
        file.write_text("".join(f"{name}={value}\n" for name, value in escaped.items()), "utf-8")
        files.append(file)
    return files


def _settle(canal: Popen[bytes], place: Path, sent: Iterable[Messages], point: int) -> None:
    """Wait until each variant has the point's row in the table ``sync_point``, and no more messages arrive."""
    all = list(sent)
    settle(canal, place, all, all, _is_point(point), _QUIET)


def _is_point(number: int) -> Callable[[str, dict[str, Any]], bool]:
    def is_point(_: str, value: dict[str, Any]) -> bool:
        rows = (value["data"] or []) if value["table"] == "sync_point" else []
        return any(row["n"] == str(number) for row in rows)

    return is_point


def _send_twice(canal: Popen[bytes], place: Path, sent: Iterable[Messages], position: Position) -> None:
    """Start Canal again at a position, and wait until it has sent all messages after it."""
    later = [Messages(messages.file) for messages in sent]
    for messages in later:
        messages.read = messages.file.stat().st_size
    assert canal.stdin is not None
    canal.stdin.write(" ".join(map(str, position)).encode() + b"\n")
    canal.stdin.flush()
    _settle(canal, place, later, _AGAIN_AFTER)


def _progress(position: Position, sent: Mapping[str, Messages]) -> dict[str, Any]:
    """The position of the binlog, and what Canal has sent so far."""
    return {
        "binlog": f"{position.file}:{position.offset}",
        "messages": {variant: len(messages.look()) for variant, messages in sent.items()},
        "next_offsets": {variant: _next_offsets(messages) for variant, messages in sent.items()},
    }


def _next_offsets(messages: Messages) -> dict[str, int]:
    """The first offset that no message has, by topic and partition."""
    return {f"{line['topic']}/{line['partition']}": line["offset"] + 1 for line in messages.look()}
