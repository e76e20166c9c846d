"""Format, start and stop a real Kafka broker: KRaft, one node, only on the loopback interface."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import NamedTuple, TypeVar

import pytest
from confluent_kafka.admin import AdminClient

from tests.integration.jars import resolve, spark_jar

KAFKA = "org.apache.kafka:kafka_2.13:3.9.1"
NEWEST = "org.apache.kafka:kafka_2.13:4.4.0"
"""without ZooKeeper, and with the new protocol of groups"""
PROPERTIES = Path(__file__).parent / "server.properties"

_CLUSTER = "c3Bhcmt3aXJlLXRlc3Rz"  # a cluster id is 16 bytes in Base64
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""options for a JVM that lives too briefly for the C2 compiler"""
_FROM_SPARK = ("scala-library", "slf4j-api", "log4j-api", "log4j-core", "log4j-slf4j2-impl")
_STARTS_WITHIN = 60  # [s]
_TRIES = 50

Result = TypeVar("Result")


class Broker(NamedTuple):
    """A running broker."""

    address: str
    """``host:port``, for clients"""
    directory: Path
    """its log directory: a folder for each partition"""
    output: Path
    """the file with its output"""
    controller_port: int
    """the port of its cluster's controller"""


@contextmanager
def running(
    workspace: Path,
    kafka: str = KAFKA,
    killed: bool = False,
    settings: Mapping[str, object] | None = None,
    joins: Broker | None = None,
    options: Sequence[str] = SHORT_LIVED,
) -> Iterator[Broker]:
    """A broker with its files in ``workspace``, until the context ends. It uses existing files.

    ``killed``: kill it at the end instead of shutting it down. ``settings``: additional properties. ``joins``: another broker,
    whose cluster it joins. ``options``: options of its JVM.
    """
    port, controller_port = _free_ports()
    if joins:
        controller_port = joins.controller_port
        settings = {"process.roles": "broker", "node.id": 2, "listeners": f"PLAINTEXT://127.0.0.1:{port}"} | {
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"
        }
    broker = Broker(f"127.0.0.1:{port}", workspace / "logs", workspace / "broker.log", controller_port)
    properties = workspace / "server.properties"
    filled = Template(PROPERTIES.read_text("utf-8")).substitute(
        directory=broker.directory, port=port, controller_port=controller_port
    )
    more = [f"{name}={value}\n" for name, value in (settings or {}).items()]
    properties.write_text("".join([filled, *more]), "utf-8")
    with broker.output.open("w") as log:
        if not (broker.directory / "meta.properties").exists():
            storage = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties))
            subprocess.run(java(storage, kafka), stdout=log, stderr=subprocess.STDOUT, check=True)
        process = subprocess.Popen(
            java(("kafka.Kafka", str(properties)), kafka, options=options), stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait(broker, process, broker.output)
            yield broker
        finally:
            process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
            process.wait(timeout=60)


def segments(broker: Broker, topic: str, suffix: str = ".log") -> list[Path]:
    """The files of a topic with a suffix, in the order of partitions and offsets. A deleted topic has none."""
    return sorted(path for path in broker.directory.glob(f"{topic}-*[0-9]/*{suffix}") if path.suffix == suffix)


def while_unchanged(broker: Broker, topic: str, read: Callable[[], Result]) -> Result:
    """The result of ``read`` at a time when no segment of a topic is deleted or compacted. New segments may appear."""
    for _ in range(_TRIES):
        before = segments(broker, topic)
        try:
            rows = read()
        except (OSError, ValueError) as error:
            if f"{broker.directory}/" not in str(error):
                raise
            continue  # the file was deleted meanwhile
        if [path for path in segments(broker, topic) if path <= before[-1]] == before:
            return rows
    raise AssertionError(f"{topic} has changed under {_TRIES} readers")


def dump(*files: Path, options: Sequence[str] = ()) -> str:
    """The output of Kafka's `DumpLogSegments` for these files."""
    command = ("kafka.tools.DumpLogSegments", *options, "--files", ",".join(map(str, files)))
    return subprocess.run(java(command), capture_output=True, text=True, check=True).stdout


def java(
    arguments: Sequence[str],
    *artifacts: str,
    options: Sequence[str] = SHORT_LIVED,
    jars: Iterable[Path] = (),
    first: Iterable[Path] = (),
) -> list[str]:
    """The command that runs a program with these artifacts and jars, or one of Kafka's. ``first``: jars with precedence."""

    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
    # Spark's logging comes first, because Kafka's jars have none, and their slf4j is older.
    path = [*first, *map(spark_jar, _FROM_SPARK), *resolve(*(artifacts or (KAFKA,))), *jars]
    return [java, "-Xmx512m", *options, "-cp", os.pathsep.join(map(str, path)), *arguments]


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for taken in (one, other):
            taken.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _wait(broker: Broker, process: subprocess.Popen[bytes], output: Path) -> None:
    """Wait until it responds."""
    deadline = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(broker.address.rpartition(":")[2]))) == 0:
                AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=_STARTS_WITHIN)
                return
        time.sleep(0.1)
    pytest.fail(f"the broker did not start: {output.read_text('utf-8')[-2000:]}", pytrace=False)
