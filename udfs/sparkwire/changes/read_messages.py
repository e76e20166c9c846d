"""Read the rows of a table from the messages of a system that is a declaration."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_FIELD, BAD_JSON, ERRORS, MISSING_FIELD, OK, UNKNOWN_OPCODE, WRONG_FORMAT
from sparkwire.changes import foreign
from sparkwire.changes.columns import DELETE, INSERT, READ, TRUNCATE, UPDATE, UPDATE_BEFORE
from sparkwire.changes.records import ROW, MessageRecords, ReadPlan, place_fields, record_places
from sparkwire.changes.systems import Fields, System
from sparkwire.changes.table_rows import TableRows, objects_only
from sparkwire.core.column import bools_of, from_codes, lists, primitive, text_or_null, to_codes
from sparkwire.core.names import Table, fits
from sparkwire.json import values
from sparkwire.json.columns import item_offsets
from sparkwire.json.grammar import ARRAY, NONE, NULL, OBJECT
from sparkwire.json.images import Item, names_of
from sparkwire.json.typed_images import Versions
from sparkwire.json.values import Values
from sparkwire.kernels import Bools, Ints

_OF_OLD_ROWS: Final = pa.array([DELETE, UPDATE_BEFORE])
"""operations whose row is the old one"""
_MAY_BE_OTHERS: Final = pa.array([ERRORS[WRONG_FORMAT], ERRORS[BAD_JSON]])
"""errors of messages that may be of another system"""


class Expanded(NamedTuple):
    """The rows in messages: the message and the place of each, its images, and what declares the types of its columns."""

    messages: Ints
    places: Ints
    after: Values
    before: Values
    types: Values


def read_messages(fields: Fields, records: MessageRecords, plan: ReadPlan) -> TableRows:
    """The rows of the table. Leaves out what the declaration leaves out, and messages of other tables."""
    is_of_table = fits(plan.table, fields.names)
    messages = np.flatnonzero(is_of_table | fields.has_odd_names | ~fields.recognized | ~fields.documents.intact)
    if len(messages) == fields.count:
        said = _read(fields, records, plan, is_of_table)
    else:
        said = _read(fields.at(messages), records.beside(messages), plan, is_of_table[messages])
        said = said._replace(messages=messages[said.messages])
    in_source = partial(_places_in_source, fields.system, records) if identifies_changes(fields.system) else None
    return said._replace(errors=_explained(said, records, fields.system), places_in_source=in_source)


def _explained(said: TableRows, records: MessageRecords, system: System) -> pa.Array:
    """The errors of rows, with what a message of another system looks like."""
    if not pc.any(pc.is_in(said.errors, _MAY_BE_OTHERS)).as_py():
        return said.errors
    messages = records.values.take(primitive(said.messages))
    return foreign.explained(to_codes(said.errors, ERRORS).astype(np.int64), messages, system.name)


def _read(fields: Fields, records: MessageRecords, plan: ReadPlan, is_of_table: Bools) -> TableRows:
    system = fields.system
    ops, is_known, is_left_out = operations_of(fields)
    is_truncate = bools_of(pc.equal(ops, TRUNCATE).fill_null(False))
    contradicts = _contradicts(fields, is_truncate)
    is_left_out &= ~contradicts
    empties_nobody = is_truncate & bools_of(pc.equal(fields.texts("table"), "").fill_null(False))
    errors = _errors(fields, is_known, contradicts, _is_nameless(fields, plan.table) | empties_nobody)
    has_key = np.ones(fields.count, np.bool_) if records.keys is None else bools_of(records.keys.is_valid())
    chosen = ~is_left_out & is_of_table & (fields.valid | has_key)
    chosen |= fields.valid & np.isin(errors, (WRONG_FORMAT, BAD_JSON)) | fields.has_odd_names
    chosen |= empties_nobody
    rows = np.flatnonzero(chosen)
    changes_rows = ~is_truncate & (errors == OK)
    expanded = _expanded(fields, rows, changes_rows)
    taken = primitive(expanded.messages)
    row_ops, texts = ops.take(taken), from_codes(errors.astype(np.int8), ERRORS)
    before, after = _images(expanded, row_ops, system)
    is_update = bools_of(pc.equal(row_ops, UPDATE).fill_null(False)) & (before.kinds == OBJECT)
    missing = np.ones(len(expanded.messages), np.bool_)
    row_errors = _row_errors(texts.take(taken), expanded, changes_rows[expanded.messages], row_ops, system)
    nothing = pa.nulls(len(expanded.messages), pa.list_(pa.string()))
    keys = key_lists(fields, records, expanded.messages, plan.columns) if plan.keys is None else nothing
    return TableRows(
        expanded.messages,
        row_ops,
        before,
        after,
        row_errors,
        fields.times[0].take(taken),
        fields.names.table.take(taken),
        text_or_null(fields.texts("transaction").take(taken)),
        keys,
        _versions(fields, expanded.messages, expanded.types),
        places=primitive(expanded.places.astype(np.int32)),
        positions=_positions(system, fields, records, expanded, plan.text_offsets) if plan.by_source else None,
        is_partial=is_update if system.old_row == "changed" else None,
        is_unchanged=is_update if system.unchanged_in_before else None,
        missing=None if plan.absent_nulls else missing,
        missing_before=missing if system.old_row == "key" else None,
        missing_mark=system.missing_mark,
        before_has_key=system.before_has_key,
        old_value_mark=system.old_value_mark,
    )


def operations_of(fields: Fields) -> tuple[pa.Array, Bools, Bools]:
    """The operation of each message, which operations exist, and which messages the declaration leaves out."""
    system = fields.system
    codes = to_codes(fields.texts("op"), tuple(system.operations))
    known = codes >= 0
    used = list(dict.fromkeys(op for op in system.operations.values() if op is not None))
    meanings = [NONE if op is None else used.index(op) for op in system.operations.values()]
    ops = np.where(known & fields.recognized, np.array(meanings, np.int8)[codes], np.int8(NONE))
    out = known & (ops == NONE) & fields.recognized
    if system.left_out is not None:
        out |= system.left_out(fields) & fields.recognized
    return from_codes(ops, used), known, out


def _has_odd_images(fields: Fields) -> Bools:
    """Messages of a system with arrays of rows that have something else instead of an array, or arrays of two lengths."""
    if not fields.system.in_arrays:
        return np.zeros(fields.count, np.bool_)
    after, before = (fields.value(role) for role in ("after", "before"))
    odd: Bools = np.logical_or.reduce([(each.kinds > NULL) & (each.kinds != ARRAY) for each in (after, before)])
    are_both = np.logical_and.reduce([(each.kinds == ARRAY) & (each.counts > 0) for each in (after, before)])
    odd |= are_both & (after.counts != before.counts)
    return odd


def _contradicts(fields: Fields, is_truncate: Bools) -> Bools:
    """Messages that contradict themselves: a TRUNCATE with rows, and what the declaration says."""
    contradicts: Bools = is_truncate & fields.has_rows if is_truncate.any() else is_truncate.copy()
    if fields.system.contradicts is not None:
        contradicts |= fields.system.contradicts(fields) & fields.recognized
    return contradicts


def _is_nameless(fields: Fields, table: Table) -> Bools:
    """Messages that do not name their table, or neither database nor schema if the caller does. Flink's have no names."""
    roles, (database, schema, name) = fields.system.fields, (~bools_of(each.is_valid()) for each in fields.names)
    nameless = name if "table" in roles else np.zeros(fields.count, np.bool_)
    if table.database is not None and "table" in roles:
        nameless = nameless | (database & schema)
    return nameless & ~fields.is_flink if nameless.any() else nameless


def _errors(fields: Fields, is_known: Bools, contradicts: Bools, is_nameless: Bools) -> Ints:
    """The first error of each message."""
    errors = np.full(fields.count, OK)
    for fault, code in reversed(
        (
            (~fields.valid, MISSING_FIELD),
            (~fields.documents.intact, BAD_JSON),
            (~fields.recognized, WRONG_FORMAT),
            (~fields.has("op"), MISSING_FIELD),
            (~is_known, UNKNOWN_OPCODE),
            (fields.times[1], BAD_FIELD),
            (fields.has_odd_names, BAD_FIELD),
            (_has_odd_images(fields), BAD_FIELD),
            (fields.is_elsewhere, MISSING_FIELD),
            (contradicts, BAD_FIELD),
            (is_nameless, MISSING_FIELD),
        )
    ):
        errors[fault] = code
    return errors


def _expanded(fields: Fields, rows: Ints, changes_rows: Bools) -> Expanded:
    """One item for each row. A message without rows has one item, too, which becomes an error."""
    after, before, types = fields.images(rows)
    if not fields.system.in_arrays:
        return Expanded(rows, np.zeros(len(rows), np.int64), after, before, types)
    first, second = ((image, image.kinds == ARRAY) for image in (after, before))
    has_rows = first[1] & (first[0].counts > 0)
    listed = np.where(has_rows, first[0].counts, np.where(second[1] & ~has_rows, second[0].counts, 1))
    counts = np.where(changes_rows[rows], np.maximum(listed, 1), 1)
    messages = np.repeat(rows, counts)
    places = np.arange(len(messages)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_rows = np.repeat(np.arange(len(rows)), counts)
    after, before = (_items(image, counts, places) for image in (after, before))
    return Expanded(messages, places, after, before, types.at(of_rows))


def _items(arrays: Values, counts: Ints, places: Ints) -> Values:
    """The item of each row; ABSENT if the array of its message has none at the row's place."""
    listed = values.items(arrays)
    firsts = np.repeat(listed.firsts[:-1], counts).astype(np.int64)
    lasts = np.repeat(listed.firsts[1:], counts)
    index = firsts + places
    return listed.together().at_or_absent(np.where(index < lasts, index, -1))


def _images(expanded: Expanded, ops: pa.Array, system: System) -> tuple[Values, Values]:
    """The old and the new row."""
    is_old = bools_of(pc.is_in(ops, _OF_OLD_ROWS))
    before, after = objects_only(expanded.before), objects_only(expanded.after)
    if system.delete_in_after:
        before = before.unless(is_old & ((before.kinds != OBJECT) | (before.counts == 0)), after)
    if system.old_row == "key":  # an old row without members does not say that the key was NULL
        before = before.only(before.counts > 0)
    return before, after.only(~is_old)


def _row_errors(errors: pa.Array, expanded: Expanded, changes_rows: Bools, ops: pa.Array, system: System) -> pa.Array:
    """The errors of messages, and of rows without an image, or with one that their operation does not have."""
    kinds = expanded.after.kinds, expanded.before.kinds
    odd = np.logical_or.reduce([(kind > NULL) & (kind != OBJECT) for kind in kinds])
    has_both = np.logical_and.reduce([kind == OBJECT for kind in kinds])
    alone = (INSERT, READ, DELETE) if system.delete_in_after else (INSERT, READ)
    odd |= has_both & bools_of(pc.is_in(ops, pa.array(alone)))
    absent = np.logical_and.reduce([kind <= NULL for kind in kinds])
    codes = np.where(changes_rows, np.where(absent, MISSING_FIELD, np.where(odd, BAD_FIELD, OK)), OK)
    return pc.coalesce(errors, from_codes(codes.astype(np.int8), ERRORS))


def key_lists(fields: Fields, records: MessageRecords, rows: Ints, columns: Iterable[str]) -> pa.Array:
    """ARRAY<STRING>: the names of the key columns that these messages, or the keys of their records, have."""
    names = _lists(fields.value("keys").at(rows), fields.system.item)
    in_key = fields.system.names_in_key
    if in_key is None or records.keys is None or not names.null_count:
        return names
    return pc.coalesce(names, _spelled(in_key(records.keys.take(primitive(rows))), columns))


def _spelled(lists: pa.Array, columns: Iterable[str]) -> pa.Array:
    """Lists of names that may be in lower case, with the names of the columns."""
    spelling = {name.lower(): name for name in columns} | {name: name for name in columns}
    encoded = lists.flatten().dictionary_encode()
    names = pa.array([spelling.get(name, name) for name in encoded.dictionary.to_pylist()], pa.string())
    return pa.ListArray.from_arrays(pa.array(item_offsets(lists)), names.take(encoded.indices), mask=lists.is_null())


def _lists(arrays: Values, item: Item | None) -> pa.Array:
    """ARRAY<STRING>; NULL if a value is not an array of texts, or of items with names."""
    distinct = values.distinct(arrays)
    if not len(distinct.rows):
        return pa.nulls(len(arrays.kinds), pa.list_(pa.string()))
    items = values.items(arrays.at(distinct.rows))
    names = items.together() if item is None else names_of(items.together(), item)
    others = np.concatenate(([0], np.cumsum(~names.are_texts)))[items.firsts]
    return distinct.spread(lists(items.firsts, values.texts(names), others[1:] == others[:-1]))


def _versions(fields: Fields, rows: Ints, types: Values) -> Versions:
    system = fields.system
    declared = system.declared_types
    if declared is None:
        return Versions(np.full(len(types.kinds), -1, np.int32), [])
    distinct = values.distinct(types, system.types_kind)
    texts = values.texts(types.at(distinct.rows)).to_pylist()
    codes, versions = distinct.codes, [declared(text) for text in texts]
    found = list(versions)
    for dialect in system.dialects:
        speaks = dialect.speaks(fields)[rows] & (codes >= 0)
        codes = np.where(speaks, codes % max(len(versions), 1) + len(found), codes)
        found += [{name: dialect.type_of(type) for name, type in types.items()} for types in versions]
    return Versions(codes, found)


def _positions(
    system: System, fields: Fields, records: MessageRecords, expanded: Expanded, text_offsets: bool
) -> pa.Array | None:
    if system.positions is None:
        return None
    positions = system.positions(fields).take(primitive(expanded.messages))
    if not system.parts_after_position:
        return positions
    places = record_places(records, expanded.messages, text_offsets)
    parts = [*positions.flatten(), *places, primitive(expanded.places)]
    fields_of = list(position_type(system, text_offsets) or ())
    return pa.StructArray.from_arrays(
        [part.cast(field.type) for part, field in zip(parts, fields_of, strict=True)],
        fields=fields_of,
        mask=positions.is_null(),
    )


def identifies_changes(system: System) -> bool:
    """Whether a position in the source is that of one change."""
    return system.positions is not None and not system.parts_after_position and not system.in_arrays


def _places_in_source(system: System, records: MessageRecords, messages: Ints) -> pa.Array:
    positions = system.positions
    if positions is None:
        raise AssertionError
    return positions(Fields(system, records.values.take(primitive(messages))))


def position_type(system: System, text_offsets: bool = False) -> pa.DataType | None:
    """The type of a position, with the parts that order rows of one position."""
    if system.position is None or not system.parts_after_position:
        return system.position
    return pa.struct([*system.position, *place_fields(text_offsets), pa.field(ROW, pa.int32())])
