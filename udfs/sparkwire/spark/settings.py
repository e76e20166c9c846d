"""Change settings of a Spark session for the time of one statement."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sparkwire.base.printable import printable

_log = logging.getLogger("sparkwire")


@contextmanager
def changed_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings, and restore them at the end.

    A session may not allow a change, such as on serverless compute. Then the setting stays as it is, and the log says so.
    """
    before = {}
    for name, value in settings.items():
        old = spark.conf.get(name, None)
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            _log.info("%s", printable(f"the session does not allow to set {name}: {error}"))
        else:
            before[name] = old
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
