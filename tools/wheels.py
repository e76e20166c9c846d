"""``make wheels``: the wheel for every platform, and beside it one with ready kernels for each level of processors.

    python -m tools.wheels [DIRECTORY]

Kernels are compiled by this Python and its Numba, for this architecture: run it once with each Python that is supported, and on
an aarch64 machine for aarch64.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sparkwire.kernels.ready import LEVELS, Level, lacking, versions

ROOT: Final = Path(__file__).parents[1]
_TAG: Final = f"cp{sys.version_info.major}{sys.version_info.minor}"
_PLATFORM: Final = "manylinux2014"
"""kernels call nothing of the C library that is not in Python itself"""


def main() -> int:
    """Build both wheels; what was built, and its size."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    out.mkdir(parents=True, exist_ok=True)
    levels = [level for level in LEVELS if level.architecture == platform.machine()]
    with tempfile.TemporaryDirectory() as scratch:
        pure = _pure(Path(scratch))
        _told(Path(shutil.copy(pure, str(out))))
        _run(sys.executable, "-m", "wheel", "unpack", "--dest", f"{scratch}/tree", str(pure))
        [tree] = Path(scratch, "tree").iterdir()
        built = sum(_compile(level, tree) for level in levels if not _refused(level))
        if not built:
            sys.stdout.write(
                f"No level of processors is known for {platform.machine()}: add one to sparkwire/kernels/ready.py.\n"
            )
            return 0
        _run(sys.executable, "-m", "wheel", "pack", "--dest-dir", scratch, str(tree), environment=_DATED)
        tags = ("--python-tag", _TAG, "--abi-tag", "none", "--platform-tag", f"{_PLATFORM}_{platform.machine()}")
        name = _run(sys.executable, "-m", "wheel", "tags", *tags, str(pure), environment=_DATED).split()[-1]
        _told(Path(shutil.copy(Path(scratch, name), str(out))))
    return 0


def _told(path: Path) -> None:
    sys.stdout.write(f"{path}: {path.stat().st_size / 1e6:.1f} MB\n")


def _run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _commit_time() -> str:
    """Of the last commit: the date of every file in a wheel [s since epoch]."""
    return os.environ.get("SOURCE_DATE_EPOCH") or _run("git", "log", "-1", "--format=%ct").strip()


_DATED: Final = {"SOURCE_DATE_EPOCH": _commit_time(), "PYTHONHASHSEED": "0"}


def _pure(scratch: Path) -> Path:
    _run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(scratch),
        ".",
        environment=_DATED,
    )
    [wheel] = scratch.glob("*.whl")
    return wheel


def _refused(level: Level) -> bool:
    """Kernels are compiled by calling them, so this processor has to have what they use."""
    missing = lacking(level)
    if missing:
        sys.stdout.write(f"{level.name} cannot be built here: {', '.join(sorted(missing))} is missing.\n")
    return bool(missing)


def _compile(level: Level, tree: Path) -> int:
    """Compile all kernels of the unpacked wheel for a level, into it; how many."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            "PYTHONPATH": str(tree),
            "NUMBA_CPU_NAME": level.cpu,
            "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in sorted(level.features)),
        }
        _run(sys.executable, "-P", "-m", "sparkwire", "warm", cache, environment=_DATED | environment)
        ready = tree / "sparkwire" / "ready" / f"{level.name}-{versions()}"
        ready.mkdir(parents=True)
        files = sorted(Path(cache).glob("*/*.bin"))
        for file in files:
            shutil.copy(file, ready)
        for left in tree.glob("sparkwire/**/__pycache__"):
            shutil.rmtree(left)
        return len(files)


if __name__ == "__main__":
    sys.exit(main())
