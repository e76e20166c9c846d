"""Print the output of Kafka's DumpLogSegments for indexes, snapshots and internal topics again."""

from __future__ import annotations

from pathlib import Path

from tests.data.generators.comparison import Compared, compare_lines, first_of_each
from tests.data.generators.kafka.recipe import NEW
from tests.data.generators.kafka.written import ARTIFACTS
from tests.data.generators.programs import output_of
from tests.support import kafka_cases as golden

PROGRAM = Path(__file__).with_name("DumpFiles.java")
_SEGMENTS = ("segments_v0", "segments_v1", "segments_v2", "segments_other")
_INDEXES = (".index", ".timeindex", ".txnindex", ".snapshot")
_ALL = "other_files.dump.txt"
_DECODERS = {"consumer_offsets": "--offsets-decoder", "transaction_state": "--transaction-log-decoder"}


def dump(place: Path) -> Compared:
    """Write all files of segments to ``place``, and dump those with a stored dump."""
    files = {name: data for archive in (*_SEGMENTS, "storage") for name, data in golden.archive(archive).items()}
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    dumps = sorted(name for name in files if name.endswith((_ALL, ".decoded.txt")))
    runs = "".join("\t".join(_arguments(place / name)) + "\n" for name in dumps)
    said = output_of(PROGRAM, (), ARTIFACTS[NEW], given=runs).removesuffix("\n\n").split("\n\n")
    compared = [
        (name, compare_lines("dump", _lines(files[name].decode()), _lines(text)))
        for name, text in zip(dumps, _without(place, dumps, said), strict=True)
    ]
    return Compared(len(dumps), "dumps printed again", first_of_each((name, one.differences) for name, one in compared))


def _arguments(dump: Path) -> list[str]:
    if dump.name != _ALL:
        log = dump.with_name(dump.name.replace(".decoded.txt", ".log"))
        return ["--files", str(log), _DECODERS[dump.parent.name]]
    return ["--files", ",".join(str(file) for file in sorted(dump.parent.iterdir()) if file.suffix in _INDEXES)]


def _without(place: Path, dumps: list[str], said: list[str]) -> list[str]:
    """The output with only the names of files, without paths."""
    return [text.replace(f"{(place / name).parent}/", "") for name, text in zip(dumps, said, strict=True)]


def _lines(text: str) -> list[str]:
    """The lines; those of the standard error come last, because their position is random."""
    return sorted(text.removesuffix("\n").split("\n"), key=lambda line: line.startswith("STDERR "))
