"""Tests against real servers and clusters: `make integration`, not `make test`.

They may download the programs that they need, and fail with a clear message if a download is impossible. They use the system's
PostgreSQL; without one, its tests are skipped with a message. A session that needs jars starts in a separate process
(`tests.support.child`), with the jars from `tests.integration.jars.resolve`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.broker import Broker, running
from tests.integration.traffic import Traffic, traffic

_ENOUGH = 60  # [rounds] of records, so that segments have rolled, and compaction and retention have begun


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker with one node, for all tests."""
    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def producers(broker: Broker) -> Iterator[Traffic]:
    """Producers that are not sending."""
    with traffic(broker.address) as running:
        yield running


@pytest.fixture
def busy(producers: Traffic) -> Iterator[Traffic]:
    """Producers that have filled their topics for a while, and send while a test uses them."""
    with producers.at_work():
        producers.wait(_ENOUGH - len(producers.rounds))
        yield producers
