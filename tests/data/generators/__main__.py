"""`make golden`: generate the golden data again, and compare them with the stored ones.

python -m tests.data.generators             all of them
python -m tests.data.generators debezium    only these

The generated data are in build/golden. The command prints each difference that does not depend on time, and exits with 1 if
there is one. A missing program gives a line but no difference; the READMEs in tests/data list the programs.
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
    """Generate and compare data; returns the exit status."""
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
