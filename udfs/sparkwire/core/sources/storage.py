"""Read files, directories and globs, local or in object stores, through ``pyarrow.fs``.

A local path is any text without a scheme, or with ``file:`` or ``dbfs:``. ``pyarrow.fs`` gets three parts of a URI as a URI:
scheme, authority, and the options at its end (``?region=eu-west-1``). It gets the path literally, so that a key may have any
character. A path is a glob only if nothing exists under this name.
"""

from __future__ import annotations

import errno
import functools
import gzip
import logging
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs

from sparkwire.base.printable import printable, value_error
from sparkwire.core.column import read_only
from sparkwire.core.sources.globs import Glob
from sparkwire.errors import FileChangedError

Bytes = npt.NDArray[np.uint8]
Planned = TypeVar("Planned")

_LOG = logging.getLogger("sparkwire")

GZIP = ".gz"
_GZIP_MAGIC = b"\x1f\x8b"
_MISSING = 2
"""stands for the part of a compressed file that cannot be decompressed: an incomplete entry or event, but no unused space"""
_DECOMPRESSED = 64 << 10  # [bytes] decompressed at a time to measure a file; an error loses at most this much
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_DBFS = re.compile(r"^dbfs:/+")
_OPTIONS = re.compile(r"\?[a-z][a-z0-9_]*=[^&]*(&[a-z][a-z0-9_]*=[^&]*)*$")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_SECRET = re.compile(r"//[^/@]*:[^/@]*@")
_SPELLINGS = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfss"}
"""Hadoop's schemes, and pyarrow's schemes for the same stores"""
_S3_FLAGS = ("anonymous", "force_virtual_addressing")
_WITHOUT = {
    "oss": "Alibaba's OSS speaks S3 as well: write s3://bucket/path?endpoint_override=oss-<region>.aliyuncs.com"
    "&force_virtual_addressing=true",
    "cos": "Tencent's COS speaks S3 as well: write s3://bucket/path?endpoint_override=cos.<region>.myqcloud.com",
    "obs": "Huawei's OBS speaks S3 as well: write s3://bucket/path?endpoint_override=obs.<region>.myhuaweicloud.com",
    "adl": "write abfss://container@account.dfs.core.windows.net/path",
}
_SKIPPED_NAMES = ("lost+found", "System Volume Information", "$RECYCLE.BIN")
"""system directories of volumes, which a listing skips"""
_WILDCARD = re.compile(r"[*?\[{]")
_BRACES_WITH_SLASH = re.compile(r"\{([^{}]*/[^{}]*)\}")
_MAX_PATTERNS = 1000
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""error codes for a path that does not exist"""
_TRIED = 5


class PathParts(NamedTuple):
    """The parts of a path as its user wrote it."""

    root: str
    """scheme and bucket, container or host; empty for a local path"""
    path: str
    """the path within the root"""
    query: str
    """``?…`` of a URI; empty if it has none"""

    @property
    def shown(self) -> str:
        """The path as messages show it: without credentials, and without the part after ``?``."""
        return _SECRET.sub("//", self.root) + self.path


class Layer(Protocol):
    """A transformation of a file's bytes, such as decryption, which is applied range by range."""

    def opened(self, raw: Callable[[], Any]) -> Any:
        """Open the transformed file for reading, with the methods of ``pyarrow.fs``: ``seek``, ``readinto``, ``read_at``,
        ``close``.

        ``raw`` opens the underlying file.
        """


class FileState(NamedTuple):
    """Identifies a local file, to detect that it was replaced after it was listed."""

    inode: int
    size: int
    """[bytes]"""
    modified: int
    """[ns since epoch]"""
    has_holes: bool
    """whether it is longer than its allocated blocks, like a segment that a broker preallocates"""

    def is_replaced(self, now: FileState) -> bool:
        """Whether another file now has its name, or its bytes have changed. A file that only has grown is the same."""
        if (now.size, now.modified) == (self.size, self.modified):
            return False  # other machines may number the files of a network filesystem differently
        return now.inode != self.inode or (now.size == self.size and not self.has_holes)


def _state(info: os.stat_result) -> FileState:
    blocks = getattr(info, "st_blocks", None)  # Windows has none
    return FileState(info.st_ino, info.st_size, info.st_mtime_ns, blocks is not None and blocks * 512 < info.st_size)


class File(NamedTuple):
    """A file in a listing."""

    root: str
    path: str
    query: str
    size: int
    """size in the listing [bytes]; for a compressed file, the compressed size"""
    modified: float | None = None
    """time of the last write [s since epoch]; None if the filesystem does not report it"""
    layer: Layer | None = None
    """the transformation of its bytes; ``size`` is the size after it"""
    state: FileState | None = None
    """its state in the listing; None in an object store, or if it was not listed"""

    @property
    def name(self) -> str:
        """The path as messages show it: with its scheme, without credentials and the part after ``?``."""
        return self.place.shown

    @property
    def place(self) -> PathParts:
        return PathParts(self.root, self.path, self.query)

    @property
    def basename(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def compressed(self) -> bool:
        return self.path.endswith(GZIP)

    def sibling(self, basename: str) -> File:
        """The file with another name in the same folder. Its size is unknown."""
        return self._replace(path=f"{self.folder}/{basename}", size=-1, modified=None, layer=None, state=None)

    def as_it_is_now(self) -> File:
        """The file that has this name now.

        Raises FileNotFoundError if none exists.
        """
        return self if self.state is None else self._replace(state=_state_now(self))


def _state_now(file: File) -> FileState:
    try:
        return _state(os.stat(file.path))  # noqa: PTH116
    except FileNotFoundError as error:
        raise _deleted(file) from error


class FileDeleted(FileChangedError, FileNotFoundError):
    """A file no longer exists, although the listing contained it."""


def _deleted(file: File) -> FileDeleted:
    return FileDeleted(f"{file.name} was deleted after it was listed: read the path again")


def absolute_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths, absolute; empty if they may contain credentials."""
    places = [place_of(path) for path in paths]
    if any(place.root and (place.query or "@" in place.root) for place in places):
        return ()
    return tuple(f"{place.root}{place.path}" for place in places)


def is_glob(path: str) -> bool:
    """Whether a path is a pattern for names."""
    return bool(_WILDCARD.search(path))


def file_at(path: str) -> File:
    """The file at a path, without accessing it."""
    place = place_of(path)
    return File(place.root, place.path, place.query, -1)


def place_of(path: str) -> PathParts:
    if not path.strip():
        raise ValueError("path is empty: name a file, a directory or a glob")
    if "\0" in path:
        raise ValueError(f"path {path!r} has a NUL character, which no file's name has")
    if not path.isascii() and path.encode("utf-8", "replace").decode("utf-8") != path:
        raise ValueError(f"path {path!r} is not UTF-8, and pyarrow.fs reads no other path: rename it")
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    elif match := _DBFS.match(path):
        path = _mounted(path[match.end() :])
    scheme = _SCHEME.match(path)
    if scheme is None:
        return PathParts("", os.path.abspath(path), "")  # noqa: PTH100  pathlib keeps `..`
    query = "" if (match := _OPTIONS.search(path)) is None else match.group()
    host, _, rest = path[scheme.end() : len(path) - len(query)].partition("/")
    name = scheme.group().removesuffix("://").lower()
    if name in ("wasb", "wasbs"):
        host = host.replace(".blob.", ".dfs.")
    rest = rest.rstrip("/")
    return PathParts(f"{_SPELLINGS.get(name, name)}://{host}", f"/{rest}" if rest else "", query)


def _mounted(path: str) -> str:
    """The local path at which Databricks mounts a ``dbfs:`` path. Volumes are mounted elsewhere."""
    is_volume = path.startswith("Volumes/") and not Path("/dbfs/Volumes").exists()
    return f"/{path}" if is_volume else f"/dbfs/{path}"


def filesystem(root: str, path: str, query: str) -> tuple[Any, str]:
    """The filesystem of a root, and the path in it. The URI that opens the filesystem does not contain the path.

    Raises ValueError if the filesystem cannot be opened.
    """
    if not root:
        return _local(), path
    try:
        flags = {name for name, _ in parse_qsl(query[1:])}.intersection(_S3_FLAGS)
        system, top = _s3(root, query) if flags else fs.FileSystem.from_uri(root + query)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
        scheme = root.partition(":")[0]
        why = _WITHOUT.get(scheme, _first_line(error))
        raise value_error(f"path {PathParts(root, path, query).shown} cannot be opened: {why}") from None
    return system, f"{top.rstrip('/')}{path}" or "/"


@functools.cache
def _local() -> Any:
    return fs.LocalFileSystem()


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _s3(root: str, query: str) -> tuple[Any, str]:
    """Open an S3 store with options that ``pyarrow.fs`` supports, but not in a URI."""
    words = {"true": True, "false": False}
    arguments = {name: words.get(value, value) for name, value in parse_qsl(query[1:])}
    return fs.S3FileSystem(**arguments), root.partition("://")[2]


Needed = Callable[[str], bool]
"""whether a directory of this name is required; if so, missing permission is an error, otherwise the directory is skipped"""


def _is_user_file(name: str) -> bool:
    return name not in _SKIPPED_NAMES and not name.startswith(".")


class Listing(NamedTuple):
    """The files at a path."""

    files: list[File]
    """the files in the order of their paths"""
    single: bool
    """whether the path is one file"""
    folders: Mapping[str, tuple[int, int]]
    """the listed local directories, each with a state that changes with its files"""

    def is_current(self) -> bool:
        """Whether no file was added to or removed from a directory since the listing."""
        return all(_folder_state(folder) == state for folder, state in self.folders.items())


def listed(path: str, needed: Needed = _is_user_file) -> Listing:
    """List the files at a path. For a directory, these are all files below it, including hidden ones.

    Raises FileNotFoundError if nothing exists at the path, and PermissionError if you may not list a required directory.
    """
    return listed_at(place_of(path), needed)


def listed_at(place: PathParts, needed: Needed = _is_user_file) -> Listing:
    """List the files at a parsed path."""
    resolved = place
    if not _exists(place, place.path) and _ENCODED.search(place.path):  # copied from a browser
        decoded = unquote(place.path)
        resolved = place._replace(path=decoded) if _exists(place, decoded) else place
    folders: dict[str, tuple[int, int]] = {}
    if is_glob(resolved.path) and not _exists(resolved, resolved.path):
        paths = _each_once(place, list(_matches(place)))
        files = [file for path in paths for file in _below(place, path, needed, folders)]
        if not files:
            raise FileNotFoundError(
                printable(f"path {place.shown} matches no file: check the glob, it takes *, ?, [ab] and {{a,b}}")
            )
        return Listing(files, False, folders)
    files = list(_below(resolved, resolved.path, needed, folders))
    return Listing(files, len(files) == 1 and files[0].path == resolved.path, folders)


def _each_once(place: PathParts, paths: list[str]) -> list[str]:
    """The paths in order; a local directory counts once, under its own name if a link to it is another one."""
    if place.root:
        return sorted(paths)
    by_directory: dict[object, str] = {}
    for path in sorted(paths, key=lambda path: (Path(path).is_symlink(), path)):
        info = _status(path)
        is_directory = info is not None and stat.S_ISDIR(info.st_mode)
        by_directory.setdefault((info.st_dev, info.st_ino) if info is not None and is_directory else path, path)
    return sorted(by_directory.values())


def is_special(path: str) -> bool:
    """Whether a local path is a pipe, a device or a socket, or links to one. To read it may never end."""
    info = _status(path)
    return info is not None and not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode)


@contextmanager
def of_option(name: str) -> Iterator[None]:
    """Name the option in an error about the path that it has."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(printable(f"{name}: {error}")) from None


def children_below(file: File, folder: str, begins: str) -> list[File]:
    """The files in and below the directories of a sibling folder whose names have a prefix."""
    place = file.place
    names = _names(place, folder, lambda name: name.startswith(begins))
    return [child for name in names for child in _below(place, f"{folder}/{name}", _is_user_file, {})]


def _below(place: PathParts, path: str, needed: Needed, folders: dict[str, tuple[int, int]]) -> Iterator[File]:
    """The files at and below a path. Adds the listed directories to ``folders``."""
    below = _local_below if not place.root else _stored_below
    yield from below(place, path, needed, folders)


def _no_path(shown: str) -> FileNotFoundError:
    return FileNotFoundError(printable(f"path {shown} does not exist: name a file, a directory or a glob"))


def _stored_below(place: PathParts, path: str, _: Needed, __: dict[str, tuple[int, int]]) -> Iterator[File]:
    system, inner = filesystem(place.root, path, place.query)
    shown = place._replace(path=path).shown
    info = _guarded(place, path, lambda: system.get_file_info(inner))
    if info.type == fs.FileType.NotFound:
        raise _no_path(shown)
    if info.type == fs.FileType.File:
        yield _stored(place, path, info)
        return
    infos = _guarded(place, path, lambda: system.get_file_info(fs.FileSelector(inner, recursive=True)))
    before = len(inner.rstrip("/"))
    for entry in sorted(infos, key=lambda one: str(one.path)):
        below = entry.path[before:]
        if entry.type != fs.FileType.File:
            continue
        if "//" in below:
            _LOG.warning("%s is skipped: pyarrow.fs opens no key with two slashes in a row", printable(shown + below))
        else:
            yield _stored(place, f"{path.rstrip('/')}{below}", entry)


def _stored(place: PathParts, path: str, info: Any) -> File:
    seconds = info.mtime_ns / 1e9 if info.mtime_ns is not None and info.mtime_ns > 0 else None
    return File(place.root, path, place.query, info.size, seconds)


def _local_below(place: PathParts, path: str, needed: Needed, folders: dict[str, tuple[int, int]]) -> Iterator[File]:
    shown = place._replace(path=path).shown
    info = _guarded(place, path, lambda: _status(path))
    if info is None:
        raise _no_path(shown)
    if stat.S_ISDIR(info.st_mode):
        files = _guarded(place, path, lambda: _tree(path, needed, folders))
    else:
        above = path.rpartition("/")[0] or "/"
        folders[above] = _guarded(place, path, lambda: _folder_state(above))
        files = [(path, _guarded(place, path, lambda: _status(path)))]
    for name, info in sorted(files, key=lambda one: one[0]):
        if info is not None and stat.S_ISREG(info.st_mode):
            state = _state(info)
            seconds = state.modified / 1e9 if state.modified > 0 else None
            yield File("", name, "", state.size, seconds, state=state)


def _status(path: str) -> os.stat_result | None:
    """The status of a path, following links; None if it does not exist."""
    try:
        return os.stat(path)  # noqa: PTH116
    except OSError as error:
        if error.errno in _NOTHING:
            return None
        raise


def _folder_state(path: str) -> tuple[int, int]:
    """A state that changes with the files of a directory; zeros if it does not exist."""
    info = _status(path)
    return (0, 0) if info is None else (info.st_ino, info.st_mtime_ns)


def _tree(top: str, needed: Needed, folders: dict[str, tuple[int, int]]) -> list[tuple[str, os.stat_result | None]]:
    """All files below a local directory. Follows symbolic links, and reads each directory once, under its own name."""

    def fail(error: OSError) -> None:
        name = str(error.filename)
        if name == top or not isinstance(error, PermissionError) or needed(name.rpartition("/")[2]):
            raise error
        _LOG.warning("skipped %s: you do not have permission to read it", printable(name))

    paths, seen = list[str](), set[tuple[int, int]]()
    folders[top] = _folder_state(top)
    tops = [top]
    for root in tops:  # the links in a tree follow after the tree
        for folder, below, names in os.walk(root, onerror=fail):
            info = _status(folder)
            if info is None or (info.st_dev, info.st_ino) in seen:
                below.clear()
                continue
            seen.add((info.st_dev, info.st_ino))
            below.sort()
            inside = folder.rstrip("/")
            folders.update(
                {f"{inside}/{name}": _folder_state(f"{inside}/{name}") for name in below}
            )  # before they are read
            paths += [f"{inside}/{name}" for name in names]
            tops += [f"{inside}/{name}" for name in below if Path(inside, name).is_symlink()]
    return [(path, _status(path)) for path in paths]


def _guarded(place: PathParts, path: str, request: Any) -> Any:
    shown = place._replace(path=path).shown
    try:
        return request()
    except PermissionError as error:
        raise PermissionError(
            printable(f"path {shown}: you do not have permission to read it: {_first_line(error)}")
        ) from error
    except pa.ArrowInvalid as error:
        raise value_error(f"path {shown} cannot be opened: {_first_line(error)}") from error
    except OSError as error:
        raise OSError(printable(f"path {shown} cannot be listed: {_first_line(error)}")) from error


def _matches(place: PathParts) -> Iterator[str]:
    """The files and directories that match a glob. Lists level by level, and only the directories that it needs."""
    for pattern in _without_slashes_in_braces(place.path):
        first, *parts = pattern.split("/")
        paths = [first]
        for part in parts:
            if is_glob(part):
                fits = _fitting(part)
                paths = [f"{folder}/{name}" for folder in paths for name in _names(place, folder, fits)]
            else:
                paths = [f"{folder}/{part}" for folder in paths]
        yield from (path for path in paths if _exists(place, path))


def _fitting(part: str) -> Callable[[str], bool]:
    """A test for names that match a part of a glob, or equal its text."""
    glob = Glob(part)
    return lambda name: name == part or glob.matches(name)


def _without_slashes_in_braces(path: str) -> list[str]:
    """Expand ``{a/b,c}/d`` to ``a/b/d`` and ``c/d``, because a glob is matched name by name."""
    patterns = [path]
    while any(braces := [_BRACES_WITH_SLASH.search(pattern) for pattern in patterns]):
        if len(patterns) > _MAX_PATTERNS:
            raise value_error(f"path {path} has more than {_MAX_PATTERNS} alternatives with slashes: name fewer")
        patterns = [
            pattern if brace is None else f"{pattern[: brace.start()]}{choice}{pattern[brace.end() :]}"
            for pattern, brace in zip(patterns, braces, strict=True)
            for choice in ([""] if brace is None else brace.group(1).split(","))
        ]
    return patterns


def _names(place: PathParts, folder: str, fits: Callable[[str], bool]) -> list[str]:
    system, inner = filesystem(place.root, folder or ("" if place.root else "/"), place.query)
    infos = _guarded(place, folder, lambda: system.get_file_info(fs.FileSelector(inner, allow_not_found=True)))
    return sorted(name for name in (info.base_name for info in infos) if name and fits(name))


def _exists(place: PathParts, path: str) -> bool:
    system, inner = filesystem(place.root, path, place.query)
    return bool(_guarded(place, path, lambda: system.get_file_info(inner)).type != fs.FileType.NotFound)


# -- reading


class FileCut(FileChangedError):
    """A file is shorter than in the listing."""


class FileReplaced(FileChangedError):
    """Another file got the name of a file after the listing."""


def steady(plan: Callable[[], Planned]) -> Planned:
    """Call ``plan``, which lists and opens files. Call it again if files change between these steps."""
    for _ in range(_TRIED):
        try:
            return plan()
        except (FileReplaced, FileDeleted):
            _LOG.info("files changed after the listing: the source lists them again")
    return plan()


class OpenFile:
    """An open file, of which ranges are read. It keeps the last bytes, so that overlapping ranges are not read again.

    If a compressed file is truncated or corrupt, one more byte follows the part that can be decompressed. So the end of that part
    never looks like the end of the data. A file that is not compressed, in spite of its name, is read unchanged.

    ``bytes_read`` counts the bytes requested from storage [bytes].

    Raises FileNotFoundError if the file no longer exists, and FileReplaced if another file has its name.
    """

    def __init__(self, file: File) -> None:
        self.file = file
        self.bytes_read: int = 0
        self._start = 0
        self._held = np.empty(0, np.uint8)
        self._buffer = np.empty(0, np.uint8)
        self.broken: bool = False
        """whether a compressed file is truncated or corrupt"""
        self._input: Any = self._raw() if file.layer is None else file.layer.opened(self._raw)
        if file.compressed and self._input.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC:
            self._input.seek(0)
            self._input = gzip.GzipFile(fileobj=self._input)
            self.size: int = self._decompressed_size()
        elif file.compressed:
            self.size = self._input.size()
        else:
            self.size = file.size if file.size >= 0 else self._input.size()
        """size of the readable part after decompression [bytes]"""

    def _raw(self) -> Any:
        if not self.file.root and is_special(self.file.path):
            raise FileNotFoundError(printable(f"{self.file.name} is no regular file: remove it"))
        system, inner = filesystem(self.file.root, self.file.path, self.file.query)
        try:
            opened = system.open_input_file(inner)
        except FileNotFoundError as error:
            raise _deleted(self.file) from error
        except PermissionError as error:
            raise PermissionError(
                printable(f"{self.file.name}: you do not have permission to read it: {_first_line(error)}")
            ) from error
        listed = self.file.state
        if listed is not None and listed.is_replaced(_state_now(self.file)):
            opened.close()
            raise FileReplaced(
                f"{self.file.name} was replaced after it was listed: load the path again and repeat the query"
            )
        return opened

    def close(self) -> None:
        self._input.close()

    def next_data(self, position: int) -> int:
        """The position from ``position`` on before which all bytes are zeros of a hole; the size of the file if all are."""
        listed = self.file.state
        if listed is None or not listed.has_holes or self.file.layer is not None or not hasattr(os, "SEEK_DATA"):
            return position
        try:
            with open(self.file.path, "rb", buffering=0) as raw:  # noqa: PTH123
                return min(os.lseek(raw.fileno(), position, os.SEEK_DATA), self.size)
        except OSError as error:  # ENXIO: only a hole follows; others: this file system does not say
            return self.size if error.errno == errno.ENXIO else position

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decompressed_size(self) -> int:
        size = 0
        try:
            while block := len(self._input.read1(_DECOMPRESSED)):
                size += block
        except (EOFError, OSError, zlib.error):  # the part before the error can be read
            self.broken = True
        return size + self.broken

    def view(self, position: int, size: int) -> Bytes:
        """``size`` bytes from ``position`` on; fewer only at the end of the file. They are valid until the next call of ``view``.

        Raises FileCut if the file has become shorter than in the listing.
        """
        size = max(0, min(size, self.size - position))
        begin = position - self._start
        if begin >= 0 and begin + size <= len(self._held):
            return read_only(self._held[begin : begin + size])
        if len(self._buffer) < size:
            self._buffer, old = np.empty(size, np.uint8), self._held
        else:
            old = self._held
        have = max(0, len(old) - begin) if begin >= 0 else 0
        if have:
            self._buffer[:have] = old[begin:]
        self._fill(position + have, self._buffer[have:size])
        self._start, self._held = position, self._buffer[:size]
        return read_only(self._held.view())

    def read(self, position: int, size: int) -> bytes:
        """Read bytes like ``view``, but without caching. Use it for a few bytes that are far from others."""
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
        if self.broken and len(out) and position + len(out) == self.size:
            out[-1] = _MISSING
            out = out[:-1]
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
        return OSError(printable(f"{self.file.name} cannot be read at byte {position}: {_first_line(error)}"))

    def _cut(self, position: int) -> FileCut:
        return FileCut(
            f"{self.file.name} had {self.size} bytes when it was listed and ends at {position} now: "
            "it was cut while it was read"
        )
