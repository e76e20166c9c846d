"""Write `kafka/cluster/configs.json`, the configurations that Kafka shows: ``python -m tools.kafka_configs``.

Kafka shows a value if it knows the name and its type is not PASSWORD; otherwise it treats the value as a secret. The names come
from Kafka's definitions, which `KafkaConfigs.java` prints with a release's jars. 3.9 contains the definitions of older releases.
For a new Kafka release, add a line to ``RELEASES`` and run this again; it needs a JDK.

Source: apache/kafka, `KafkaConfig.maybeSensitive`, `ConfigHelper`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from tools.kafka_definitions import REPOSITORY
from tools.pythons import ROOT

RELEASES: Final = ("4.4.0", "4.0.0", "3.9.1")
ARTIFACTS: Final = (
    "kafka_2.13", "kafka-clients", "kafka-server", "kafka-server-common", "kafka-storage", "kafka-storage-api",
    "kafka-group-coordinator", "kafka-group-coordinator-api", "kafka-transaction-coordinator", "kafka-share-coordinator",
    "kafka-coordinator-common", "kafka-raft", "kafka-metadata", "kafka-tools-api",
)  # fmt: skip
NEEDED: Final = (
    ("org/scala-lang", "scala-library", "2.13.15"),
    ("com/typesafe/scala-logging", "scala-logging_2.13", "3.9.5"),
    ("org/slf4j", "slf4j-api", "1.7.36"),
    ("com/yammer/metrics", "metrics-core", "2.2.0"),
    ("commons-validator", "commons-validator", "1.9.0"),
    ("org/apache/logging/log4j", "log4j-api", "2.24.3"),
    ("org/apache/zookeeper", "zookeeper", "3.8.4"),
)
"""artifacts that Kafka's classes need: group, artifact, version"""
CLASSES: Final = {
    "BROKER": (
        "kafka.server.KafkaConfig",
        "org.apache.kafka.server.config.AbstractKafkaConfig",
        "kafka.server.DynamicConfig$Broker$",
        "org.apache.kafka.server.config.DynamicConfig$Broker",
    ),
    "TOPIC": ("org.apache.kafka.storage.internals.log.LogConfig",),
    "GROUP": ("org.apache.kafka.coordinator.group.GroupConfig", "kafka.coordinator.group.GroupConfig"),
    "CLIENT_METRICS": ("org.apache.kafka.server.metrics.ClientMetricsConfigs",),
}
"""the classes that define the configurations of each type of resource, in all releases"""
SECRET: Final = "PASSWORD"
PROGRAM: Final = ROOT / "tools/KafkaConfigs.java"
TARGET: Final = ROOT / "udfs/sparkwire/kafka/cluster/configs.json"


def main() -> int:
    types: dict[str, dict[str, set[str]]] = {kind: {} for kind in CLASSES}
    for release in RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            jars = list(_jars(release, Path(folder)))
            for kind, classes in CLASSES.items():
                for name, type in _defined(jars, classes):
                    types[kind].setdefault(name, set()).add(type)
    shown = {kind: sorted(name for name, one in names.items() if SECRET not in one) for kind, names in types.items()}
    lines = [f"{json.dumps(kind)}: {json.dumps(names, indent=0)}" for kind, names in shown.items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    counts = ", ".join(f"{len(names)} of {len(types[kind])} {kind}" for kind, names in shown.items())
    sys.stdout.write(f"{TARGET.relative_to(ROOT)}: {counts}\n")
    return 0


def _jars(release: str, folder: Path) -> list[Path]:
    base = REPOSITORY.removesuffix("/org/apache/kafka")
    wanted = [*(("org/apache/kafka", artifact, release) for artifact in ARTIFACTS), *NEEDED]
    result = []
    for group, artifact, version in wanted:
        path = folder / f"{artifact}-{version}.jar"
        try:
            with urllib.request.urlopen(f"{base}/{group}/{artifact}/{version}/{path.name}") as response:
                path.write_bytes(response.read())
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            continue  # this release does not have the artifact
        result.append(path)
    return result


def _defined(jars: list[Path], classes: tuple[str, ...]) -> list[tuple[str, str]]:
    """The names and types that these classes define."""
    path = ":".join(map(str, jars))
    run = subprocess.run(["java", "-cp", path, str(PROGRAM), *classes], check=True, capture_output=True, text=True)
    return re.findall(r"^([\w.-]+) ([A-Z]+)$", run.stdout, re.MULTILINE)  # a logger may also print lines


if __name__ == "__main__":
    sys.exit(main())
