"""``kafka_headers_map``: a record's headers as a MAP. Kafka lets keys repeat, a MAP does not: the last one wins."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.core.column import bools_of, maps


def decode_headers_map(headers: pa.Array) -> pa.Array:
    """A map a row, its keys in the order of their last headers; headers without a key are left out."""
    pairs = headers.flatten()  # of the rows that are not NULL
    keys, values = pairs.flatten()
    counts = pc.list_value_length(headers).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    row_of = np.repeat(np.arange(len(headers)), counts)
    codes = pc.dictionary_encode(keys).indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # The last of equals: the first when read backwards.
    identity = row_of * (len(codes) + 1) + codes
    _, first = np.unique(identity[::-1], return_index=True)
    last = np.sort(len(codes) - 1 - first)
    last = last[codes[last] >= 0]
    ends = np.searchsorted(row_of[last], np.arange(len(headers) + 1)).astype(np.int32)
    valid = bools_of(headers.is_valid()) if headers.null_count else None
    # Spark may hand over columns with 64-bit offsets.
    kept = pa.array(last)
    return maps(ends, keys.take(kept).cast(pa.string()), values.take(kept).cast(pa.binary()), valid)
