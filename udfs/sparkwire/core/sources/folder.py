"""A directory to write to, local or a URI. Each method is one operation of the file system.

Local files use Python's ``os``, because ``pyarrow.fs`` lacks operations that a commit needs: `Folder.sync`, `Folder.link` and
`Folder.exchange`. In object stores, paths are only keys: a directory exists when it contains something.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, wraps
from typing import Any, Final, TypeVar

from pyarrow import fs

from sparkwire.base.printable import printable, value_error
from sparkwire.core.sources.storage import PathParts, filesystem, is_special, place_of

Result = TypeVar("Result")

_AT_CWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_SYNCED_AT_ONCE: Final = 8
_MAX_NAME: Final = 255  # [bytes]
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})
"""error codes of kernels and file systems that cannot exchange files"""


def _permitted(operation: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a read operation, so that its PermissionError names the path that you may not read."""

    @wraps(operation)
    def guarded(folder: Folder, name: str = "") -> Result:
        try:
            return operation(folder, name)
        except PermissionError as error:
            raise PermissionError(
                printable(
                    f"{folder.shown(name)}: you do not have permission to read it, or a part of it: use another account ({error})"
                )
            ) from error

    return guarded


class Folder:
    """A directory to write to. Names are relative to it."""

    def __init__(self, path: str) -> None:
        self.place: PathParts = place_of(path)

    def __getstate__(self) -> dict[str, Any]:
        return {"place": self.place}

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        return filesystem(self.place.root, self.place.path or "/", self.place.query)

    @property
    def is_local(self) -> bool:
        return not self.place.root

    def full(self, name: str) -> str:
        """The path of a name in the filesystem."""
        return f"{self._opened[1].rstrip('/')}/{name}" if name else self._opened[1]

    def shown(self, name: str) -> str:
        """The path of a name as messages show it."""
        return f"{self.place.root}{self.place.path}/{name}".rstrip("/")

    # -- read operations

    @_permitted
    def read(self, name: str) -> bytes | None:
        """The content of a file; None if it does not exist. Raises FileNotFoundError for a pipe or a device."""
        if self.is_local and is_special(self.full(name)):
            raise FileNotFoundError(printable(f"{self.full(name)} is no regular file: remove it"))
        try:
            if self.is_local:
                with open(self.full(name), "rb") as file:  # noqa: PTH123
                    return file.read()
            with self._opened[0].open_input_stream(self.full(name)) as stream:
                return bytes(stream.read())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, name: str = "") -> list[str]:
        """The names of the files in a directory; empty if it does not exist."""
        return sorted(self.sizes(name))

    @_permitted
    def sizes(self, name: str = "") -> dict[str, int]:
        """The size of each file in a directory [bytes]."""
        entries = self._opened[0].get_file_info(fs.FileSelector(self.full(name), allow_not_found=True))
        return {info.base_name: info.size for info in entries if info.type == fs.FileType.File}

    @_permitted
    def folders(self, name: str = "") -> list[str]:
        """The names of the directories in a directory; empty if it does not exist."""
        entries = self._opened[0].get_file_info(fs.FileSelector(self.full(name), allow_not_found=True))
        return sorted(info.base_name for info in entries if info.type == fs.FileType.Directory)

    @_permitted
    def tree(self, name: str = "") -> list[str]:
        """The names of the files in and below a directory, relative to that directory."""
        top = self.full("").rstrip("/") + "/"
        entries = self._opened[0].get_file_info(fs.FileSelector(self.full(name), recursive=True, allow_not_found=True))
        return sorted(info.path.removeprefix(top) for info in entries if info.type == fs.FileType.File)

    def has(self, name: str) -> bool:
        """Whether a file or directory exists."""
        if self.is_local:
            return self._mode(name) is not None
        return bool(self._opened[0].get_file_info(self.full(name)).type != fs.FileType.NotFound)

    def _mode(self, name: str) -> int | None:
        """The file mode of a local name; None if it does not exist. Other failures raise an error."""
        try:
            return os.lstat(self.full(name)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None

    def version(self, name: str) -> list[int] | None:
        """Identifies the version of a local directory and its entries; None if it does not exist."""
        try:
            state = os.stat(self.full(name))  # noqa: PTH116
        except FileNotFoundError:
            return None
        return [state.st_ino, state.st_mtime_ns]

    def check_inside(self, name: str) -> None:
        """Raise ValueError if a name, or a symbolic link in its path, may lead out of the directory."""
        parts = name.split("/")
        if any(part in ("", ".", "..") or "\0" in part or len(os.fsencode(part)) > _MAX_NAME for part in parts):
            raise value_error(f"{name!r} is no name in {self.shown('')}")
        for k in range(len(parts)) if self.is_local else ():
            path = "/".join(parts[: k + 1])
            if stat.S_ISLNK(self._mode(path) or 0):
                raise value_error(
                    f"{self.shown(path)} is a symbolic link: write to the directory that it names, or delete the link"
                )

    # -- changes

    def make(self, name: str) -> None:
        """Create a directory with its parents. In object stores, this does nothing."""
        if self.is_local:
            os.makedirs(self.full(name), exist_ok=True)  # noqa: PTH103
        elif isinstance(self._opened[0], fs.HadoopFileSystem):
            self._opened[0].create_dir(self.full(name))

    def create(self, name: str) -> Any:
        """Open a new file for writing. In object stores, it exists after the stream is closed."""
        if self.is_local:
            return open(self.full(name), "wb")  # noqa: PTH123
        return self._opened[0].open_output_stream(self.full(name))

    def write(self, name: str, data: bytes, first: str) -> None:
        """Write a small file atomically. It has the name ``first`` until it is complete."""
        with self.create(first if self.is_local else name) as stream:
            stream.write(data)
        if self.is_local:
            self.move(first, name)

    def write_to_disk(self, name: str, data: bytes, first: str) -> None:
        """Write a small file atomically, and sync it to disk."""
        with self.create(first if self.is_local else name) as stream:
            stream.write(data)
        if self.is_local:
            self.sync(first)
            self.move(first, name)
            self.sync(name.rpartition("/")[0])

    def move(self, name: str, to: str) -> None:
        """Rename a file or directory. A file replaces a file with the new name."""
        if self.is_local:
            os.replace(self.full(name), self.full(to))  # noqa: PTH105
            return
        if isinstance(self._opened[0], fs.HadoopFileSystem) and self.has(to):
            self.remove(to)
        self._opened[0].move(self.full(name), self.full(to))

    def exchange(self, name: str, to: str) -> bool:
        """Exchange the names of two local directories atomically. Returns false if this system cannot do it."""
        return _exchange(self.full(name), self.full(to))

    def link(self, name: str, to: str) -> None:
        """Create a hard link to a local file, or a copy if the file system has no hard links."""
        try:
            os.link(self.full(name), self.full(to), follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
            shutil.copy2(self.full(name), self.full(to), follow_symlinks=False)
            self.sync(to)

    def link_tree(self, name: str, to: str) -> None:
        """Create hard links to all files in and below a directory."""
        os.mkdir(self.full(to))  # noqa: PTH102
        with os.scandir(self.full(name)) as entries:
            for entry in entries:
                link = self.link_tree if entry.is_dir(follow_symlinks=False) else self.link
                link(f"{name}/{entry.name}", f"{to}/{entry.name}")
        self.sync(to)

    def as_mode_of(self, name: str, of: str) -> None:
        """Give a local directory the permissions of another."""
        os.chmod(self.full(name), stat.S_IMODE(os.stat(self.full(of)).st_mode))  # noqa: PTH101, PTH116

    def sync(self, name: str) -> None:
        """Sync a local file, or the names in a local directory, to disk."""
        if self.is_local and os.name == "posix":  # other systems cannot open a directory
            opened = os.open(self.full(name), os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def sync_all(self, names: Iterable[str]) -> None:
        """Sync many files in parallel, because disks combine simultaneous syncs."""
        several = list(names) if self.is_local else []
        if len(several) == 1:
            self.sync(several[0])
        elif several:
            with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
                for _ in pool.map(self.sync, several):
                    pass

    def remove(self, name: str) -> None:
        """Delete a file if it exists."""
        with suppress(FileNotFoundError):
            if self.is_local:
                os.unlink(self.full(name))  # noqa: PTH108
            else:
                self._opened[0].delete_file(self.full(name))

    def remove_tree(self, name: str) -> None:
        """Delete a directory and its contents if it exists. Symbolic links are not followed."""
        if not self.is_local:
            self._opened[0].delete_dir_contents(self.full(name), missing_dir_ok=True)
            with suppress(FileNotFoundError):
                self._opened[0].delete_dir(self.full(name))
            return
        try:
            with os.scandir(self.full(name)) as entries:
                names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except FileNotFoundError:
            return
        for entry_name, is_folder in names:
            (self.remove_tree if is_folder else self.remove)(f"{name}/{entry_name}")
        with suppress(FileNotFoundError):
            os.rmdir(self.full(name))  # noqa: PTH106

    def remove_empty(self, name: str) -> None:
        """Delete a local directory if it is empty."""
        if self.is_local:
            try:
                os.rmdir(self.full(name))  # noqa: PTH106
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                    raise

    @contextmanager
    def exclusive_lock(self) -> Iterator[bool]:
        """Hold the directory's lock exclusively. Yields false if the file system has no such locks."""
        with self._locked(waits=True) as has_lock:
            yield has_lock

    @contextmanager
    def shared_lock(self) -> Iterator[bool]:
        """Yield whether no process is in `exclusive_lock`, and prevent others from entering it meanwhile; false if unknown."""
        with self._locked(waits=False) as has_lock:
            yield has_lock

    @contextmanager
    def _locked(self, waits: bool) -> Iterator[bool]:
        if not self.is_local or os.name != "posix":
            yield False
            return
        import fcntl  # only POSIX systems have it

        opened = os.open(self.full(""), os.O_RDONLY)
        try:
            has_lock = True
            try:
                fcntl.flock(opened, fcntl.LOCK_EX if waits else fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:  # NFS cannot lock a directory
                has_lock = False
            yield has_lock
        finally:
            os.close(opened)


def _exchange(one: str, other: str) -> bool:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if call is None:
        return False
    if call(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), one, None, other)


def joined(folder: str, name: str) -> str:
    """The path of a file in a folder below a `Folder`, or in the `Folder` itself if ``folder`` is empty."""
    return f"{folder}/{name}" if folder else name
