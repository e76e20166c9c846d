"""Machine code of kernels on disk: a cache that never raises and never serves what the sources do not say.

Numba's own cache raises where it cannot write or read, serves old code after a change in another file,
never hits for closures, and numbers its files so that two processes can mix them up. This one keeps one
file per kernel, key and signature, in a directory whose name is a hash of everything else that shapes
machine code::

    <place>/sparkwire-kernels-<state>/<module>.<kernel>-<variant>.bin

    state    sources of the whole package; Python, numba, llvmlite; the target Numba compiles for
    variant  key of the kernel, types of its arguments

Other sources are another directory, so nothing old is ever found, and only the ``KEPT`` directories used
last remain. A file begins with the digest of its content and gets its name when it is complete: a reader
sees a whole file or none, and takes a damaged one for none. Every failure of the file system means: no
cache, compile.

The places, all read in this order, the first that can be written is written: ``NUMBA_CACHE_DIR`` if set,
``__pycache__`` of the package, the user's cache directory, the user's own directory among the temporary
files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
from numba.core import config, serialize
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.registry import cpu_target

PACKAGE = __name__.partition(".")[0]
PREFIX = f"{PACKAGE}-kernels-"
KEPT = 4  # directories: a mixed fleet, or the version before this one, may share a place

_USER = os.getuid() if hasattr(os, "getuid") else 0


class Kept(NamedTuple):
    """What one directory of the cache holds for exactly this package and target."""

    directory: Path
    files: int
    bytes: int
    writable: bool


def kept() -> Kept | None:
    """The first directory that holds kernels of this package, else the first that could; None where none can be written."""
    found = [_kept(directory) for directory in _directories()]
    full = [state for state in found if state.files]
    writable = [state for state in found if state.writable]
    return next(iter(full + writable), None)


def collect() -> None:
    """Copy into the first directory what the others hold, so that it can be shipped alone; raises OSError."""
    for directory in _directories()[1:]:
        for path in directory.glob("*.bin"):
            content, target = _read(path), _directories()[0] / path.name
            if content is not None and not target.exists():
                _write(target, content)


def _kept(directory: Path) -> Kept:
    sizes = []
    with contextlib.suppress(OSError):
        sizes = [path.stat().st_size for path in directory.glob("*.bin")]
    place = next(path for path in (directory, *directory.parents) if path.exists())
    return Kept(directory, len(sizes), sum(sizes), os.access(place, os.W_OK))


class KernelCache(NullCache):  # type: ignore[misc]  # numba is untyped
    """What a dispatcher asks before it compiles, and gives what it has compiled."""

    def __init__(self, function: Callable[..., Any], key: str) -> None:
        self.name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
        self.identity = f"{self.name}:{function.__code__.co_firstlineno}:{key}"

    def load_overload(self, sig: tuple[Any, ...], target_context: Any) -> Any:
        """The compile result for these argument types, or None.

        Numba first registers all that can be compiled, which takes longer than everything else. Code that is
        ready does not need it, save what manages memory, and kernels allocate none.
        """
        for directory in _directories():
            content = _read(directory / self._file_name(sig))
            result = None if content is None else _rebuilt(content, target_context)
            if result is not None:
                _mark_used(directory)
                return result
        return None

    def save_overload(self, sig: tuple[Any, ...], data: Any) -> None:
        """Keep a compile result for other processes, if there is a place for it."""
        if data.lifted or data.library.has_dynamic_globals:
            return  # it holds addresses of this process
        if _hash_of_sources() != SOURCES:
            return  # edited since they were imported: this code is neither what was nor what is on disk
        content = serialize.dumps(CompileResultCacheImpl.reduce(None, data))
        for directory in _directories():
            with contextlib.suppress(OSError):
                _write(directory / self._file_name(sig), content)
                return

    def _file_name(self, sig: tuple[Any, ...]) -> str:
        variant = hashlib.sha256(f"{self.identity}:{sig}".encode()).hexdigest()[:16]
        return f"{self.name}-{variant}.bin"


def _rebuilt(content: bytes, target_context: Any) -> Any:
    try:
        return CompileResultCacheImpl.rebuild(None, target_context, pickle.loads(content))
    except Exception:  # noqa: BLE001  # whatever numba dislikes about it: compiling is always right
        return None


def _hash_of_sources() -> str:
    """Hash of every module of the package, in a directory or in a zip; empty where they cannot be read."""
    digest = hashlib.sha256()
    found = False
    try:
        for path, source in _sources(importlib.resources.files(PACKAGE), ""):
            digest.update(f"{path}:{len(source)}:".encode() + source)
            found = found or path.startswith("kernels/cache.py")
    except Exception:  # noqa: BLE001  # loaders are many, and none may stop an import
        return ""
    return digest.hexdigest() if found else ""


def _sources(directory: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith((".py", ".pyc")):
            yield path + entry.name, entry.read_bytes()
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _sources(entry, f"{path}{entry.name}/")


SOURCES = _hash_of_sources()
"""As imported: kernels compiled in this process are theirs."""


@functools.cache
def _directories() -> tuple[Path, ...]:
    """Where files of exactly this package, for exactly this target, may be; best first."""
    if not SOURCES:
        return ()
    versions = (sys.version, numba.__version__, llvmlite.__version__)
    target = cpu_target.target_context.codegen().magic_tuple()
    state = hashlib.sha256(repr((SOURCES, versions, target, config.OPT)).encode()).hexdigest()[:24]
    return tuple(place / (PREFIX + state) for place in _places())


def _places() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    yield Path(__file__).parents[1] / "__pycache__"
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: no home directory
        yield _own(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / PACKAGE)
    with contextlib.suppress(OSError):
        yield _own(Path(tempfile.gettempdir()) / f"{PACKAGE}-{_USER}")


def _own(path: Path) -> Path:
    """A directory that no other user can have written to: what is unpickled is trusted."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if path.is_symlink() or status.st_uid != _USER or status.st_mode & 0o022:
        raise PermissionError(f"{path} is open to other users")
    return path


@functools.cache
def _mark_used(directory: Path) -> None:
    """So that it is not among the oldest when they are removed."""
    with contextlib.suppress(OSError):
        os.utime(directory)


def _read(path: Path) -> bytes | None:
    """The content written to ``path``; None where there is none or it is damaged."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    digest, content = whole[:32], whole[32:]
    return content if hashlib.sha256(content).digest() == digest else None


def _write(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``, whole or not at all; raises OSError."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_oldest(path.parent.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_oldest(place: Path) -> None:
    """Leave the ``KEPT`` directories used last; another process may be removing the same ones."""
    ages = []
    for directory in place.glob(f"{PREFIX}*/"):
        with contextlib.suppress(FileNotFoundError):
            ages.append((directory.stat().st_mtime, directory))
    for _, directory in sorted(ages, reverse=True)[KEPT:]:
        shutil.rmtree(directory, ignore_errors=True)
