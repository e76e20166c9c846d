"""Spark's types for Arrow's: a timestamp without a zone is TIMESTAMP_NTZ, which Spark before 4.2 does not do by default."""

from __future__ import annotations

from functools import partial
from typing import Final

from pyspark.sql.pandas import types

from_arrow_type: Final = partial(types.from_arrow_type, prefer_timestamp_ntz=True)
from_arrow_schema: Final = partial(types.from_arrow_schema, prefer_timestamp_ntz=True)
