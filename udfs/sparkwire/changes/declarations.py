"""The capture systems that are declarations. A new system is one line of the table here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sparkwire.changes.canal import CANAL
from sparkwire.changes.datahub import DATAHUB
from sparkwire.changes.dms import DMS
from sparkwire.changes.maxwell import MAXWELL
from sparkwire.changes.ogg import OGG
from sparkwire.changes.systems import System
from sparkwire.changes.wal2json import WAL2JSON

_ALL: Final = (
    DATAHUB,
    CANAL,
    MAXWELL,
    DMS,
    WAL2JSON,
    OGG,
)
SYSTEMS: Final[Mapping[str, System]] = {system.name: system for system in _ALL}
"""by the argument ``format``"""
FORMATS: Final = ("databus", "debezium", *SYSTEMS)
"""all formats of `sparkwire.changes`"""
