"""`make coverage` counts the lines of kernels, which Python does not run."""

from __future__ import annotations

import inspect

import pytest

from sparkwire.kernels import varint
from tests.support.child import run_python

ONE_BYTE = """
from tests.support import kernel_lines
kernel_lines.install()
import numpy as np
from sparkwire.kernels import varint
assert varint.varint(np.array([150], np.uint8), 0, {size}) == {result}
[lines] = kernel_lines.executed().values()
print(*sorted(lines))
"""


def executed(size: int, result: tuple[int, int]) -> list[str]:
    """The lines that run while a child reads the varint of so many bytes."""
    pytest.importorskip("coverage")
    environment = {"SPARKWIRE_KERNEL_CACHE": "off", "SPARKWIRE_CHECKED": "1"}
    numbers = run_python("-c", ONE_BYTE.format(size=size, result=result), environment=environment).split()
    lines = inspect.getsource(varint).splitlines()
    return [lines[int(number) - 1].strip() for number in numbers]


@pytest.mark.process
def test_lines_of_kernels() -> None:
    """No byte is there: the first branch is not taken, and the kernel that it calls has no loop to run."""
    none = executed(0, (0, -1))
    assert none[:1] == ["value = np.uint64(0)"]
    assert "if pos < end:" in none
    assert "low = int64(u8(data, pos))" not in none
    assert "byte = np.uint64(u8(data, pos))" not in none


@pytest.mark.process
def test_lines_of_other_branches() -> None:
    """One byte that says that more follow."""
    torn = executed(1, (11, -1))
    assert {"low = int64(u8(data, pos))", "byte = np.uint64(u8(data, pos))"} <= set(torn)
    assert "high = int64(u8(data, pos + 1))" not in torn
