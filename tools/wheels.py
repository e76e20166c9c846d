"""``make wheels``: build the wheel for every platform, and a wheel with ready kernels for each level of processors.

    python -m tools.wheels [DIRECTORY]

It builds for each supported Python on this machine, and for this machine's architecture: on aarch64, the same command builds
wheels for aarch64.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sparkwire.kernels.ready import LEVELS, Level, lacking
from tools.pythons import ROOT, SUPPORTED, pythons

_PLATFORM: Final = "manylinux2014"
"""kernels call only functions of the C library that Python itself uses"""


def main() -> int:
    """Build all wheels. Prints the built wheels with their sizes, and the failures."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    out.mkdir(parents=True, exist_ok=True)
    levels = [level for level in LEVELS if level.architecture == platform.machine()]
    if not levels:
        sys.stdout.write(
            f"No level of processors is known for {platform.machine()}: add one to sparkwire/kernels/ready.py.\n"
        )
    with tempfile.TemporaryDirectory() as scratch:
        pure = _pure(Path(scratch))
        _described(Path(shutil.copy(pure, str(out))))
        levels = [level for level in levels if not _rejected(level)]
        for version in SUPPORTED if levels else ():
            python = _python(version, pure)
            if python is None:
                sys.stdout.write(f"There is no Python {version} here: no wheel with ready kernels for it.\n")
            else:
                _described(Path(shutil.copy(_with_kernels(python, version, pure, levels), str(out))))
    return 0


def _python(version: str, pure: Path) -> Path | None:
    """A Python of a version with the libraries of a release; it is created once."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return Path(sys.executable)
    if version not in pythons():
        return None
    place = ROOT / ".venv" / "wheels" / version
    if not (place / ".ready").exists():
        _run(str(pythons()[version]), "-m", "venv", "--clear", str(place))
        _run(
            str(place / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"{pure}[ready]",
        )
        (place / ".ready").touch()
    return place / "bin" / "python"


def _with_kernels(python: Path, version: str, pure: Path, levels: Sequence[Level]) -> Path:
    """A copy of the wheel ``pure`` with kernels that ``python`` has compiled."""
    folder = pure.parent / version
    _run(sys.executable, "-m", "wheel", "unpack", "--dest", f"{folder}/tree", str(pure))
    [tree] = (folder / "tree").iterdir()
    for level in levels:
        _compile(python, level, tree)
    _run(sys.executable, "-m", "wheel", "pack", "--dest-dir", str(folder), str(tree), environment=_DATED)
    tags = {"python": f"cp{version.replace('.', '')}", "abi": "none", "platform": f"{_PLATFORM}_{platform.machine()}"}
    chosen = [f"--{name}-tag={tag}" for name, tag in tags.items()]
    named = _run(sys.executable, "-m", "wheel", "tags", *chosen, str(folder / pure.name), environment=_DATED)
    return folder / named.split()[-1]


def _described(path: Path) -> None:
    sys.stdout.write(f"{path}: {path.stat().st_size / 1e6:.1f} MB\n")


def _run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _commit_time() -> str:
    """The time of the last commit, which is the date of every file in a wheel [s since epoch]."""
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


def _rejected(level: Level) -> bool:
    """The reason to skip a level. Kernels are compiled by calling them, so this processor must have the level's features."""
    missing = lacking(level)
    if missing:
        sys.stdout.write(f"{level.name} cannot be built here: {', '.join(sorted(missing))} is missing.\n")
    return bool(missing)


def _compile(python: Path, level: Level, tree: Path) -> None:
    """Compile all kernels for a level into the unpacked wheel."""
    with tempfile.TemporaryDirectory() as cache:
        environment = _DATED | {
            "PYTHONPATH": str(tree),
            "NUMBA_CPU_NAME": level.cpu,
            "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in sorted(level.features)),
        }
        _run(str(python), "-P", "-m", "sparkwire", "warm", cache, environment=environment)
        versions = "from sparkwire.kernels.ready import versions; print(versions())"
        name = _run(str(python), "-P", "-c", versions, environment=environment).strip()
        ready = tree / "sparkwire" / "ready" / f"{level.name}-{name}"
        ready.mkdir(parents=True)
        for file in sorted(Path(cache).glob("*/*.bin")):
            shutil.copy(file, ready)
        for left in tree.glob("sparkwire/**/__pycache__"):
            shutil.rmtree(left)


if __name__ == "__main__":
    sys.exit(main())
