"""Machine words in kernels: numpy's conversions, typed as the Python numbers that they are.

A kernel computes in the widths that it loads; ``int64(x)`` widens before arithmetic. To a type checker
the result is an ``int``, as every size and position is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

int64: Callable[[Any], int] = np.int64  # type: ignore[assignment]
uint64: Callable[[Any], int] = np.uint64  # type: ignore[assignment]
