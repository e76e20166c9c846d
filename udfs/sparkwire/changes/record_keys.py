"""The keys of Kafka records as columns of the table: an object, or one value if the table has one key column.

A key has its schema with it, or not. Any other key is not used: a row that needs it is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sparkwire.base.json_text import parsed_json
from sparkwire.core.column import bools_of, lists, primitive
from sparkwire.debezium.table_columns import MessageSide, json_side
from sparkwire.json.images import Images
from sparkwire.json.typed_images import JsonRows, TypedImages, read_images
from sparkwire.json.types import Type
from sparkwire.json.values import Values
from sparkwire.kernels import Ints

_HEADER: Final = 5  # [bytes] of Confluent's wire format
_BEGINS: Final = (b"{", b'"')
"""with what JSON begins that Avro does not write"""


class RecordKeys:
    """A column of keys. ``names`` are the table's key columns, or None if they are not known."""

    def __init__(self, side: MessageSide, types: Mapping[str, Type], names: Sequence[str] | None) -> None:
        single = names[0] if names is not None and len(names) == 1 else None
        self._types = types
        self._side = side if single is None else _with_objects(side, single)

    @classmethod
    def of_texts(cls, texts: pa.Array, types: Mapping[str, Type], names: Sequence[str] | None) -> RecordKeys:
        """Keys in JSON, as headers have them."""
        return cls(json_side(texts), types, names)

    def _objects(self, rows: Ints) -> Values:
        return self._side.scan.roots_at(rows).only(bools_of(self._side.column.is_valid())[rows])

    def names(self, rows: Ints) -> pa.Array:
        """ARRAY<STRING>: the names of the columns in each key; NULL if a key is not used."""
        images = Images(self._objects(rows))
        return lists(images.listed.firsts, images.names, images.present)

    def images(self, rows: Ints) -> TypedImages:
        """The keys as rows of the table, in which all other columns are unavailable; NULL if a key is not used."""
        source = JsonRows(self._objects(rows), self._types, missing=np.ones(len(rows), np.bool_))
        return read_images(source, self._types, self._side.declared.of(rows))

    def texts(self, rows: Ints) -> pa.Array:
        """A text of each key, the same for all its spellings."""
        return self.texts_of(self.images(rows).column)

    def texts_of(self, keys: pa.Array) -> pa.Array:
        """The same text of keys that are rows of the table."""
        used = {name for name, column in zip(self._types, keys.flatten(), strict=True) if column.null_count < len(keys)}
        return pa.array([_text(key, used) for key in keys.to_pylist()], pa.string())


def _text(key: Mapping[str, object] | None, used: set[str]) -> str | None:
    if key is None:
        return None
    return json.dumps({name: value for name, value in key.items() if value is not None and name in used}, default=str)


class _Number(str):
    """The text of a number."""

    __slots__ = ()


def _with_objects(side: MessageSide, name: str) -> MessageSide:
    """The keys; those that are one value become an object with this one member."""
    scan = side.scan
    payload = scan.slot("payload")
    rows = np.flatnonzero(
        bools_of(side.column.is_valid()) & (~scan.documents.intact | (scan.wrapped & (payload.kinds < 8)))
    )
    if not len(rows):
        return side
    encoded = side.column.take(primitive(rows)).cast(pa.binary()).dictionary_encode()
    objects = pa.array([_as_object(value, name) for value in encoded.dictionary.to_pylist()], pa.binary())
    places = np.arange(len(side.column))
    places[rows] = len(side.column) + np.arange(len(rows))
    column = pa.concat_arrays([side.column.cast(pa.binary()), objects.take(encoded.indices)]).take(primitive(places))
    return json_side(column)


def _as_object(value: bytes, name: str) -> bytes:
    """The key as an object; unchanged if it is not one JSON value. Its number keeps all digits."""
    # The id of a schema is not 0; a small BIGINT begins with zeros. A number after the id may be one of Avro.
    has_header = value[:1] == b"\0" and any(value[1:_HEADER]) and value[_HEADER : _HEADER + 1] in _BEGINS
    try:
        key = parsed_json(value[_HEADER:] if has_header else value, _Number)
    except ValueError:  # the text of another converter
        return value
    schema = None
    if isinstance(key, dict):
        schema, key = key.get("schema"), key.get("payload")
    if key is None or isinstance(key, dict | list):
        return value
    row = f"{{{json.dumps(name)}:{key if isinstance(key, _Number) else json.dumps(key)}}}"
    if not isinstance(schema, dict):
        return row.encode()
    struct = {"type": "struct", "fields": [{**schema, "field": name}]}
    return f'{{"schema":{json.dumps(struct)},"payload":{row}}}'.encode()
