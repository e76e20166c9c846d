"""Decode images to typed columns: read each value with the type in its message's schema, and convert it to the table's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import bools_of, lists, maps, primitive, strings, struct
from sparkwire.json import readers, values
from sparkwire.json.conversions import Converted, convert, fit_type
from sparkwire.json.grammar import ABSENT, NULL, OBJECT, TRUE
from sparkwire.json.images import Images
from sparkwire.json.scan import Paths, tree_of
from sparkwire.json.types import Type
from sparkwire.json.values import Codes, Documents, Values
from sparkwire.kernels import Bools, Ints

_ENDLESS: Final = {
    "infinity": (
        "-622191234",
        "-2147472692",
        "9223372036825200000",
        "9223372036825200",
        "+292278994-08-16Z",
        "-5877611-06-21Z",
        "+294247-01-10T04:00:25.2Z",
    ),
    "-infinity": (
        "-625821272",
        "-2147472691",
        "-9223372036832400000",
        "-9223372036832400",
        "+292269055-12-02Z",
        "-5877611-06-22Z",
        "-290308-12-21T19:59:27.6Z",
    ),
}
"""PostgreSQL's infinite dates and timestamps, as they appear in snapshots and in the stream"""
_WORDS: Final = {text: word for word, texts in _ENDLESS.items() for text in texts}


class MapEntries(NamedTuple):
    """The names and texts of unexpected values, in any order."""

    rows: Ints
    names: pa.Array
    texts: pa.Array


class Added(NamedTuple):
    """Members that are not columns of the table."""

    rows: Bools
    is_name: Callable[[str], bool]
    likely: tuple[str, ...]
    """names that are usual"""


Unavailable = Callable[[Values, Type], Bools]


_OTHER_THAN_TEXT: Final = {
    "binary",
    "binary_latin1",
    "binary_hex",
    "json",
    "json_text",
    "text_latin1",
    "enum",
    "set",
    "enum_by_name",
    "set_by_name",
    "boolean",
    "decimal",
}
"""types of MySQL whose text in a message is another than the value's"""


class Wire(NamedTuple):
    """A column of wire values."""

    raw: Converted
    present: Bools
    """rows that have a value other than null"""
    unavailable: Bools


class RowSource(Protocol):
    """The rows of messages: at most one for each message."""

    present: Bools

    def column(self, name: str, type: Type, rows: Ints | None) -> Wire:
        """A column of these rows (None means all), with the type in their messages' schemas."""

    def texts(self, name: str, rows: Ints) -> pa.Array:
        """STRING: the column's values in these rows, as written in the messages."""

    def unknown(self) -> list[MapEntries]:
        """Values whose names are not columns of the table."""


class Versions(NamedTuple):
    """The schemas of a batch: the number of each row's schema, -1 for none; and the types by name in each schema."""

    codes: Codes
    types: Sequence[Mapping[str, Type]]

    def of(self, name: str, otherwise: Type) -> list[Type]:
        """The column's type in each schema; the last item is for rows without a schema."""
        return [*(types.get(name, otherwise) for types in self.types), otherwise]


class TypedImages(NamedTuple):
    """The decoded images."""

    column: pa.Array
    """STRUCT, NULL if there is no image"""
    unavailable: Bools
    """rows by columns: existing values that the message does not contain"""
    unexpected: list[MapEntries]


def read_images(source: RowSource, columns: Mapping[str, Type], versions: Versions) -> TypedImages:
    """Decode the columns of a table from its images."""
    images: dict[str, pa.Array] = {}
    unavailable = np.zeros((len(source.present), len(columns)), np.bool_)
    if not source.present.any():
        images = {name: pa.nulls(len(source.present), type.arrow) for name, type in columns.items()}
        return TypedImages(struct(images, source.present), unavailable, [])
    unexpected, used = source.unknown(), np.unique(versions.codes).tolist()
    for k, (name, type) in enumerate(columns.items()):
        typed, unavailable[:, k], invalid = _column(source, name, type, versions, used)
        images[name] = typed
        if invalid.any():
            rows = np.flatnonzero(invalid)
            words = _WORDS if pa.types.is_temporal(type.arrow) else {}
            texts = pa.array([words.get(text, text) for text in source.texts(name, rows).to_pylist()], pa.string())
            unexpected.append(MapEntries(rows, strings([name]).take(primitive(np.zeros(len(rows), np.int64))), texts))
    return TypedImages(struct(images, source.present), unavailable, unexpected)


def _column(
    source: RowSource, name: str, type: Type, versions: Versions, codes: Sequence[int]
) -> tuple[pa.Array, Bools, Bools]:
    """The converted column, the unavailable values, and the rejected values. ``codes`` are the schemas that rows have."""
    by_code = [type if _same_on_the_wire(declared, type) else declared for declared in versions.of(name, type)]
    used = dict.fromkeys(by_code[code] for code in codes)
    if len(used) <= 1:
        return _typed(source.column(name, next(iter(used), type), None), next(iter(used), type), type)
    number = {declared: k for k, declared in enumerate(used)}
    groups = np.array([number.get(declared, 0) for declared in by_code])[versions.codes]
    parts, order = [], []
    for k, declared in enumerate(used):
        rows = np.flatnonzero(groups == k)
        order.append(rows)
        parts.append(_typed(source.column(name, declared, rows), declared, type))
    back = np.argsort(np.concatenate(order), kind="stable")
    column = pa.concat_arrays([part[0] for part in parts]).take(primitive(back))
    return column, *(np.concatenate([part[k] for part in parts])[back] for k in (1, 2))


def _same_on_the_wire(declared: Type, requested: Type) -> bool:
    """Whether only the requested type, or only the message's, says what a value of the wire type means.

    Then the user decides: the value stays unconverted, or becomes what the user says.
    """
    if declared.kind == requested.kind == "text":
        return requested.logical == "string" and declared.logical not in _OTHER_THAN_TEXT
    # Connect's schemas may leave out what a value means. DataHub's do not: only they have instants.
    is_plain = not requested.logical or (not declared.logical and requested.logical != "Instant")
    return is_plain and not requested.inner and declared.kind == requested.kind


def _typed(wire: Wire, declared: Type, requested: Type) -> tuple[pa.Array, Bools, Bools]:
    """The converted column, the unavailable values, and the rejected values."""
    column = fit_type(convert(wire.raw.column, declared).column, requested)
    if wire.unavailable.any():
        column = column.take(primitive(np.arange(len(column)), ~wire.unavailable))
    return column, wire.unavailable, wire.present & ~wire.unavailable & ~bools_of(column.is_valid())


def unexpected_map(entries: Sequence[MapEntries], rows: int) -> pa.Array:
    """MAP<STRING, STRING> of unexpected values; NULL if a row has none."""
    if not entries:
        return pa.nulls(rows, pa.map_(pa.string(), pa.string()))
    all_rows = np.concatenate([entry.rows for entry in entries])
    order = np.argsort(all_rows, kind="stable")
    firsts = np.searchsorted(all_rows[order], np.arange(rows + 1)).astype(np.int32)
    names, texts = (pa.concat_arrays([entry[k] for entry in entries]).take(primitive(order)) for k in (1, 2))
    return maps(firsts, names, texts, np.diff(firsts) > 0)


def named_lists(flags: Bools, names: Sequence[str]) -> pa.Array:
    """ARRAY<STRING>: the names of the flagged columns of each row; NULL if there are none."""
    rows, columns = np.nonzero(flags)
    firsts = np.searchsorted(rows, np.arange(len(flags) + 1)).astype(np.int32)
    return lists(firsts, strings(list(names)).take(primitive(np.ascontiguousarray(columns))), np.diff(firsts) > 0)


# ---------------------------------------------------------------- JSON


class JsonRows:
    """Rows from images that are JSON objects.

    Parameters
    ----------
    objects
        the image of each row
    columns
        the names and types of the table's columns
    unavailable
        returns which values stand for one that the message does not contain
    missing
        rows in which a member that is not there has an unknown value; elsewhere it is NULL
    added
        rows with members that are not columns of the table, and how to recognize their names
    missing_mark
        the end of the name of a member that is true if the column's value is missing
    """

    def __init__(
        self,
        objects: Values,
        columns: Mapping[str, Type],
        *,
        unavailable: Unavailable | None = None,
        missing: Bools | None = None,
        added: Added | None = None,
        missing_mark: str = "",
    ) -> None:
        self.objects, self.unavailable, self.missing = objects, unavailable, missing
        self.others: tuple[JsonRows, Bools] | None = None
        self.unmodified: tuple[JsonRows, Bools] | None = None
        self.added = added if added is not None and added.rows.any() else None
        self.present: Bools = objects.kinds == OBJECT
        self.places = {name: k for k, name in enumerate(columns)}
        marks = {name: f"{name}{missing_mark}" for name in columns} if missing_mark else {}
        self.marks = {name: mark for name, mark in marks.items() if mark not in columns}
        """by column: the member that is true if the column's value is missing"""
        self.mark_places = {name: len(self.places) + k for k, name in enumerate(self.marks)}

    def add_members_of(self, others: JsonRows, rows: Bools) -> None:
        """In these rows, a member that is not there is the one of the other image, because it has not changed."""
        self.others = others, rows

    def keep_nulls_of(self, others: JsonRows, rows: Bools) -> None:
        """In these rows, a value that is NULL in both images has not changed: the message does not contain it."""
        self.unmodified = others, rows

    @cached_property
    def _documents(self) -> Documents:
        tree = _tree(tuple(self.places), (*self.marks.values(), *(self.added.likely if self.added else ())))
        if not self.present.any():
            return Documents(self.objects.data, np.full(tree.slots, -1), [], self.present)
        begins = np.where(self.present, self.objects.starts, 0)
        ends = begins + np.where(self.present, self.objects.sizes, 0)
        return values.documents(self.objects.data, begins, ends, tree, nulls=True)

    def value(self, name: str, rows: Ints | None = None) -> Values:
        value = self._documents.value(self.places[name])
        if name in self.mark_places:
            value = value.only(self._documents.value(self.mark_places[name]).kinds != TRUE)
        if not self.present.all():
            value = value.only(self.present)
        if self.others is not None:
            others, chosen = self.others
            value = value.unless(self.present & chosen & (value.kinds == ABSENT), others.value(name))
        return value if rows is None else value.at(rows)

    def column(self, name: str, type: Type, rows: Ints | None) -> Wire:
        value = self.value(name, rows)
        unavailable = np.zeros(len(value.kinds), np.bool_)
        if self.unavailable is not None:
            unavailable |= self.unavailable(value, type)
        if self.missing is not None:
            chosen = self.present & self.missing
            unavailable |= (chosen if rows is None else chosen[rows]) & (value.kinds == ABSENT)
        if self.unmodified is not None:
            others, chosen = self.unmodified
            unmodified = self.present & chosen & (self.value(name).kinds <= NULL) & (others.value(name).kinds <= NULL)
            unavailable |= unmodified if rows is None else unmodified[rows]
        if unavailable.any():
            value = value.only(~unavailable)
        return Wire(readers.read(value, type), value.kinds > NULL, unavailable)

    def texts(self, name: str, rows: Ints) -> pa.Array:
        return values.texts(self.value(name, rows))

    @property
    def is_empty(self) -> Bools:
        """Images without any member that is a column, if there are columns."""
        empty = self.present & bool(self.places)
        for name in self.places:
            empty &= self.value(name).kinds == ABSENT
            if not empty.any():
                break
        return empty

    def unknown(self) -> list[MapEntries]:
        rows = np.flatnonzero(self.present & (self._documents.counts() != self.objects.counts))
        if not len(rows):
            return []
        images = Images(self.objects.at(rows))
        encoded = images.names.dictionary_encode()
        names, codes = encoded.dictionary.to_pylist(), np.asarray(encoded.indices)
        known = {*self.places, *self.marks.values()}
        shown = ~np.array([name in known for name in names], np.bool_)[codes]
        if self.added is not None:
            is_added = np.array([self.added.is_name(name) for name in names], np.bool_)
            shown &= ~(is_added[codes] & self.added.rows[rows][images.rows])
        if images.superseded is not None:
            shown &= ~images.superseded
        places = np.flatnonzero(shown)
        texts = values.texts(images.listed.values.at(places))
        return [MapEntries(rows[images.rows[places]], images.names.take(primitive(places)), texts)]


@text_cache(256)
def _tree(columns: tuple[str, ...], added: tuple[str, ...]) -> Paths:
    return tree_of([(name,) for name in (*columns, *(name for name in added if name not in columns))])
