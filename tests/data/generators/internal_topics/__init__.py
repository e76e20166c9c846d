"""Records of Kafka's internal topics, and of MirrorMaker 2's, by the classes of Kafka itself.

- `InternalMessages` writes random messages by Kafka's own definitions: `internal_messages.jsonl.xz`.
- `InternalRecords` writes every version of offsets, groups and transactions: `internal_records.jsonl.xz`.
- `MirrorRecords` writes what MirrorMaker 2 keeps: `mirror_records.tsv`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.data.generators.comparison import Compared, compare_lines, stored_lines
from tests.data.generators.programs import output_of
from tests.integration.broker import KAFKA, NEWEST
from tests.support import DATA
from tests.support.internal_messages import lines_of, written

HERE = Path(__file__).parent
MIRROR = "org.apache.kafka:connect-mirror:3.9.1"


def make(place: Path) -> Iterator[Compared]:
    """Run each program; what it wrote is in ``place``."""
    texts = {
        "internal_messages.jsonl.xz": lines_of(written(_answers)),
        "internal_records.jsonl.xz": output_of(HERE / "InternalRecords.java", (), KAFKA),
        "mirror_records.tsv": output_of(HERE / "MirrorRecords.java", (), MIRROR),
    }
    for name, text in texts.items():
        (place / name.removesuffix(".xz")).write_text(text, "utf-8")
        yield compare_lines(name, stored_lines(DATA / "kafka" / name), text.removesuffix("\n").split("\n"))


def _answers(questions: str) -> str:
    return output_of(HERE / "InternalMessages.java", (), NEWEST, given=questions)
