"""A disk cache for the machine code of kernels. It never raises, and never returns code of other sources.

Numba's own cache raises if it cannot write or read, and returns old code after a change in another file. It never hits for
closures, and two processes can mix up its numbered files. This cache has one file per kernel, key and signature. The file's name
contains everything that determines the machine code::

    <place>/sparkwire-kernels-<state>/<module>.<kernel>-<variant>-<sources>.bin

    state    Python, numba, llvmlite; the target Numba compiles for
    variant  key of the kernel, types of its arguments
    sources  of the kernel's module, and of all modules of the package that it imports directly or indirectly

Other sources have another file, so outdated code is never used. The newest ``VERSIONS`` directories remain, and as many files
of each kernel and variant. A file begins with the digest of its content and gets its name when it is complete. So a
reader sees a complete file or none, and ignores a corrupt one. After any failure, of the file system or because Numba has changed
(`numba_inside`), kernels are compiled, with at most one line in the log. With ``SPARKWIRE_KERNEL_CACHE=off`` in the environment,
kernels are always compiled, and no file is read or written.

Kernels that the package ships (`ready`) are read first. Then the cache reads all of these places, in this order, and writes to
the first writable one: ``NUMBA_CACHE_DIR`` if set, ``__pycache__`` of the package, the user's cache directory, the user's
directory among the temporary files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba

from sparkwire.base.printable import printable
from sparkwire.kernels import numba_inside
from sparkwire.kernels.numba_inside import HAPPENED, go_without
from sparkwire.kernels.ready import OFF, directories, read_code, write_code

PACKAGE = __name__.partition(".")[0]
PREFIX = f"{PACKAGE}-kernels-"
VERSIONS = 4  # directories, and files of a kernel: different machines, or the previous version, may share a place

_IMPORT = re.compile(
    rf"^[ \t]*(?:from|import)[ \t]+({PACKAGE}[\w.]*)(?:[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*))?".encode(), re.MULTILINE
)
_USER = os.getuid() if hasattr(os, "getuid") else 0
_WORKERS = ("pyspark.daemon", "pyspark.worker", "pyspark.worker_util")
"""modules that only Spark's workers load; those that plan the tasks of a data source have no daemon"""
_LONG = 3.0
"""time after which to announce compiling [s]"""
COMPILING = "Compiling kernels, once per machine. `python -m sparkwire warm` compiles all of them ahead."
_log = logging.getLogger(PACKAGE)


class CachedKernels(NamedTuple):
    """The kernels in one cache directory for exactly this package and target."""

    directory: Path
    files: int
    bytes: int
    writable: bool


def why_none() -> str:
    """The reason why ``cached_kernels`` returns None."""
    if OFF:
        return "SPARKWIRE_KERNEL_CACHE is off"
    return numba_inside.CHANGED[0] if numba_inside.CHANGED else "no place for it can be written"


def cached_kernels() -> CachedKernels | None:
    """The first directory with kernels of this package, else the first writable one; `why_none` explains None."""
    if OFF:
        return None
    try:
        counts = [_cached_in(directory) for directory in _directories()]
    except Exception as error:  # noqa: BLE001  # Numba may have changed anything
        go_without("kernels are not cached", error)
        return None
    full = [state for state in counts if state.files]
    writable = [state for state in counts if state.writable]
    return next(iter(full + writable), None)


def collect() -> None:
    """Copy the kernels of the other directories into the first, which you can then ship. Raises OSError."""
    for directory in _directories()[1:]:
        for path in directory.glob("*.bin"):
            content, target = read_code(path), _directories()[0] / path.name
            if content is not None and not target.exists():
                _write(target, content)


def _cached_in(directory: Path) -> CachedKernels:
    sizes = []
    with contextlib.suppress(OSError):
        sizes = [path.stat().st_size for path in directory.glob("*.bin")]
    place = next(path for path in (directory, *directory.parents) if path.exists())
    return CachedKernels(directory, len(sizes), sum(sizes), os.access(place, os.W_OK))


class Announcement:
    """Announces once that kernels compile, if that takes long. Only the driver announces it, not Spark's workers."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.made = any(name in sys.modules for name in _WORKERS)

    def compiling(self, now: float) -> None:
        """Report that a kernel is about to compile; ``now`` is the time of a monotonic clock [s]."""
        if self._since is None:
            self._since = now
        elif not self.made and now - self._since > _LONG:
            self.made = True
            _log.warning(COMPILING)


announcement = Announcement()


def is_cold() -> bool:
    """Whether this machine has no kernels of this package, neither ready nor compiled."""
    state = cached_kernels()
    return not directories() and (state is None or not state.files)


class KernelCache:
    """The cache of a dispatcher, which queries it before it compiles, and stores results in it. Neither ever raises."""

    original: Any = None
    """the dispatcher's original cache, which is empty; it implements the other methods that a dispatcher may call"""

    def __init__(self, function: Callable[..., Any], key: str) -> None:
        self.name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
        self.module = function.__module__
        self.identity = f"{self.name}:{function.__code__.co_firstlineno}:{key}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    @functools.cached_property
    def sources(self) -> str:
        """Digest of the imported sources that determine this kernel; empty if they cannot be read."""
        return digest_of(self.module, SOURCES)

    def load_overload(self, *requested: Any, **named: Any) -> Any:
        """The cached compile result for a dispatcher's argument types and target context; None if there is none."""
        loaded = None
        try:
            loaded = None if OFF else self._load(*requested, **named)
        except Exception as error:  # noqa: BLE001  # Numba may have changed anything; compiling is always right
            go_without("kernels are not loaded from the cache", error)
        if loaded is None:
            announcement.compiling(time.monotonic())
        return loaded

    def save_overload(self, *requested: Any, **named: Any) -> None:
        """Store a compile result for the argument types, for other processes, if a place is writable."""
        HAPPENED["compiled"] += 1
        try:
            if not OFF:
                self._save(*requested, **named)
        except Exception as error:  # noqa: BLE001  # Numba may have changed anything; the next process compiles
            go_without("kernels are not cached", error)

    def _load(self, sig: tuple[Any, ...], target_context: Any) -> Any:
        """Load a compile result without Numba's registration of all types and functions, the slowest step.

        Only compiled code that manages memory needs the registration, and kernels allocate no memory.
        """
        ready = directories()
        for directory in (*ready, *_directories()) if self.sources else ():
            content = read_code(directory / self._file_name(sig))
            result = None if content is None else _loaded(content, sig, target_context)
            if result is not None:
                if directory in ready:
                    HAPPENED["ready"] += 1
                else:
                    HAPPENED["cached"] += 1
                    _mark_used(directory)
                return result
        return None

    def _save(self, sig: tuple[Any, ...], data: Any) -> None:
        if digest_of(self.module, _sources_now()) != self.sources:
            return  # the sources were edited after import, so this code matches neither the old nor the new ones
        content = numba_inside.machine_code(data)
        if content is None:
            return
        for directory in _directories() if self.sources else ():
            with contextlib.suppress(OSError):
                _write(directory / self._file_name(sig), content)
                _keep_newest(directory.glob(self._file_name(sig).replace(self.sources, "*")))
                return

    def _file_name(self, sig: tuple[Any, ...]) -> str:
        variant = hashlib.sha256(f"{self.identity}:{sig}".encode()).hexdigest()[:16]
        return f"{self.name}-{variant}-{self.sources}.bin"


def _loaded(content: bytes, sig: tuple[Any, ...], target_context: Any) -> Any:
    """A compile result; None if Numba rejects it, because another directory may have a good one."""
    try:
        return numba_inside.loaded(content, sig, target_context)
    except Exception as error:  # noqa: BLE001  # Numba may reject it for any reason
        go_without("kernels are not loaded from the cache", error)
        return None


def _sources_now() -> dict[str, bytes]:
    """The source of every module of the package, in a directory or a zip; empty if they cannot be read."""
    try:
        return dict(_modules(importlib.resources.files(PACKAGE), PACKAGE))
    except Exception:  # noqa: BLE001  # there are many loaders; a failure must not stop the import
        return {}


def _modules(directory: Traversable, package: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        stem, _, suffix = entry.name.rpartition(".")
        if suffix in ("py", "pyc"):
            yield package if stem == "__init__" else f"{package}.{stem}", entry.read_bytes()
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _modules(entry, f"{package}.{entry.name}")


SOURCES = _sources_now()
"""the sources at import time, from which this process compiles its kernels"""


def digest_of(module: str, sources: Mapping[str, bytes]) -> str:
    """Digest of a module and of all modules of the package that it imports; empty if its source is unknown."""
    needed, left = set[str](), [module]
    while left:
        name = left.pop()
        if name in sources and name not in needed:
            needed.add(name)
            left += _imported(sources[name])
    if module not in needed or any(source[2:4] == b"\r\n" for source in sources.values()):
        needed = set(sources) if module in sources else set()  # a compiled module does not show its imports
    digest = hashlib.sha256()
    for name in sorted(needed):
        digest.update(f"{name}:{len(sources[name])}:".encode() + sources[name])
    return digest.hexdigest()[:16] if needed else ""


@functools.cache
def _imported(source: bytes) -> tuple[str, ...]:
    """The modules of the package that a source may import. Names that are not modules are harmless."""
    imported = list[str]()
    for module, names in _IMPORT.findall(source):
        imported.append(module.decode())
        imported += [f"{module.decode()}.{name}" for name in re.findall(r"\w+", names.decode())]
    return tuple(imported)


@functools.cache
def _directories() -> tuple[Path, ...]:
    """The directories that may have files of exactly this package and target, best first."""
    versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
    shaping = (versions, numba_inside.target(), numba_inside.optimisation())
    state = hashlib.sha256(repr(shaping).encode()).hexdigest()[:24]
    return tuple(place / (PREFIX + state) for place in _places())


def _places() -> Iterator[Path]:
    if numba_inside.cache_directory():
        yield Path(numba_inside.cache_directory())
    yield Path(__file__).parents[1] / "__pycache__"
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: no home directory
        yield _private(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / PACKAGE)
    with contextlib.suppress(OSError):
        yield _private(Path(tempfile.gettempdir()) / f"{PACKAGE}-{_USER}")


def _private(path: Path) -> Path:
    """A directory that only this user can write to, because sparkwire unpickles files in it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if path.is_symlink() or status.st_uid != _USER or status.st_mode & 0o022:
        raise PermissionError(printable(f"{path} is open to other users"))
    return path


@functools.cache
def _mark_used(directory: Path) -> None:
    """Mark the directory as recently used, so that it is not removed as one of the oldest."""
    with contextlib.suppress(OSError):
        os.utime(directory)


def _write(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``. Raises OSError."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_oldest(path.parent.parent)
    write_code(path, content)


def _remove_oldest(place: Path) -> None:
    """Remove all directories except the ``VERSIONS`` most recently used."""
    _keep_newest(place.glob(f"{PREFIX}*/"))


def _keep_newest(paths: Iterable[Path]) -> None:
    """Remove all files except the ``VERSIONS`` newest. Another process may remove the same files at the same time."""
    ages = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            ages.append((path.stat().st_mtime, path))
    for _, path in sorted(ages, reverse=True)[VERSIONS:]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
