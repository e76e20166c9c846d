"""The claims as a picture: how far each ratio is from its bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from benchmarks.report import Row

HOLDS, MISSES, FAINT = "#2a6f97", "#c1440e", "#8d99ae"


def draw(rows: Sequence[Row], path: Path) -> None:
    """One bar a claim with a peer, on a logarithmic axis: times faster than the peer, the bound a tick."""
    speeds = [row for row in rows if row.peer and not row.at_most]
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(speeds) + 1.2))
    for y, row in enumerate(reversed(speeds)):
        ratio = row.ratio
        axes.barh(y, ratio.median, color=HOLDS if row.holds else MISSES, height=0.62)
        axes.plot([ratio.low, ratio.high], [y, y], color="black", linewidth=0.8)
        axes.plot([row.bound, row.bound], [y - 0.42, y + 0.42], color=FAINT, linewidth=2)
        axes.text(max(ratio.high, ratio.median) * 1.06, y, f"{ratio.median:.3g}×", va="center", fontsize=8)
    axes.set_yticks(range(len(speeds)), [f"{row.work}\nvs {row.peer}" for row in reversed(speeds)], fontsize=7)
    axes.set_xscale("log")
    axes.set_ylim(-0.8, len(speeds) - 0.2)
    axes.set_xlabel("times faster than the peer (line: lowest to highest round; grey tick: the bound)", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=100, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
