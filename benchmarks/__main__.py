"""``make bench``: run every claim of speed, print the table, keep it and two pictures of it in docs/.

``python -m benchmarks kernels sql`` runs only those groups and keeps nothing. A claim that does not hold is a failure; a goal
that is not reached is shown. What whole runs came to is in ``docs/benchmarks-history.tsv``, a line for each row of each run.

``--trial`` lets each candidate run once, over little data. It shows that all of them run; its figures mean nothing.
"""

from __future__ import annotations

import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path

from benchmarks.groups import GROUPS, rows_of
from benchmarks.picture import draw, draw_highlights
from benchmarks.report import Row, table
from benchmarks.timing import TRIAL, is_trial
from sparkwire.kernels.checksums.instruction_sets import compiled_isa

DOCS = Path(__file__).parents[1] / "docs"


def main(arguments: list[str]) -> int:
    """Exit status 1 if a claim does not hold."""
    chosen = [group for group in arguments if group != "--trial"]
    if "--trial" in arguments:
        os.environ[TRIAL] = "1"  # for the groups, and for their processes
    result: dict[str, list[Row]] = {}
    for group in chosen or GROUPS:
        result[group] = rows_of(group) if is_trial() else _rows_of_process(group)
        print(f"\n{group}\n\n{table(result[group])}", flush=True)
    if is_trial():
        return 0
    if not chosen:
        keep(result)
    return int(not all(row.holds or row.goal for rows in result.values() for row in rows))


def _rows_of_process(group: str) -> list[Row]:
    """The claims of a group in a process, and where it needs one a Spark, of its own: none meets what another left behind."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(rows_of, group).result()


def keep(result: dict[str, list[Row]]) -> None:
    """Write docs/benchmarks.md and its picture."""
    machine = f"{platform.machine()}, checksums by {compiled_isa().name}, Python {platform.python_version()}"
    parts = ["# Benchmarks", "", "You see how fast sparkwire is, beside a peer in the same run.", ""]
    parts += [f"This is one run of `make bench`, {date.today()}, on {machine}.", ""]
    parts += [
        "A ratio is the median of several rounds, with the lowest and the highest. In each round, both run in turn."
    ]
    parts += ["For short work, each runs several times before the measurement, as in a stream."]
    parts += ["", "![ratios](benchmarks.png)", ""]
    for group, rows in result.items():
        parts += [f"## {group}", "", table(rows), ""]
    (DOCS / "benchmarks.md").write_text("\n".join(parts), encoding="utf-8")
    every = [row for rows in result.values() for row in rows]
    with (DOCS / "benchmarks-history.tsv").open("a", encoding="utf-8") as history:
        for group, rows in result.items():
            for row in rows:
                history.write(
                    f"{date.today()}\t{group}\t{row.work}\t{row.peer}\t{row.ratio.median:.4g}\t{row.verdict}\n"
                )
    draw(every, DOCS / "benchmarks.png")
    draw_highlights(every, DOCS / "speed.png")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
