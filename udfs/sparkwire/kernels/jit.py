"""The one decorator of the kernels, and a compile cache that never bites.

Numba's own cache raises where it cannot write or read, serves old code after a change in another file, never hits for
closures, and numbers its files so that two processes can swap them.  This one keeps a file per kernel and signature in
a directory whose name is a hash of everything that shapes machine code::

    <place>/sparkwire-kernels-<stamp>/<module>.<kernel>-<signature hash>.bin

    stamp = sources of the whole package, versions of Python, numba and llvmlite, CPU name and features that Numba
            compiles for, checked or not

Another source, CPU or setting is another directory, so nothing old is ever found; the directories used least recently
are removed.  A file begins with the digest of its content, is written under a temporary name and renamed: a reader sees
a whole file or none, and takes a damaged one for none.  Every failure of the file system means: no cache, compile.

The places, all of them read in this order, the first that can be written is written: ``NUMBA_CACHE_DIR`` if set,
``__pycache__`` of the package, the user's cache directory, a private directory among the temporary files.

``SPARKWIRE_CHECKED=1`` (or ``NUMBA_BOUNDSCHECK=1``) in the environment gives the checked build: every array access,
raw load, store and copy outside its array raises IndexError.  It is for tests; set it before the first import.
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
import time
from collections.abc import Callable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, overload

import llvmlite
import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.registry import cpu_target

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

CHECKED = os.environ.get("SPARKWIRE_CHECKED", "0") not in ("", "0") or bool(config.BOUNDSCHECK)

PACKAGE = __name__.partition(".")[0]
PREFIX = f"{PACKAGE}-kernels-"
KEPT_STAMPS = 4  # directories: fleets of mixed CPUs, checked builds and the last version share a place
STALE_SECONDS = 3600  # a temporary file this old belongs to a writer that died


@overload
def kernel(function: Kernel) -> Kernel: ...
@overload
def kernel(*, key: str) -> Callable[[Kernel], Kernel]: ...
def kernel(function: Kernel | None = None, *, key: str = "") -> Kernel | Callable[[Kernel], Kernel]:
    """Compile a loop over flat arrays at its first call, or load it from the cache.

    A kernel runs without the GIL, allocates nothing and does not raise: it reports by codes.  A closure captures
    values that its source does not show, so it must name them by ``key``; without one it is refused.
    """
    if function is None:
        return lambda inner: _compiled(inner, key)
    return _compiled(function, key)


def _compiled(function: Kernel, key: str) -> Kernel:
    if function.__closure__ and not key:
        raise TypeError(f"kernel {function.__qualname__} is a closure: name what it captures with kernel(key=...)")
    dispatcher = numba.njit(
        nogil=True,
        error_model="numpy",  # a division by zero has no business raising in a loop that must not raise
        boundscheck=CHECKED,
        no_cfunc_wrapper=True,  # nothing calls kernels from C
        _nrt=False,  # no reference counts: each call of a helper cost two locked instructions for every array it takes
    )(function)
    if function.__module__.partition(".")[0] == PACKAGE:  # the stamp vouches for these sources only
        dispatcher._cache = KernelCache(function, key)
    typed: Kernel = dispatcher
    return typed


class KernelCache(NullCache):  # type: ignore[misc]  # numba is untyped
    """What a dispatcher asks before it compiles (``load_overload``) and tells after it has (``save_overload``)."""

    def __init__(self, function: Callable[..., Any], key: str) -> None:
        self.name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
        self.identity = f"{self.name}:{function.__code__.co_firstlineno}:{key}"

    def load_overload(self, sig: tuple[Any, ...], target_context: Any) -> Any:
        """The compile result for these argument types, or None."""
        target_context.refresh()
        name = self._file_name(sig)
        for place in _places():
            try:
                content = _read(place / _stamp() / name)
                if content is not None:
                    return CompileResultCacheImpl.rebuild(None, target_context, pickle.loads(content))
            except Exception:  # noqa: BLE001  # whatever a foreign file holds, compiling is always right
                continue
        return None

    def save_overload(self, sig: tuple[Any, ...], data: Any) -> None:
        """Keep a compile result where the next process finds it, if anywhere."""
        if data.lifted or data.library.has_dynamic_globals:
            return  # holds addresses of this process
        content = pickle.dumps(CompileResultCacheImpl.reduce(None, data), protocol=pickle.HIGHEST_PROTOCOL)
        for place in _places():
            with contextlib.suppress(OSError):
                _write(place / _stamp() / self._file_name(sig), content)
                return

    def _file_name(self, sig: tuple[Any, ...]) -> str:
        variant = hashlib.sha256(f"{self.identity}:{sig}".encode()).hexdigest()[:16]
        return f"{self.name}-{variant}.bin"


@functools.cache
def _stamp() -> str:
    """Name of the directory that holds kernels of exactly this package, for exactly this machine."""
    digest = hashlib.sha256()
    for name, source in _sources(importlib.resources.files(PACKAGE), ""):
        digest.update(f"{name}:{len(source)}:".encode() + source)
    versions = (sys.version, numba.__version__, llvmlite.__version__)
    target = cpu_target.target_context.codegen().magic_tuple()
    digest.update(repr((versions, target, CHECKED, config.OPT)).encode())
    return PREFIX + digest.hexdigest()[:24]


def _sources(directory: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    """Every module of the package, from a directory or from inside a zip."""
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _sources(entry, f"{path}{entry.name}/")
        elif entry.name.endswith((".py", ".pyc")):
            yield path + entry.name, entry.read_bytes()


@functools.cache
def _places() -> tuple[Path, ...]:
    """Directories that may hold the cache, best first."""
    places = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    places.append(Path(__file__).parents[1] / "__pycache__")
    with contextlib.suppress(RuntimeError):  # no home directory
        places.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))
    with contextlib.suppress(OSError):
        places.append(_private_temporary())
    return tuple(places)


def _private_temporary() -> Path:
    """A directory among the temporary files that no other user can have written: what is unpickled is trusted."""
    path = Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if path.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{path} is open to other users")
    return path


def _read(path: Path) -> bytes | None:
    """The content that was written to ``path``, None where there is none or it is damaged."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    digest, content = whole[:32], whole[32:]
    return content if hashlib.sha256(content).digest() == digest else None


def _write(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` whole or not at all; raises OSError."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True)
        _prune(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _prune(newest: Path) -> None:
    """Remove all but the ``KEPT_STAMPS`` youngest stamp directories beside and including ``newest``."""
    with contextlib.suppress(OSError):
        beside = sorted(newest.parent.glob(f"{PREFIX}*/"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in beside[KEPT_STAMPS:]:
            shutil.rmtree(old, ignore_errors=True)
