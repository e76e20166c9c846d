"""Add comments and metadata to the columns of a data source. ``DESCRIBE`` of a view over the source shows the comments.

Functions cannot have comments: Spark rejects a result without comments if the declared type has them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import StructField, StructType


def commented(type: StructType, docs: Mapping[str, str], marks: Mapping[str, Mapping[str, str]]) -> StructType:
    """``type`` with comments, and with ``marks``, which is other metadata by field name."""
    return StructType(
        [
            StructField(
                field.name, field.dataType, field.nullable, {"comment": docs[field.name], **marks.get(field.name, {})}
            )
            for field in type
        ]
    )


def with_marks(schema: pa.Schema, type: StructType) -> pa.Schema:
    """An Arrow schema with the text metadata of Spark's type."""
    texts = ({name: one for name, one in field.metadata.items() if isinstance(one, str)} for field in type)
    return pa.schema([field.with_metadata(some) for field, some in zip(schema, texts, strict=True)])
