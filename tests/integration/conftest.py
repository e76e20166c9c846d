"""Tests against real servers and clusters: `make integration`, not `make test`.

They may fetch what they run against; where it cannot be had they fail and say so in one sentence. PostgreSQL is the system's
own: if none exists, its test is skipped and says so. A session that needs jars
starts in a process of its own (`tests.support.child`), with those that `tests.integration.jars.resolve` gives.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.broker import Broker, running
from tests.integration.traffic import Traffic, traffic

_ENOUGH = 60  # [rounds] of records, so that segments have rolled, and compaction and retention have begun


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker of one node, for all tests."""
    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def producers(broker: Broker) -> Iterator[Traffic]:
    """Producers that rest."""
    with traffic(broker.address) as running:
        yield running


@pytest.fixture
def busy(producers: Traffic) -> Iterator[Traffic]:
    """Producers that have filled their topics for a while, and continue while a test requests them."""
    with producers.at_work():
        producers.wait(_ENOUGH - len(producers.rounds))
        yield producers
