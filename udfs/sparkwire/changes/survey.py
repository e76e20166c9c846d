"""Survey a batch of messages in one pass: tables, columns, key names, and which topics are of which table.

Each batch gives some facts as JSON texts, and `Survey.of` combines the different ones. So the result does not
depend on the order of the messages, on their times or on the size of batches.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.printable import value_error
from sparkwire.base.sqltype import sql_name
from sparkwire.changes import foreign
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.read_debezium import heartbeats_with_more, wrong_messages
from sparkwire.changes.read_messages import key_lists, operations_of
from sparkwire.changes.record_keys import RecordKeys
from sparkwire.changes.records import OTHER, OWN, UNKNOWN, MessageRecords
from sparkwire.changes.systems import Fields, System
from sparkwire.core.column import bools_of, primitive
from sparkwire.core.names import Names, Table, fits, table_name, topic_name
from sparkwire.debezium.layout import WITHOUT_ROWS
from sparkwire.debezium.table_columns import MessageSide, all_columns, columns_text, names_of, of_table
from sparkwire.json import values
from sparkwire.json.types import Type, widest
from sparkwire.kernels import Bools, Ints

_ALIKE: Final = {"BINARY", "JSON"}
"""types whose values look like those of other types"""
_TIMES: Final = {"TIMESTAMP", "TIMESTAMP_NTZ"}
"""types whose values look alike"""
_TABLE, _COLUMNS, _KEYS, _TOPIC, _ADVICE, _NAMELESS = "table", "columns", "keys", "topic", "advice", "nameless"
_ENVELOPES, _FLATTENED = "envelopes", "flattened"
_KINDS: Final = (_TABLE, _COLUMNS, _KEYS, _TOPIC, _ADVICE, _NAMELESS, _ENVELOPES, _FLATTENED)


class MisfitError(ValueError):
    """The messages of a table declare types of a column that do not fit together."""

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        super().__init__(text)
        self.columns = columns
        """the names of all columns of the table"""


class Survey(NamedTuple):
    """The facts about a batch, and about one table in it."""

    tables: list[str]
    """the sorted names of the tables that messages name"""
    columns: dict[str, str]
    """the table's columns; each has the narrowest type that holds the values of all messages"""
    keys: tuple[str, ...] | None
    """the key columns; None if messages name none, or different ones"""
    topics: dict[str, str]
    """OWN, OTHER or UNKNOWN of each topic with rows"""
    only_table: bool
    """whether all rows are of the table"""
    advice: list[str]
    """what messages of other systems look like"""
    nameless: bool = False
    """whether there are rows that name no table"""
    enveloped: tuple[str, ...] = ()
    """the topics with envelopes of Debezium that name their table"""
    flattened: tuple[str, ...] = ()
    """the topics with flattened rows"""

    @classmethod
    def of(cls, facts: Iterable[str], format: str, table: Table | None) -> Survey:
        seen: dict[str, list[Any]] = {name: [] for name in _KINDS}
        for fact in sorted(facts):
            [(name, value)] = json.loads(fact).items()
            seen[name].append(value)
        topics = _topics(seen[_TOPIC], table)
        texts = [
            json.dumps(columns) for topic, columns in seen[_COLUMNS] if topic is None or topics.get(topic, OWN) == OWN
        ]
        keys = {tuple(names) for topic, names in seen[_KEYS] if topic is None or topics.get(topic, OWN) == OWN}
        return cls(
            sorted({table_name(*parts) for parts in seen[_TABLE]}),
            _columns(texts, format),
            keys.pop() if len(keys) == 1 else None,
            topics,
            all(verdict == OWN for verdict in topics.values()),
            sorted(seen[_ADVICE]),
            bool(seen[_NAMELESS]),
            tuple(seen[_ENVELOPES]),
            tuple(seen[_FLATTENED]),
        )


def _columns(texts: list[str], format: str) -> dict[str, str]:
    """The columns of all these versions. Raises MisfitError if the types of a column do not fit together."""
    try:
        return _combined_columns(texts, format)
    except ValueError as error:
        raise MisfitError(
            str(error), list(dict.fromkeys(name for text in texts for name in json.loads(text)))
        ) from error


def _combined_columns(texts: list[str], format: str) -> dict[str, str]:
    if format == "debezium":
        return all_columns(texts)
    versions = [json.loads(text) for text in sorted(set(texts), key=lambda text: (-text.count(":"), text))]
    types: dict[str, list[str]] = {}
    for version in versions:
        for name, type in version.items():
            types.setdefault(name, []).append(type)
    if SYSTEMS[format].declared_types is None:
        _check_forms(types)
    return {name: _combined(versions, format) for name, versions in types.items()}


def _check_forms(types: Mapping[str, Collection[str]]) -> None:
    """Raise ValueError if a column had two types whose values look alike: a row does not say which one it has."""
    for name, declared in types.items():
        different = sorted(set(declared))
        if len(different) > 1 and (_ALIKE & set(declared) or set(declared) >= _TIMES):
            raise value_error(
                f"the messages declare the column {name} as {different[0]} and as {different[1]}, and its values do not say "
                "which they are: pass columns, and read the messages before and after that statement separately"
            )


def _combined(types: list[str], format: str) -> str:
    """The narrowest type that holds the values of all of them."""
    if len(set(types)) == 1:
        return types[0]
    type_of = SYSTEMS[format].type_of
    return sql_name(widest(type_of(type).arrow for type in types)).replace(" ", "")


def text_of(type: Type) -> str:
    """The text of a type, as the user would write it."""
    return sql_name(type.arrow).replace(" ", "") if type.kind == "text" else str(type)


def _topics(facts: list[tuple[str, bool | None]], table: Table | None) -> dict[str, str]:
    """Whose rows the topics have. A fact is a topic, and whether a row in it is of the table: None if the row names no table."""
    if table is None:
        return {}
    seen: dict[str, set[bool | None]] = {}
    for topic, is_own in facts:
        seen.setdefault(topic, set()).add(is_own)
    named = _named([topic for topic, kinds in seen.items() if kinds == {None}], table)
    verdicts = {}
    for topic, kinds in seen.items():
        answers = kinds - {None}
        if answers:
            verdicts[topic] = OWN if answers == {True} else OTHER if answers == {False} else UNKNOWN
        elif topic in named or len(seen) == 1:
            verdicts[topic] = OWN
        else:
            verdicts[topic] = UNKNOWN
    return verdicts


def _named(topics: Sequence[str], table: Table) -> list[str]:
    """The topics that have the table's name. If none has its schema or database, too, several ones may be of several tables."""
    wanted = [topic_name(name) for name in (table.name, table.schema, table.database) if name is not None]
    parts = {topic: topic.split(".")[::-1] for topic in topics}
    for length in range(len(wanted), 0, -1):
        named = [topic for topic, names in parts.items() if names[:length] == wanted[:length]]
        if named:
            return named if length == len(wanted) > 1 or len(named) == 1 else []
    return []


# ---------------------------------------------------------------- facts of a batch


def survey_messages(format: str, records: MessageRecords, table: Table | None) -> list[str]:
    """The facts of messages of a system that is a declaration."""
    system = SYSTEMS[format]
    fields = Fields(system, records.values)
    readable = fields.recognized & fields.documents.intact
    if system.left_out is not None:
        readable &= ~system.left_out(fields)
    if table is None:  # a table that has only statements has no changes
        readable &= ~operations_of(fields)[2]
    chosen = readable if table is None else readable & fits(table, fields.names)
    named = bools_of(fields.names.table.is_valid())
    facts = [*_table_facts(fields.names, _telling(readable, chosen, named, table)), *_nameless_facts(readable & ~named)]
    facts += (_fact(_COLUMNS, ("", columns)) for columns in _declared(system, fields, np.flatnonzero(chosen)))
    names = key_lists(fields, records, np.flatnonzero(chosen), ())
    facts += (_fact(_KEYS, ("", list(key))) for key in _distinct_lists(names))
    return facts + _advice_facts(records.values, fields.valid & ~fields.recognized, format)


def _declared(system: System, fields: Fields, rows: Ints) -> Iterator[dict[str, str]]:
    """The columns that these messages declare."""
    if system.declared_columns is not None:
        yield from system.declared_columns(fields, rows)
    if system.declared_types is None:
        return
    types = fields.images(rows).types
    distinct = values.distinct(types, system.types_kind)
    for text in values.texts(types.at(distinct.rows)).to_pylist():
        yield {name: text_of(type) for name, type in system.declared_types(text).items()}


def survey_debezium(
    messages: MessageSide,
    keys: MessageSide | None,
    records: MessageRecords,
    table: Table | None,
    columns: Collection[str] = (),
) -> list[str]:
    """The facts of messages of Debezium. ``columns`` are those of the table, if the user names them."""
    scan, declared = messages.scan, messages.declared
    is_row = bools_of(messages.column.is_valid()) & scan.documents.intact & ~scan.tombstones
    is_row &= (scan.enveloped | scan.flattened) & ~np.isin(scan.operations, WITHOUT_ROWS)
    wrong = wrong_messages(messages, columns) & is_row
    is_row &= ~wrong & ~heartbeats_with_more(messages, keys, columns)
    names = names_of(scan, declared)
    named = bools_of(names.table.is_valid())
    chosen = is_row & of_table(scan, declared, table)
    facts = [*_table_facts(names, _telling(is_row, chosen, named, table))]
    facts += _nameless_facts(is_row & ~named)
    if table is not None:
        has_key = np.zeros(len(is_row), np.bool_) if keys is None else bools_of(keys.column.is_valid())
        dead = (~bools_of(messages.column.is_valid()) | scan.tombstones) & has_key
        facts += _topic_facts(records.topics, is_row | dead, chosen, named & ~dead)
        facts += _form_facts(_ENVELOPES, records.topics, is_row & named & scan.enveloped)
        is_flattened = is_row & scan.flattened & (scan.has_added_members | bools_of(declared.names.is_valid()))
        facts += _form_facts(_FLATTENED, records.topics, is_flattened)
        facts += _debezium_facts(messages, keys, chosen & named, None)
        facts += _debezium_facts(messages, keys, chosen & ~named, records.topics)
    return facts + _advice_facts(messages.column, wrong, "debezium")


def _debezium_facts(
    messages: MessageSide, keys: MessageSide | None, chosen: Bools, of_topics: pa.Array | None
) -> Iterator[str]:
    """The columns and key names in rows of the table, by topic. Without topics, the rows name the table."""
    rows = np.flatnonzero(chosen)
    topics = None if of_topics is None else of_topics.take(primitive(rows)).cast(pa.string()).fill_null("")
    versions = messages.declared.versions
    codes = primitive(versions.codes[rows].astype(np.int32))
    for topic, code in _distinct_pairs(topics, codes):
        if code >= 0:
            yield _fact(_COLUMNS, (topic, json.loads(columns_text(versions.types[code]))))
    if keys is not None:
        names = RecordKeys(keys, {}, None).names(rows)
        joined = pc.if_else(pc.greater(names.value_lengths(), 0), pc.binary_join(names, "\0"), None)
        for topic, key in _distinct_pairs(topics, joined):
            if key is not None:
                yield _fact(_KEYS, (topic, key.split("\0")))


def _topic_facts(topics: pa.Array | None, is_row: Bools, chosen: Bools, named: Bools) -> Iterator[str]:
    """Whose rows each topic has. Records without topics are of the topic ""."""
    rows = np.flatnonzero(is_row)
    kinds = np.where(~named[rows], 2, chosen[rows].astype(np.int8))
    of_rows = None if topics is None else topics.take(primitive(rows)).cast(pa.string()).fill_null("")
    for topic, kind in _distinct_pairs(of_rows, primitive(kinds), ""):
        yield _fact(_TOPIC, (topic, None if kind == 2 else bool(kind)))


def _form_facts(form: str, topics: pa.Array | None, chosen: Bools) -> list[str]:
    """The topics of messages with this form."""
    rows = primitive(np.flatnonzero(chosen))
    names = [""] if topics is None else pc.unique(topics.take(rows).cast(pa.string()).fill_null("")).to_pylist()
    return [_fact(form, name) for name in names] if len(rows) else []


def _telling(readable: Bools, chosen: Bools, named: Bools, table: Table | None) -> Ints:
    """Messages that together name every table in the batch: one of the chosen table, and all others."""
    if table is None:
        return np.flatnonzero(readable & named)
    return np.concatenate((np.flatnonzero(chosen & named)[:1], np.flatnonzero(readable & ~chosen & named)))


def _table_facts(names: Names, rows: Ints) -> Iterator[str]:
    columns = pa.table([column.take(primitive(rows)) for column in names], names=list(Names._fields))
    named = columns.filter(pc.not_equal(columns["table"], ""))
    for row in named.group_by(named.column_names).aggregate([]).to_pylist():
        yield _fact(_TABLE, tuple(row.values()))


def _nameless_facts(nameless: Bools) -> list[str]:
    return [_fact(_NAMELESS, True)] if nameless.any() else []


def _advice_facts(column: pa.Array, chosen: Bools, format: str) -> list[str]:
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return []
    found = foreign.advice(column.take(primitive(rows)), format)
    return [_fact(_ADVICE, reason) for reason in sorted({reason for reason in found if reason is not None})]


def _distinct_pairs(one: pa.Array | None, other: pa.Array, otherwise: str | None = None) -> Iterator[tuple[Any, Any]]:
    """The different pairs of items; without ``one``, its items are ``otherwise``."""
    if one is None:
        return ((otherwise, item) for item in pc.unique(other).to_pylist())
    pairs = pa.table([one, other], names=["one", "other"]).group_by(["one", "other"]).aggregate([])
    return zip(pairs["one"].to_pylist(), pairs["other"].to_pylist(), strict=True)


def _distinct_lists(lists: pa.Array) -> list[list[str]]:
    joined = pc.if_else(pc.greater(lists.value_lengths(), 0), pc.binary_join(lists, "\0"), None)
    return [text.split("\0") for text in pc.unique(joined).drop_null().to_pylist()]


def _fact(name: str, value: Any) -> str:
    return json.dumps({name: value}, ensure_ascii=False)
