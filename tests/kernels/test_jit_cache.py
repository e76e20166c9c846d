"""The kernel cache and failures of its files, in child processes that import a small copy of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numba.core.event import install_recorder

import sparkwire.base.printable
import sparkwire.kernels.cache
from sparkwire.kernels import kernel
from sparkwire.kernels.cache import COMPILING, PREFIX, VERSIONS

pytestmark = pytest.mark.process

HELPER = """
from sparkwire.kernels.jit import kernel

@kernel
def weighed(x):
    return {weight} * x
"""

WORK = """
from sparkwire.helper import weighed
from sparkwire.kernels.jit import kernel

@kernel
def total(values):
    result = 0
    for at in range(values.size):
        result += weighed(values[at])
    return result

@kernel
def at(values, index):
    return values[index]

def scaled(factor):
    @kernel(key=f"scaled by {factor}")
    def scale(x):
        return factor * x
    return scale
"""

TOTAL = """
import json
import numpy as np
from sparkwire.work import total

def report():
    result = int(total(np.arange(5)))
    print(json.dumps([result, sum(total.stats.cache_hits.values())]))
"""

CALL = f"{TOTAL}\nreport()"


class House:
    """A directory with a package ``sparkwire``, which has the cache and a few kernels, and with places for the cache."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "sparkwire"
        kernels = self.package / "kernels"
        kernels.mkdir(parents=True)
        for module in ("cache.py", "jit.py", "numba_inside.py", "ready.py"):
            shutil.copy(Path(sparkwire.kernels.cache.__file__).with_name(module), kernels)
        base = self.package / "base"
        base.mkdir()
        shutil.copy(sparkwire.base.printable.__file__, base)
        for folder in (kernels, base):
            (folder / "__init__.py").touch()
        (self.package / "__init__.py").touch()
        (self.package / "work.py").write_text(WORK)
        self.weigh(10)
        self.places = [self.package / "__pycache__", root / "user" / "sparkwire", root / "temporary" / self._private()]
        (root / "temporary").mkdir()

    @staticmethod
    def _private() -> str:
        return f"sparkwire-{os.getuid()}"

    def weigh(self, weight: int) -> None:
        """Change the source of a helper, so that the result is ``weight * (0 + 1 + 2 + 3 + 4)``."""
        (self.package / "helper.py").write_text(HELPER.format(weight=weight))

    def start(self, code: str, path: Path | None = None, **environment: str) -> subprocess.Popen[str]:
        own = {
            "PYTHONPATH": str(path or self.root),
            "NUMBA_CACHE_DIR": "",
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CACHE_HOME": str(self.root / "user"),
            "TMPDIR": str(self.root / "temporary"),
        }
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | own | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str = CALL, path: Path | None = None, **environment: str) -> list[list[int]]:
        """Run a child process. Returns its output: the result and the number of cached kernels for each call."""
        return _printed(self.start(code, path, **environment))

    def files(self) -> list[Path]:
        return sorted(file for place in self.places for file in place.glob(f"{PREFIX}*/*"))

    def block(self, *places: int) -> None:
        """Create a file in place of a directory, so that even root cannot write there."""
        for number in places:
            shutil.rmtree(self.places[number], ignore_errors=True)
            self.places[number].parent.mkdir(exist_ok=True)
            self.places[number].touch()


def without_announcement(log: str) -> str:
    """The log without the announcement of compilation, which depends on the machine."""
    return log.replace(f"{COMPILING}\n", "")


def _printed(child: subprocess.Popen[str]) -> list[list[int]]:
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert without_announcement(errors) == ""
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_second_process_loads(house: House) -> None:
    assert house.run() == [[100, 0]]
    files = house.files()
    assert {file.parent.parent for file in files} == {house.places[0]}
    assert house.run() == [[100, 1]]
    assert house.files() == files


def test_changed_helper_is_never_missed(house: House) -> None:
    assert house.run() == [[100, 0]]
    house.weigh(11)
    assert house.run() == [[110, 0]]
    house.weigh(10)
    assert house.run() == [[100, 1]]


def test_source_edited_under_a_running_process(house: House) -> None:
    helper = house.package / "helper.py"
    edit = f"open({str(helper)!r}, 'w').write({HELPER.format(weight=11)!r})"
    assert house.run(f"{TOTAL}\n{edit}\nreport()") == [[100, 0]]
    assert house.files() == []
    assert house.run() == [[110, 0]]


def test_other_target_and_checked_build_have_separate_entries(house: House) -> None:
    code = """
import numpy as np
from sparkwire.work import at
try:
    at(np.zeros(1), 1)
    print([0, sum(at.stats.cache_hits.values())])
except IndexError:
    print([1, sum(at.stats.cache_hits.values())])
"""
    assert house.run(code) == [[0, 0]]
    assert house.run(code, SPARKWIRE_CHECKED="1") == [[1, 0]]
    assert house.run(code, NUMBA_BOUNDSCHECK="1") == [[1, 1]]
    assert house.run(code, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == [[0, 0]]
    assert house.run(code) == [[0, 1]]


def test_closures_by_their_key(house: House) -> None:
    code = """
from sparkwire.work import scaled
for factor in (2, 3):
    scale = scaled(factor)
    print([scale(5), sum(scale.stats.cache_hits.values())])
"""
    assert house.run(code) == [[10, 0], [15, 0]]
    files = house.files()
    assert house.run(code) == [[10, 1], [15, 1]]
    assert house.files() == files


def test_closure_without_a_key_is_rejected() -> None:
    factor = 2
    with pytest.raises(TypeError, match="closure"):

        @kernel
        def scale(x: int) -> int:
            return factor * x


def test_places_in_turn(house: House) -> None:
    house.block(0)
    assert house.run() == [[100, 0]]
    assert {file.parent.parent for file in house.files()} == {house.places[1]}
    assert house.run() == [[100, 1]]
    house.block(0, 1)
    assert house.run() == [[100, 0]]
    assert {file.parent.parent for file in house.files()} == {house.places[2]}
    assert house.run() == [[100, 1]]
    house.block(0, 1, 2)
    assert house.run() == [[100, 0]]
    assert house.run(NUMBA_CACHE_DIR=str(house.root / "given")) == [[100, 0]]
    assert house.run(NUMBA_CACHE_DIR=str(house.root / "given")) == [[100, 1]]


def test_no_home_at_all(house: House) -> None:
    house.block(0)
    assert house.run(XDG_CACHE_HOME="", HOME="/dev/null", TMPDIR=str(house.root / "temporary")) == [[100, 0]]
    assert {file.parent.parent for file in house.files()} == {house.places[2]}


def test_place_lost_after_import(house: House) -> None:
    lose = f"""
import pathlib, shutil
for place in {[str(place) for place in house.places]}:
    shutil.rmtree(place, ignore_errors=True)
    pathlib.Path(place).parent.mkdir(exist_ok=True)
    pathlib.Path(place).touch()
"""
    assert house.run(f"{TOTAL}\n{lose}\nreport()") == [[100, 0]]


def test_full_disk_is_read_and_not_written(house: House) -> None:
    # A limit on the file size makes a write fail in the middle, like a full disk.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    assert house.run(f"{limit}\n{CALL}") == [[100, 0]]
    assert house.files() == []
    house.run()
    assert house.run(f"{limit}\n{CALL}") == [[100, 1]]


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "not ours"])
def test_corrupt_files(house: House, damage: str) -> None:
    house.run()
    whole = {file: file.read_bytes() for file in house.files()}
    for file, content in whole.items():
        middle = len(content) // 2  # in the machine code
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes({"empty": b"", "truncated": content[:500], "flipped": flipped, "not ours": b"x" * 99}[damage])
    assert house.run() == [[100, 0]]
    assert house.files() == sorted(whole)
    assert house.run() == [[100, 1]]


def test_processes_at_once(house: House) -> None:
    children = [house.start(CALL) for _ in range(3)]
    assert [_printed(child)[0][0] for child in children] == [100] * 3
    assert house.run() == [[100, 1]]


def test_oldest_directories_are_removed(house: House) -> None:
    place = house.places[0]
    for age in range(VERSIONS + 3):
        old = place / f"{PREFIX}{age}"
        old.mkdir(parents=True)
        (old / "kernel.bin").touch()
        os.utime(old, (1e9 - age, 1e9 - age))
    (place / "other").mkdir()
    house.run()
    left = sorted(directory.name for directory in place.iterdir())
    assert left[:2] == ["other", f"{PREFIX}0"]
    assert len(left) == 1 + VERSIONS


def test_package_in_a_zip(house: House) -> None:
    archive = house.root / "shipped.zip"

    def ship() -> None:
        with zipfile.ZipFile(archive, "w") as shipped:
            for source in house.package.rglob("*.py"):
                shipped.write(source, source.relative_to(house.root))

    ship()
    assert house.run(path=archive) == [[100, 0]]
    assert {file.parent.parent for file in house.files()} == {house.places[1]}
    assert house.run(path=archive) == [[100, 1]]
    house.weigh(11)
    ship()
    assert house.run(path=archive) == [[110, 0]]


def test_forked_children(house: House) -> None:
    code = f"""
{TOTAL}
import os
def forked():
    if (child := os.fork()) == 0:
        report()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

import sys
sys.stdout.reconfigure(line_buffering=True)
forked()  # compiles
forked()  # loads
report()  # loads
forked()  # has it
"""
    assert house.run(code) == [[100, 0], [100, 1], [100, 1], [100, 1]]


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_directory_writable_by_others_is_not_used(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(PermissionError):
        sparkwire.kernels.cache._private(tmp_path)
    link = tmp_path / "link"
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    link.symlink_to(target)
    with pytest.raises(PermissionError):
        sparkwire.kernels.cache._private(link)


def test_kernels_of_others_are_not_cached() -> None:
    @kernel
    def half(x: float) -> float:
        return x / 2

    assert half(3.0) == 1.5
    assert not isinstance(half._cache, sparkwire.kernels.cache.KernelCache)  # type: ignore[attr-defined]


def test_constants_do_not_multiply_kernels() -> None:
    @kernel
    def plus(x: int, y: int) -> int:
        return x + y

    @kernel(key="calls plus")
    def six(x: int) -> int:
        return plus(x, 1) + plus(1, y=2) + plus(1, 1)

    with install_recorder("numba:compile") as recorder:
        assert six(0) == 6
    began = [event.data["dispatcher"].py_func.__name__ for _, event in recorder.buffer if event.is_start]
    assert sorted(began) == ["plus", "six"]


def test_division_by_zero_does_not_raise() -> None:
    @kernel
    def inverse(x: float) -> float:
        return 1.0 / x

    assert inverse(0.0) == np.inf
