"""Find the columns of a table, from the schemas in its messages or in a registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import printable
from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import bools_of
from sparkwire.core.names import Table
from sparkwire.debezium.cells import of_cell
from sparkwire.debezium.message_fields import row_fields
from sparkwire.debezium.scanned_messages import Messages, Names
from sparkwire.json import values
from sparkwire.json.typed_images import Versions
from sparkwire.json.types import Type, combined, of_schema, type_of
from sparkwire.kernels import Bools, Ints


@text_cache(1024)
def schema_types(text: str) -> Mapping[str, Type]:
    """The columns of a message's schema. Columns of types that Connect does not have are left out."""
    columns = ((field["field"], of_schema(field)) for field in row_fields(text) or ())
    return MappingProxyType({name: of_cell(type) for name, type in columns if type is not None})


class Declared(NamedTuple):
    """The contents of the schemas of a batch of messages."""

    versions: Versions
    names: pa.Array
    """STRING: the full name of each message's schema; NULL if it has none"""

    def of(self, rows: Ints) -> Versions:
        """The versions for these rows."""
        return self.versions._replace(codes=self.versions.codes[rows])


def embedded(messages: Messages) -> Declared:
    """The contents of the embedded schemas of messages."""
    types = [schema_types(text) for text in messages.schema_texts]
    names = values.texts(messages.slot("schema.name").only(messages.wrapped))
    return Declared(Versions(messages.schemas.codes, types), names)


class MessageSide(NamedTuple):
    """The values or keys of records as JSON, with the contents of their schemas."""

    column: pa.Array
    scan: Messages
    declared: Declared
    errors: pa.Array | None = None
    """STRING: the errors of the conversion to JSON, NULL if there is none; None if the messages were JSON already"""


def json_side(column: pa.Array) -> MessageSide:
    """A side for JSON, with or without embedded schemas."""
    scan = Messages(column)
    return MessageSide(column, scan, embedded(scan))


def of_table(messages: Messages, declared: Declared, table: Table | None) -> Bools:
    """Messages of the table, and messages without a table's name. Leaves out NULLs and tombstones."""
    valid = messages.source.valid
    chosen = np.ones(messages.source.rows, np.bool_) if valid is None else valid.copy()
    chosen &= ~messages.tombstones
    if table is None:
        return chosen
    return chosen & fits(table, _schema_parts(messages, declared), messages.names)


def fits(table: Table | None, parts: NameParts, given: Names | None = None) -> Bools:
    """Which messages are of the table, by the names that they give and by those of their schemas. NULL fits any name."""
    if table is None:
        return np.ones(len(parts.table), np.bool_)
    given = given or Names(*[pa.nulls(len(parts.table), pa.string())] * len(Names._fields))
    fitting = _fits(table.name, [given.table], [parts.table])
    if table.schema is not None:
        return (
            fitting
            & _fits(table.schema, [given.schema], [parts.outer])
            & _fits(table.database, [given.database], [parts.far])
        )
    # A name with two parts may begin with the schema.
    return fitting & _fits(table.database, [given.database, given.schema], [parts.outer, parts.far])


def _fits(wanted: str | None, names: Sequence[pa.Array], of_schemas: Sequence[pa.Array]) -> Bools:
    """Which messages have the wanted name, or none. Names of schemas count in messages without another."""
    nameless = np.logical_and.reduce([bools_of(name.is_null()) for name in names])
    if wanted is None:
        return np.ones(len(nameless), np.bool_)
    fits = _is_one_of(names, [wanted])
    if nameless.any():
        unknown = np.logical_and.reduce([bools_of(name.is_null()) for name in of_schemas])
        fits |= nameless & (unknown | _is_one_of(of_schemas, [wanted, topic_name(wanted)]))
    return fits


def _is_one_of(columns: Sequence[pa.Array], wanted: Sequence[str]) -> Bools:
    found: Bools = np.logical_or.reduce(
        [bools_of(pc.equal(column, name).fill_null(False)) for column in columns for name in wanted]
    )
    return found


def outer_names(messages: Messages, declared: Declared) -> tuple[pa.Array, pa.Array]:
    """STRING: the database and the schema that each message names, itself or in the name of its schema."""
    given = messages.names
    parts, is_unnamed = _schema_parts(messages, declared), given.database.is_null()
    outer, far = (pc.if_else(is_unnamed, part, None) for part in (parts.outer, parts.far))
    return pc.coalesce(given.database, far), pc.coalesce(given.schema, outer)


def names_of(messages: Messages, declared: Declared) -> pa.Array:
    """STRING: the table that each message names, itself or in its schema; NULL if it does not."""
    return pc.coalesce(messages.names.table, _schema_parts(messages, declared).table)


def _schema_parts(messages: Messages, declared: Declared) -> NameParts:
    """The parts of the name of a flattened message's schema."""
    if not messages.flattened.any():
        return NameParts(*[pa.nulls(messages.source.rows, pa.string())] * len(NameParts._fields))
    return name_parts(pc.if_else(pa.array(messages.flattened), declared.names, None))


class NameParts(NamedTuple):
    """STRING: the parts of a schema's name such as ``prefix.shop.public.orders.Value``; NULL where it has none."""

    table: pa.Array
    outer: pa.Array
    """the database or the schema"""
    far: pa.Array
    """the database, if the name has a schema, too"""


def name_parts(names: pa.Array) -> NameParts:
    encoded = names.dictionary_encode()
    parts = [_parts_of(name) for name in encoded.dictionary.to_pylist()]
    return NameParts(*(pa.array([part[k] for part in parts], pa.string()).take(encoded.indices) for k in range(3)))


def _parts_of(name: str) -> tuple[str | None, str | None, str | None]:
    *path, last = name.split(".")
    if last not in ("Value", "Envelope", "Key") or len(path) < 2:
        return None, None, None
    return path[-1], path[-2], path[-3] if len(path) > len(("prefix", "outer", "table")) else None


def has_name(names: pa.Array, table: Table) -> Bools:
    """Whether names of schemas, such as those of keys, have the name of a table."""
    name, outer, far = name_parts(names)
    same: Bools = bools_of(pc.equal(name, topic_name(table.name)).fill_null(False))
    inside = table.schema or table.database
    if inside is not None:
        same &= bools_of(pc.equal(outer, topic_name(inside)).fill_null(False))
    if table.schema is not None and table.database is not None:
        same &= bools_of(pc.equal(far, topic_name(table.database)).fill_null(True))
    return same


def topic_name(name: str) -> str:
    """A part of a topic's name: Debezium writes ``_`` for characters that Kafka does not allow."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def columns_text(columns: Mapping[str, Type]) -> str:
    """Columns as a text for `all_columns`."""
    return json.dumps({name: str(type) for name, type in columns.items()}, ensure_ascii=False)


def all_columns(texts: Iterable[str]) -> dict[str, str]:
    """The name and type of every column of these schemas, each with a type that holds the values of all.

    The columns of the largest schema come first. The result does not depend on the order of the schemas.
    """
    versions = [json.loads(text) for text in sorted(set(texts), key=lambda text: (-text.count(":"), text))]
    types: dict[str, list[Type]] = {}
    for version in versions:
        for name, type in version.items():
            types.setdefault(name, []).append(type_of(type))
    return {name: str(combined(own)) for name, own in types.items()}


def typed(columns: Mapping[str, str]) -> dict[str, Type]:
    """Parse the types of columns. Raises ValueError if one is invalid."""
    types = {}
    for name, text in columns.items():
        try:
            types[name] = type_of(text)
        except ValueError as error:
            raise ValueError(printable(f"column {name}: {error}")) from None
    return types
