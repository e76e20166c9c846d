"""What each column means, in the types of a data source: ``DESCRIBE`` of a view over it shows them.

Functions cannot have them: Spark refuses an answer whose type has no comments where the declared one has.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType


def commented(type: StructType, docs: Mapping[str, str]) -> StructType:
    """``type``, its fields with comments."""
    return StructType(
        [StructField(field.name, field.dataType, field.nullable, {"comment": docs[field.name]}) for field in type]
    )
