"""`make golden`: make golden data again, and compare them with those that are stored.

    python -m tests.data.generators             all of them
    python -m tests.data.generators debezium    those

What was made is in build/golden. Prints each difference beside what time enters; exits with 1 where there is one.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support import ROOT

HERE = Path(__file__).parent


def main(names: Sequence[str]) -> int:
    """The exit status."""
    different = 0
    for name in names or sorted(file.parent.name for file in HERE.glob("*/__init__.py")):
        place = ROOT / "build" / "golden" / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        found = list(importlib.import_module(f"tests.data.generators.{name}").differences(place))
        print("\n".join([f"{name}: {len(found)} differences", *found]), flush=True)
        different += len(found)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
