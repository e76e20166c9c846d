"""A standalone Spark cluster on the loopback interface: a master and two workers with one core, from PySpark's own scripts."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_PATIENCE = 120.0
"""[s] time limit for starting a process on a busy machine"""


class Cluster(NamedTuple):
    """A running cluster."""

    address: str
    """spark://…"""
    workers: tuple[int, ...]
    """process ids; their children are the executors"""
    directory: Path
    """the directory with the files that were sent to each worker: worker1/app-…/0"""


@contextmanager
def running(directory: Path) -> Iterator[Cluster]:
    """A cluster, until the context ends. Its logs and the applications' directories are below ``directory``."""
    port, *ui = _free_ports(4)
    address = f"spark://127.0.0.1:{port}"
    at = ("--host", "127.0.0.1")
    with ExitStack() as stack:
        master = ("deploy.master.Master", *at, "--port", str(port), "--webui-port", str(ui[0]))
        stack.enter_context(_process(directory / "master", master))
        _wait_for(directory / "master" / "log", "I have been elected leader")
        workers = []
        for k in (1, 2):
            place = directory / f"worker{k}"
            size = ("--cores", "1", "--memory", "3g", "--work-dir", str(place), "--webui-port", str(ui[k]))
            workers.append(stack.enter_context(_process(place, ("deploy.worker.Worker", *at, *size, address))))
            _wait_for(place / "log", "Successfully registered with master")
        yield Cluster(address, tuple(worker.pid for worker in workers), directory)


@contextmanager
def _process(directory: Path, command: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    directory.mkdir(parents=True)
    # Executors must find only the files that are shipped to them.
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "NUMBA"))}
    environment = bare | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
        "XDG_CACHE_HOME": str(directory / "cache"),
        "TMPDIR": str(directory / "tmp"),
        "SPARK_LOCAL_DIRS": str(directory / "local"),
    }
    (directory / "tmp").mkdir()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [SPARK_CLASS, f"org.apache.spark.{command[0]}", *command[1:]], env=environment, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(log: Path, words: str) -> None:
    end = time.monotonic() + _PATIENCE
    while words not in log.read_text("utf-8", "replace"):
        if time.monotonic() > end:
            pytest.fail(f"the cluster has not started: {log.read_text('utf-8', 'replace')[-1000:]}", pytrace=False)
        time.sleep(0.1)


def _free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def executors(workers: tuple[int, ...]) -> list[int]:
    """The executors' processes."""
    return [pid for worker in workers for pid in children(worker) if "ExecutorBackend" in command_of(pid)]


def python_workers(workers: tuple[int, ...]) -> list[int]:
    """The Python workers of all executors, which their daemons have forked."""
    daemons = [pid for executor in executors(workers) for pid in children(executor)]
    return [pid for daemon in daemons for pid in children(daemon)]


def children(parent: int) -> list[int]:
    """The child processes in the kernel's list; empty if the process has ended."""
    result: list[int] = []
    for path in Path("/proc").glob(f"{parent}/task/*/children"):
        try:
            result += map(int, path.read_text().split())
        except FileNotFoundError:
            continue
    return result


def command_of(pid: int) -> str:
    """The command line of a process; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except FileNotFoundError:
        return ""
