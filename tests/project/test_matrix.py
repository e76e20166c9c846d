"""Tests of `make matrix` that need none of its environments."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ROOT
from tests.support.matrix import OLDEST

pytestmark = pytest.mark.process

# Import the program where only the packages of the requirements can be imported.
PROGRAM = """
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import packages_distributions, requires
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

brought, left = set(), [Requirement(text) for text in sys.argv[1:]]
while left:
    one = left.pop()
    if (name := canonicalize_name(one.name)) not in brought:
        brought.add(name)
        needs = map(Requirement, requires(name) or ())
        left += [r for r in needs if not r.marker or any(r.marker.evaluate({"extra": e}) for e in {"", *one.extras})]
owners = packages_distributions()

class OnlyTheirs(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if not path and name in owners and not brought & {canonicalize_name(owner) for owner in owners[name]}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, OnlyTheirs())
import tests.support.matrix_check
"""


def test_the_environments_have_what_their_program_imports() -> None:
    requirements = ["sparkwire", *OLDEST.packages[1:]]
    assert _error(requirements) == ""
    without = [text for text in requirements if not text.startswith("crc32c")]
    assert _error(without).endswith("ModuleNotFoundError: No module named 'crc32c'")


def _error(requirements: list[str]) -> str:
    command = [sys.executable, "-c", PROGRAM, *requirements]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr.strip()
