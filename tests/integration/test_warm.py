"""`python -m sparkwire warm` fills a directory, which another process uses without compiling."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.child import run_python

# Call each function on each kind of column, in a process with only this directory; print the missing kernels.
ANSWERS = """
import sys
from pathlib import Path
from sparkwire.kernels import cache
from sparkwire.catalogue.warm import warm

cache._places = lambda: iter([Path(sys.argv[1])])
cache.KernelCache.save_overload = lambda self, *_: print("compiled", self.name)
print(warm() > 0)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the script fills, with kernels from this machine's cache and newly compiled ones."""
    path = tmp_path_factory.mktemp("kernels")
    said = run_python("-m", "sparkwire", "warm", str(path))
    assert f"in {path}" in said
    return path


def test_nothing_is_compiled_again(directory: Path) -> None:
    assert run_python("-c", ANSWERS, str(directory)) == "True\n"


# In a separate namespace, the directory is mounted read-only.
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && ! touch "$1/x" 2>&1 && exec "$2" -c "$3" "$1"'


def test_nothing_is_compiled_from_a_read_only_directory(directory: Path) -> None:
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", READ_ONLY, "sh", str(directory), sys.executable]
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    run = subprocess.run([*command, ANSWERS], env=os.environ | paths, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    rejected, _, results = run.stdout.partition("\n")
    assert "Read-only file system" in rejected
    assert results == "True\n"


def test_usage() -> None:
    with pytest.raises(AssertionError, match=r"usage: python -m sparkwire"):
        run_python("-m", "sparkwire", "warm", "a", "b")
