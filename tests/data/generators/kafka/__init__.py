"""Kafka's log bytes: read once more by Kafka's own classes, and written once more by them.

`ReadSegments` says of each stored file what Kafka 3.8.0 reads from it, as the answers beside the files do. `WriteBatches`,
`WriteWrappers` and `WriteOldWrappers` write the segments from their records, by the classes of Kafka 3.8.0, 0.10.0.1 and 0.8.2.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.data.generators.comparison import Compared, differing_fields, first_of_each
from tests.data.generators.kafka.dumped import dump
from tests.data.generators.kafka.recipe import NEW
from tests.data.generators.kafka.written import ARTIFACTS, write
from tests.data.generators.programs import output_of
from tests.support import kafka_cases as golden

HERE = Path(__file__).parent
_NOT_OF_KAFKA = "description"
_OF_TIME = re.compile(r"lastModifiedTime=\d+")

Row = dict[str, Any]


def make(place: Path) -> Iterator[Compared]:
    """Read and write; what was written is in ``place``."""
    stored = {log.name: log.data for log in golden.logs()}
    stored |= {f"damaged/{file.name}": file.data for file in golden.damaged()}
    stored |= {name: data for name, data in golden.archive("messages").items() if name.endswith(".bin")}
    for name, data in stored.items():
        (place / "stored" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "stored" / name).write_bytes(data)
    yield from _read(place / "stored")
    yield write(place / "written")
    yield dump(place / "dumped")


def _read(stored: Path) -> Iterator[Compared]:
    logs = [("lines", log.name, log.java) for log in golden.logs()]
    damaged = [
        ("compact" if file.java["compactRecords"] else "records", f"damaged/{file.name}", [file.java])
        for file in golden.damaged()
    ]
    messages = [
        ("messages", f"single_messages_v{magic}.bin", [java for _, java in golden.messages(magic)]) for magic in (0, 1)
    ]
    questions = "".join(f"{kind}\t{stored / name}\n" for kind, name, _ in logs + damaged + messages)
    said = iter(
        output_of(HERE / "ReadSegments.java", (), ARTIFACTS[NEW], given=questions).removesuffix("\n\n").split("\n\n")
    )
    for things, asked in (("segments", logs), ("corrupt files", damaged), ("files of single messages", messages)):
        differences = [
            (name, _differing_lines(answers, list(map(json.loads, next(said).split("\n")))))
            for _, name, answers in asked
        ]
        yield Compared(len(asked), f"{things} read again", first_of_each(differences))


def _differing_lines(stored: Sequence[Row], made: Sequence[Row]) -> Iterator[str]:
    for number, (old, new) in enumerate(zip_longest(stored, made), 1):
        yield from differing_fields(f"line {number}", _of_kafka(old), _of_kafka(new))


def _of_kafka(answer: Row | None) -> Any:
    """Without what people wrote, and without the time at which a copy was made."""
    kept = {name: value for name, value in (answer or {}).items() if name != _NOT_OF_KAFKA}
    return json.loads(_OF_TIME.sub("", json.dumps(kept)))
