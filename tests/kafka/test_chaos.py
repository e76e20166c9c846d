"""For any changes of files, a stream returns each record once, or reports that it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos import Broker, Relay, run


@pytest.mark.parametrize("seed", range(12))
def test_a_broker(seed: int, tmp_path: Path) -> None:
    assert run(Broker, tmp_path / "orders-0", seed, 60)["poll"]


@pytest.mark.parametrize("seed", range(12))
def test_a_relay(seed: int, tmp_path: Path) -> None:
    assert run(Relay, tmp_path / "relay", seed, 60)["poll"]
