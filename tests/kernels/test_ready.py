"""Ready kernels are used if the processor supports them. After any error, kernels are compiled."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkwire.kernels import ready
from sparkwire.kernels.ready import LEVELS, lacking, state, versions
from tests.support import ROOT

pytestmark = pytest.mark.process

LEVEL = next((level for level in LEVELS if level.architecture == platform.machine()), LEVELS[0])
needs_level = pytest.mark.skipif(bool(lacking(LEVEL)), reason=f"this processor is none of {LEVEL.name}")
FIRST_CALL = """
import json, pyarrow as pa
from sparkwire.catalogue import FUNCTIONS, SAMPLES
result = FUNCTIONS["dbus_opcode"].decode(pa.array([SAMPLES["event"], b""])).to_pylist()
from sparkwire.kernels.numba_inside import HAPPENED
from sparkwire.kernels.ready import state
print(json.dumps([result, HAPPENED["ready"], HAPPENED["compiled"], state()]))
"""
BUILT_FOR = {
    "NUMBA_CPU_NAME": LEVEL.cpu,
    "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in sorted(LEVEL.features)),
}


def first_call(package: Path, home: Path, **environment: str) -> tuple[int, int, str]:
    """Call a function in a separate process. Returns the numbers of ready and compiled kernels, and the result of `state`."""
    home.mkdir(exist_ok=True)
    given = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "SPARKWIRE_", "XDG_"))}
    given |= {"PYTHONPATH": str(package), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run([sys.executable, "-c", FIRST_CALL], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer, loaded, compiled, said = json.loads(done.stdout)
    assert answer == ["UPSERT", None]
    return loaded, compiled, said


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the ready kernels of one function."""
    folder = tmp_path_factory.mktemp("ready")
    ignored = shutil.ignore_patterns("__pycache__", "data")
    shutil.copytree(ROOT / "udfs" / "sparkwire", folder / "sparkwire", ignore=ignored)
    cache = folder / "cache"
    loaded, compiled, _ = first_call(folder, folder / "home", NUMBA_CACHE_DIR=str(cache), **BUILT_FOR)
    assert loaded == 0
    assert compiled > 0
    place = folder / "sparkwire" / "ready" / f"{LEVEL.name}-{versions()}"
    place.mkdir(parents=True)
    for file in cache.glob("*/*.bin"):
        shutil.move(file, place)
    shutil.rmtree(cache)
    return folder


def copied(built: Path, to: Path) -> tuple[Path, Path]:
    """A copy that a test may change: the package's folder, and that of its kernels."""
    shutil.copytree(built / "sparkwire", to / "sparkwire")
    return to, to / "sparkwire" / "ready" / f"{LEVEL.name}-{versions()}"


@needs_level
def test_nothing_is_compiled(built: Path, tmp_path: Path) -> None:
    loaded, compiled, said = first_call(built, tmp_path / "home")
    assert (loaded > 0, compiled) == (True, 0)
    assert said == f"{len(list(built.glob('sparkwire/ready/*/*.bin')))} kernels for {LEVEL.name}"


def cut(files: list[Path]) -> None:
    for file in files:
        file.write_bytes(file.read_bytes()[:-100])


def swapped(files: list[Path]) -> None:
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, [*contents[1:], contents[0]], strict=True):
        file.write_bytes(content)


def emptied(files: list[Path]) -> None:
    for file in files:
        file.write_bytes(b"")


@needs_level
@pytest.mark.parametrize("damage", [cut, swapped, emptied])
def test_corrupt_files_are_compiled(built: Path, tmp_path: Path, damage: Callable[[list[Path]], None]) -> None:
    package, place = copied(built, tmp_path)
    files = sorted(place.glob("*.bin"))
    damage(files)
    loaded, compiled, said = first_call(package, tmp_path / "home")
    assert (loaded, compiled > 0) == (0, True)
    assert said == f"{len(files)} kernels for {LEVEL.name}, {len(files)} of them corrupt: install the wheel again"


@needs_level
def test_kernels_of_other_versions_are_ignored(built: Path, tmp_path: Path) -> None:
    package, place = copied(built, tmp_path)
    place.rename(place.with_name(f"{LEVEL.name}-cpython-310-numba-0.1-llvmlite-0.1"))
    loaded, compiled, said = first_call(package, tmp_path / "home")
    assert (loaded, compiled > 0) == (0, True)
    assert said == f"none: they are for {LEVEL.name}-cpython-310-numba-0.1-llvmlite-0.1, and this is {versions()}"


@needs_level
def test_a_target_that_lacks_something_compiles(built: Path, tmp_path: Path) -> None:
    """If a setting forbids an instruction to Numba, no code uses it."""
    without = ",".join(f"+{feature}" for feature in sorted(LEVEL.features - {"avx2"}))
    loaded, compiled, said = first_call(built, tmp_path / "home", NUMBA_CPU_NAME="nehalem", NUMBA_CPU_FEATURES=without)
    assert (loaded, compiled > 0) == (0, True)
    assert said.startswith(f"none: {LEVEL.name} has avx2, and this processor")


def test_features_that_are_masked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hypervisor or container may mask features: then LLVM detects fewer features than Numba's settings claim."""
    (tmp_path / f"{LEVEL.name}-{versions()}").mkdir()
    monkeypatch.setattr(ready, "READY", tmp_path)
    monkeypatch.setattr(ready, "_of_target", lambda features: LEVEL.features)
    for feature in sorted(LEVEL.features):
        monkeypatch.setattr(ready, "_of_processor", lambda missing=feature: LEVEL.features - {missing})
        ready.directories.cache_clear()
        assert ready.directories() == ()
        assert state().startswith("none: ")
    ready.directories.cache_clear()


def test_a_source_tree_has_none() -> None:
    ready.directories.cache_clear()
    assert state() == "none in this package: it is the wheel for every platform, or a source tree"
