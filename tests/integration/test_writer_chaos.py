"""A thousand random events happen to writers, and brokers start on the result: each partition has one complete version.

This takes about four minutes. A failure reports the seed and the number of steps that reproduce it::

    WriterChaos(path, seed, form).run(steps)
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.integration.broker import running
from tests.integration.consumers import consume
from tests.integration.test_way_back import brokers, create
from tests.support.faults import quick_path
from tests.support.writer_chaos import FORMATS, PARTITIONS, TOPIC, Versions, WriterChaos

__all__ = ["quick_path"]

SEEDS, STEPS = 5, 67
BROKERS_STEPS = 50
_HAPPENS = (
    "killed",
    "failed",
    "rejected",
    "recovered",
    "two writers",
    "reader waits",
    "recovery waits",
    "recovery, killed",
)


@pytest.mark.parametrize("form", FORMATS)
def test_writers(form: str, quick_path: Path) -> None:
    """Each seed has a separate directory."""
    seen = Counter[str]()
    for seed in range(SEEDS):
        (quick_path / f"{seed}").mkdir()
        seen += WriterChaos(quick_path / f"{seed}", seed, form).run(STEPS)
    print(f"{form}: {SEEDS * STEPS} steps", *(f"{count} {what}" for what, count in sorted(seen.items())), sep="\n    ")
    assert [what for what in _HAPPENS if not any(what in one for one in seen)] == []


@brokers
def test_a_broker_serves_the_result(tmp_path: Path, kafka: str) -> None:
    with running(tmp_path, kafka) as broker:
        create(broker, TOPIC, PARTITIONS)
    chaos = WriterChaos(broker.directory, 36)
    chaos.run(BROKERS_STEPS)
    with running(tmp_path, kafka) as broker:
        assert served(broker.address) == {name: rows for name, rows in chaos.now.items() if rows}, chaos.about


def served(address: str) -> Versions:
    """The records that consumers get."""
    by_name: dict[str, list[tuple[int, str]]] = {}
    for record in consume(address, TOPIC, "read_uncommitted").records:
        assert record.value is not None
        by_name.setdefault(f"{TOPIC}-{record.partition}", []).append((record.offset, record.value.decode()))
    return {name: tuple(sorted(rows)) for name, rows in by_name.items()}
