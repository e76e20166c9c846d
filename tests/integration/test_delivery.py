"""Delivery under kills: windows reach a consumer at least once and in order, and its table has each window once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from tests.support import WHOLE
from tests.support.client_streams import event

STREAMS, WINDOWS = 4, 250  # of each stream, at a time
TIMES = 2  # at least
QUERIES, WORKERS = (4, 4) if WHOLE else (3, 3)  # how many of each are killed
_PATIENCE = 600  # [s] for one line of the journal

Truth = dict[tuple[int, int], list[tuple[int, bytes]]]


def write(folder: Path, before: int, random: Random) -> Truth:
    """Append windows to the streams, some of them empty. Returns the content of each new window by partition and SCN."""
    truth: Truth = {}
    for partition in range(STREAMS):
        events = []
        for scn in range(10 * WINDOWS * before + 10, 10 * WINDOWS * (before + 1) + 1, 10):
            changes = [(random.randrange(1000), random.randbytes(8)) for _ in range(random.choice((0, 1, 2, 5)))]
            events += [event(scn, 40 + k % 2, *change, partition=partition) for k, change in enumerate(changes)]
            events.append(event(scn, -2, partition=partition))
            truth[partition, scn] = changes
        with (folder / f"stream{partition}.bin").open("ab") as file:
            file.write(b"".join(events))
    return truth


def children(driver: int) -> Iterator[int]:
    """The Python workers of a driver, which PySpark's daemon in the same session has forked."""
    daemons, forked = set(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) != driver or b"pyspark.daemon" not in (process / "cmdline").read_bytes():
                continue
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ProcessLookupError):
            continue  # the process has ended meanwhile
        daemons.add(int(process.name))
        forked.append((int(process.name), parent))
    yield from (pid for pid, parent in forked if parent in daemons)


class Run:
    """The query, which is restarted after it was killed or has failed."""

    def __init__(self, arguments: list[str], journal: Path, random: Random) -> None:
        self.arguments, self.journal, self.random = arguments, journal, random
        self.queries = self.workers = self.failed = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.integration.delivery", *self.arguments]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.errors = self.journal.with_suffix(".err").open("wb")
        self.process = subprocess.Popen(command, env=environment, stderr=self.errors, start_new_session=True)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.errors.close()

    def lines(self) -> int:
        return self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0

    def until(self, lines: int) -> bool:
        """Wait until the journal has this number of lines. Returns false if the query has ended."""
        patience = time.monotonic() + _PATIENCE
        while self.lines() < lines:
            ended = self.process.poll()
            if ended == 0:
                return False
            if ended is not None:
                self.failed += 1
                assert self.failed <= self.workers, Path(self.errors.name).read_text()[-3000:]
                self.start()
            assert time.monotonic() < patience, "no window has been delivered for long"
            time.sleep(0.02)
        return True

    def kill_query(self) -> bool:
        """Kill driver, JVM and workers together. Workers in another process group continue to write until they notice."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.queries += 1
        self.start()
        return True

    def kill_worker(self) -> bool:
        """Kill one of the workers. Returns false if there is none."""
        pids = list(children(self.process.pid))
        if pids:
            os.kill(self.random.choice(pids), signal.SIGKILL)
            self.workers += 1
        return bool(pids)


def test_killed_anywhere_every_window_is_delivered_in_order_and_the_table_has_it_once(tmp_path: Path) -> None:
    random = Random(13)
    streams, table, journal = tmp_path / "streams", tmp_path / "table", tmp_path / "journal"
    streams.mkdir()
    table.mkdir()
    truth: Truth = {}
    run = Run([str(streams), str(table), str(tmp_path / "checkpoint"), str(journal)], journal, random)
    victims = [run.kill_query] * QUERIES + [run.kill_worker] * WORKERS
    random.shuffle(victims)
    step = STREAMS * WINDOWS * TIMES // len(victims)
    written = 0
    try:
        while written < TIMES or victims:
            truth |= write(streams, written, random)
            written += 1
            run.start()
            while run.until(run.lines() + random.randrange(1, 3 * step // 2)):
                time.sleep(random.choice((0, 0, 0.1, 0.5, 1.5)))  # also between batches
                if victims and victims[-1]():
                    victims.pop()
    finally:
        run.end()
    delivered = [line.split() for line in journal.read_text().splitlines()]
    consumptions = len({consumption for consumption, _, _ in delivered})
    print(f"\n{len(truth)} windows of {STREAMS} streams: {len(delivered)} deliveries in {consumptions} consumptions")
    print(f"killed: {run.queries} queries, {run.workers} workers; {run.failed} queries failed of a worker's end")
    in_order(delivered)
    assert {(int(partition), int(scn)) for _, partition, scn in delivered} == truth.keys()
    assert table_of(table) == {window: changes for window, changes in truth.items() if changes}


def in_order(delivered: list[list[str]]) -> None:
    """Whether each stream's windows are in order, and consecutive within each consumption."""
    reached: dict[str, int] = defaultdict(int)
    last: dict[str, int] = {}
    for consumption, partition, text in delivered:
        scn = int(text)
        assert scn == last.get(consumption, scn - 10) + 10, (consumption, partition, scn)
        assert scn <= reached[partition] + 10, (consumption, partition, scn)
        last[consumption] = scn
        reached[partition] = max(reached[partition], scn)


def table_of(folder: Path) -> Truth:
    """The rows in the consumer's files, each once."""
    files = [file for file in folder.iterdir() if not file.name.startswith(".")]
    by_name: Truth = {}
    for file in files:
        partition, _, scn = file.stem.partition("-")
        by_name[int(partition), int(scn)] = [(row["key"], row["value"]) for row in pq.read_table(file).to_pylist()]
    return by_name
