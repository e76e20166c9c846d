"""Decode payloads that contain schema ids to typed rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro.arrow_columns import ColumnPlan, Decoded, check_defaults, decode, plan
from sparkwire.avro.json_datum import binary_of
from sparkwire.avro.payloads import Payloads
from sparkwire.avro.rules import matches
from sparkwire.avro.schema import Schema, parse, text_of
from sparkwire.avro.schema_source import SchemaSource, schemas_of_registered
from sparkwire.avro.schemas import Schemas
from sparkwire.avro.targets import MAX_COLUMNS
from sparkwire.avro.versions import as_record, combined, without_frame
from sparkwire.base.printable import value_error
from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import Spans, spans_of
from sparkwire.core.names import distinct_names
from sparkwire.errors import SchemaError
from sparkwire.kernels import Bools

MAX_IDS: Final = 1000
"""maximum number of ids to fetch from a registry at once; a column with more ids contains other data than messages"""


class RowsReader(NamedTuple):
    """How payloads become rows. Contains only plain data, which Spark pickles for workers."""

    schemas: Schemas
    reader_schema: str | None = None
    """JSON; None for rows that hold every version of the schemas"""
    fields_of_last: bool = False
    """whether rows have only the fields of the last version, with its defaults"""
    framed: bool = True
    """whether a top-level ``bytes`` has its size before it; only Confluent's messages leave it out"""
    type_name: str = ""
    """the record that the rows are of, for schemas that are unions of records"""

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of the rows."""
        return self.fields_renamed(())

    def fields_renamed(self, taken: Iterable[str]) -> list[pa.Field]:
        """The columns of the rows, renamed if a name is in ``taken``."""
        fields = list(self._plan().target.type)
        names = distinct_names([field.name for field in fields], taken)
        return [field.with_name(name) for field, name in zip(fields, names, strict=True)]

    def missing(self) -> list[frozenset[str]]:
        """For each schema, the columns that it does not have. Rows hold every version of the schemas."""
        columns = frozenset(field.name for field in self.fields)
        result = []
        for schema in self.schemas.parsed():
            version = _writer(schema, self.type_name).version
            records = _records_of(version) or (version, *version.branches)
            result.append(columns.difference(*([field.name for field in record.fields] for record in records)))
        return result

    def check(self) -> None:
        """Raise SchemaError if no column can hold a field, or if a default in the reader's schema is invalid."""
        self._plan()
        if self.reader_schema is not None:
            check_defaults(as_record(parse(self.reader_schema)))

    def _plan(self) -> ColumnPlan:
        return _planned(self.schemas.texts, *self[1:])

    def selected(self, payloads: Payloads) -> Bools:
        """The payloads of the reader's schemas, and of unions only those with its record.

        The first record of a union also has the payloads without a record: null, and those that cannot be read.
        """
        chosen = self.schemas.chosen(payloads.ids)
        selected: Bools = chosen >= 0
        unions = {k: schema for k, schema in enumerate(self.schemas.parsed()) if _records_of(schema)}
        if not unions:
            return selected
        spans = spans_of(_in_binary(payloads, chosen, self.schemas).values)
        branches = _branches_of(spans)
        for k, union in unions.items():
            names = [branch.name for branch in union.branches]
            places = [names.index(record.name) for record in _records_of(union)]
            mine = names.index(self.type_name)
            is_mine = branches == mine if mine != places[0] else ~np.isin(branches, places[1:])
            selected &= (chosen != k) | is_mine
        return selected

    def rows(self, payloads: Payloads) -> tuple[list[pa.Array], pa.Array]:
        """The columns, NULL in rows that cannot be read; and STRING, the error of each row."""
        chosen = self.schemas.chosen(payloads.ids)
        payloads = _in_binary(payloads, chosen, self.schemas)
        spans = spans_of(payloads.values)
        present = spans.sizes >= 0
        readable = spans._replace(sizes=np.where(chosen >= 0, spans.sizes, -1))
        decoded: Decoded = decode(self._plan(), readable, chosen)
        unknown = pc.if_else(pa.array(present & (chosen < 0)), self.schemas.why_unknown(payloads.ids), None)
        return decoded.column.flatten(), pc.coalesce(payloads.errors, unknown, decoded.reasons)


def _in_binary(payloads: Payloads, chosen: NDArray[np.int32], schemas: Schemas) -> Payloads:
    """Convert data in Avro's JSON encoding to binary, and add the errors of rows that cannot be read."""
    rows = np.flatnonzero(np.asarray(payloads.is_json) & np.asarray(payloads.values.is_valid()) & (chosen >= 0))
    if not len(rows):
        return payloads
    writers = {int(k): parse(schemas.texts[k]) for k in np.unique(chosen[rows])}
    values, errors = payloads.values.to_pylist(), payloads.errors.to_pylist()
    for row in rows.tolist():
        values[row], error = binary_of(values[row], writers[int(chosen[row])])
        errors[row] = errors[row] or error
    return payloads._replace(values=pa.array(values, pa.binary()), errors=pa.array(errors, pa.string()))


def _records_of(schema: Schema) -> list[Schema]:
    """The records of a union of several records; none of any other schema."""
    others = [branch for branch in schema.branches if branch.kind != "null"]
    is_of_records = len(others) > 1 and all(branch.kind == "record" for branch in others)
    return others if is_of_records else []


def _branches_of(spans: Spans) -> NDArray[np.int64]:
    """The number of each datum's branch in a union; -1 if there is none. Spans are data of unions."""
    data, starts, sizes = spans
    first, second = (
        np.where(sizes > k, data[np.minimum(starts + k, data.size - 1)], 1 - k).astype(np.int64) for k in range(2)
    )
    numbers = np.where(first < 128, first, (first & 127) | (second << 7))
    return np.where(numbers & 1, -1, numbers >> 1)


class _Writer(NamedTuple):
    """A writer's schema, and the part of it that columns are for."""

    schema: Schema
    version: Schema


_UNREAD: Final = _Writer(Schema("fixed"), Schema("fixed"))
"""replaces a schema that is not read: it matches no record"""


def _writer(schema: Schema, type_name: str) -> _Writer:
    if type_name and _records_of(schema):
        branches = [branch for branch in schema.branches if branch.kind == "null" or branch.name == type_name]
        return _Writer(schema, branches[0] if len(branches) == 1 else Schema("union", branches=tuple(branches)))
    record = as_record(schema)
    return _Writer(record, record)


@text_cache(64)
def _planned(
    texts: tuple[str, ...], reader_schema: str | None, fields_of_last: bool, framed: bool, type_name: str
) -> ColumnPlan:
    parsed = [parse(text) for text in texts]
    schemas = parsed if framed else [without_frame(schema) for schema in parsed]
    if reader_schema is not None:
        reader = parse(reader_schema)
        of_records = reader.kind == "record"
        read = [schema if of_records and _records_of(schema) else as_record(schema) for schema in schemas]
        return plan(read, as_record(reader), strict=False)
    writers = [_writer(schema, type_name) for schema in schemas]
    try:
        return _together(writers, fields_of_last)
    except SchemaError:
        return _of_those_with_columns(writers, fields_of_last)


def _together(writers: list[_Writer], fields_of_last: bool) -> ColumnPlan:
    readable = [writer.version for writer in writers if writer is not _UNREAD]
    return plan([writer.schema for writer in writers], combined(readable, fields_of_last=fields_of_last), strict=False)


def _of_those_with_columns(writers: list[_Writer], fields_of_last: bool) -> ColumnPlan:
    """The plan without the schemas that columns cannot hold. The rows of these schemas are ``BAD_FIELD``.

    Raises SchemaError if no schema is left, or if all together have too many columns for one table. With ``fields_of_last``
    (a table of one type), the plan then has no columns instead.
    """
    is_single = len(writers) == 1  # already tried by the caller
    left = [_UNREAD if is_single or not _has_columns(writer) else writer for writer in writers]
    some = any(writer is not _UNREAD for writer in left)
    try:
        if some or fields_of_last:
            return _together(left, fields_of_last)
    except SchemaError:
        some = not fields_of_last
    if fields_of_last:
        return _together([_UNREAD] * len(writers), fields_of_last)
    raise SchemaError(
        f"the schemas have more than {MAX_COLUMNS} columns{' together' if some else ''}, which one table cannot have: "
        + ("avro.rows_by_type makes a table of each type" if some else "read them as JSON, with avro_json")
    )


def _has_columns(writer: _Writer) -> bool:
    try:
        _together([writer], False)
    except SchemaError:
        return False
    return True


class LiveSchemas:
    """The schemas of a registry, fetched when data need them, each once."""

    def __init__(self, registry: SchemaSource) -> None:
        self._registry = registry
        self._schemas = Schemas((), {})

    def of(self, ids: pa.Array) -> Schemas:
        """All schemas that were needed so far, including those of ``ids``.

        Raises ValueError if there are too many ids to be schema ids, and RegistryError if the registry does not respond.
        """
        schemas = self._schemas
        named = [as_id(key) for key in ids.drop_null().unique().to_pylist()]
        new = [id for id in named if id not in schemas.keys and id not in schemas.unreadable]
        check_number(new)
        for id in new:
            schemas = schemas.with_more(schemas_of_registered(self._registry.registered([id])))
        self._schemas = schemas
        return schemas


class LiveReader:
    """A reader that fetches schemas when data need them, each once in a process.

    A schema that cannot be read as ``reader_schema`` does not end a stream: its rows are ``BAD_FIELD``.
    """

    def __init__(self, registry: SchemaSource, reader_schema: str, framed: bool = True) -> None:
        self._schemas = LiveSchemas(registry)
        self._reader = RowsReader(Schemas((), {}), reader_schema, framed=framed)
        self._reader.check()

    @property
    def fields(self) -> list[pa.Field]:
        """The same as for ``RowsReader``."""
        return self._reader.fields

    def fields_renamed(self, taken: Iterable[str]) -> list[pa.Field]:
        """The same as for ``RowsReader``."""
        return self._reader.fields_renamed(taken)

    def rows(self, payloads: Payloads) -> tuple[list[pa.Array], pa.Array]:
        """The same as for ``RowsReader``."""
        self._reader = self._reader._replace(schemas=self._schemas.of(payloads.ids))
        return self._reader.rows(payloads)


def check_number(ids: Sequence[Hashable]) -> None:
    """Raise ValueError if there are too many ids to be schema ids, before fetching any."""
    if len(ids) > MAX_IDS:
        raise value_error(
            f"rows found more than {MAX_IDS} different schema ids, such as {ids[0]}: check that the column has this "
            "wire_format"
        )


def as_id(key: Any) -> Hashable:
    """An id in the form that registries use: a text of digits becomes a number."""
    return int(key) if isinstance(key, str) and key.isascii() and key.isdigit() else key


def reader(schemas: Schemas, reader_schema: Any = None, *, framed: bool = True) -> RowsReader:
    """Create the reader for ``rows``.

    Raises SchemaError if no column can hold a field.
    """
    rows_reader = RowsReader(schemas, None if reader_schema is None else text_of(reader_schema), framed=framed)
    rows_reader.check()
    return rows_reader


def check_one_type(schemas: Schemas, reader_schema: Any) -> None:
    """Raise ValueError if a folder has types other than the reader's, because one table cannot hold them."""
    reader = parse(reader_schema)
    others = {
        type_name(writer): None
        for writer in schemas.parsed()
        if not any(matches(one, reader) for one in _records_of(writer) or [writer])
    }
    if others:
        raise value_error(
            f"the folder has schemas of {', '.join(others)}, which cannot be read as {reader.title}: "
            "avro.rows_by_type makes a table of each type"
        )


def type_name(schema: Schema) -> str:
    """The name of a schema's table: its full name, or else its kind. For a union with null, that of the other type."""
    [first, *more] = [branch for branch in schema.branches if branch.kind != "null"] or [schema]
    return schema.name or (first.name or first.kind if not more else schema.kind)


def by_name(schemas: Schemas, *, framed: bool = True, named: Callable[[str], str] = str) -> Mapping[str, RowsReader]:
    """A reader for each type, with the fields of its last schema. Each reader has only the schemas of that name.

    ``named`` returns the name of a reader from that of a type. A union of several records belongs to each of them.
    """
    names = [
        [type_name(record) for record in _records_of(schema)] or [named(type_name(schema))]
        for schema in schemas.parsed()
    ]
    readers: dict[str, RowsReader] = {}
    for name in dict.fromkeys(name for of_schema in names for name in of_schema):
        same_name = [k for k, of_schema in enumerate(names) if name in of_schema]
        keys = {key: same_name.index(k) for key, k in schemas.keys.items() if k in same_name}
        texts = tuple(schemas.texts[k] for k in same_name)
        readers[name] = RowsReader(Schemas(texts, keys), fields_of_last=True, framed=framed, type_name=name)
    return readers
