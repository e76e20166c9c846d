"""Typed rows out of payloads that name their schemas."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparkwire.avro.arrow_columns import ColumnPlan, Decoded, decode, plan
from sparkwire.avro.json_datum import binary_of
from sparkwire.avro.payloads import Payloads
from sparkwire.avro.registry import Registry
from sparkwire.avro.schema import SchemaError, parse, text_of
from sparkwire.avro.schemas import UNKNOWN_SCHEMA, Schemas, combined
from sparkwire.base.errors import BAD_FIELD, ERRORS
from sparkwire.core.column import from_codes, spans_of

MOST_IDS: Final = 1000
"""that a registry is asked for at once; a column with more has something else than messages"""


class RowsReader(NamedTuple):
    """How payloads become rows; plain data, so that workers get it whole."""

    schemas: Schemas
    reader_schema: Any
    """JSON; None for a row with every field of the schemas"""

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of the rows."""
        return list(self._plan().target.type)

    def check(self) -> None:
        """SchemaError where these schemas cannot be read so."""
        if not pa.types.is_struct(self._plan().target.type):
            raise SchemaError("rows takes a record as reader_schema: its fields are the columns")

    def _plan(self) -> ColumnPlan:
        return _planned(self.schemas.texts, self.reader_schema)

    def rows(self, payloads: Payloads) -> tuple[list[pa.Array], pa.Array]:
        """The columns, NULL in rows that cannot be read, and STRING: why."""
        chosen = self.schemas.chosen(payloads.ids)
        payloads = _in_binary(payloads, chosen, self.schemas)
        spans = spans_of(payloads.values)
        there = spans.sizes >= 0
        known = spans._replace(sizes=np.where(chosen >= 0, spans.sizes, -1))
        decoded: Decoded = decode(self._plan(), known, chosen)
        unknown = pa.array(there & (chosen < 0))
        own = pc.if_else(unknown, UNKNOWN_SCHEMA, from_codes(decoded.errors, ERRORS))
        return decoded.column.flatten(), pc.coalesce(payloads.errors, own)


def _in_binary(payloads: Payloads, chosen: NDArray[np.int32], schemas: Schemas) -> Payloads:
    """The data that are in JSON as Avro's binary; what cannot be read so says why."""
    those = np.flatnonzero(np.asarray(payloads.is_json) & np.asarray(payloads.values.is_valid()) & (chosen >= 0))
    if not len(those):
        return payloads
    writers = {int(k): parse(schemas.texts[k]) for k in np.unique(chosen[those])}
    values, errors = payloads.values.to_pylist(), payloads.errors.to_pylist()
    for row in those.tolist():
        values[row], error = binary_of(values[row], writers[int(chosen[row])])
        errors[row] = errors[row] or error
    return payloads._replace(values=pa.array(values, pa.binary()), errors=pa.array(errors, pa.string()))


@lru_cache(64)
def _planned(texts: tuple[str, ...], reader_schema: str | None) -> ColumnPlan:
    writers = [parse(text) for text in texts]
    return plan(writers, combined(writers) if reader_schema is None else parse(reader_schema))


class LiveReader:
    """The same where the data say which schemas are needed: they are asked for as they come, each once in a process.

    A schema that cannot be read so is no reason to end a stream: its rows are ``BAD_FIELD``.
    """

    def __init__(self, registry: Registry, reader_schema: str) -> None:
        self._registry, self._reader_schema = registry, reader_schema
        self._schemas = Schemas((), {})
        self._unreadable: set[Hashable] = set()
        without = RowsReader(self._schemas, reader_schema)
        without.check()
        self.fields = without.fields

    def rows(self, payloads: Payloads) -> tuple[list[pa.Array], pa.Array]:
        """As a ``RowsReader``."""
        keys = {key: as_id(key) for key in payloads.ids.drop_null().unique().to_pylist()}
        new = [id for id in keys.values() if id not in self._schemas.keys and id not in self._unreadable]
        check_number(new)
        self._learn(new)
        columns, errors = RowsReader(self._schemas, self._reader_schema).rows(payloads)
        unreadable = [key for key, id in keys.items() if id in self._unreadable]
        if unreadable:
            those = pc.is_in(payloads.ids, pa.array(unreadable, payloads.ids.type))
            errors = pc.if_else(
                pc.and_(those, pc.equal(errors, UNKNOWN_SCHEMA).fill_null(False)), ERRORS[BAD_FIELD], errors
            )
        return columns, errors

    def _learn(self, ids: Iterable[Hashable]) -> None:
        for id in ids:
            found = self._registry.schemas([id])
            try:
                _planned(found.texts, self._reader_schema)
            except SchemaError:
                self._unreadable.add(id)
                continue
            if found.texts:
                keys = {key: len(self._schemas.texts) for key in found.keys}
                self._schemas = Schemas((*self._schemas.texts, *found.texts), {**self._schemas.keys, **keys})


def check_number(ids: Sequence[Hashable]) -> None:
    """ValueError where they are too many to be those of schemas: a registry is not asked for each."""
    if len(ids) > MOST_IDS:
        raise ValueError(
            f"rows finds more than {MOST_IDS} different ids of schemas, such as {ids[0]}: has the column messages of that "
            "wire_format?"
        )


def as_id(key: Any) -> Hashable:
    """An id as registries have it, who number their schemas."""
    return int(key) if isinstance(key, str) and key.isascii() and key.isdigit() else key


def reader(schemas: Schemas, reader_schema: Any = None) -> RowsReader:
    """What ``rows`` are read with.

    ValueError where one schema cannot be read by the other, or the reader's is no record: one sentence.
    """
    found = RowsReader(schemas, None if reader_schema is None else text_of(reader_schema))
    found.check()
    return found


def by_name(whole: Schemas) -> Mapping[str, RowsReader]:
    """A reader for each name of a record, by its last schema; each knows the schemas of that name alone."""
    names = [parse(text).name for text in whole.texts]
    found: dict[str, RowsReader] = {}
    for name in dict.fromkeys(names):
        mine = [k for k, other in enumerate(names) if other == name]
        keys = {key: mine.index(k) for key, k in whole.keys.items() if k in mine}
        found[name] = RowsReader(Schemas(tuple(whole.texts[k] for k in mine), keys), whole.texts[mine[-1]])
    return found
