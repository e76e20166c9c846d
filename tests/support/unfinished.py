"""Create jobs that were interrupted at a certain step."""

from __future__ import annotations

import shutil
from contextlib import suppress

from sparkwire.core.sources.job_file import Process, this_process
from sparkwire.core.sources.partition_versions import Unfinished
from tests.support.faults import Fault, Gone, faulty
from tests.support.writer_chaos import Job, WriterChaos

DEAD = this_process()._replace(born="before")
"""a process that has ended, with the pid of this process"""


def steps_of_the_swap(chaos: WriterChaos, job: Job, exchanges: bool) -> range:
    """The numbers of a job's changes after its first swap and before its end."""
    top, trial = chaos.top, chaos.top.with_name(f"{chaos.top.name}-trial")
    shutil.copytree(top, trial)
    chaos.top = trial
    try:
        with faulty(trial, Fault(exchanges=exchanges, looks=False)) as calls:
            chaos.write(job)
    finally:
        chaos.top = top
        shutil.rmtree(trial)
    decided = (
        len(calls) - calls[::-1].index("create") + 4
    )  # it is written, closed, synced, renamed, and the directory synced
    return range(decided + 1, calls.index("unlink", decided) + 1)


def interrupted_at(chaos: WriterChaos, job: Job, step: int, exchanges: bool, owner: Process) -> None:
    """Run a job whose process ends at a change with this number."""
    with faulty(chaos.top, Fault("gone", step, exchanges=exchanges, looks=False)), suppress(Gone, Unfinished):
        chaos.write(job, owner=owner)
