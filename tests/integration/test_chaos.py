"""A thousand random events happen to a stream's files. Each record is read once, or the query fails with an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos import Broker, Relay, run


@pytest.mark.parametrize("seed", [1, 2])
def test_a_broker(seed: int, tmp_path: Path) -> None:
    print(run(Broker, tmp_path / "orders-0", seed, 1000))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_relay(seed: int, tmp_path: Path) -> None:
    print(run(Relay, tmp_path / "relay", seed, 1000))
