"""A Delta table at a path, without Spark: delta-rs reads its log and commits files that others wrote.

    _delta_log/                          the log: which files are the table, its columns, its properties
    merge-5f2b91c4…/part-00000-….parquet files of one merge; the log names those that count

A merge that creates a table makes three commits: an empty table, its property `NOTED`, its rows. Each later merge overwrites the
version that it read, in one commit, and changes its property in others. If another job has committed meanwhile, a commit fails
with WriteConflictError.

A table is read only if its log is complete, and if each file that the log names has the size that the log says. Files that the
log does not name are never read: interrupted merges leave them, and so do overwritten versions until a VACUUM.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import time_ns
from types import ModuleType
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from sparkwire.base.json_text import parsed_json
from sparkwire.base.printable import printable, value_error
from sparkwire.core.sources.folder import Folder
from sparkwire.errors import WriteConflictError

NOTED: Final = "sparkwire.merge"
"""the property of a table of merge: its key, how it deletes, and the name of the table in the database, see `noted_text`"""
_FILES: Final = "sparkwire.files"
"""in the commit of a merge: the names of the files that the table has after it"""
_READ: Final = {"deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck", "variantType"}
"""features of tables whose Parquet files Spark reads as they are; of `deletionVectors` if no file has one. delta-rs itself adds
`variantType` to some tables with features, if it stores a property"""
_WRITTEN: Final = {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "deletionVectors",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "variantType",
}
"""features of tables to which delta-rs commits"""
_RULES: Final = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
}
"""by metadata of a column: the feature whose rule a commit of files does not apply"""
_NO_PATH: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")
"""what delta-rs takes for other characters in a path"""
_COLOUR: Final = re.compile(r"\x1b\[\d*m")
_RESTORE: Final = "restore the table from a backup, or delete its directory and read the changes from their beginning"
_log = logging.getLogger("sparkwire")


def delta_rs() -> ModuleType:
    """The package ``deltalake``. Raises ModuleNotFoundError, which says how to install it."""
    try:
        import deltalake
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "a path as the target of merge needs deltalake, which is not installed: install the extra 'delta' of sparkwire, or "
            "start the session with Delta (docs/changes.md)"
        ) from missing
    return deltalake


def noted_text(noted: Mapping[str, Any]) -> str:
    """The text of the property `NOTED`: JSON in hexadecimal digits.

    Spark hides the value of a property that contains a word such as `password`, `token` or `url`. A column may have such a name.
    """
    return json.dumps(noted).encode().hex()


def noted_in(text: str) -> Any:
    """What the property says. Raises ValueError if it is corrupt."""
    return parsed_json(bytes.fromhex(text))


class DeltaLog(NamedTuple):
    """One version of a table."""

    path: str
    table: Any
    """of delta-rs; it rejects a commit if another version came meanwhile"""

    @classmethod
    def of(cls, path: str) -> DeltaLog | None:
        """The newest version; None if there is no table.

        Raises ValueError if the log is corrupt.
        """
        table = _opened(path)
        if table is None:
            return None
        log = cls(path, table)
        log._check_newest_entry()
        return log

    @property
    def version(self) -> int:
        return int(self.table.version())

    @property
    def schema(self) -> dict[str, Any]:
        """The columns, as Delta and Spark write them in JSON."""
        schema: dict[str, Any] = json.loads(self.table.schema().to_json())
        return schema

    @property
    def noted(self) -> dict[str, Any] | None:
        """What a merge noted about the table; None if it noted nothing. Raises ValueError if that cannot be read."""
        text = self.table.metadata().configuration.get(NOTED)
        if text is None:
            return None
        try:
            noted: Any = noted_in(text)
        except ValueError:
            noted = None
        if not isinstance(noted, dict) or not isinstance(noted.get("keys"), list) or "deletes" not in noted:
            raise value_error(f"{self.path} has a corrupt property {NOTED}: {_RESTORE}")
        return noted

    def files(self) -> list[str]:
        """The names of the table's files, relative to its directory.

        Raises ValueError if one of them is missing, or has another size than the log says. Also if a plain reader of Parquet
        would read other rows.
        """
        self._check_readable()
        sizes = self._sizes()
        if not sizes:
            return []
        for found in _storage(self.path).get_file_info(list(sizes)):
            size = sizes[found.path]
            if found.type != fs.FileType.File:
                raise value_error(f"{self.path} has lost the file {found.path}, which its log names: {_RESTORE}")
            if found.size != size:
                raise value_error(
                    f"the file {found.path} of {self.path} has {found.size} bytes, and {size} by the table's log: {_RESTORE}"
                )
        return list(sizes)

    def _sizes(self) -> dict[str, int]:
        """The sizes of the files by their names."""
        actions = pa.table(self.table.get_add_actions(flatten=True))
        names = (unquote(name) for name in actions["path"].to_pylist())
        return dict(zip(names, actions["size_bytes"].to_pylist(), strict=True))

    @property
    def rows(self) -> int | None:
        """The number of rows; None if the log does not say it."""
        actions = pa.table(self.table.get_add_actions(flatten=True))
        numbers = actions["num_records"].to_pylist() if "num_records" in actions.column_names else [None] * len(actions)
        return None if None in numbers else sum(numbers)

    def _check_readable(self) -> None:
        protocol, metadata = self.table.protocol(), self.table.metadata()
        features = set(protocol.reader_features or ())
        needed = features - _READ
        if "deletionVectors" in features and self._has_deletion_vectors():
            needed.add("deletionVectors")
        if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
            needed.add("columnMapping")
        if metadata.partition_columns:
            needed.add("partitions")
        self._need_nothing(needed)

    def _has_deletion_vectors(self) -> bool:
        try:
            return any(batch.num_rows for batch in pa.RecordBatchReader.from_stream(self.table.deletion_vectors()))
        except delta_rs().exceptions.DeltaError:  # it has some, and cannot read them
            return True

    def check_writable(self) -> None:
        """Raise ValueError if delta-rs cannot commit to the table."""
        needed = set(self.table.protocol().writer_features or ()) - _WRITTEN
        configuration = self.table.metadata().configuration
        if configuration.get("delta.appendOnly") == "true":
            needed.add("appendOnly")
        # Tables of an old protocol name no features.
        if any(name.startswith("delta.constraints.") for name in configuration):
            needed.add("checkConstraints")
        fields = parsed_json(self.table.schema().to_json().encode())["fields"]
        marks = {mark for field in fields for mark in field["metadata"]}
        needed |= {feature for mark, feature in _RULES.items() if mark in marks}
        self._need_nothing(needed)

    def _need_nothing(self, needed: set[str]) -> None:
        if needed:
            raise value_error(
                f"the table {self.path} has {', '.join(sorted(needed))}, which needs a session with Delta (docs/changes.md)"
            )

    def _check_newest_entry(self) -> None:
        """Raise ValueError if the newest entry of the log ends too early, at the end of a line: delta-rs does not notice it."""
        name = f"_delta_log/{self.version:020}.json"
        try:
            with _storage(self.path).open_input_file(name) as file:
                lines = file.read().splitlines()
        except FileNotFoundError:  # a checkpoint has its content
            return
        actions = [parsed_json(line) for line in lines if line.strip()]
        infos = [action["commitInfo"] for action in actions if isinstance(action, dict) and "commitInfo" in action]
        files = next((info[_FILES] for info in infos if isinstance(info, dict) and _FILES in info), None)
        if not actions or (files is not None and files != sorted(self._sizes())):
            raise value_error(f"the newest entry of the log of {self.path}, {name}, is not complete: {_RESTORE}")

    # -- commits

    @classmethod
    def create(cls, path: str, schema: Mapping[str, Any]) -> DeltaLog:
        """Create an empty table. Raises WriteConflictError if another job has just created one.

        Raises ValueError if delta-rs does not accept the columns, or if the directory has other files.
        """
        deltalake = delta_rs()
        Folder(path).make("")
        storage = _storage(path)
        entries = storage.get_file_info(fs.FileSelector("", allow_not_found=True))
        strange = sorted(info.base_name for info in entries if not info.base_name.startswith((".", "_delta_log")))
        if strange:
            raise value_error(
                f"the directory {path} has {strange[0]}, and no log of a Delta table: name an empty directory, or restore "
                "its _delta_log"
            )
        try:
            deltalake.transaction.create_table_with_add_actions(path, _schema(schema), [], mode="error")
        except deltalake.exceptions.DeltaError as error:
            if _opened(path) is not None:
                raise WriteConflictError(
                    printable(
                        f"another job has created {path}: only one merge at a time may write to a table. Run this merge again"
                    )
                ) from error
            raise _rejected(path, error) from error
        created = cls.of(path)
        if created is None:
            raise value_error(f"{path} has lost its log during its creation: run this merge again")
        return created

    def note(self, noted: Mapping[str, Any]) -> None:
        """Store the property of a merge."""
        with self._committing():
            self.table.alter.set_table_properties(
                {NOTED: noted_text(noted)}, raise_if_not_exists=False, commit_properties=_once()
            )

    def allow_local_times(self) -> None:
        """Let the table have columns of the type TIMESTAMP_NTZ."""
        features = delta_rs().TableFeatures
        if "timestampNtz" in (self.table.protocol().reader_features or ()):
            return
        with self._committing():
            self.table.alter.add_feature(
                features.TimestampWithoutTimezone, allow_protocol_versions_increase=True, commit_properties=_once()
            )

    def commit(self, folder: str, schema: Mapping[str, Any]) -> DeltaLog:
        """Replace the rows by those of the files in a folder of the table. Returns the new version.

        Raises WriteConflictError if another version came after this one. A failure after the commit, such as that of the log's
        checkpoint, is only a line of the log.
        """
        deltalake = delta_rs()
        added = [
            deltalake.transaction.AddAction(name, size, {}, time_ns() // 1_000_000, True, json.dumps(stats))
            for name, size, stats in _written(self.path, folder)
        ]
        info = _once({_FILES: [action.path for action in added]})
        try:
            with self._committing():
                self.table.create_write_transaction(added, "overwrite", _schema(schema), commit_properties=info)
        except Exception as error:
            newest = _opened(self.path)
            if (
                not added
                or newest is None
                or not {action.path for action in added} <= set(DeltaLog(self.path, newest)._sizes())
            ):
                raise
            _log.warning("%s is committed, and a step after it failed: %s", printable(self.path), printable(str(error)))
        return DeltaLog(self.path, _opened(self.path, self.version + 1))

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Turn the errors of delta-rs into ours."""
        deltalake = delta_rs()
        version = self.version
        try:
            yield
        except deltalake.exceptions.DeltaError as error:
            newest = _opened(self.path)
            if newest is not None and newest.version() != version:
                raise WriteConflictError(
                    printable(
                        f"another job writes to {self.path}: only one merge at a time may write to a table. Run this merge again"
                    )
                ) from error
            raise _rejected(self.path, error) from error
        except OSError as error:
            raise OSError(printable(str(_rejected(self.path, error)))) from error


@contextmanager
def new_folder(path: str) -> Iterator[str]:
    """The name of a new folder in a table's directory, for files that are not committed yet. An error deletes it."""
    name = f"merge-{uuid.uuid4().hex}"
    try:
        yield name
    except BaseException:
        delete_folder(path, name)
        raise


def delete_folder(path: str, name: str) -> None:
    """Delete a folder of files that were never committed."""
    folder = Folder(path)
    if folder.is_local:
        folder.remove_tree(name)
    else:
        _storage(path).delete_dir(name)


def _opened(path: str, version: int | None = None) -> Any:
    """A version, by default the newest one, as delta-rs reads it; None if there is no table."""
    errors = delta_rs().exceptions
    if found := _NO_PATH.search(path):
        raise value_error(
            f"delta-rs cannot open the path {path!r}, because it has {found[0]!r}: name another directory"
        )
    try:
        return delta_rs().DeltaTable(path, version=version)
    except errors.TableNotFoundError:
        return None
    except OSError as error:
        raise OSError(printable(f"delta-rs cannot read {path}: {_first_line(error)}")) from error
    except errors.DeltaError as error:
        raise value_error(
            f"the log of the Delta table {path} cannot be read ({_first_line(error)}): {_RESTORE}"
        ) from error


def _storage(path: str) -> Any:
    """The files of a directory, with delta-rs's credentials for object stores. All names are relative to it."""
    delta_rs()
    from deltalake.fs import DeltaStorageHandler

    return fs.PyFileSystem(DeltaStorageHandler(path))


def _schema(schema: Mapping[str, Any]) -> Any:
    return delta_rs().Schema.from_json(json.dumps(schema))


def _once(info: Mapping[str, Any] | None = None) -> Any:
    """Properties of a commit that fails if another one came before it: delta-rs would repeat it on top of that one."""
    return delta_rs().CommitProperties(custom_metadata=dict(info or {}), max_commit_retries=0)


def _rejected(path: str, error: Exception) -> ValueError:
    return value_error(f"delta-rs cannot commit to {path}: {_first_line(error)}. The table has not changed")


def _first_line(error: Exception) -> str:
    """The message without its backtrace: the first line, and the causes of the file system."""
    first, *others = [line.strip() for line in _COLOUR.sub("", str(error)).strip().splitlines()] or [""]
    return ": ".join([first, *(line.removeprefix("↳ ") for line in others if line.startswith("↳ "))])


def rows_in(path: str, folder: str) -> int:
    """The number of rows in the Parquet files of a folder."""
    return sum(stats["numRecords"] for _, _, stats in _written(path, folder))


def _written(path: str, folder: str) -> list[tuple[str, int, dict[str, int]]]:
    """The names, sizes and statistics of the Parquet files in a folder.

    The only statistic is the number of rows: with bounds of some columns, delta-rs finds no rows by a predicate on the others.
    """
    storage = _storage(path)
    infos = storage.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    files = [info for info in infos if info.type == fs.FileType.File and not info.base_name.startswith((".", "_"))]
    return [
        (info.path, info.size, {"numRecords": pq.read_metadata(info.path, filesystem=storage).num_rows})
        for info in sorted(files, key=lambda info: str(info.path))
    ]
