"""What tests share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"
"""bytes that this project did not write, each with its origin"""
WHOLE: Final = os.environ.get("WHOLE") == "1"
"""whether `make integration` also runs what takes long, and is of the same kind as what each commit runs"""
