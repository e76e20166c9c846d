"""What each column means and comes from, in the types of a data source: ``DESCRIBE`` of a view over it shows what it means.

Functions cannot have them: Spark rejects a result whose type has no comments where the declared one has.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import StructField, StructType


def commented(type: StructType, docs: Mapping[str, str], marks: Mapping[str, Mapping[str, str]]) -> StructType:
    """``type``, its fields with comments and, by their names, with ``marks``: other metadata."""
    return StructType(
        [
            StructField(
                field.name, field.dataType, field.nullable, {"comment": docs[field.name], **marks.get(field.name, {})}
            )
            for field in type
        ]
    )


def with_marks(schema: pa.Schema, type: StructType) -> pa.Schema:
    """An Arrow schema with the metadata of Spark's, as far as it is text."""
    texts = ({name: one for name, one in field.metadata.items() if isinstance(one, str)} for field in type)
    return pa.schema([field.with_metadata(some) for field, some in zip(schema, texts, strict=True)])
