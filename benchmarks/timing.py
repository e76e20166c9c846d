"""Time candidates in turn, so that a machine that slows down slows all of them."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

TRIAL: Final = "SPARKWIRE_BENCHMARK_TRIAL"
"""the environment variable of a trial: each candidate runs once, over little data. It shows that all of them run"""


def is_trial() -> bool:
    """Whether this process is part of a trial."""
    return TRIAL in os.environ


def amount(full: int, *, trial: int) -> int:
    """How much a candidate does, or how often."""
    return trial if is_trial() else full


class Timing(NamedTuple):
    """The rounds of one candidate, in order [s]."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        return min(self.samples)

    @property
    def high(self) -> float:
        return max(self.samples)

    def per(self, amount: float) -> Timing:
        """The time for one of ``amount`` things done in each round."""
        return Timing(tuple(taken / amount for taken in self.samples))

    def over(self, other: Timing) -> Timing:
        """This candidate's time divided by the other's, round by round."""
        return Timing(tuple(mine / theirs for mine, theirs in zip(self.samples, other.samples, strict=True)))


def interleave(candidates: Mapping[str, Callable[[], object]], rounds: int = 9, warm: int = 0) -> dict[str, Timing]:
    """Run every candidate once to warm it, then all of them in turn, ``rounds`` times. Each round begins with another one.

    ``warm``: how often a candidate runs in its turn before it is timed. It then finds the caches as it has left them,
    which is how it runs on a stream of batches, and not as another candidate has.
    """
    if is_trial():
        return {name: Timing((_seconds_of(candidate),)) for name, candidate in candidates.items()}
    for candidate in candidates.values():
        candidate()
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for first in range(rounds):
        for at in range(first, first + len(names)):
            candidate = candidates[name := names[at % len(names)]]
            for _ in range(warm):
                candidate()
            samples[name].append(_seconds_of(candidate))
    return {name: Timing(tuple(taken)) for name, taken in samples.items()}


def _seconds_of(candidate: Callable[[], object]) -> float:
    began = time.perf_counter()
    candidate()
    return time.perf_counter() - began
