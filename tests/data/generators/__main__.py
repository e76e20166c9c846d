"""`make golden`: make golden data again, and compare them with those that are stored.

    python -m tests.data.generators             all of them
    python -m tests.data.generators debezium    those

What was made is in build/golden. Prints each difference beside what time enters; exits with 1 if there is one. A program that
cannot be had is a line, and no difference: the READMEs in tests/data name the programs.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import ROOT

HERE = Path(__file__).parent


def main(names: Sequence[str]) -> int:
    """The exit status."""
    different = 0
    for name in names or sorted(file.parent.name for file in HERE.glob("*/__init__.py")):
        place = ROOT / "build" / "golden" / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            for compared in importlib.import_module(f"tests.data.generators.{name}").make(place):
                print("\n".join([f"{name}: {compared}", *compared.differences]), flush=True)
                different += len(compared.differences)
        except (pytest.fail.Exception, FileNotFoundError) as missing:
            print(f"{name}: not made again: {missing}", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
