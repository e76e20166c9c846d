"""Start brokers after a killed job: they serve one complete version of each partition, without loss.

This takes about two minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sparkwire
from sparkwire.core.sources.job_file import SIDE
from tests.integration.broker import running
from tests.integration.test_way_back import brokers, create
from tests.integration.test_writer_chaos import served
from tests.support.unfinished import DEAD, interrupted_at, steps_of_the_swap
from tests.support.writer_chaos import PARTITIONS, TOPIC, Rows, WriterChaos

PLACES = (0.2, 0.7)
"""steps between the first swap and the end at which the job is killed; each has a separate broker"""


def side_files(top: Path) -> dict[str, bytes]:
    return {str(file.relative_to(top)): file.read_bytes() for file in (top / SIDE).rglob("*") if file.is_file()}


@brokers
@pytest.mark.parametrize(
    ("kind", "exchanges"), [("restore", True), ("append", False)], ids=["overwrite, exchange", "append, two renames"]
)
def test_a_broker_starts_on_an_unfinished_job(tmp_path: Path, kafka: str, kind: str, exchanges: bool) -> None:
    """The node is also a controller, so that the metadata log is beside the job's directory."""
    with running(tmp_path, kafka) as broker:
        create(broker, TOPIC, PARTITIONS)
    top, mixed = broker.directory, 0
    chaos = WriterChaos(top, 36)
    for place in PLACES:
        first = chaos.restore()
        chaos.write(first)
        chaos.is_now(first.after(chaos.now, chaos.ends))
        second = chaos.restore() if kind == "restore" else chaos.append()._replace(once=None)
        old, new = chaos.now, second.after(chaos.now, chaos.ends)
        steps = steps_of_the_swap(chaos, second, exchanges)
        interrupted_at(chaos, second, steps[int(place * len(steps))], exchanges, DEAD)
        before = side_files(top)
        assert before

        with running(tmp_path, kafka) as broker:
            result = served(broker.address)

        for name in chaos.form.names:
            # Between two renames, the old version is moved aside, and a broker creates an empty partition.
            lies_aside = any(top.glob(f"{SIDE}/*/old/{name}/*.log")) and any(top.glob(f"{SIDE}/*/new/{name}/*.log"))
            allowed: set[Rows] = {(), old[name], new[name]} if lies_aside else {old[name], new[name]}
            assert result.get(name, ()) in allowed, (place, name)
        mixed += len({result.get(name) == new[name] for name in second.rows}) > 1
        assert side_files(top) == before, "a broker leaves alone what a job has here"

        command = [sys.executable, "-m", "sparkwire", "recover", str(top)]
        assert " is finished" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
        chaos.is_now(new)
        chaos.check()
        report = sparkwire.kafka.check(str(top), clean=True)
        found_wrong = [one for one in report.findings if one.partition.startswith((TOPIC, SIDE))]
        # Each broker adds its leader epoch at the end of the log, and truncates it when it starts.
        assert [str(one) for one in found_wrong if one.file != "leader-epoch-checkpoint"] == []
    with running(tmp_path, kafka) as broker:
        assert served(broker.address) == chaos.now
    print(f"{kafka.rpartition(':')[2]}, {kind}: {len(PLACES)} jobs killed, {mixed} of them between two partitions")
