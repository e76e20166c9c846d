"""Modules that a worker does not load before its first result. Workers start often, and each module takes 0.1 s."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.child import run_python

pytestmark = pytest.mark.process

FIRST_ANSWER = """
import sys
import numpy as np
import pyarrow as pa
import sparkwire
from sparkwire.databus.functions import SAMPLES

# Not pa.array, which imports pandas; Spark passes a column without it.
event = SAMPLES["event"]
offsets = pa.py_buffer(np.array([0, len(event)], np.int32))
column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(event)])
print(*sparkwire.FUNCTIONS["dbus_status"].decode(column))
# The second stands for all that numba can compile.
print(*sorted({"pandas", "numba.cpython.unicode", "pyspark"} & set(sys.modules)))
"""


def test_first_result_from_a_warm_cache(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run_python("-c", FIRST_ANSWER, environment=cache).startswith("OK\n")
    assert run_python("-c", FIRST_ANSWER, environment=cache) == "OK\n\n"
