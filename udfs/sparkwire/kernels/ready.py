"""Ready kernels: machine code inside the wheel, which ``make wheels`` builds for a level of processors.

    sparkwire/ready/<level>-<Python>-numba-<version>-llvmlite-<version>/<kernel>-<variant>-<sources>.bin

The files have the format of the cache; files of other sources are ignored. A level is used only if Numba's target, and the
processor as the operating system exposes it, have all its features. So no unsupported instruction runs.

A file of machine code, here and in the cache, is a digest, then the content. The digest also covers the file's name, so a file
that is copied over another one is corrupt, like a truncated one.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Set
from pathlib import Path
from typing import Final, NamedTuple

import llvmlite
import llvmlite.binding
import numba

from sparkwire.kernels import numba_inside

OFF = os.environ.get("SPARKWIRE_KERNEL_CACHE", "").lower() == "off"
"""whether the cache is off: every process compiles, without reading or writing files"""

_DIGEST_SIZE = 32  # [bytes]


def read_code(path: Path) -> bytes | None:
    """The content of ``path``; None if the file does not exist or is corrupt."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[_DIGEST_SIZE:]
    return content if _digest(path, content) == whole[:_DIGEST_SIZE] else None


def write_code(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(path, content) + content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()


# -- ready kernels

READY: Final = Path(__file__).parents[1] / "ready"


class Level(NamedTuple):
    """A set of instructions that many processors support."""

    name: str
    architecture: str
    cpu: str
    """LLVM's name of the processor, for NUMBA_CPU_NAME"""
    features: frozenset[str]
    """LLVM's names of the features that the code may use beyond the architecture's minimum"""


LEVELS: Final = (
    # Intel since Haswell (2013), AMD since Excavator (2015). PCLMUL is older, but not in LLVM's list of this level.
    Level(
        "x86-64-v3",
        "x86_64",
        "x86-64-v3",
        frozenset(
            "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe pclmul popcnt sahf sse3 sse4.1 sse4.2 ssse3 xsave".split()  # noqa: SIM905
        ),
    ),
    # Servers of AWS, Ampere and NVIDIA have both. Apple's architecture is named arm64, so Apple's machines compile.
    Level("aarch64", "aarch64", "generic", frozenset({"aes", "neon"})),
)
"""the levels of each architecture, best first"""


def versions() -> str:
    """The versions whose kernels this process can load: the part of the directory's name after the level."""
    return f"{sys.implementation.cache_tag}-numba-{numba.__version__}-llvmlite-{llvmlite.__version__}"


def lacking(level: Level) -> frozenset[str]:
    """The features of a level that the processor, Numba's target or the architecture does not have."""
    try:
        triple, _, target = numba_inside.target()
    except Exception as error:  # noqa: BLE001  # Numba may have changed anything
        numba_inside.go_without("ready kernels are not used", error)
        return frozenset({"a target that Numba reports"})
    if triple.partition("-")[0] != level.architecture:
        return frozenset({level.architecture})
    return level.features - (_of_target(target) & _of_processor())


def _of_target(features: str) -> Set[str]:
    return {name[1:] for name in features.split(",") if name.startswith("+")}


def _of_processor() -> Set[str]:
    """The processor's features that the operating system, hypervisor or emulator exposes."""
    return {name for name, present in llvmlite.binding.get_host_cpu_features().items() if present}


@functools.cache
def directories() -> tuple[Path, ...]:
    """The directories whose kernels this process may load, best first."""
    if OFF:
        return ()
    here = [(level, READY / f"{level.name}-{versions()}") for level in LEVELS]
    return tuple(path for level, path in here if path.is_dir() and not lacking(level))


def state() -> str:
    """Report the ready kernels for this process, or why there are none."""
    if OFF:
        return "not used: SPARKWIRE_KERNEL_CACHE is off"
    if directories():
        files = list(directories()[0].glob("*.bin"))
        corrupt = sum(read_code(file) is None for file in files)
        title = directories()[0].name.removesuffix(f"-{versions()}")
        return f"{len(files)} kernels for {title}" + (
            f", {corrupt} of them corrupt: install the wheel again" if corrupt else ""
        )
    present = sorted(path.name for path in READY.glob("*-numba-*")) if READY.is_dir() else []
    if not present:
        return "none in this package: it is the wheel for every platform, or a source tree"
    for level in LEVELS:
        if f"{level.name}-{versions()}" in present:
            return f"none: {level.name} has {', '.join(sorted(lacking(level)))}, and this processor, or NUMBA_CPU_…, has not"
    return f"none: they are for {', '.join(present)}, and this is {versions()}"
