"""Workers with too little memory give a clear error."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from sparkwire.core.function import Function
from sparkwire.spark.functions.udf import Call, PandasCall
from tests.support.child import run_python


@pytest.mark.parametrize("call", [Call, PandasCall])
def test_out_of_memory_gives_a_clear_error(monkeypatch: pytest.MonkeyPatch, call: type[Call]) -> None:
    """A worker with `spark.executor.pyspark.memory` runs out of memory in Python or in Arrow."""

    def reject(*_: Any, **__: Any) -> None:
        raise pa.ArrowMemoryError("malloc of size 65536 failed")

    monkeypatch.setattr(Function, "decode", reject)
    column = pa.array([b""]) if call is Call else pd.Series([b""])
    with pytest.raises(
        MemoryError,
        match=r"^out of memory while processing a batch in dbus_opcode .*65536.*: increase spark\.executor",
    ):
        call("dbus_opcode")(column)


# Spark limits a worker before it loads a function.
TOO_LITTLE = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (300 << 20,) * 2)
import sparkwire.spark.functions.udf
"""


def test_too_little_for_the_libraries() -> None:
    """In a separate process. Without the check, OpenBLAS ends it, and Spark reports a crashed worker."""
    with pytest.raises(AssertionError) as ended:
        run_python("-c", TOO_LITTLE)
    assert str(ended.value).splitlines()[-1] == (
        "MemoryError: sparkwire needs 1000 MB in each Python worker before any data, and this one may have 300 MB: "
        "raise spark.executor.pyspark.memory"
    )


# A worker with little memory returns a result, or fails with an error about memory.
LITTLE = """
import resource, sys
import pyarrow as pa
from sparkwire.spark.functions.udf import Call
from sparkwire.catalogue import SAMPLES

column = pa.array([SAMPLES["segment"]] * 60_000, pa.binary())
records = Call("kafka_records")
records(column[:2])  # with everything loaded
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[1]) << 20),) * 2)
try:
    print(len(records(column)))
except MemoryError as rejected:
    print(rejected)
"""


def test_a_worker_with_little_memory() -> None:
    """In a separate process with a limited address space, like a worker of Spark."""
    assert run_python("-c", LITTLE, "4000") == "60000\n"
    assert run_python("-c", LITTLE, "1").startswith("out of memory while processing a batch in kafka_records")
