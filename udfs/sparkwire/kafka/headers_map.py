"""``kafka_headers_map``: a record's headers as a MAP. In Kafka, keys may repeat; the MAP has the last value of each key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sparkwire.core.column import bools_of, maps
from sparkwire.core.repeated_keys import without_repeats
from sparkwire.json.columns import item_offsets


def decode_headers_map(headers: pa.Array) -> pa.Array:
    """A map for each row, with keys in the order of their last headers. Headers without a key are omitted."""
    ends = item_offsets(headers)
    keys, values = headers.flatten().flatten()  # only of rows that are not NULL
    if keys.null_count:
        present = keys.is_valid()
        ends = np.concatenate(([0], np.cumsum(bools_of(present)))).astype(np.int32)[ends]
        keys, values = keys.filter(present), values.filter(present)
    # Spark may pass columns with 64-bit offsets.
    ends, (keys, values) = without_repeats(ends, keys.cast(pa.string()), values.cast(pa.binary()))
    return maps(ends, keys, values, bools_of(headers.is_valid()) if headers.null_count else None)
