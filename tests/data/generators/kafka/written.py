"""Write the log bytes again, each batch with the version of Kafka that wrote the stored one."""

from __future__ import annotations

import base64
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.data.generators.comparison import Compared, first_of_each
from tests.data.generators.kafka.recipe import MIDDLE, NEW, OLD, Batch, batches
from tests.data.generators.programs import output_of
from tests.integration.jars import jar
from tests.support import kafka_cases as golden

HERE = Path(__file__).parent
PROGRAMS = {OLD: "WriteOldWrappers.java", MIDDLE: "WriteWrappers.java", NEW: "WriteBatches.java"}
ARTIFACTS = {
    OLD: "org.apache.kafka:kafka_2.11:0.8.2.2",
    MIDDLE: "org.apache.kafka:kafka_2.11:0.10.0.1",
    NEW: "org.apache.kafka:kafka_2.13:3.8.0",
}
_SCALA = "org.scala-lang:scala-library:2.11.8"
_SNAPPY, _LZ4, _ZSTD = (
    "org.xerial.snappy:snappy-java:1.1.10.5",
    "org.lz4:lz4-java:1.8.0",
    "com.github.luben:zstd-jni:1.5.7-3",
)
"""the codec libraries that wrote the stored bytes, for every Kafka; older ones compress to other bytes"""
CODECS = {OLD: (_SCALA, _SNAPPY, _LZ4), MIDDLE: (_SCALA, _SNAPPY, _LZ4), NEW: (_ZSTD,)}
_OLD_LZ4, _CHECKS = "net.jpountz.lz4:lz4:1.2.0", "net/jpountz/util/Utils.class"
"""Kafka 0.8.2.2 calls a class that newer releases of lz4 no longer have"""


def write(place: Path) -> Compared:
    """Write all files to an empty directory, and compare them with the stored ones."""
    place.mkdir()
    logs = [log for log in golden.logs() if not log.name.startswith("rdkafka/")]
    asked = {log.name: list(batches(log)) for log in logs}
    answers = {version: _answers(version, asked, place) for version in PROGRAMS}
    differences = []
    for log in logs:
        made = [(batch, next(answers[batch.version])) for batch in asked[log.name]]
        file = place / log.name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"".join(_best(batch, written) for batch, written in made).ljust(len(log.data), b"\0"))
        differences.append((log.name, _differing(made)))
    return Compared(len(logs), "segments written again", first_of_each(differences))


def _answers(version: str, asked: Mapping[str, list[Batch]], place: Path) -> Iterator[list[bytes]]:
    """The bytes that the classes of a version write for each batch, in order."""
    own = [batch.lines for found in asked.values() for batch in found if batch.version == version]
    first = [jar(coordinates, place) for coordinates in CODECS[version]]
    if version == OLD:
        with zipfile.ZipFile(jar(_OLD_LZ4, place)) as lz4:
            lz4.extract(_CHECKS, place)
        first.insert(0, place)
    program = place / PROGRAMS[version]
    program.write_text((HERE / program.name).read_text() + (HERE / "Batches.java").read_text())
    said = output_of(program, (), ARTIFACTS[version], given="\n".join(own), first=first)
    for line in said.splitlines():
        yield list(map(base64.b64decode, line.split(" ")))


def _best(batch: Batch, written: list[bytes]) -> bytes:
    """The bytes that equal the stored ones, else the first."""
    return batch.data if batch.data in written else written[0]


def _differing(made: list[tuple[Batch, list[bytes]]]) -> Iterator[str]:
    for batch, written in made:
        if batch.data not in written:
            sizes = " or ".join(str(len(data)) for data in written)
            what = f"batch {batch.number} ({batch.codec}, by Kafka {batch.version})"
            yield f"{what}: stored are {len(batch.data)} bytes, made were {sizes}, not the same"
