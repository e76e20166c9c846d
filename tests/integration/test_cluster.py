"""Ship the wheel to a cluster in each documented way, and kill Python workers and executors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster import Cluster, running
from tests.integration.packages import only_whole
from tests.support import ROOT
from tests.support.databus_cases import golden_bytes
from tests.support.oracles import databus as oracle

STREAM = "events_v1_be"
FILE_SIZE = 4_000_000  # [bytes] approximately, because files have complete copies of the stream
FILES = 260  # more than 1 GB
KILLED = 24
"""files of a job in which a process is killed; each file is a separate task"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--wheel-dir", str(directory), str(ROOT))
    [wheel] = directory.glob("*.whl")
    return wheel


def pip(command: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", command, "--quiet", "--no-deps", *arguments], check=True)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with all libraries of this one, without the package."""
    return python(tmp_path_factory.mktemp("bare"))


def python(directory: Path) -> Path:
    venv.create(directory, symlinks=True)
    # Python does not read .pth files in a directory that a .pth file names, so the editable package is not found.
    (site(directory) / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return directory / "bin" / "python"


def site(directory: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The workers' Python with the installed wheel. The first job fills its cache."""
    directory = tmp_path_factory.mktemp("installed")
    pip("install", "--target", str(site(directory)), str(wheel))
    return python(directory)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databus streams: one file with many names."""
    directory = tmp_path_factory.mktemp("files")
    stream = golden_bytes(STREAM)
    (directory / "000.bin").write_bytes(stream * (FILE_SIZE // len(stream)))
    for k in range(1, FILES):
        os.link(directory / "000.bin", directory / f"{k:03}.bin")
    return directory


def some(files: Path, number: int, directory: Path) -> str:
    """A directory with the first files."""
    chosen = directory / "chosen"
    chosen.mkdir()
    for k in range(number):
        os.link(files / f"{k:03}.bin", chosen / f"{k:03}.bin")
    return str(chosen)


def expected(files: int) -> list[list[str]]:
    """The oracle's counts for a number of files."""
    stream = golden_bytes(STREAM)
    copies = FILE_SIZE // len(stream) * files
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    sequences: Counter[tuple[str, str]] = Counter()
    for row in oracle.split(stream):
        answers = oracle.decode(row["event"])
        group = (row["status"], str(answers["opcode"]))
        counts[group] += 1
        sizes[group] += len(row["event"])
        sequences[group] += answers["sequence"]
    return sorted([*g, str(counts[g] * copies), str(sizes[g] * copies), str(sequences[g] * copies)] for g in counts)


def drive(
    cluster: Cluster,
    what: str,
    python: Path,
    settings: dict[str, str] | None = None,
    python_files: tuple[str, ...] = (),
    **arguments: Any,
) -> list[dict[str, Any]]:
    """Run an application. Returns its output."""
    session = {
        "spark.master": cluster.address,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.files.maxPartitionBytes": str(FILE_SIZE),
        "spark.sql.files.openCostInBytes": "0",
    } | (settings or {})
    given = {"session": session, "python_files": python_files, "arguments": arguments}
    paths = os.pathsep.join([str(ROOT / "udfs"), str(ROOT)])
    environment = {"PYTHONPATH": paths, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.integration.cluster_job", what, json.dumps(given)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def test_executors_without_the_package_report_it(cluster: Cluster, bare: Path, files: Path) -> None:
    """This shows that the other tests run the shipped package."""
    with pytest.raises(AssertionError, match="No module named 'sparkwire'"):
        drive(cluster, "answers", bare, files=str(files / "000.bin"))


def test_installed(cluster: Cluster, installed: Path, files: Path) -> None:
    first, result = drive(cluster, "answers", installed, files=str(files))
    megabytes = sum(path.stat().st_size for path in files.iterdir()) // 10**6
    print(f"\nfirst result {first['seconds']} s, {megabytes} MB in {result['seconds']} s")
    assert result["counts"] == expected(FILES)


@only_whole
def test_workers_for_one_task_each(cluster: Cluster, installed: Path, files: Path, tmp_path: Path) -> None:
    chosen = some(files, 4, tmp_path)
    _, result = drive(cluster, "answers", installed, {"spark.python.worker.reuse": "false"}, files=chosen)
    assert result["counts"] == expected(4)


def test_workers_with_too_little_memory_report_it(cluster: Cluster, installed: Path, files: Path) -> None:
    little = {"spark.executor.pyspark.memory": "300m"}
    with pytest.raises(AssertionError, match=r"MemoryError: sparkwire needs \d+ MB .* and this one may have 300 MB"):
        drive(cluster, "answers", installed, little, files=str(files / "000.bin"))


def test_an_archive_with_its_kernels(
    cluster: Cluster, bare: Path, wheel: Path, installed: Path, files: Path, tmp_path: Path
) -> None:
    """`spark.archives` ships the package and a filled cache; executors compile nothing."""
    warmed = drive(cluster, "answers", installed, files=str(files / "000.bin"))
    archive = tmp_path / "archive"
    pip("install", "--target", str(archive / "site"), str(wheel))
    [kernels] = site(installed.parents[1]).glob("sparkwire/__pycache__/sparkwire-kernels-*")
    shutil.copytree(kernels, archive / "kernels" / kernels.name)
    settings = {
        "spark.archives": shutil.make_archive(str(tmp_path / "sparkwire"), "gztar", archive) + "#sparkwire",
        "spark.executorEnv.PYTHONPATH": "./sparkwire/site",
        "spark.executorEnv.NUMBA_CACHE_DIR": "./sparkwire/kernels",
    }
    first, result = drive(cluster, "answers", bare, settings, files=str(files / "000.bin"))
    print(f"\nfirst result with a shipped cache {first['seconds']} s, of a warm image {warmed[0]['seconds']} s")
    assert result["counts"] == expected(1)
    unpacked = list(cluster.directory.glob("worker*/app-*/*/sparkwire/kernels/*"))
    assert len(unpacked) >= 1
    assert {path.name for path in unpacked} == {kernels.name}
    shipped = {path.name for path in kernels.iterdir()}
    assert all({path.name for path in directory.iterdir()} == shipped for directory in unpacked)


@only_whole
def test_a_zip_of_python_files(cluster: Cluster, bare: Path, wheel: Path, files: Path, tmp_path: Path) -> None:
    """The wheel is renamed to .zip. Spark accepts a .whl, but Python does not find it."""
    zipped = shutil.copy(wheel, tmp_path / "sparkwire.zip")
    _, result = drive(cluster, "answers", bare, python_files=(str(zipped),), files=str(files / "000.bin"))
    assert result["counts"] == expected(1)


# A Connect client that has the package; the server's workers get it from the client.
ARTIFACT = """
import sys
sys.path[:0] = sys.argv[2:]
from pyspark.sql import SparkSession
import sparkwire

spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.addArtifact(sys.argv[1], pyfile=True)
sparkwire.register(spark)
print(spark.sql("SELECT dbus_opcode(event) FROM sparkwire_samples").first()[0])
"""


def test_an_artifact_of_connect(bare: Path, wheel: Path, tmp_path: Path) -> None:
    zipped = shutil.copy(wheel, tmp_path / "sparkwire.zip")
    paths = [str(ROOT / "udfs"), str(ROOT)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    client = subprocess.run(
        [sys.executable, "-c", ARTIFACT, str(zipped), *paths],
        env=environment | {"PYSPARK_PYTHON": str(bare), "SPARK_TESTING": "1"},  # and use any free port
        capture_output=True,
        text=True,
        check=False,
    )
    assert client.stdout == "UPSERT\n", client.stderr[-3000:]


def test_kills_in_batches(cluster: Cluster, installed: Path, files: Path, tmp_path: Path) -> None:
    killed(cluster, "batches", installed, some(files, KILLED, tmp_path), seed=15, kills=6)


def test_kills_in_streams(cluster: Cluster, installed: Path, files: Path, tmp_path: Path) -> None:
    killed(cluster, "streams", installed, some(files, KILLED, tmp_path), seed=16, kills=4, place=str(tmp_path))


def killed(cluster: Cluster, what: str, python: Path, files: str, **arguments: Any) -> None:
    """Each kill has hit a process, and each result is correct, without lost or duplicate rows."""
    runs = drive(cluster, what, python, files=files, workers=cluster.workers, **arguments)
    print()
    for run in runs:
        right = "the right answer" if run["counts"] == expected(KILLED) else f"wrong: {run['counts']}"
        print(f"{what}: kill -9 of {run['killed']} {run['pid']} after {run['after']} of {KILLED} tasks: {right}")
    assert len(runs) == arguments["kills"]
    assert all(run["pid"] for run in runs)
    assert [run["counts"] for run in runs] == [expected(KILLED)] * len(runs)
