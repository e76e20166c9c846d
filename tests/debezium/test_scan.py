"""A batch of messages says of each what it says of it alone: the golden ones shuffled, and the same with edits."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from sparkwire import FUNCTIONS
from sparkwire.debezium.layout import TREES
from sparkwire.kernels import CHECKED
from tests.datahub.test_scan import check_as_alone, edited
from tests.support import debezium_golden as golden
from tests.support.child import run_python
from tests.support.debezium_golden import DATABASES
from tests.support.guard import guarded_column

VARIANTS = ("json", "json-schemas", "alt-json", "flat-rewrite", "flat-rewrite-schemas")


def shuffled(random: Random, count: int) -> list[bytes | None]:
    """Messages of one variant, or of several."""
    few = random.sample(VARIANTS, random.choice([1, 1, 3]))
    messages = [message.value for variant in few for message in golden.messages(random.choice(DATABASES), variant)]
    start = random.randrange(len(messages) - count)
    chosen = messages[start : start + count] if random.random() < 0.5 else random.sample(messages, count)
    return [value if value is None or random.random() < 0.6 else edited(random, value) for value in chosen]


@pytest.mark.parametrize("seed", range(12))
def test_spans(seed: int) -> None:
    rows = shuffled(Random(seed), 30)
    for tree in TREES:
        check_as_alone(rows, tree=tree)
        check_as_alone(rows, guarded_column(rows, at_end=seed % 2 == 0), tree)


@pytest.mark.parametrize("seed", range(12))
def test_every_field(seed: int) -> None:
    decode, rows = FUNCTIONS["debezium_change"].decode, shuffled(Random(100 + seed), 60)
    together = decode(pa.array(rows, pa.binary())).to_pylist()
    assert together == [decode(pa.array([row], pa.binary())).to_pylist()[0] for row in rows]


@pytest.mark.process
def test_checked_build() -> None:
    """The same with every load checked: a read outside the column would be an IndexError."""
    environment = {"SPARKWIRE_CHECKED": "1"}
    run_python("-c", "from tests.debezium.test_scan import read_checked as f; f()", environment=environment)


def read_checked() -> None:
    assert CHECKED
    for seed in range(3):
        rows = shuffled(Random(seed), 20)
        for tree in TREES:
            check_as_alone(rows, tree=tree)
        FUNCTIONS["debezium_change"].decode(pa.array(rows, pa.binary()))
