"""Fixtures for tests of several modules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.registry_server import RegistryServer, serving


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """An empty schema registry."""
    with serving() as registry:
        yield registry
