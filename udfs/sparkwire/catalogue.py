"""All functions, in the order in which the reference lists them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparkwire.formats import databus, datahub, kafka
from sparkwire.function import Function

_FORMATS: Final = (databus, kafka, datahub)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {function.name: function for module in _FORMATS for function in module.FUNCTIONS}
)
"""Function by name."""

SAMPLES: Final[Mapping[str, bytes]] = MappingProxyType(
    {name: sample for module in _FORMATS for name, sample in module.SAMPLES.items()}
)
"""What the examples read: the columns of the view ``sparkwire_samples``."""
