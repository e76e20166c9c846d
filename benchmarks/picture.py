"""The claims as pictures: how far each ratio is from its bound, and the few that a reader of the README asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from benchmarks.report import Row

HOLDS, MISSES, FAINT = "#2a6f97", "#c1440e", "#8d99ae"


HIGHLIGHTS = (
    ("batches of 100 x 100 B, CRC checked, to 4 columns", "aiokafka", "Kafka records to columns"),
    ("2 M Databus events of 260 B: fixed fields to columns", "struct", "Databus headers to columns"),
    ("messages of 536 B: ten fields to columns", "json", "DataHub messages to columns"),
    ("SQL, 1 M messages: six fields", "get_json_object", "DataHub in a SQL query"),
)
"""Work and peer (how they begin) of the claims in the README, and what they are called there."""


def draw_highlights(rows: Sequence[Row], path: Path) -> None:
    """The bars of the README: how many times faster than what one would write without this package."""
    figure, axes = plt.subplots(figsize=(7, 2.1))
    for y, (work, peer, title) in enumerate(reversed(HIGHLIGHTS)):
        row = next(row for row in rows if row.work == work and row.peer.startswith(peer))
        times = 1 / row.ratio.median if row.at_most else row.ratio.median
        axes.barh(y, times, color=HOLDS, height=0.6)
        axes.text(times, y, f"  {times:.3g}× {row.peer}", va="center", fontsize=8)
        axes.text(0, y, f"{title}  ", va="center", ha="right", fontsize=8)
    axes.axvline(1, color=FAINT, linewidth=1)
    axes.set_yticks([])
    axes.set_xlim(0, axes.get_xlim()[1] * 1.3)
    axes.set_xlabel("times faster", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


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
