"""Machine words in kernels: numpy's conversions, with Python's number types for the type checker.

A kernel computes in the widths that it loads; ``int64(x)`` widens a value before arithmetic. For a type checker,
the result is an ``int``, like every size and position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

int64: Callable[[Any], int] = np.int64  # type: ignore[assignment]
uint64: Callable[[Any], int] = np.uint64  # type: ignore[assignment]
