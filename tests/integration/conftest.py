"""Tests against real servers and clusters: `make integration`, not `make test`.

They may fetch what they run against; where it cannot be had they fail and say so in one sentence. A session that needs jars
starts in a process of its own (`tests.child`), with those that `tests.integration.jars.resolve` gives.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.broker import Broker, running


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker of one node, for all tests."""
    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
