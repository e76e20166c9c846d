"""Debezium's embedded engine: what a database changes goes to a broker, a topic for each table."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.integration.broker import java

DEBEZIUM = "3.3.0.Final"
ENGINE = (
    f"io.debezium:debezium-embedded:{DEBEZIUM}",
    f"io.debezium:debezium-connector-postgres:{DEBEZIUM}",
)
_SETTINGS = {
    "name": "capture",
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
    "skipped.operations": "none",  # TRUNCATE, by default
}


@contextmanager
def captured(workspace: Path, broker: str, settings: Mapping[str, object]) -> Iterator[subprocess.Popen[bytes]]:
    """The engine's process, until the context ends. ``settings``: the connector's own; ``broker``: its address."""
    workspace.mkdir()
    file = workspace / "connector.properties"
    own = _SETTINGS | {"offset.storage.file.filename": workspace / "offsets"}
    file.write_text("".join(f"{name}={value}\n" for name, value in (own | dict(settings)).items()), "utf-8")
    program = str(Path(__file__).with_name("Capture.java"))
    with (workspace / "engine.log").open("w") as log:
        engine = subprocess.Popen(
            java((program, str(file), broker), *ENGINE), stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield engine
        finally:
            assert engine.stdin is not None
            engine.stdin.close()
            try:
                engine.wait(timeout=30)
            finally:
                engine.kill()
