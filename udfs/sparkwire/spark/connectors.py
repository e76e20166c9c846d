"""The releases of Delta and Iceberg for each supported Spark: the table of docs/changes.md, which the integration tests use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Connectors(NamedTuple):
    """The Maven coordinates, ``group:artifact:version``, of the connectors for one Spark; None without a release for it."""

    delta: str | None
    iceberg: str | None

    @property
    def available(self) -> dict[str, str]:
        """The coordinates by the name of the table format."""
        return {
            name: coordinates for name, coordinates in (("Delta", self.delta), ("Iceberg", self.iceberg)) if coordinates
        }


_ICEBERG: Final = "org.apache.iceberg:iceberg-spark-runtime-"

CONNECTORS: Final[Mapping[str, Connectors]] = {
    "3.5": Connectors("io.delta:delta-spark_2.12:3.3.2", f"{_ICEBERG}3.5_2.12:1.12.0"),
    "4.0": Connectors("io.delta:delta-spark_4.0_2.13:4.4.0", f"{_ICEBERG}4.0_2.13:1.11.0"),
    "4.1": Connectors("io.delta:delta-spark_4.1_2.13:4.4.0", f"{_ICEBERG}4.1_2.13:1.12.0"),
    "4.2": Connectors("io.delta:delta-spark_4.2_2.13:4.4.0", None),
    "4.3": Connectors(None, None),
}
"""the connectors by the minor version of Spark, from the oldest to the newest"""


def newest_spark(format: str) -> str:
    """The newest Spark for which a table format, ``delta`` or ``iceberg``, has a connector."""
    return max(version for version, connectors in CONNECTORS.items() if getattr(connectors, format))


def connector_advice(version: str) -> str:
    """How to get a connector for a Spark: the end of an error message.

    ``version`` is the session's, such as ``4.2.1``.

        >>> connector_advice("4.2.1")
        'Spark 4.2 needs io.delta:delta-spark_4.2_2.13:4.4.0 (Delta) in spark.jars.packages'
    """
    minor = ".".join(version.split(".")[:2])
    available = CONNECTORS[minor].available if minor in CONNECTORS else {}
    if available:
        named = " or ".join(f"{coordinates} ({name})" for name, coordinates in available.items())
        return f"Spark {minor} needs {named} in spark.jars.packages"
    delta, iceberg = newest_spark("delta"), newest_spark("iceberg")
    return (
        f"neither Delta nor Iceberg is known for Spark {minor}: use Spark {delta} with {CONNECTORS[delta].delta} (Delta), "
        f"or Spark {iceberg} with {CONNECTORS[iceberg].iceberg} (Iceberg)"
    )
