"""Writers under all faults: kills, failing calls and full disks at any call of the file system, and concurrent writers.

One rule must hold: each partition has one complete version, and success means that all rows exist.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest

from sparkwire.core.sources import job as jobs
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job_file import SIDE, Process, jobs_in, state_of, this_process
from sparkwire.databus.files import databus_table, write_events
from sparkwire.kafka.files import kafka_log
from sparkwire.kafka.write import write_log
from tests.support import faults
from tests.support.client_streams import end, event
from tests.support.faults import EXIT, KINDS, Fault, faulty, in_child

Rows = tuple[tuple[int, str], ...]
"""a row: offset and value"""
Versions = dict[str, Rows]
"""rows by partition"""
TOPIC: Final = "orders"
PARTITIONS: Final = 3
_FIRST_GUESS: Final = 300
"""the number of calls of a job"""


class Job(NamedTuple):
    """A job of a writer: rows for some partitions."""

    rows: Versions
    overwrite: bool
    keeps: bool = True
    """whether rows have their offsets"""
    once: str | None = None
    """its id, if any"""

    def after(self, now: Versions, ends: Mapping[str, int]) -> Versions:
        """The expected content after the job."""
        done = dict(now)
        for name, rows in self.rows.items():
            first = ends.get(name, 0) if not self.keeps else None
            numbered = rows if first is None else tuple((first + k, value) for k, (_, value) in enumerate(rows))
            done[name] = numbered if self.overwrite else now.get(name, ()) + numbered
        return done


# -- formats


class KafkaLog:
    """Segments in a directory for each partition."""

    sink: Any = write_log
    names: tuple[str, ...] = tuple(f"{TOPIC}-{k}" for k in range(PARTITIONS))
    has_offsets = True

    def options(self, job: Job) -> dict[str, str]:
        return {"segmentBytes": "300", "batchBytes": "100", "offsets": "keep" if job.keeps else "assign"}

    def batch(self, name: str, rows: Rows, job: Job) -> pa.RecordBatch:
        columns = {
            "topic": pa.array([TOPIC] * len(rows)),
            "partition": pa.array([int(name.rpartition("-")[2])] * len(rows), pa.int32()),
            "offset": pa.array([offset for offset, _ in rows], pa.int64()),
            "value": pa.array([value.encode() for _, value in rows], pa.binary()),
        }
        if not job.keeps:
            del columns["offset"]
        return pa.RecordBatch.from_pydict(columns)

    def is_there(self, top: Path) -> bool:
        return any(top.glob(f"{TOPIC}-*/*.log"))

    def read(self, top: Path) -> Versions:
        query = kafka_log.query({"path": str(top), "columns": "topic,partition,offset,value,error"})
        return _by_partition(
            (f"{TOPIC}-{row['partition']}", row["offset"], row["value"].decode())
            for row in _rows(kafka_log, query)
            if row["topic"] == TOPIC  # skips the broker's own topics
        )


class EventFiles:
    """Windows of one event in files, in a directory for each stream, or directly in the path."""

    sink: Any = write_events
    has_offsets = False

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def options(self, job: Job) -> dict[str, str]:
        return {"fileBytes": "200"}

    def batch(self, name: str, rows: Rows, job: Job) -> pa.RecordBatch:
        events = [data for scn, _ in rows for data in (event(scn, 40), end(scn))]
        columns = {"event": pa.array(events, pa.binary())}
        if name:
            columns["stream"] = pa.array([name] * len(events))
        return pa.RecordBatch.from_pydict(columns)

    def is_there(self, top: Path) -> bool:
        return any(SIDE not in str(file) for file in top.rglob("*.bin"))

    def read(self, top: Path) -> Versions:
        by_name: dict[str, list[tuple[int, str]]] = {}
        for name in self.names:
            if not any((top / name).glob("*.bin")):
                jobs.check_unfinished(Folder(str(top)))
                continue
            query = databus_table.query({"path": str(top / name), "stream": "directory", "columns": "sequence,error"})
            rows = [row["sequence"] for row in _rows(databus_table, query)]
            by_name[name] = [(sequence, "x") for sequence in rows[::2]]
            assert rows[::2] == rows[1::2], rows
        return {name: tuple(rows) for name, rows in by_name.items()}


def _rows(source: Any, query: Any) -> Iterator[dict[str, Any]]:
    for task in source.plan(query):
        for some in source.read(query, task):
            for row in some.to_pylist():
                assert row["error"] is None, row
                yield row


def _by_partition(rows: Iterable[tuple[str, int, str]]) -> Versions:
    by_name: dict[str, list[tuple[int, str]]] = {}
    for name, offset, value in rows:
        by_name.setdefault(name, []).append((offset, value))
    return {name: tuple(sorted(some)) for name, some in by_name.items()}


FORMATS: Final[Mapping[str, Any]] = {
    "kafka_log": KafkaLog(),
    "databus": EventFiles(("orders", "members")),
    "databus, right in the path": EventFiles(("",)),
}


@cache
def compile_kernels(form: Any) -> None:
    """Write and read once, so that a thousand processes need not compile the kernels."""
    with TemporaryDirectory() as path:
        chaos = WriterChaos(Path(path), 0)
        chaos.form = form
        for kind in (chaos.restore, chaos.append, chaos.assign):
            job = kind()
            chaos.write(job)
            chaos.is_now(job.after(chaos.now, chaos.ends))
        assert chaos.read() == chaos.now


# -- one directory


class WriterChaos:
    """A directory, its expected content, and random events."""

    def __init__(self, top: Path, seed: int, form: str = "kafka_log") -> None:
        self.top, self.form, self.seed = top, FORMATS[form], seed
        self.about = f"WriterChaos(top, {seed}, {form!r})"
        self.chance = random.Random(f"{form} {seed}")
        self.now: Versions = {}
        self.ends: dict[str, int] = {}
        """the ends of partitions; a version that ends earlier keeps the end of the version that it replaces"""
        self.seen: Counter[str] = Counter()
        self.written = 0
        self.calls = faults.Counter()
        self.most: Counter[str] = Counter()
        """the numbers of calls of jobs of each kind"""
        self.what = ""

    @property
    def path(self) -> str:
        """The path for the option."""
        return str(self.top)

    def run(self, steps: int) -> Counter[str]:
        """Run steps. The message of an AssertionError contains the data to reproduce it."""
        compile_kernels(self.form)
        for number in range(steps):
            step = self.chance.choice([*2 * [self.overwrite, self.append], self.assign, self.erase, self.restore])
            many = self.chance.choice([*4 * [self.alone], self.two, self.beside])
            self.what = ""
            try:
                if job := step():
                    self.seen[step.__name__] += 1
                    many(job)
                    self.check()
            except Exception as error:
                raise AssertionError(
                    f"{self.about}.run({number + 1}), step {number}: {step.__name__}, {many.__name__}, {self.what}: {error}"
                ) from error
        return self.seen

    # -- jobs

    def overwrite(self) -> Job:
        return Job({name: self.rows(0) for name in self.some()}, True, once=self.id_or_none())

    def append(self) -> Job:
        """Append rows. An id, or the offsets of the rows, prevents writing twice."""
        once = self.id_or_none() if self.form.has_offsets else uuid.uuid4().hex
        return Job({name: self.rows(self.end(name)) for name in self.some()}, False, once=once)

    def assign(self) -> Job:
        """Append rows with new offsets. An id prevents writing twice."""
        return self.append()._replace(keeps=not self.form.has_offsets, once=uuid.uuid4().hex)

    def erase(self) -> Job | None:
        """Overwrite in place with a part of the existing rows."""
        kept = {name: rows[::2] for name, rows in self.now.items() if rows}
        return Job(kept, True) if kept else None

    def restore(self) -> Job:
        """Overwrite all partitions together, with other sizes."""
        return Job({name: self.rows(0, least=10) for name in self.form.names}, True)

    def write(self, job: Job, during: Callable[[], None] = lambda: None, owner: Process | None = None) -> None:
        """Run a task for each partition, then commit. ``during`` is called in between."""
        batches = [self.form.batch(name, rows, job) for name, rows in job.rows.items()]
        given = {"path": self.path} | self.form.options(job) | ({"jobId": job.once} if job.once else {})
        sink, name = self.form.sink, uuid.uuid4().hex[:12]
        write = sink.write_of(given, batches[0].schema, job.overwrite)
        sink.begin(write, name, owner)
        try:
            staged = [one for k, some in enumerate(batches) for one in sink.write_rows(write, [some], name, f"{k}", k)]
            during()
            sink.commit(write, name, staged, (job.once, 0) if job.once else None)
        except BaseException:
            sink.abort(write, name)
            raise

    # -- events

    def alone(self, job: Job) -> None:
        """Inject a fault at any call. Then run a reader, perhaps a recovery with a fault, and the job again."""
        fault = self.fault("job")
        dies = self.chance.random() < 0.2
        task_dies = self.chance.randrange(60)
        self.what = f"{fault}, a task {f'dies at {task_dies}' if dies else 'lives'}"

        def first() -> None:
            with self.counted(fault):
                self.write(job, during=(lambda: self.killed_task(job, task_dies)) if dies else lambda: None)

        # In a separate process, which ends, so that a leftover lock belongs to a dead process.
        code = self.child(first, "job", fault)
        after = job.after(self.now, self.ends)
        result = self.look(
            {name: {after[name]} if code == 0 else {self.now.get(name, ()), after[name]} for name in job.rows}, code
        )
        if result is not None:  # a reader without an error does not see half of a job
            self.check_whole(result, after)
        if code == 0:
            self.is_now(after)
        elif self.chance.random() < 0.5:
            self.recover()
            self.check_whole(self.read(), after)
            self.seen["recovered"] += 1
        if code != 0 or (job.once and self.chance.random() < 0.5):
            self.again(job, after)

    def check_whole(self, versions: Versions, after: Versions) -> None:
        """Check that a job is done in all of its partitions, or in none."""
        changes = [name for name in after if after[name] != self.now.get(name, ())]
        assert len({versions.get(name, ()) == after[name] for name in changes}) <= 1, "a job is done or it is not"

    def again(self, job: Job, after: Versions) -> None:
        """Run a job again. With an id, or if rows keep their offsets, nothing is written twice."""
        try:
            self.write(job)
        except ValueError as rejected:
            assert self.form.has_offsets and job.keeps and not job.overwrite, rejected  # noqa: PT017, PT018
            assert "ends at offset" in str(rejected)  # noqa: PT017
        self.is_now(after)

    def two(self, job: Job) -> None:
        """Run a second writer of any partitions at any call of the first one. The rows of successful writers must exist."""
        other = self.chance.choice([self.overwrite, self.append])()
        at = self.chance.randrange(self.most["job"] or _FIRST_GUESS)
        codes = faults.Counter()

        def second(number: int) -> None:
            if number >= at and codes.value == 0 and self.is_free():
                codes.value = 1 + in_child(lambda: self.write(other))

        def first() -> None:
            try:
                with faulty(self.top, Fault(), second) as done:
                    self.write(job)
                self.calls.value = len(done)
            finally:
                second(at)

        code = self.child(first, "job", Fault())
        both = [one for one, code_of in ((job, code), (other, codes.value - 1)) if code_of == 0]
        self.what = f"second at {at}, codes {code}, {codes.value - 1}"
        assert code in (0, 1)
        assert codes.value in (1, 2)
        assert both, "one of two is done"
        result = self.read()
        for order in (both, both[::-1]):
            state, ends = self.now, dict(self.ends)
            for one in order:
                state = one.after(state, ends)
                ends = self.ends_after(state, ends)
            if {name: rows for name, rows in state.items() if rows} == result:
                self.seen[f"two writers: {len(both)} done"] += 1
                self.now, self.ends = state, ends
                return
        raise AssertionError("what two writers have left is of neither order")

    def beside(self, job: Job) -> None:
        """Run a reader or a recovery at any call of a writer. It sees one version and removes nothing."""
        at = self.chance.randrange(self.most["job"] or _FIRST_GUESS)
        is_reader = self.chance.random() < 0.7
        after = job.after(self.now, self.ends)
        allowed = {name: {self.now.get(name, ()), after[name]} for name in job.rows}
        codes = faults.Counter()
        self.what = f"{'reader' if is_reader else 'recovery'} at {at}"

        def one_more() -> None:
            if is_reader:
                self.look(allowed, 1)
            else:
                jobs.recover(str(self.top))

        def comes(number: int) -> None:
            if number >= at and codes.value == 0 and (is_reader or self.is_free()):
                codes.value = 1 + in_child(one_more)

        def first() -> None:
            with faulty(self.top, Fault(), comes):
                self.write(job)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jobs, "_PATIENCE", 0.0)  # the writer waits for it
            assert self.child(first, "job", Fault()) == 0
        assert codes.value <= 1, "what came meanwhile failed"
        self.is_now(after)
        self.seen["reader waits" if is_reader else "recovery waits"] += 1

    def killed_task(self, job: Job, at: int) -> None:
        """Kill another attempt of the first task while the job is running."""
        name, rows = next(iter(job.rows.items()))
        batch = self.form.batch(name, rows, job)
        given = {"path": self.path} | self.form.options(job)
        write = self.form.sink.write_of(given, batch.schema, job.overwrite)
        [mine] = [one for one in jobs_in(Folder(str(self.top))) if self.is_mine(one)]

        def task() -> None:
            with faulty(self.top, Fault("killed", at)):
                self.form.sink.write_rows(write, [batch], mine, "killed", 0)

        assert in_child(task) in (0, 1, EXIT)

    def is_mine(self, job: str) -> bool:
        state = state_of(Folder(str(self.top)), job)
        return state is not None and state.owner == this_process()

    def recover(self) -> None:
        """Run a recovery, perhaps with a fault, and then again."""
        fault = self.fault("recovery")

        def run() -> None:
            with self.counted(fault):
                jobs.recover(str(self.top))

        self.child(run, "recovery", fault)
        jobs.recover(str(self.top))

    def fault(self, what: str) -> Fault:
        most = self.most[what] or _FIRST_GUESS
        at = self.chance.randrange(most) if self.chance.random() < 0.5 else most - 1 - self.chance.randrange(most // 2)
        return Fault(
            self.chance.choice([None, *KINDS, "killed", "killed"]),
            at,
            lasting=self.chance.random() < 0.3,
            after=self.chance.random() < 0.3,
            exchanges=self.chance.random() < 0.8,
        )

    @contextmanager
    def counted(self, fault: Fault) -> Iterator[None]:
        with faulty(self.top, fault) as done:
            yield
            self.calls.value = len(done)

    def child(self, run: Callable[[], None], what: str, fault: Fault) -> int:
        self.calls.value = 0
        code = in_child(run)
        assert code in (0, 1, EXIT), f"exit code {code}"
        self.most[what] = max(self.most[what], self.calls.value)
        self.seen[f"{what}, {fault.kind}: {'done' if code == 0 else 'failed' if code == 1 else 'killed'}"] += 1
        return code

    def is_free(self) -> bool:
        """Whether no process, including the first writer, holds the lock for which others would wait."""
        with Folder(str(self.top)).shared_lock() as has_lock:
            return has_lock

    # -- content

    def read(self) -> Versions:
        """The rows of a reader. Raises ValueError if a recovery is necessary."""
        if not self.form.is_there(self.top):
            jobs.check_unfinished(Folder(str(self.top)))
            return {}
        versions: Versions = self.form.read(self.top)
        return versions

    def look(self, allowed: Mapping[str, set[Rows]], code: int) -> Versions | None:
        """Check that a reader sees one allowed version of each partition, or a clear error if the writer was not successful."""
        try:
            rows = self.read()
        except ValueError as rejected:
            assert code != 0, rejected  # noqa: PT017
            assert f"python -m sparkwire recover {self.top}" in str(rejected)  # noqa: PT017
            self.seen["rejected"] += 1
            return None
        for name in {*rows, *self.now, *allowed}:
            assert rows.get(name, ()) in allowed.get(name, {self.now.get(name, ())}), (
                f"{name} has {rows.get(name)}, not {self.now.get(name)}"
            )
        return rows

    def check(self) -> None:
        """Check that the directory has exactly the expected content."""
        rows = self.read()
        for name in {*rows, *self.now}:
            assert rows.get(name, ()) == self.now.get(name, ()), (
                f"{name} has {rows.get(name)}, not {self.now.get(name)}"
            )
        jobs.recover(str(self.top))  # a failure may have left files that only take space
        assert not (self.top / SIDE).exists()

    # -- rows

    def some(self) -> list[str]:
        return self.chance.sample(self.form.names, self.chance.randrange(1, len(self.form.names) + 1))

    def id_or_none(self) -> str | None:
        return uuid.uuid4().hex if self.chance.random() < 0.3 else None

    def end(self, name: str) -> int:
        return self.ends.get(name, 0)

    def ends_after(self, versions: Versions, ends: Mapping[str, int]) -> dict[str, int]:
        result = dict(ends)
        for name, rows in versions.items():
            if rows:
                result[name] = max(result.get(name, 0), rows[-1][0] + 1)
        return result

    def is_now(self, versions: Versions) -> None:
        self.now = dict(versions)
        self.ends = self.ends_after(versions, self.ends)

    def rows(self, first: int, least: int = 1) -> Rows:
        rows, offset = list[tuple[int, str]](), first
        for _ in range(self.chance.randrange(least, least + 20)):
            self.written += 1
            value = f"{self.written} {'x' * self.chance.randrange(30)}" if self.form.has_offsets else "x"
            rows.append((offset if self.form.has_offsets else self.written, value))
            offset += self.chance.choice([1, 1, 1, 2])
        return tuple(rows)
