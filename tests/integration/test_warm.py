"""`python -m sparkwire.warm` fills a directory from which another process answers without compiling."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.child import run_python

# Each function on each kind of column, in a process that finds this directory alone, and says what it misses there.
ANSWERS = """
import sys
from pathlib import Path
from sparkwire.kernels import cache
from sparkwire.warm import warm

cache._places = lambda: iter([Path(sys.argv[1])])
cache.KernelCache.save_overload = lambda self, *_: print("compiled", self.name)
print(warm() > 0)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filled by the script, from what this machine has compiled before and with the rest."""
    path = tmp_path_factory.mktemp("kernels")
    said = run_python("-m", "sparkwire.warm", str(path))
    assert f"in {path}" in said
    return path


def test_nothing_is_compiled_again(directory: Path) -> None:
    assert run_python("-c", ANSWERS, str(directory)) == "True\n"


def test_usage() -> None:
    with pytest.raises(AssertionError, match=r"usage: python -m sparkwire.warm \[DIRECTORY\]"):
        run_python("-m", "sparkwire.warm", "a", "b")
