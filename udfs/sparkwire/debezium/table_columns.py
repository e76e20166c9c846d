"""Find the columns of a table, from the schemas in its messages or in a registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import printable
from sparkwire.core.column import bools_of
from sparkwire.core.table_names import Table
from sparkwire.debezium.cells import of_cell
from sparkwire.debezium.message_fields import row_fields
from sparkwire.debezium.scanned_messages import Messages
from sparkwire.json import values
from sparkwire.json.grammar import NULL
from sparkwire.json.typed_images import Versions
from sparkwire.json.types import Type, combined, of_schema, type_of
from sparkwire.json.values import Values
from sparkwire.kernels import Bools, Ints

_DATABASE: Final = ("source.db", "source.keyspace", "source.database_id")
DECLARATION: Final = "columns STRING"
"""the SQL type of the rows of ``declarations``"""


@lru_cache(1024)
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


def of_table(messages: Messages, declared: Declared, table: Table | None) -> Bools:
    """Messages of the table, and messages without a table's name. Leaves out NULLs and tombstones."""
    valid = messages.source.valid
    chosen = np.ones(messages.source.rows, np.bool_) if valid is None else valid.copy()
    chosen &= ~messages.tombstones
    if table is None:
        return chosen
    parts = _schema_parts(messages, declared)
    database, schema = (_first_of(tuple(map(messages.value, fields))) for fields in (_DATABASE, ("source.schema",)))
    chosen &= bools_of(pc.equal(names_of(messages, declared), table.name).fill_null(True))
    if table.schema is not None:
        chosen &= _is(schema, table.schema, parts[1]) & _is(database, table.database, None)
    elif table.database is not None:
        outer = _is(database, table.database, parts[1])
        matches = bools_of(pc.equal(values.texts(schema), table.database).fill_null(False))
        is_nameless = (database.kinds <= NULL) & ~bools_of(parts[1].is_valid())
        chosen &= (outer & ~(is_nameless & (schema.kinds > NULL))) | matches
    return chosen


def names_of(messages: Messages, declared: Declared) -> pa.Array:
    """STRING: the table that each message names, itself or in its schema; NULL if it does not."""
    name = _first_of((messages.value("source.table"), messages.value("source.collection")))
    return pc.coalesce(values.texts(name), _schema_parts(messages, declared)[0])


def _schema_parts(messages: Messages, declared: Declared) -> tuple[pa.Array, pa.Array]:
    """The table, and its database or schema, that the schema of a flattened message names."""
    return name_parts(pc.if_else(pa.array(messages.flattened), declared.names, None))


def _first_of(given: tuple[Values, ...]) -> Values:
    first = given[0]
    for other in given[1:]:
        first = first.unless(first.kinds <= NULL, other)
    return first


def _is(value: Values, wanted: str | None, otherwise: pa.Array | None) -> Bools:
    """Which values equal ``wanted``. ``otherwise`` replaces a missing value; if that is missing too, it matches."""
    names = values.texts(value)
    if otherwise is not None:
        names = pc.coalesce(names, otherwise)
    return bools_of(pc.equal(names, wanted).fill_null(True))


def name_parts(names: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The table, and its database or schema, from names such as ``shop.public.orders.Value``; NULL for other names."""
    encoded = names.dictionary_encode()
    parts = [_parts_of(name) for name in encoded.dictionary.to_pylist()]
    return tuple(pa.array([part[k] for part in parts], pa.string()).take(encoded.indices) for k in range(2))


def _parts_of(name: str) -> tuple[str | None, str | None]:
    *path, last = name.split(".")
    if last not in ("Value", "Envelope", "Key") or len(path) < 2:
        return None, None
    return path[-1], path[-2]


def declarations(messages: pa.Array, table: Table | None) -> pa.RecordBatch:
    """Each schema in messages of the table, as text."""
    scan = Messages(messages)
    chosen = of_table(scan, embedded(scan), table) & scan.documents.intact & (scan.enveloped | scan.flattened)
    codes = np.unique(scan.schemas.codes[chosen])
    declared = [columns_text(schema_types(scan.schema_texts[code])) for code in codes[codes >= 0].tolist()]
    return pa.record_batch([pa.array(declared, pa.string())], names=["columns"])


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
