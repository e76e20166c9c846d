"""A capture system as a declaration: what `read_messages` needs to know of JSON messages to find the rows in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.text_cache import text_cache
from sparkwire.core.column import binary_of, bools_of, micros, text_or_null
from sparkwire.core.names import Names
from sparkwire.debezium.layout import ELSEWHERE
from sparkwire.json import values
from sparkwire.json.conversions import instants
from sparkwire.json.grammar import ABSENT, ARRAY, ESCAPED, FALSE, INTEGER, NULL, OBJECT, STRING
from sparkwire.json.images import Item, as_objects, as_types
from sparkwire.json.scan import Paths, paths
from sparkwire.json.types import Type
from sparkwire.json.values import Values
from sparkwire.kernels import Bools, Ints

Marks = Mapping[str, tuple[int, ...]]
"""kinds of JSON values by role; a message has the marks if each of these values is of one of its kinds"""
NOTHING = (ABSENT,)
NUMBER = (INTEGER,)
TEXT = (STRING, ESCAPED)
ROW = (OBJECT,)
ROWS = (ARRAY, NULL)
_FULL_NAME: Final = r"^(?:(?:(?P<database>.*)\.)?(?P<schema>[^.]*)\.)?(?P<table>[^.]*)$"
_NANOS: Final = r"(\.\d{6})\d+"
_PER_UNIT: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""[us]"""
_LAST: Final = 2**63 - 1
ANYTHING = (NULL, *range(STRING, ARRAY + 1))


class System(NamedTuple):
    """A capture system with one JSON object for each message.

    Roles name the values of a message. ``op`` is the operation, ``after`` and ``before`` are the new and the old row.
    ``database``, ``schema`` and ``table`` name the table, ``keys`` is an array with the names of its key columns, and ``types``
    declares its columns. ``time`` and ``transaction`` are of the change. A system may have others for its functions.

    A message of another table is left out, and so is a NULL value without a key. A NULL value with a key is an error, because no
    row says which table it is of.

    ``tests/changes/test_declarations.py`` tests each declaration, and what the documentation says of it.
    """

    name: str
    """the argument ``format``"""
    title: str
    fields: Mapping[str, str | tuple[str, ...]]
    """The path of each role's value, with points between the names of members.

    If a role has several paths, the first one that a message has counts.
    """
    operations: Mapping[str, str | None]
    """operations of a change table by the value of ``op``, case-sensitive; None for a message that is left out"""
    marks: tuple[Marks, ...]
    """what distinguishes a message of the system from others: it has one of these sets of marks"""
    type_of: Callable[[str], Type]
    """the type of a column as the user writes it, such as ``mysql_types.of_sql`` for SQL's types; raises ValueError"""
    messages: str = ""
    """what the messages are, for the table of formats in ``docs/changes.md``; with a link to the page of the format"""
    also_pass: str = ""
    """which arguments the messages need, for the same table"""
    example: str = ""
    """a message of a new row, which ``python -m sparkwire warm`` decodes"""
    certain_marks: tuple[Marks, ...] = ()
    """marks that no message of another system has, if ``marks`` do not suffice to name the system of a message"""
    time_unit: Literal["s", "ms", "us", "text"] = "ms"
    """of ``time``; a text is in ISO 8601, and in UTC if it has no offset"""
    in_arrays: bool = False
    """whether ``after`` and ``before`` are arrays with one item for each row of the table"""
    item: Item | None = None
    """if a row is an array with one item for each column, the members of such an item; else a row is an object"""
    delete_in_after: bool = False
    """whether the row of a DELETE is in ``after``"""
    old_row: Literal["all", "changed", "key"] = "all"
    """The columns that ``before`` has in an UPDATE.

    If these are the changed ones, ``after`` has the others. If ``before`` has the key, its other columns are unknown.
    """
    before_has_key: bool = False
    """whether ``before`` of an UPDATE always has the key, so that one without it is of other columns"""
    unchanged_in_before: bool = False
    """whether a column that ``after`` does not have has the value in ``before``, because it did not change"""
    missing_mark: str = ""
    """The end of the name of a member that is true if a column's value is missing: ``{"name": null, "name_isMissing": true}``."""
    old_value_mark: str = ""
    """the beginning of the name of a member of ``after`` that has the value of a column before an UPDATE"""
    renamable: tuple[str, ...] = ()
    """roles whose member has another name by a setting of the system, for the argument ``renamed``"""
    types_kind: int = OBJECT
    declared_types: Callable[[str], Mapping[str, Type]] | None = None
    """Reads the text of ``types``, which is of the kind ``types_kind``.

    If rows have an ``item`` with types, the text is the object ``{column: type}``.
    """
    dialects: tuple[Dialect, ...] = ()
    """the databases and programs whose messages have the same form, and other values for a declared type"""
    declared_columns: Callable[[Fields, Ints], list[dict[str, str]]] | None = None
    """the columns that messages declare, if rows do not: a name and a type of each"""
    names_in_key: Callable[[pa.Array], pa.Array] | None = None
    """The names of the key columns in the keys of records, as ARRAY<STRING>, for messages that do not name them.

    A name in lower case also stands for a column with capitals, if no column has the name itself.
    """
    table_has_schema: bool = False
    """whether ``table`` also names the schema: ``schema.table``, or ``database.schema.table``"""
    left_out: Callable[[Fields], Bools] | None = None
    """further messages that are left out"""
    position: pa.DataType | None = None
    positions: Callable[[Fields], pa.Array] | None = None
    """the position of each message in the source: a STRUCT of the type ``position``, NULL if it has none

    Its parts compare one after the other. A part ``log`` separates orders, which are then not comparable. The argument ``until``
    begins with the part ``position``.
    """
    contradicts: Callable[[Fields], Bools] | None = None
    """messages whose members contradict each other"""
    position_remark: str = ""
    """what a reader of ``docs/changes.md`` should know of the position"""
    parts_after_position: bool = False
    """whether partition, offset and place order the rows of one position"""

    def paths(self, role: str) -> tuple[str, ...]:
        """The paths of a role; none if the system does not have the role."""
        paths = self.fields.get(role, ())
        return (paths,) if isinstance(paths, str) else paths

    def with_names(self, names: Mapping[str, str]) -> System:
        """The system with other names of members that are ``renamable``."""
        renamed = {role: names[path] for role in self.renamable for path in self.paths(role) if path in names}
        return self._replace(fields={**self.fields, **renamed})


class Dialect(NamedTuple):
    """Messages with another meaning of a column's type."""

    speaks: Callable[[Fields], Bools]
    """the messages that show that they are of the dialect"""
    type_of: Callable[[Type], Type]
    """a column's type in it, from the type that is declared"""


class RowImages(NamedTuple):
    """The rows in messages, as objects."""

    after: Values
    before: Values
    types: Values
    """what declares the types of the columns"""


class Fields:
    """The values of messages by their roles, from one scan."""

    def __init__(self, system: System, column: pa.Array) -> None:
        self.system = system
        source = binary_of(column)
        self.data = source.data
        self.begins, self.ends = values.bounds(source)
        self.valid: Bools = np.ones(source.rows, np.bool_) if source.valid is None else source.valid
        """messages that are not NULL"""
        paths = [path for role in system.fields for path in system.paths(role)]
        self._paths = tuple(dict.fromkeys((*paths, *ELSEWHERE)))
        self._texts: dict[str, pa.Array] = {}

    @cached_property
    def documents(self) -> values.Documents:
        return values.documents(self.data, self.begins, self.ends, _tree(self._paths), nulls=True)

    def at(self, messages: Ints) -> Fields:
        """The values of some of the messages."""
        part = Fields(self.system, pa.array([], pa.binary()))
        part.data, part.documents = self.data, self.documents.at(messages)
        part.begins, part.ends = self.begins[messages], self.ends[messages]
        part.valid = self.valid[messages]
        return part

    @property
    def count(self) -> int:
        """The number of messages."""
        return len(self.valid)

    def value(self, role: str) -> Values:
        found = [self.at_path(path) for path in self.system.paths(role)]
        value = found[0] if found else values.nothing(self.data, self.count)
        for other in found[1:]:
            value = value.unless((value.kinds <= NULL) & (other.kinds > NULL), other)
        return value

    def at_path(self, path: str) -> Values:
        """The value of each message at one of the paths of the system."""
        return self.documents.value(self._paths.index(path))

    def images(self, rows: Ints) -> RowImages:
        """The rows in these messages. A row that is not as declared stays as it is, so that it is no object."""
        after, before, types = (self.value(role).at(rows) for role in ("after", "before", "types"))
        item = self.system.item
        if item is None:
            return RowImages(after, before, types)
        types = as_types((after, before), item)
        after, before = as_objects((after, before), item)
        return RowImages(after, before, types)

    def texts(self, role: str) -> pa.Array:
        if role not in self._texts:
            self._texts[role] = values.texts(self.value(role))
        return self._texts[role]

    @cached_property
    def names(self) -> Names:
        """The names in each message. An empty text is no name."""
        names = Names(*(text_or_null(self.texts(role)) for role in Names._fields))
        if not self.system.table_has_schema:
            return names
        parts = pc.extract_regex(names.table, _FULL_NAME)
        database, schema, table = (text_or_null(pc.struct_field(parts, role)) for role in Names._fields)
        return Names(pc.coalesce(names.database, database), pc.coalesce(names.schema, schema), table)

    @cached_property
    def times(self) -> tuple[pa.Array, Bools]:
        """TIMESTAMP of each change, and which messages have something else instead of a time."""
        time, unit = self.value("time"), self.system.time_unit
        if unit == "text":
            texts = values.texts(time.only(time.are_texts))
            times = instants(pc.replace_substring_regex(texts, _NANOS, r"\1"))
            return times, (time.kinds > NULL) & ~bools_of(times.is_valid())
        numbers, fits = values.integers(time)
        most = _LAST // _PER_UNIT[unit]
        fits &= (numbers >= -most) & (numbers <= most)
        times = micros(numbers * _PER_UNIT[unit], fits)
        return times, (time.kinds > NULL) & ~bools_of(times.is_valid())

    @cached_property
    def has_odd_names(self) -> Bools:
        """Messages with a name that is not a text."""
        names = (self.value(role) for role in Names._fields)
        odd: Bools = np.logical_or.reduce([(name.kinds > NULL) & ~name.are_texts for name in names])
        return odd

    @cached_property
    def recognized(self) -> Bools:
        """Messages of the system."""
        recognized = np.zeros(self.count, np.bool_)
        for marks in self.system.marks:
            recognized |= np.logical_and.reduce(
                [np.isin(self.value(role).kinds, kinds) for role, kinds in marks.items()]
            )
        return recognized & self.valid

    @property
    def is_elsewhere(self) -> Bools:
        """Messages of TiCDC whose row is elsewhere."""
        slots = (self._paths.index(path) for path in ELSEWHERE)
        return is_elsewhere(*(self.documents.value(slot) for slot in slots))

    @property
    def has_rows(self) -> Bools:
        """Messages with an image that is not empty."""
        return self.value("after").are_filled | self.value("before").are_filled

    @property
    def is_flink(self) -> Bools:
        """Messages with an operation and images alone, as Apache Flink writes them."""
        others = [role for role in self.system.fields if role not in ("op", "after", "before")]
        flink: Bools = ~np.logical_or.reduce([self.has(role) for role in others])
        return flink

    def has(self, role: str) -> Bools:
        has: Bools = self.value(role).kinds > NULL
        return has

    def lacks(self, role: str) -> Bools:
        lacks: Bools = self.value(role).kinds == ABSENT
        return lacks


def is_elsewhere(*marks: Values) -> Bools:
    """Messages with one of the marks of a row that is elsewhere, unless it is false or empty."""
    elsewhere: Bools = np.logical_or.reduce(
        [(mark.kinds > NULL) & (mark.kinds != FALSE) & (mark.sizes > 0) for mark in marks]
    )
    return elsewhere


@text_cache(64)
def _tree(declared: tuple[str, ...]) -> Paths:
    return paths(*declared)
