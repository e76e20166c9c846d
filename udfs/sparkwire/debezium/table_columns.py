"""Find the columns of a table, from the schemas in its messages or in a registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import value_error
from sparkwire.base.text_cache import text_cache
from sparkwire.core.names import Names, Table, compared, fits, schema_names
from sparkwire.debezium.cells import of_cell
from sparkwire.debezium.message_fields import row_fields
from sparkwire.debezium.scanned_messages import Messages
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
    return chosen & fits(table, messages.names, _names_of_schemas(messages, declared))


def names_of(messages: Messages, declared: Declared) -> Names:
    """The names that each message has, itself or in its schema. If it names a database, the others of its schema do not count."""
    names, of_schemas = messages.names, _names_of_schemas(messages, declared)
    is_unnamed = names.database.is_null()
    database, schema = (pc.if_else(is_unnamed, part, None) for part in (of_schemas.database, of_schemas.schema))
    return Names(
        pc.coalesce(names.database, database),
        pc.coalesce(names.schema, schema),
        pc.coalesce(names.table, of_schemas.table),
    )


def _names_of_schemas(messages: Messages, declared: Declared) -> Names:
    """The names in the schemas of flattened messages."""
    if not messages.flattened.any():
        return Names.none(messages.source.rows)
    return names_in(pc.if_else(pa.array(messages.flattened), declared.names, None))


def names_in(names: pa.Array) -> Names:
    """The names in the names of schemas, such as ``prefix.shop.public.orders.Value``. ``schema`` may be a database."""
    encoded = names.dictionary_encode()
    parts = [_parts_of(name) for name in encoded.dictionary.to_pylist()]
    return Names(*(pa.array([part[k] for part in parts], pa.string()).take(encoded.indices) for k in range(3)))


def _parts_of(name: str) -> tuple[str | None, str | None, str | None]:
    *path, last = name.split(".")
    if last not in ("Value", "Envelope", "Key") or len(path) < 2:
        return None, None, None
    return path[-3] if len(path) > len(("prefix", "schema", "table")) else None, path[-2], path[-1]


def has_name(names: pa.Array, table: Table) -> Bools:
    """Whether names of schemas, such as those of keys, have the name of a table."""
    database, schema, name = names_in(names)
    same, _ = compared([name], *schema_names(table.name))
    inside = table.schema or table.database
    if inside is not None:
        same &= compared([schema], *schema_names(inside))[0]
    if table.schema is not None and table.database is not None:
        same &= np.logical_or(*compared([database], *schema_names(table.database)))
    return same


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
    return {name: str(combined(of_versions)) for name, of_versions in types.items()}


def typed(columns: Mapping[str, str]) -> dict[str, Type]:
    """Parse the types of columns. Raises ValueError if one is invalid."""
    types = {}
    for name, text in columns.items():
        try:
            types[name] = type_of(text)
        except ValueError as error:
            raise value_error(f"column {name}: {error}") from None
    return types
