"""One line a claim: what was done, our figure, the peer's, the ratio and the bound that it has to keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.goals import Goal, goal_of
from benchmarks.timing import Timing


class Row(NamedTuple):
    """A claim and what a run says of it."""

    work: str
    ours: str
    peer: str
    theirs: str
    ratio: Timing
    """round by round: times faster than the peer, or the peer's time for one of ours"""
    bound: float
    at_most: bool
    """whether the ratio may not be above the bound, or not below"""

    @property
    def holds(self) -> bool:
        return self.ratio.median <= self.bound if self.at_most else self.ratio.median >= self.bound

    @property
    def goal(self) -> Goal | None:
        """What is in the way, where the bound is a goal and no claim."""
        return goal_of(self.work, self.peer)

    @property
    def verdict(self) -> str:
        if self.holds:
            return "holds"
        return f"goal: {self.goal.because}" if self.goal else "**misses**"


def faster(work: str, ours: Timing, peer: str, theirs: Timing, at_least: float, amount: float, unit: str) -> Row:
    """A claim of speed: ``amount`` of ``unit`` done, the ratio says how many times faster than the peer."""
    return Row(work, _rate(amount, ours, unit), peer, _rate(amount, theirs, unit), theirs.over(ours), at_least, False)


def no_slower(work: str, ours: Timing, peer: str, theirs: Timing, at_most: float) -> Row:
    """A claim of cost: the ratio says what part of the peer's time ours is."""
    return Row(work, _seconds(ours.median), peer, _seconds(theirs.median), ours.over(theirs), at_most, True)


def below(work: str, measured: Timing, unit: str, at_most: float) -> Row:
    """A claim without a peer: the figure itself has a bound."""
    return Row(work, f"{measured.median:.3g} {unit}", "", "", measured, at_most, True)


def above(work: str, measured: Timing, unit: str, at_least: float) -> Row:
    """The same the other way round: a rate that is never lower."""
    return Row(work, f"{measured.median:.3g} {unit}", "", "", measured, at_least, False)


def table(rows: Iterable[Row]) -> str:
    """The claims as a table in Markdown."""
    lines = ["| work | ours | peer | peer's | ratio (low to high) | bound | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        spread = f"{row.ratio.median:.3g} ({row.ratio.low:.3g} to {row.ratio.high:.3g})"
        bound = f"{'≤' if row.at_most else '≥'} {row.bound:g}"
        cells = [row.work, row.ours, row.peer, row.theirs, spread, bound, row.verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _rate(amount: float, timing: Timing, unit: str) -> str:
    rate = amount / timing.median
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= scale:
            return f"{rate / scale:.3g} {prefix}{unit}/s" if unit == "B" else f"{rate / scale:.3g} {prefix} {unit}/s"
    return f"{rate:.3g} {unit}/s"


def _seconds(seconds: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
