"""All formats and all functions, in the order in which the reference lists them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparkwire.avro import functions as avro
from sparkwire.core.function import Format, Function
from sparkwire.databus import functions as databus
from sparkwire.datahub import functions as datahub
from sparkwire.debezium import functions as debezium
from sparkwire.kafka import functions as kafka

FORMATS: Final[tuple[Format, ...]] = (databus.FORMAT, kafka.FORMAT, datahub.FORMAT, debezium.FORMAT, avro.FORMAT)


class _ByName(dict[str, Function]):
    """Functions by name. For an unknown name, the error suggests a similar one."""

    def __missing__(self, name: str) -> Function:
        near = difflib.get_close_matches(str(name), self, 1)
        raise KeyError(f"no function is named {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    _ByName((function.name, function) for format in FORMATS for function in format.functions)
)
"""Function by name."""

SAMPLES: Final[Mapping[str, bytes]] = MappingProxyType(
    {name: sample for format in FORMATS for name, sample in format.samples.items()}
)
"""Sample bytes that the examples read: the columns of the view ``sparkwire_samples``."""
