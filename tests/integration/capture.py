"""Run Debezium's embedded engine: it sends the changes of a database to a broker, with one topic for each table."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integration.broker import SHORT_LIVED, java

DEBEZIUM = "3.3.0.Final"
ENGINE = (
    f"io.debezium:debezium-embedded:{DEBEZIUM}",
    f"io.debezium:debezium-connector-postgres:{DEBEZIUM}",
)
_SETTINGS = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "publication.autocreate.mode": "filtered",
    "database.hostname": "127.0.0.1",
    "database.user": "postgres",
    "database.password": "postgres",
    "database.dbname": "postgres",
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "offset.flush.interval.ms": "500",
    "poll.interval.ms": "100",
    "skipped.operations": "none",  # by default, TRUNCATE is skipped
}


@contextmanager
def captured(workspace: Path, broker: str, settings: Mapping[str, object]) -> Iterator[subprocess.Popen[bytes]]:
    """The engine's process, until the context ends. It continues where a previous one in ``workspace`` has ended.

    ``settings``: settings of the connector; ``broker``: the broker's address.
    """
    workspace.mkdir(exist_ok=True)
    file = connector(workspace, "connector", settings)
    with running_engine(Path(__file__).with_name("Capture.java"), [str(file), broker], workspace) as engine:
        yield engine


def connector(workspace: Path, name: str, settings: Mapping[str, object]) -> Path:
    """A properties file with the common settings of all connectors, and ``settings``."""
    file = workspace / f"{name}.properties"
    own = _SETTINGS | {"name": name, "offset.storage.file.filename": workspace / f"{name}.offsets"} | dict(settings)
    file.write_text("".join(f"{name}={value}\n" for name, value in own.items()), "utf-8")
    return file


@contextmanager
def running_engine(
    program: Path, arguments: Sequence[str], workspace: Path, *artifacts: str, jars: Iterable[Path] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """The process of a program with the engine, until the context ends. Then its standard input ends.

    ``artifacts`` of Maven Central and ``jars`` are added to the engine's. The output is in ``workspace``, in the file
    ``engine.log``.
    """
    options = (*SHORT_LIVED, "-Duser.timezone=UTC")
    command = java((str(program), *arguments), *ENGINE, *artifacts, options=options, jars=jars)
    with running_command(command, workspace) as engine:
        yield engine


@contextmanager
def running_command(command: Sequence[str], workspace: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process of a command, until the context ends. Then its standard input ends.

    The output is in ``workspace``, in the file ``engine.log``.
    """
    with (workspace / "engine.log").open("a") as log:
        engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield engine
        finally:
            assert engine.stdin is not None
            engine.stdin.close()
            try:
                engine.wait(timeout=30)
            finally:
                engine.kill()
