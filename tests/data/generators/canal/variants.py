"""The settings of Canal for each variant of the golden data, with the names of its own configuration."""

from __future__ import annotations

from typing import NamedTuple

from tests.integration.mariadb import USER

DATABASES = ("shopdb", "shopdb_eu")
"""the databases of the scenario"""

_PLAIN = {"canal.instance.filter.query.dml": "true"}
_GTID = _PLAIN | {"canal.instance.gtidon": "true"}
_HASH = {
    "canal.mq.dynamicTopic": r".*\..*",
    "canal.mq.partitionsNum": "3",
    "canal.mq.partitionHash": r".*\..*:$pk$",
}
VARIANTS = {"flat": {}, "flat-plain": _PLAIN, "flat-hash": _HASH, "flat-gtid": _GTID}
"""the settings of each variant that differ from Canal's defaults"""
REDELIVERED = {"plain": _PLAIN, "gtid": _GTID}
"""the variants with messages that Canal sends twice"""


class Position(NamedTuple):
    """A position in the binlog."""

    file: str
    offset: int
    gtid: str
    """the last transaction before it"""


def settings(variant: dict[str, str], port: int, position: Position) -> dict[str, str]:
    """The properties of an instance of Canal that reads from a position."""
    return {
        "canal.instance.master.address": f"127.0.0.1:{port}",
        "canal.instance.master.journal.name": position.file,
        "canal.instance.master.position": str(position.offset),
        "canal.instance.master.gtid": position.gtid,
        "canal.instance.dbUsername": USER,
        "canal.instance.dbPassword": USER,
        "canal.instance.filter.regex": ",".join(rf"{database}\..*" for database in DATABASES),
        "canal.mq.flatMessage": "true",
        "canal.mq.topic": "example",
        "canal.mq.partition": "0",
    } | variant
