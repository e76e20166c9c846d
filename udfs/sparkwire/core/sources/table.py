"""The common part of both data sources: options, listing of files, and handling of corruption by mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NoReturn, TypeVar

import pyarrow as pa

from sparkwire.base.error_codes import ERRORS, WRONG_FORMAT
from sparkwire.base.printable import value_error
from sparkwire.core.sources import options
from sparkwire.core.sources.folder import Folder
from sparkwire.core.sources.job import check_unfinished
from sparkwire.core.sources.job_file import SIDE
from sparkwire.core.sources.options import Option
from sparkwire.core.sources.storage import File, Needed, PathParts, is_glob, listed, place_of
from sparkwire.errors import CorruptDataError

PERMISSIVE, DROPMALFORMED, FAILFAST = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"

PATHS: Final = (
    Option("path", options.one_path, (), "a file, a directory or a glob; local, or a URI that pyarrow.fs opens"),
    Option("paths", options.some_paths, (), "several paths, as `load` takes a list"),
)
CHOICES: Final = (
    Option(
        "columns",
        options.text,
        "",
        "a comma-separated list, in any order; you can also use `.schema(…)`. List the columns that you use: the "
        "source decodes no others, and Spark does not report them to a Python source",
    ),
    Option(
        "mode",
        options.choice(PERMISSIVE, DROPMALFORMED, FAILFAST),
        PERMISSIVE,
        "`PERMISSIVE` returns corrupt bytes as a row with `error`; `DROPMALFORMED` leaves them out; `FAILFAST` "
        "fails with file and byte",
    ),
)
TASKS: Final = (
    Option(
        "maxSplitBytes",
        options.size,
        128 << 20,
        "how much one task reads; small files share a task. If headers are enough, a task covers eight times as much [bytes]",
    ),
    Option("maxBytesPerTrigger", options.size, None, "streaming, Spark 4.2 on: about how much one batch reads [bytes]"),
    Option(
        "failOnDataLoss",
        options.boolean,
        True,
        "streaming: whether the query fails if data that it must read no longer exist",
    ),
)

_TRIED: Final = 20
"""how often to list a directory again that changes while it is listed; after that, each file is checked when it is opened"""

Part = TypeVar("Part")
Named = TypeVar("Named")


def selected_paths(source: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths in the option values. Raises ValueError if there is none."""
    paths: tuple[str, ...] = values["path"] + values["paths"]
    if not paths:
        raise value_error(f"{source} needs path: a file, a directory or a glob")
    return paths


def selected_columns(
    source: str, names: Sequence[str], on_request: Sequence[str], values: Mapping[str, Any]
) -> tuple[str, ...]:
    """The columns of a query: those of its option, else all columns except those on request."""
    chosen = values["columns"]
    return options.chosen_columns(source, (*names, *on_request), chosen) if chosen else tuple(names)


def files_at(
    paths: Sequence[str],
    chosen: Callable[[list[File], bool, str], dict[str, Named]],
    nothing: str,
    needed: Needed | None = None,
    *,
    may_be_empty: bool = False,
) -> list[Named]:
    """List the files at each path, and return the objects that ``chosen`` creates from them by name, each once.

    ``chosen`` gets the files, whether the path is one file, and its directory. ``nothing`` is the error message if it returns
    no objects, with ``{path}`` and the number of ``{files}``. ``needed``: see `listed`. ``may_be_empty``: whether a directory
    without files is allowed.

    Raises OSError if a path does not exist or you may not read it. Raises ValueError if it has no files of this format, or if an
    interrupted job has left it unfinished.
    """
    by_path: dict[str, Named] = {}
    for path in paths:
        place = place_of(path)
        files, single = _listed(path, place, needed)
        files = [file for file in files if f"/{SIDE}/" not in file.path.removeprefix(place.path)]
        new = chosen(files, single, place.path)
        if not new and (files or not may_be_empty):
            raise value_error(nothing.format(path=path, files=len(files)))
        by_path |= new
    return list(by_path.values())


def _listed(path: str, place: PathParts, needed: Needed | None) -> tuple[list[File], bool]:
    """List the files at a path at a moment when no job is replacing them."""
    for _ in range(_TRIED):
        try:
            files = listed(path) if needed is None else listed(path, needed)
        except FileNotFoundError:
            for top in _above(place.path):
                check_unfinished(Folder(f"{place.root}{top}{place.query}"))
            raise
        for top in _tops(place, files.files):
            check_unfinished(Folder(f"{place.root}{top}{place.query}"))
        if files.is_current():  # no job has started and ended between the two steps
            break
    return files.files, files.single


def _above(path: str) -> list[str]:
    """The directories that may contain files of interrupted jobs."""
    parts = path.split("/")
    fixed = list(takewhile(lambda part: not is_glob(part), parts))
    return ["/".join(fixed[:k]) or "/" for k in {len(fixed), min(len(fixed), len(parts) - 1)}]


def _tops(place: PathParts, files: Sequence[File]) -> set[str]:
    """The directories that may contain these files as partitions or streams."""
    tops = {top for file in files if (top := file.path.partition(f"/{SIDE}/")[0]) != file.path}
    if not place.root:
        folders = {file.folder for file in files if f"/{SIDE}/" not in file.path}
        return tops | folders | {folder.rpartition("/")[0] or "/" for folder in folders}
    above = place.path.rpartition("/")[0]
    return tops | ({above} if above.strip("/") and not is_glob(above) else set())


def batches_of(task: Sequence[Part], read: Callable[[Part], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The batches of all parts of a task, without empty ones."""
    for part in task:
        for batch in read(part):
            if batch.num_rows:
                yield batch


def reject(file: File, position: int, error: str, what: str) -> NoReturn:
    """Raise the error of mode FAILFAST for corruption in a file of the kind ``what``."""
    if error == ERRORS[WRONG_FORMAT]:
        raise CorruptDataError(
            f"{file.name} is no {what}: pass its first bytes to sparkwire.explain to find its format"
        )
    raise CorruptDataError(
        f"{file.name} cannot be read at byte {position}: {error}. "
        "Mode FAILFAST fails there; PERMISSIVE returns a row with error, DROPMALFORMED leaves it out"
    )


FILE_COST = 1 << 20
"""the cost of opening a file, relative to reading, when small parts are combined to a task [bytes]"""

Item = TypeVar("Item")


def packed(items: Sequence[Item], costs: Sequence[int], most: int) -> list[tuple[Item, ...]]:
    """Combine consecutive items to tasks that cost up to ``most``.

    Small tasks are inefficient: in the time in which Spark starts a task, it reads tens of MB.
    """
    out: list[list[Item]] = []
    room = 0
    for item, cost in zip(items, costs, strict=True):
        if not out or room < cost:
            out.append([])
            room = most
        out[-1].append(item)
        room -= cost
    return [tuple(some) for some in out]
