"""Where Spark looks for sources automatically: with the package installed `kafka_log` is there without ``register``."""

from sparkwire.spark.functions.discovery import OFFERED

if OFFERED:
    from sparkwire.spark.sources import KafkaLog as DefaultSource  # noqa: F401  # Spark requests this name
