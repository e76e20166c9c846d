"""All formats and all functions, in the order in which the reference lists them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparkwire.avro import functions as avro
from sparkwire.core.function import Format, Function
from sparkwire.databus import functions as databus
from sparkwire.datahub import functions as datahub
from sparkwire.kafka import functions as kafka

FORMATS: Final[tuple[Format, ...]] = (databus.FORMAT, kafka.FORMAT, datahub.FORMAT, avro.FORMAT)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {function.name: function for format in FORMATS for function in format.functions}
)
"""Function by name."""

SAMPLES: Final[Mapping[str, bytes]] = MappingProxyType(
    {name: sample for format in FORMATS for name, sample in format.samples.items()}
)
"""What the examples read: the columns of the view ``sparkwire_samples``."""
