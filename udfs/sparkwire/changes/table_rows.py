"""Make change rows of what messages say: typed images, keys, the order, and an error for each row that is not right.

This is the part that all capture systems share. A system reads its messages to `TableRows`; `change_batch` makes change rows of
them. It enforces the rule of change tables: each row is right, or it has an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_FIELD, ERRORS, MISSING_FIELD
from sparkwire.base.printable import printable
from sparkwire.changes.columns import (
    DELETE,
    EVENT,
    LIVE,
    TRUNCATE,
    UPDATE,
    ChangeBatch,
    change_schema,
    names_column,
)
from sparkwire.changes.records import MessageRecords, ReadPlan, order_type, orders
from sparkwire.core.column import bools_of, primitive, struct
from sparkwire.json.grammar import ABSENT, OBJECT
from sparkwire.json.typed_images import (
    Added,
    JsonRows,
    MapEntries,
    TypedImages,
    Unavailable,
    Versions,
    named_lists,
    read_images,
    unexpected_map,
)
from sparkwire.json.types import Type
from sparkwire.json.values import Values
from sparkwire.kernels import Bools, Ints

_ZERO_DATE: Final = r"^0000-00-00( 00:00:00(\.0+)?)?$"


class TableRows(NamedTuple):
    """What messages say about rows of the table; one item for each row."""

    messages: Ints
    """the index of the row's message"""
    ops: pa.Array
    """operations of a change table; NULL if the message does not contain one"""
    before: Values
    """JSON objects: the old rows"""
    after: Values
    errors: pa.Array
    """STRING; NULL if the message is valid"""
    times: pa.Array
    tables: pa.Array
    transactions: pa.Array
    keys: pa.Array
    """ARRAY<STRING>: the names of the key columns in the message; NULL if it has none"""
    versions: Versions
    places: pa.Array | None = None
    """the place of the row in its message"""
    positions: pa.Array | None = None
    """the position in the source; None if the system has none"""
    is_later: pa.Array | None = None
    """BOOLEAN: rows of a snapshot that began after other changes"""
    is_partial: Bools | None = None
    """rows whose ``before`` has only the members that changed; ``after`` has the others"""
    is_unchanged: Bools | None = None
    """rows in which a member that ``after`` does not have is the one of ``before``"""
    missing: Bools | None = None
    """rows in which a member that is not there has an unknown value; elsewhere it is NULL"""
    missing_before: Bools | None = None
    """the same of ``before``, if not as ``missing``"""
    unmodified: Bools | None = None
    """rows in which a column that is NULL in ``before`` and ``after`` has not changed"""
    unavailable: Unavailable | None = None
    added: Added | None = None
    record_keys: TypedImages | None = None
    """the keys of the records; NULL if a key is not used, and unavailable what a key does not have"""
    old_keys: pa.Array | None = None
    """STRUCT of the columns: the old key of a row whose key changed"""
    events: pa.Array | None = None
    """the changes of keys that are several messages"""
    places_in_source: Callable[[Ints], pa.Array] | None = None
    """the positions of some messages in the source, as STRUCT; None if the system has none that identify a change"""
    before_has_key: bool = False
    """whether ``before`` of a live row always has the key"""
    old_value_mark: str = ""
    """the beginning of the name of a member of ``after`` that has an old value"""
    missing_mark: str = ""
    """the end of the name of a member that is true if a column's value is missing"""
    snapshots: pa.Array | None = None
    """STRING: what the message says of a snapshot; None if the system says nothing"""


class TypedRows(NamedTuple):
    """What messages say, with typed columns."""

    said: TableRows
    columns: Sequence[pa.Array]
    """the new row; the old row if there is no new one"""
    old: pa.Array
    """STRUCT: the old row"""
    has_new: Bools
    keys: pa.Array
    """ARRAY<STRING>: the names of the key's columns"""
    is_unavailable: Bools
    """rows by columns"""
    unexpected: list[MapEntries]
    errors: pa.Array
    """STRING: why a row is not right; NULL if it is"""


def schema_of(
    types: Mapping[str, Type],
    position: pa.DataType | None,
    *,
    with_row: bool,
    with_event: bool,
    text_offsets: bool = False,
) -> pa.Schema:
    """The schema of the change table."""
    fields = [pa.field(name, type.arrow) for name, type in types.items()]
    schema = change_schema(order_type(position, with_row, text_offsets), fields)
    return schema.append(pa.field(EVENT, pa.string())) if with_event else schema


def change_batch(
    typed: TypedRows, types: Mapping[str, Type], schema: pa.Schema, plan: ReadPlan, records: MessageRecords
) -> ChangeBatch:
    """The rows of a change table. A row without a place in its order has an error."""
    said = typed.said
    position = said.positions if plan.by_source else None
    ordered, placed = orders(
        schema.field("_order_").type, plan, records, said.messages, said.ops, position, said.places, said.is_later
    )
    arrays = [
        said.ops,
        ordered,
        said.times,
        said.tables,
        said.transactions,
        typed.keys,
        typed.old,
        *typed.columns,
        named_lists(typed.is_unavailable, list(types)),
        unexpected_map(typed.unexpected, len(said.messages)),
        pc.coalesce(typed.errors, pc.if_else(placed, None, ERRORS[MISSING_FIELD])),
    ]
    if EVENT in schema.names:
        lacks = bools_of(pc.is_in(said.ops, pa.array(LIVE))) & typed.is_unavailable.any(axis=1)
        keys = _key_lists(list(types), typed.keys, plan)
        arrays.append(_events(said, _moved(typed.columns, typed.old, keys) & lacks if lacks.any() else lacks))
    return ChangeBatch(said.messages, pa.RecordBatch.from_arrays(cast_to(arrays, schema), schema=schema))


def cast_to(arrays: Sequence[pa.Array], schema: pa.Schema) -> list[pa.Array]:
    """The arrays with the types of a schema."""
    return [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(arrays, schema, strict=True)
    ]


def typed_rows(said: TableRows, types: Mapping[str, Type], plan: ReadPlan) -> TypedRows:
    """Type what messages say, and find the error of each row that is not right."""
    rows = len(said.messages)
    added = said.added
    missing_before = said.missing if said.missing_before is None else said.missing_before
    source_after, source_before = (
        JsonRows(
            image, types, unavailable=said.unavailable, missing=missing, added=added, missing_mark=said.missing_mark
        )
        for image, missing in ((said.after, said.missing), (said.before, missing_before))
    )
    if said.is_partial is not None:
        source_before.add_members_of(source_after, said.is_partial)
    if said.is_unchanged is not None:
        source_after.add_members_of(source_before, said.is_unchanged)
    if said.unmodified is not None:
        source_after.keep_nulls_of(source_before, said.unmodified)
    after, before = (read_images(source, types, said.versions) for source in (source_after, source_before))
    has_after = bools_of(after.column.is_valid())
    is_delete = bools_of(pc.equal(said.ops, DELETE).fill_null(False))
    is_live = bools_of(pc.is_in(said.ops, pa.array(LIVE)))
    old_row = _old_row(before.column, types, plan)
    if said.record_keys is not None:
        old_row = _with_keys(old_row, said.record_keys.column, is_delete)
        before = before._replace(
            unexpected=[*before.unexpected, *_of(said.record_keys.unexpected, is_delete & ~source_before.present)]
        )
    columns = after.column.flatten()
    if not has_after.all():
        is_new = primitive(has_after, type=pa.bool_())
        columns = [pc.if_else(is_new, new, old) for new, old in zip(columns, old_row.flatten(), strict=True)]
    key_names = names_column(plan.keys, rows) if plan.keys is not None else said.keys
    own_keys = _key_lists(list(types), key_names, plan)
    unavailable = after.unavailable | (before.unavailable & ~has_after[:, None])
    lost = _without_members(source_after, source_before, has_after, own_keys)
    placeholders = unavailable & ~lost
    if said.record_keys is not None:
        columns, found = _with_members_of_keys(columns, said.record_keys, lost, has_after)
        lost, unavailable = lost & ~found, unavailable & ~found
    lacks_old_key = _without_old_key(source_before, is_live & has_after, own_keys, said.before_has_key)
    unexpected = [*after.unexpected, *_of_before(before, has_after)]
    odd_texts = _odd_texts([*after.unexpected, *before.unexpected], list(types), rows)
    old = old_row if said.old_keys is None else pc.if_else(said.old_keys.is_valid(), said.old_keys, old_row)
    is_truncate = bools_of(pc.equal(said.ops, TRUNCATE).fill_null(False))
    checks = (
        (is_live & ~has_after, MISSING_FIELD),
        (is_delete & has_after, BAD_FIELD),
        (
            (source_after.is_empty | (source_before.is_empty & ~has_after)) & ~is_truncate & (not plan.absent_nulls),
            MISSING_FIELD,
        ),
        (_in_keys(odd_texts, own_keys), BAD_FIELD),
        (_in_keys(placeholders, own_keys), BAD_FIELD),
        (_keyless(columns, own_keys, rows) & ~is_truncate, MISSING_FIELD),
        (_of_nothing(columns, is_delete), MISSING_FIELD),
        (_doubtful_keys(said.record_keys, is_delete & source_before.present, list(types), plan), MISSING_FIELD),
        (_has_fillers(old, columns, is_delete, own_keys, plan), MISSING_FIELD),
        (lost.any(axis=1) & ~is_truncate & (not plan.absent_nulls), MISSING_FIELD),
        (lacks_old_key & (not plan.absent_nulls), MISSING_FIELD),
        (_with_old_key_inside(after.unexpected, said, own_keys, list(types)), BAD_FIELD),
    )
    misspelt = _spellings([*after.unexpected, *before.unexpected], (source_after, source_before), rows)
    errors = pc.coalesce(said.errors, misspelt)
    for fault, code in checks:
        if fault.any():
            errors = pc.coalesce(errors, pc.if_else(primitive(fault, type=pa.bool_()), ERRORS[code], None))
    return TypedRows(said, columns, old, has_after, key_names, unavailable, unexpected, errors)


def _moved(columns: Sequence[pa.Array], old: pa.Array, keys: Sequence[tuple[list[int], Bools]]) -> Bools:
    """Rows whose old row has another key."""
    moved, old_columns = np.zeros(len(old), np.bool_), old.flatten()
    for places, rows in keys:
        for k in places:
            if not pa.types.is_nested(old_columns[k].type):
                moved |= rows & ~bools_of(pc.equal(columns[k], old_columns[k]).fill_null(True))
    return moved & bools_of(old.is_valid())


def _events(said: TableRows, moved: Bools) -> pa.Array:
    """The events of changes of keys. One message is identified by its position in the source, whose text has no line break."""
    rows, messages = len(moved), np.flatnonzero(moved)
    if said.places_in_source is None or not len(messages):
        return pa.nulls(rows, pa.string()) if said.events is None else said.events
    positions = said.places_in_source(said.messages[messages])
    parts = [part.cast(pa.string()).fill_null("") for part in positions.flatten()]
    texts = pc.if_else(positions.is_valid(), pc.binary_join_element_wise(*parts, " "), None)
    places = np.full(rows, -1)
    places[messages] = np.arange(len(messages))
    return texts.take(pa.array(places, pa.int64(), mask=places < 0))


def _old_row(before: pa.Array, types: Mapping[str, Type], plan: ReadPlan) -> pa.Array:
    """The old row, in full or only its key."""
    if plan.whole_before or plan.keys is None:
        return before
    fields = [
        column if name in plan.keys else pa.nulls(len(column), column.type)
        for name, column in zip(types, before.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(fields, fields=list(before.type), mask=before.is_null())


def _with_keys(old_row: pa.Array, keys: pa.Array, chosen: Bools) -> pa.Array:
    """The old rows; in the ``chosen`` ones, columns without a value have the value of the record's key."""
    of_key = pc.and_(primitive(chosen, type=pa.bool_()), keys.is_valid())
    fields = [
        pc.if_else(pc.and_(of_key, old.is_null()), key, old)
        for old, key in zip(old_row.flatten(), keys.flatten(), strict=True)
    ]
    valid = bools_of(pc.or_(old_row.is_valid(), of_key))
    return struct(dict(zip([field.name for field in old_row.type], fields, strict=True)), valid)


def _without_members(
    after: JsonRows, before: JsonRows, has_after: Bools, keys: Sequence[tuple[list[int], Bools]]
) -> Bools:
    """Rows by columns: the key columns for which the row has no member. A member with null is one."""
    names = list(after.places)
    lost = np.zeros((len(has_after), len(names)), np.bool_)
    for places, rows in keys:
        for k in places:
            kinds = np.where(has_after, after.value(names[k]).kinds, before.value(names[k]).kinds)
            lost[:, k] |= rows & (kinds == ABSENT)
    return lost


def _without_old_key(
    before: JsonRows, chosen: Bools, keys: Sequence[tuple[list[int], Bools]], before_has_key: bool
) -> Bools:
    """The chosen rows whose old row has members for a part of the key alone.

    ``before_has_key``: an old row always has the key, so those without any such member are found, too.
    """
    names, found = list(before.places), np.zeros(len(chosen), np.bool_)
    for places, rows in keys:
        if len(places) >= (1 if before_has_key else 2):
            has = np.stack([before.value(names[k]).kinds != ABSENT for k in places])
            found |= rows & chosen & before.present & ~has.all(axis=0) & (has.any(axis=0) | before_has_key)
    return found


def _with_old_key_inside(
    unexpected: Sequence[MapEntries], said: TableRows, keys: Sequence[tuple[list[int], Bools]], columns: Sequence[str]
) -> Bools:
    """Updates whose new row has a member with an old value of the key."""
    found = np.zeros(len(said.messages), np.bool_)
    for entry in unexpected if said.old_value_mark else ():
        for places, rows in keys:
            marked = pa.array([said.old_value_mark + columns[k] for k in places], pa.string())
            of_key = entry.rows[bools_of(pc.is_in(entry.names, marked))]
            found[of_key] |= rows[of_key]
    return found & bools_of(pc.equal(said.ops, UPDATE).fill_null(False))


def _with_members_of_keys(
    columns: Sequence[pa.Array], keys: TypedImages, lost: Bools, has_after: Bools
) -> tuple[list[pa.Array], Bools]:
    """The columns, with the values of the records' keys where a new row has no member; and which values a key has."""
    in_key = bools_of(keys.column.is_valid())[:, None] & ~keys.unavailable
    chosen = lost & in_key & has_after[:, None]
    filled = [
        pc.if_else(primitive(rows, type=pa.bool_()), key, column) if rows.any() else column
        for column, key, rows in zip(columns, keys.column.flatten(), np.ascontiguousarray(chosen.T), strict=True)
    ]
    return filled, lost & in_key


def _of(entries: Sequence[MapEntries], chosen: Bools) -> list[MapEntries]:
    """The entries of the chosen rows."""
    result = []
    for entry in entries:
        found = np.flatnonzero(chosen[entry.rows])
        result.append(
            MapEntries(entry.rows[found], entry.names.take(primitive(found)), entry.texts.take(primitive(found)))
        )
    return result


def _of_before(before: TypedImages, has_after: Bools) -> list[MapEntries]:
    """The unexpected values of old rows; beside a new row, their names begin with ``before.``."""
    unexpected = []
    for entry in before.unexpected:
        renamed = pc.binary_join_element_wise("before.", entry.names, "")
        names = pc.if_else(primitive(has_after[entry.rows], type=pa.bool_()), renamed, entry.names)
        unexpected.append(entry._replace(names=names))
    return unexpected


# ---------------------------------------------------------------- keys


def _key_lists(names: Sequence[str], key_names: pa.Array, plan: ReadPlan) -> list[tuple[list[int], Bools]]:
    """The indexes of the key columns, for each different key and the rows that have it."""
    rows = len(key_names)
    if plan.keys is not None:
        return [([names.index(name) for name in plan.keys if name in names], np.ones(rows, np.bool_))]
    texts = pc.binary_join(key_names, "\0").dictionary_encode()
    codes = np.asarray(texts.indices.fill_null(-1))
    found = []
    for code, text in enumerate(texts.dictionary.to_pylist()):
        found.append(([names.index(name) for name in text.split("\0") if name in names], codes == code))
    return found


def _keyless(columns: Sequence[pa.Array], keys: Sequence[tuple[list[int], Bools]], rows: int) -> Bools:
    """Rows whose key is wholly NULL."""
    keyless = np.zeros(rows, np.bool_)
    for places, chosen in keys:
        if places:
            keyless |= chosen & np.logical_and.reduce([~bools_of(columns[place].is_valid()) for place in places])
    return keyless


def _doubtful_keys(keys: TypedImages | None, chosen: Bools, names: Sequence[str], plan: ReadPlan) -> Bools:
    """The chosen old rows with a key column that is not in the record's key: connectors fill it with zeros."""
    if keys is None or plan.keys is None or plan.whole_before or not chosen.any():
        return np.zeros(len(chosen), np.bool_)
    places = [names.index(name) for name in plan.keys if name in names]
    return chosen & bools_of(keys.column.is_valid()) & keys.unavailable[:, places].any(axis=1)


def _has_fillers(
    old: pa.Array,
    columns: Sequence[pa.Array],
    is_delete: Bools,
    keys: Sequence[tuple[list[int], Bools]],
    plan: ReadPlan,
) -> Bools:
    """The rows whose old key has a NULL that may stand for another value.

    A connector that knows only the primary key of an old row writes NULL for a column beside it, also in the record's key.
    """
    found = np.zeros(len(is_delete), np.bool_)
    if plan.whole_before or plan.has_given_keys:
        return found
    present, old_columns = bools_of(old.is_valid()), old.flatten()
    for places, rows in keys:
        for place in places:
            is_null = ~bools_of(columns[place].is_valid())
            was_null = present & ~bools_of(old_columns[place].is_valid())
            found |= rows & np.where(is_delete, is_null, was_null & ~is_null)
    return found


def _of_nothing(columns: Sequence[pa.Array], chosen: Bools) -> Bools:
    """The chosen rows without any value, not even one of a key."""
    if not chosen.any():
        return chosen
    without: Bools = np.logical_and.reduce([~bools_of(column.is_valid()) for column in columns])
    return chosen & without


def _odd_texts(unexpected: Sequence[MapEntries], names: Sequence[str], rows: int) -> Bools:
    """Rows by columns: where the new or the old row has a value that does not fit. MySQL's zero date is NULL in a key, too."""
    odd = np.zeros((rows, len(names)), np.bool_)
    for entry in unexpected:
        is_zero = bools_of(pc.match_substring_regex(entry.texts, _ZERO_DATE).fill_null(False))
        encoded = entry.names.dictionary_encode()
        place = np.array(
            [names.index(name) if name in names else -1 for name in encoded.dictionary.to_pylist()], np.int64
        )
        columns = np.where(is_zero, -1, place[np.asarray(encoded.indices)])
        odd[entry.rows[columns >= 0], columns[columns >= 0]] = True
    return odd


def _spellings(unexpected: Sequence[MapEntries], sources: Sequence[JsonRows], rows: int) -> pa.Array:
    """The errors of rows with a member whose name is that of a column in another case, and without the column itself."""
    columns = list(sources[0].places)
    spelling = {name.lower(): name for name in columns}
    found: dict[int, str] = {}
    for entry in unexpected:
        encoded = entry.names.dictionary_encode()
        meant = [spelling.get(name.lower()) if name not in columns else None for name in encoded.dictionary.to_pylist()]
        codes = np.asarray(encoded.indices)
        for code, name in enumerate(meant):
            if name is None:
                continue
            has = np.logical_or.reduce([source.value(name).kinds != ABSENT for source in sources])
            of_message = printable(encoded.dictionary[code].as_py())
            text = (
                f"{ERRORS[BAD_FIELD]}: columns has {printable(name)}, and the message {of_message}: write {of_message}"
            )
            found |= dict.fromkeys(entry.rows[(codes == code) & ~has[entry.rows]].tolist(), text)
    return pa.array([found.get(row) for row in range(rows)], pa.string()) if found else pa.nulls(rows, pa.string())


def _in_keys(faults: Bools, keys: Sequence[tuple[list[int], Bools]]) -> Bools:
    """The rows with one of these faults in a key column."""
    result = np.zeros(len(faults), np.bool_)
    for places, chosen in keys:
        if places:
            result |= chosen & faults[:, places].any(axis=1)
    return result


def objects_only(values: Values) -> Values:
    """The values that are objects; the others become absent."""
    return values.only(values.kinds == OBJECT)
