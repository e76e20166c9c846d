"""Where Spark looks for sources automatically: with the package installed `databus` is there without ``register``."""

from sparkwire.spark.functions.discovery import OFFERED

if OFFERED:
    from sparkwire.spark.sources import Databus as DefaultSource  # noqa: F401  # Spark requests this name
