"""What tests of several modules request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.registry_server import RegistryServer, serving


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    """A schema registry, empty."""
    with serving() as registry:
        yield registry
