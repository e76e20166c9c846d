"""What tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"
"""bytes that this project did not write, each with its origin"""
