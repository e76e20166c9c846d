"""Writers to whom everything happens: kills, refusals and full disks at any change of the file system, and each other.

One rule: each partition is all of one version, and success means all rows.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from sparkwire.core.sources import job as jobs
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import SIDE
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.write import write_log
from tests.support.faults import EXIT, Kind, fault, in_child

Rows = tuple[tuple[int, str], ...]
"""offset and value"""
Versions = dict[str, Rows]
"""by partition"""
TOPIC, PARTITIONS = "orders", 3
_KINDS: tuple[Kind, ...] = ("killed", "EACCES", "ENOSPC", "EIO")
_CALLS = 160
"""about how many changes of the file system a job makes"""


def batch(partition: int, rows: Rows, keeps: bool = True) -> pa.RecordBatch:
    columns = {
        "topic": pa.array([TOPIC] * len(rows)),
        "partition": pa.array([partition] * len(rows), pa.int32()),
        "offset": pa.array([offset for offset, _ in rows], pa.int64()),
        "value": pa.array([value.encode() for _, value in rows], pa.binary()),
    }
    if not keeps:
        del columns["offset"]
    return pa.record_batch(columns)


def write(
    top: Path,
    rows: Versions,
    overwrite: bool,
    keeps: bool = True,
    once: str | None = None,
    dies: int | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """A job of a task for each partition; ``dies``: the first task is killed there, and tried again.

    ``meanwhile``: what happens between the first task and the end of the job.
    """
    batches = [batch(int(name.rpartition("-")[2]), some, keeps) for name, some in rows.items()]
    given = {"path": str(top), "segmentBytes": "300", "batchBytes": "100", "offsets": "keep" if keeps else "assign"}
    given |= {"jobId": once} if once else {}
    asked = write_log.write_of(given, batches[0].schema, overwrite)
    job = uuid.uuid4().hex[:12]
    write_log.begin(asked, job)
    try:
        if dies is not None:

            def task() -> None:
                with fault("killed", dies):
                    write_log.write_rows(asked, batches[:1], job, "killed", 0)

            in_child(task)
        staged = [one for k, some in enumerate(batches) for one in write_log.write_rows(asked, [some], job, f"{k}", k)]
        meanwhile()
        write_log.commit(asked, job, staged, (once, 0) if once else None)
    except BaseException:
        write_log.abort(asked, job)
        raise


def read(top: Path) -> Versions:
    """What a reader sees; ValueError where it is told to wait for a recovery."""
    if not any(top.glob(f"{TOPIC}-*")):
        jobs.refuse_unfinished(Folder(str(top)))
        return {}
    query = kafka_log.query({"path": str(top), "columns": "topic,partition,offset,value,error"})
    found: dict[str, list[tuple[int, str]]] = {}
    for task in kafka_log.plan(query):
        for some in kafka_log.read(query, task):
            for row in some.to_pylist():
                if row["topic"] != TOPIC:  # a broker's own
                    continue
                assert row["error"] is None, row
                found.setdefault(f"{TOPIC}-{row['partition']}", []).append((row["offset"], row["value"].decode()))
    return {name: tuple(sorted(rows)) for name, rows in found.items()}


class WriterChaos:
    """A directory, what it may hold, and what happens to it."""

    def __init__(self, top: Path, seed: int) -> None:
        self.top = top
        self.chance = random.Random(seed)
        self.now: Versions = {}
        self.ends: dict[str, int] = {}
        """of partitions; a version that ends before keeps the end of the one that it replaces"""
        self.seen: Counter[str] = Counter()
        self.written = 0

    def run(self, steps: int) -> Counter[str]:
        for number in range(steps):
            step = self.chance.choice(
                [
                    self.overwrite,
                    self.overwrite,
                    self.append,
                    self.append,
                    self.assign,
                    self.erase,
                    self.restore,
                    self.two,
                ]
            )
            self.seen[step.__name__] += 1
            try:
                step()
            except AssertionError as error:
                raise AssertionError(f"step {number}, {step.__name__}: {error}") from error
        return self.seen

    # -- jobs

    def overwrite(self) -> None:
        self.job({name: self.rows(0, name) for name in self.some()}, overwrite=True)

    def append(self) -> None:
        self.job({name: self.rows(self.end(name), name) for name in self.some()}, overwrite=False)

    def assign(self) -> None:
        """Numbered rows; its id keeps them from being written twice."""
        names = self.some()
        rows = {name: self.rows(self.end(name), name, gaps=False) for name in names}
        self.job(rows, overwrite=False, keeps=False, once=uuid.uuid4().hex)

    def erase(self) -> None:
        """In place: a part of what is there is written over it."""
        kept = {name: rows[::2] for name, rows in self.now.items()}
        if kept:
            self.job(kept, overwrite=True)

    def restore(self) -> None:
        """All partitions at once, of other sizes."""
        names = [f"{TOPIC}-{k}" for k in range(PARTITIONS)]
        self.job({name: self.rows(0, name, least=10) for name in names}, overwrite=True)

    def two(self) -> None:
        """A second writer of the same partition fails, and changes nothing."""
        names = self.some()
        mine = {name: self.rows(self.end(name), name) for name in names}
        other = {names[-1]: self.rows(self.end(names[-1]), names[-1])}

        def second() -> None:
            try:
                write(self.top, other, overwrite=self.chance.random() < 0.5)
            except ValueError as refused:
                assert "one job writes to a partition" in str(refused)  # noqa: PT017
                return
            raise AssertionError("two writers at once")

        write(self.top, mine, overwrite=False, meanwhile=second)
        self.is_now({name: self.now.get(name, ()) + rows for name, rows in mine.items()})
        self.check()

    # -- what happens to them

    def job(self, rows: Versions, overwrite: bool, keeps: bool = True, once: str | None = None) -> None:
        after = {name: some if overwrite else self.now.get(name, ()) + some for name, some in rows.items()}
        kind = self.chance.choice([None, *_KINDS, "killed"])
        at, lasting = self.chance.randrange(_CALLS), self.chance.random() < 0.3
        exchanges = self.chance.random() < 0.8
        dies = self.chance.randrange(40) if self.chance.random() < 0.2 else None

        def first() -> None:
            with fault(kind, at, lasting, exchanges):
                write(self.top, rows, overwrite, keeps, once, dies)

        # In a process of its own, which ends: what a refusal left is then a lock of the dead.
        code = in_child(first)
        assert code in (0, 1, EXIT), code
        self.seen[f"{kind}: {'done' if code == 0 else 'failed' if code == 1 else 'killed'}"] += 1
        allowed = {name: {some} if code == 0 else {self.now.get(name, ()), some} for name, some in after.items()}
        self.look(allowed, must_read=code == 0)
        if code == 0:
            self.is_now(after)
            self.check()
            return
        if self.chance.random() < 0.5:
            jobs.recover(str(self.top))
            found = read(self.top)
            states = {found.get(name, ()) == some for name, some in after.items() if some != self.now.get(name, ())}
            assert len(states) <= 1, "a job is done or it is not"
            self.seen["recovered"] += 1
        # Run again: with an id once, and rows that keep their offsets are not written twice either.
        try:
            write(self.top, rows, overwrite, keeps, once)
        except ValueError as refused:
            assert keeps and not overwrite, refused  # noqa: PT017, PT018
            assert "goes up to offset" in str(refused)  # noqa: PT017
            assert all(read(self.top).get(name, ()) == some for name, some in after.items())
        self.is_now(after)
        self.check()

    def look(self, allowed: Mapping[str, set[Rows]], must_read: bool) -> None:
        """What a reader sees: of each partition one version, or a sentence."""
        try:
            found = read(self.top)
        except ValueError as refused:
            assert not must_read, refused  # noqa: PT017
            assert f"python -m sparkwire recover {self.top}" in str(refused)  # noqa: PT017
            self.seen["refused"] += 1
            return
        for name in {*found, *self.now, *allowed}:
            assert found.get(name, ()) in allowed.get(name, {self.now.get(name, ())}), name

    def check(self) -> None:
        """All is there, and nothing else."""
        assert read(self.top) == {name: rows for name, rows in self.now.items() if rows}
        jobs.recover(str(self.top))  # a refusal may have left what only takes room
        assert not (self.top / SIDE).exists()

    # -- rows

    def some(self) -> Sequence[str]:
        return [f"{TOPIC}-{k}" for k in self.chance.sample(range(PARTITIONS), self.chance.randrange(1, PARTITIONS + 1))]

    def end(self, name: str) -> int:
        return self.ends.get(name, 0)

    def is_now(self, versions: Versions) -> None:
        self.now |= versions
        for name, rows in versions.items():
            if rows:
                self.ends[name] = max(self.end(name), rows[-1][0] + 1)

    def rows(self, first: int, name: str, least: int = 1, gaps: bool = True) -> Rows:
        rows, offset = list[tuple[int, str]](), first
        for _ in range(self.chance.randrange(least, least + 20)):
            self.written += 1
            rows.append((offset, f"{name} {self.written} {'x' * self.chance.randrange(30)}"))
            offset += self.chance.choice([1, 1, 1, 2]) if gaps else 1
        return tuple(rows)
