"""Typed rows out of payloads that name their schemas: by Confluent's wire-format header, or a column beside them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.avro.columns import Decoded, Plan, decode, plan
from sparkwire.avro.functions import FORMAT
from sparkwire.avro.registry import UNKNOWN_SCHEMA, Registry, combined, registry
from sparkwire.avro.schema import SchemaError, parse, text_of
from sparkwire.base.errors import BAD_MAGIC, ERRORS, OK
from sparkwire.core.column import all_null, from_codes, spans_of

_FUNCTIONS: Final = FORMAT.by_name


class Payloads(NamedTuple):
    """Avro data, what names the schema of each, and what is wrong with what they were in."""

    values: pa.Array
    """NULL where there is none"""
    ids: pa.Array
    errors: pa.Array
    """STRING, NULL where all is well"""


def of_messages(messages: pa.Array) -> Payloads:
    """The payloads after Confluent's prefix."""
    ids = _FUNCTIONS["registry_schema_id"].decode(messages)
    without = np.asarray(messages.is_valid()) & ~np.asarray(ids.is_valid())
    errors = from_codes(np.where(without, BAD_MAGIC, OK).astype(np.int8), ERRORS)
    return Payloads(_FUNCTIONS["registry_payload"].decode(messages), ids, errors)


def of_column(values: pa.Array, ids: pa.Array) -> Payloads:
    """Bare payloads, and a column that names their schemas."""
    return Payloads(values, ids, all_null(pa.string(), len(values)))


class Reader(NamedTuple):
    """How payloads become rows; plain data, so that workers get it whole."""

    schemas: Registry
    reader_schema: Any
    """JSON; None for a row with every field of the schemas"""

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of the rows."""
        return list(self._plan().target.type)

    def _plan(self) -> Plan:
        return _planned(self.schemas.texts, self.reader_schema)

    def rows(self, payloads: Payloads) -> tuple[list[pa.Array], pa.Array]:
        """The columns, NULL in rows that cannot be read, and STRING: why."""
        chosen = self.schemas.chosen(payloads.ids)
        spans = spans_of(payloads.values)
        there = spans.sizes >= 0
        known = spans._replace(sizes=np.where(chosen >= 0, spans.sizes, -1))
        decoded: Decoded = decode(self._plan(), known, chosen)
        unknown = pa.array(there & (chosen < 0))
        own = pc.if_else(unknown, UNKNOWN_SCHEMA, from_codes(decoded.errors, ERRORS))
        return decoded.column.flatten(), pc.coalesce(payloads.errors, own)


@lru_cache(64)
def _planned(texts: tuple[str, ...], reader_schema: str | None) -> Plan:
    writers = [parse(text) for text in texts]
    return plan(writers, combined(writers) if reader_schema is None else parse(reader_schema))


def reader(schemas: Any, reader_schema: Any = None) -> Reader:
    """What ``rows`` are read with.

    Raises
    ------
    ValueError
        where a schema is none, one cannot be read by the other, or the reader's is no record: one sentence.
    """
    text = None if reader_schema is None else text_of(reader_schema)
    found = Reader(registry(schemas), text)
    if not pa.types.is_struct(found._plan().target.type):
        raise SchemaError("rows takes a record as reader_schema: its fields are the columns")
    return found


def by_source(schemas: Any) -> Mapping[str, Reader]:
    """A reader for each name of a record, by its last schema; each knows the schemas of that name alone."""
    whole = registry(schemas)
    names = [parse(text).name for text in whole.texts]
    found: dict[str, Reader] = {}
    for name in dict.fromkeys(names):
        mine = [k for k, other in enumerate(names) if other == name]
        keys = {key: mine.index(k) for key, k in whole.keys.items() if k in mine}
        found[name] = Reader(Registry(tuple(whole.texts[k] for k in mine), keys), whole.texts[mine[-1]])
    return found
