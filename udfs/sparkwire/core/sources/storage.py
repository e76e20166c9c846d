"""Where the bytes come from: files, directories and globs, local or by URI, through ``pyarrow.fs``.

A local path is any text without a scheme, or with ``file:``. What ``pyarrow.fs`` takes after a ``?`` in a URI (an S3 endpoint,
say) is handed on, so in a URI ``?`` is no wildcard.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs

from sparkwire.core.column import read_only
from sparkwire.core.sources.globs import Glob

Bytes = npt.NDArray[np.uint8]

GZIP = ".gz"
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_WILDCARD = re.compile(r"[*?\[{]")
_BRACES_WITH_SLASH = re.compile(r"\{([^{}]*/[^{}]*)\}")
_MOST_PATTERNS = 1000


class PathParts(NamedTuple):
    """A path as its user wrote it, taken apart."""

    root: str
    """scheme and what else the user sees before the path; empty for a local one"""
    path: str
    """as the filesystem takes it"""
    query: str
    """``?…`` of a URI, empty without"""


class Layer(Protocol):
    """What makes other bytes of an open file's, range by range."""

    def opened(self, raw: Callable[[], Any]) -> Any:
        """A file that is open for reading, as ``pyarrow.fs`` has them: ``seek``, ``readinto``, ``read_at``, ``close``.

        ``raw`` opens the file whose bytes they are made of.
        """


class File(NamedTuple):
    """A file that was found."""

    root: str
    path: str
    query: str
    size: int
    """when it was listed [bytes]; of a compressed file the compressed size"""
    modified: float | None = None
    """when it was last written [s since epoch]; None where the filesystem does not say"""
    layer: Layer | None = None
    """what its bytes are to be made of; ``size`` is of what they become then"""

    @property
    def name(self) -> str:
        """As users see it: with its scheme, without what is after ``?``."""
        return self.root + self.path

    @property
    def basename(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def compressed(self) -> bool:
        return self.path.endswith(GZIP)

    def beside(self, basename: str) -> File:
        """A file of another name in the same folder, whose size is not known."""
        return self._replace(path=f"{self.folder}/{basename}", size=-1, modified=None, layer=None)


def is_glob(path: str) -> bool:
    """Whether a path is a pattern for names."""
    return bool(_WILDCARD.search(path))


def file_at(path: str) -> File:
    """The file that a path names, without a look at it."""
    place = place_of(path)
    return File(place.root, place.path, place.query, -1)


def place_of(path: str) -> PathParts:
    if not path.strip():
        raise ValueError("path is empty: name a file, a directory or a glob")
    if "\0" in path:
        raise ValueError(f"path {path!r} has a NUL character, which no file's name has")
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    scheme = _SCHEME.match(path)
    if scheme is None:
        return PathParts("", os.path.abspath(path), "")  # noqa: PTH100  pathlib keeps `..`
    body, mark, query = path[scheme.end() :].partition("?")
    if scheme.group() == "hdfs://" or "@" in body.partition("/")[0]:
        host, _, rest = body.partition("/")
        return PathParts(f"{scheme.group()}{host}", "/" + rest.rstrip("/"), mark + query)
    return PathParts(scheme.group(), body.rstrip("/"), mark + query)


def filesystem(root: str, path: str, query: str) -> tuple[Any, str]:
    """The filesystem of a place, and the path in it."""
    if not root:
        return fs.LocalFileSystem(), path
    try:
        system, inner = fs.FileSystem.from_uri(f"{root}{path}{query}")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise ValueError(f"path {root}{path} cannot be opened: {_first_line(error)}") from error
    return system, inner


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def listed(path: str) -> tuple[list[File], bool]:
    """The files at a path, in the order of their paths, and whether the path names one file itself.

    A directory is listed with all that is below it, hidden or not.

    FileNotFoundError where there is nothing at the path; PermissionError where a directory must not be listed.
    """
    place = place_of(path)
    if is_glob(place.path):
        files = [file for found in sorted(_matches(place)) for file in _below(place, found)]
        if not files:
            raise FileNotFoundError(f"path {path} matches no file: check the glob, it takes *, ?, [ab] and {{a,b}}")
        return files, False
    files = list(_below(place, place.path))
    single = len(files) == 1 and files[0].path == place.path
    return files, single


def _below(place: PathParts, path: str) -> Iterator[File]:
    system, inner = filesystem(place.root, path, place.query)
    info = _guarded(place, path, lambda: system.get_file_info(inner))
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"path {place.root}{path} does not exist: name a file, a directory or a glob")
    if info.type == fs.FileType.File:
        yield _file(place, path, info)
        return
    infos = _guarded(place, path, lambda: _tree(system, inner))
    for found in sorted(infos, key=lambda one: str(one.path)):
        yield _file(place, found.path, found)


def _file(place: PathParts, path: str, info: Any) -> File:
    seconds = info.mtime_ns / 1e9 if info.mtime_ns is not None and info.mtime_ns > 0 else None
    return File(place.root, path, place.query, info.size, seconds)


def _tree(system: Any, top: str) -> list[Any]:
    """All files below a directory. Symbolic links are followed, each directory is read once."""
    if not isinstance(system, fs.LocalFileSystem):
        infos = system.get_file_info(fs.FileSelector(top, recursive=True))
    else:
        paths, seen = list[str](), set[tuple[int, int]]()
        for folder, folders, names in os.walk(top, followlinks=True, onerror=_raise):
            state = os.stat(folder)  # noqa: PTH116
            if (state.st_dev, state.st_ino) in seen:
                folders.clear()
                continue
            seen.add((state.st_dev, state.st_ino))
            folders.sort()
            paths += [f"{folder.rstrip('/')}/{name}" for name in names]
        infos = system.get_file_info(paths)
    return [info for info in infos if info.type == fs.FileType.File]


def _raise(error: OSError) -> None:
    raise error


def _guarded(place: PathParts, path: str, ask: Any) -> Any:
    try:
        return ask()
    except PermissionError as error:
        raise PermissionError(f"path {place.root}{path} must not be read: {_first_line(error)}") from error
    except OSError as error:
        raise OSError(f"path {place.root}{path} cannot be listed: {_first_line(error)}") from error


def _matches(place: PathParts) -> Iterator[str]:
    """The files and directories that a glob names, level by level, so that no more is listed than it needs."""
    for pattern in _without_slashes_in_braces(place.path):
        first, *parts = pattern.split("/")
        found = [first]
        for part in parts:
            if _WILDCARD.search(part):
                found = [f"{folder}/{name}" for folder in found for name in _names(place, folder, Glob(part))]
            else:
                found = [f"{folder}/{part}" for folder in found]
        yield from (path for path in found if _exists(place, path))


def _without_slashes_in_braces(path: str) -> list[str]:
    """``{a/b,c}/d`` is ``a/b/d`` and ``c/d``: a glob is matched name by name."""
    patterns = [path]
    while any(braces := [_BRACES_WITH_SLASH.search(pattern) for pattern in patterns]):
        if len(patterns) > _MOST_PATTERNS:
            raise ValueError(f"path {path} has more than {_MOST_PATTERNS} alternatives with slashes: name fewer")
        patterns = [
            pattern if found is None else f"{pattern[: found.start()]}{choice}{pattern[found.end() :]}"
            for pattern, found in zip(patterns, braces, strict=True)
            for choice in ([""] if found is None else found.group(1).split(","))
        ]
    return patterns


def _names(place: PathParts, folder: str, pattern: Glob) -> list[str]:
    system, inner = filesystem(place.root, folder or "/", place.query)
    infos = _guarded(place, folder, lambda: system.get_file_info(fs.FileSelector(inner, allow_not_found=True)))
    return sorted(name for name in (info.base_name for info in infos) if pattern.matches(name))


def _exists(place: PathParts, path: str) -> bool:
    system, inner = filesystem(place.root, path, place.query)
    return bool(system.get_file_info(inner).type != fs.FileType.NotFound)


# -- reading


class FileCut(ValueError):
    """A file that was longer when it was listed."""


class OpenFile:
    """Ranges of one file. Keeps the bytes that it read last, so that what a next view shares with them is not read again.

    ``bytes_read`` counts what was asked of storage [bytes].
    """

    def __init__(self, file: File) -> None:
        self.file = file
        self.bytes_read: int = 0
        self._start = 0
        self._held = np.empty(0, np.uint8)
        self._buffer = np.empty(0, np.uint8)
        self.broken: bool = False
        """whether a compressed file ends, or cannot be decompressed, before its own end"""
        self._input: Any = self._raw() if file.layer is None else file.layer.opened(self._raw)
        if file.compressed:
            self._input = gzip.GzipFile(fileobj=self._input)
            self.size: int = self._decompressed_size()
        else:
            self.size = file.size if file.size >= 0 else self._input.size()
        """of what can be read, decompressed [bytes]"""

    def _raw(self) -> Any:
        system, inner = filesystem(self.file.root, self.file.path, self.file.query)
        try:
            return system.open_input_file(inner)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{self.file.name} is gone since it was listed: read the path again") from error
        except PermissionError as error:
            raise PermissionError(f"{self.file.name} must not be read: {_first_line(error)}") from error

    def close(self) -> None:
        self._input.close()

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decompressed_size(self) -> int:
        size = 0
        try:
            while block := len(self._input.read(1 << 20)):
                size += block
        except (EOFError, OSError, zlib.error):  # what is before can be read
            self.broken = True
        return size

    def view(self, position: int, size: int) -> Bytes:
        """``size`` bytes from ``position`` on, fewer only at the end of the file; they are valid until the next view.

        FileCut where the file has become shorter than it was when it was listed.
        """
        size = max(0, min(size, self.size - position))
        kept = position - self._start
        if kept >= 0 and kept + size <= len(self._held):
            return read_only(self._held[kept : kept + size])
        if len(self._buffer) < size:
            self._buffer, old = np.empty(size, np.uint8), self._held
        else:
            old = self._held
        have = max(0, len(old) - kept) if kept >= 0 else 0
        if have:
            self._buffer[:have] = old[kept:]
        self._fill(position + have, self._buffer[have:size])
        self._start, self._held = position, self._buffer[:size]
        return read_only(self._held.view())

    def read(self, position: int, size: int) -> bytes:
        """Likewise, but bytes of their own, of which nothing is kept: for a few that lie far from others."""
        size = max(0, min(size, self.size - position))
        if self.file.compressed:
            return self.view(position, size).tobytes()
        try:
            data: bytes = self._input.read_at(size, position)
        except OSError as error:
            raise self._unreadable(position, error) from error
        if len(data) < size:
            raise self._cut(position + len(data))
        self.bytes_read += size
        return data

    def _fill(self, position: int, out: Bytes) -> None:
        done = 0
        while done < len(out):
            try:
                self._input.seek(position + done)
                count = self._input.readinto(out[done:].data)
            except OSError as error:
                raise self._unreadable(position + done, error) from error
            if not count:
                raise self._cut(position + done)
            done += count
        self.bytes_read += done

    def _unreadable(self, position: int, error: OSError) -> OSError:
        return OSError(f"{self.file.name} cannot be read at byte {position}: {_first_line(error)}")

    def _cut(self, position: int) -> FileCut:
        return FileCut(
            f"{self.file.name} had {self.size} bytes when it was listed and ends at {position} now: "
            "it was cut while it was read"
        )
