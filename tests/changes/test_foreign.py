"""What messages of other systems look like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sparkwire.base.error_codes import BAD_JSON
from sparkwire.changes.foreign import explained


def test_large_texts() -> None:
    """As Spark passes them with `spark.sql.execution.arrow.useLargeVarTypes`."""
    for text in ("{broken", "Struct{id=1}"):
        codes, column = np.array([BAD_JSON]), pa.array([text])
        expected = explained(codes, column, "debezium").to_pylist()
        assert explained(codes, column.cast(pa.large_string()), "debezium").to_pylist() == expected
