"""Read the rows of a table from Debezium's messages: envelopes, flattened rows and CloudEvents, with tombstones.

Connectors fill unknown values of an old row with zeros. So only the key of ``before`` is used, unless the user specifies
otherwise.

A change of a key is several messages. The DELETE of the old key, and a tombstone after it, have the new key in a header. The new
row has the old key in a header. Each one has its order in its own partition. `_event_` is the same text in the DELETE and in the
new row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_FIELD, ERRORS, MISSING_FIELD, OK, WRONG_FORMAT
from sparkwire.changes import foreign
from sparkwire.changes.fold import event_texts
from sparkwire.changes.record_keys import RecordKeys
from sparkwire.changes.records import OTHER, OWN, MessageRecords, ReadPlan
from sparkwire.changes.systems import is_elsewhere
from sparkwire.changes.table_rows import TableRows
from sparkwire.core.column import bools_of, from_codes, primitive
from sparkwire.core.names import Table
from sparkwire.debezium import layout
from sparkwire.debezium.cells import are_cells_of_others, is_cell_of_others, without_cells
from sparkwire.debezium.layout import (
    ADDED_NAMES,
    ELSEWHERE,
    ENVELOPE_FIELDS,
    NEW_VALUES,
    OPERATION_NAMES,
    OPERATIONS,
    ROLES,
    TIMES,
    TRANSACTION_FIELDS,
    WITH_CELLS,
    WITHOUT_ROWS,
    is_added,
)
from sparkwire.debezium.message_fields import FIELDS
from sparkwire.debezium.placeholders import placeholder_of, unavailable
from sparkwire.debezium.positions import position_of_source
from sparkwire.debezium.scanned_messages import Messages
from sparkwire.debezium.table_columns import MessageSide, has_name, names_of, of_table
from sparkwire.json import values
from sparkwire.json.grammar import INTEGER, NULL, OBJECT
from sparkwire.json.images import Images
from sparkwire.json.typed_images import Added
from sparkwire.json.types import Type
from sparkwire.json.values import Values
from sparkwire.kernels import Bools, Ints

_SERVER: Final = "serverName"
"""the member of a heartbeat's key"""
_OLD_KEY, _NEW_KEY = "__debezium.oldkey", "__debezium.newkey"
_OF_ENVELOPE: Final = {*ENVELOPE_FIELDS} - {"transaction"}
"""members that show an envelope"""
_OPS: Final = pa.array([operation.op for operation in OPERATIONS], pa.string())
_OF_TIDB: Final = ELSEWHERE[0].partition(".")[0]
_DISSOLVED: Final = "^(before|after|source)[._]"
"""the names of members that Flatten makes of an envelope's objects"""
_WITH_LSN: Final = r"^([0-9]+):[0-9]+$"
"""PostgreSQL's id of a transaction; the part after the colon differs in each message"""
_EVENT_TIME: Final = next(column.accessor for column in FIELDS if column.name == "event_time")


def read_debezium(
    messages: MessageSide, keys: MessageSide | None, records: MessageRecords, plan: ReadPlan, types: Mapping[str, Type]
) -> TableRows:
    """The rows of the table, from values and keys that are JSON or converted to it."""
    like_notices = _rows_like_notices(messages, keys, types)
    if like_notices.any():
        messages = messages._replace(scan=messages.scan.with_rows(like_notices))
    scan, record_keys = messages.scan, None if keys is None else RecordKeys(keys, types, plan.keys)
    is_null = ~bools_of(messages.column.is_valid())
    is_tombstone = is_null | scan.tombstones
    wrong = wrong_messages(messages, types)
    is_row, may_be_row = _rows_of_table(messages, keys, records, plan, is_tombstone)
    is_row |= ~is_null & ~scan.documents.intact | scan.has_odd_names
    notices = (np.isin(scan.operations, WITHOUT_ROWS) | heartbeats_with_more(messages, keys, types)) & ~wrong
    doubtful = scan.has_odd_members | _has_key_of_table(notices & ~scan.about_transactions, record_keys, types)
    doubtful |= _notices_with_columns(scan, types) | _flat_operations(scan, types) | _flat_envelopes(scan, types)
    doubtful |= _flat_objects(messages, records, plan) & (is_row | may_be_row)
    doubtful &= ~wrong
    has_key = np.ones(len(is_null), np.bool_) if records.keys is None else bools_of(records.keys.is_valid())
    left_out = notices & ~doubtful | is_tombstone & (~has_key | _in_topics_with_deletes(records, plan))
    rows = np.flatnonzero((is_row | may_be_row | wrong | doubtful) & ~left_out)
    taken, without_key = primitive(rows), is_tombstone & (keys is None)
    operations = np.where(is_tombstone, np.int8(layout.DELETE), scan.operations)
    operations[wrong | doubtful | without_key] = -1
    before, after = _images(scan, rows)
    unmodified = _envelopes_with(scan, "source.value_capture_type", layout.OLD_AND_NEW_VALUES)[rows]
    unmodified &= scan.operations[rows] == layout.UPDATE
    lacking = may_be_row | doubtful | without_key | _is_elsewhere(scan, types)
    old_keys, new_keys = (_header_keys(records.headers, rows, name, types, plan) for name in (_OLD_KEY, _NEW_KEY))
    positions, snapshots = position_of_source(scan, rows), _texts(scan, rows, "source.snapshot")
    has_no_position = (is_tombstone | scan.flattened)[rows]
    return TableRows(
        rows,
        from_codes(operations[rows], OPERATION_NAMES),
        before,
        after,
        _errors(messages, wrong, is_tombstone, lacking, _contradicts(scan)).take(taken),
        _EVENT_TIME(scan).take(taken),
        _texts(scan, rows, *ROLES["table"]),
        pc.replace_substring_regex(_texts(scan, rows, *ROLES["transaction"]), _WITH_LSN, r"\1"),
        pa.nulls(len(rows), pa.list_(pa.string())) if record_keys is None or plan.keys else record_keys.names(rows),
        messages.declared.of(rows),
        positions=positions,
        is_later=pc.equal(snapshots, layout.INCREMENTAL).fill_null(False),
        missing=scan.of_cassandra[rows] if plan.absent_nulls else np.ones(len(rows), np.bool_),
        unmodified=unmodified if unmodified.any() else None,
        unavailable=partial(unavailable, placeholder_of(plan.placeholder)),
        added=Added(scan.flattened[rows], is_added, ADDED_NAMES),
        record_keys=None if record_keys is None else record_keys.images(rows),
        old_keys=old_keys,
        events=_events(old_keys, new_keys, positions, has_no_position, record_keys, rows),
        snapshots=snapshots,
    )


def _images(scan: Messages, rows: Ints) -> tuple[Values, Values]:
    """The old and the new rows. Cassandra's connector writes the old row to ``after``."""
    before, after = (image.at(rows) for image in scan.image_objects)
    with_cells = scan.of_cassandra[rows]
    if not with_cells.any():
        return before, after
    is_delete = with_cells & (scan.operations[rows] == layout.DELETE)
    after = without_cells(after, with_cells & (after.kinds == OBJECT), is_delete)
    return before._replace(data=after.data).unless(is_delete, after), after.only(~is_delete)


def _texts(scan: Messages, rows: Ints, *fields: str) -> pa.Array:
    """STRING: the first of these fields that a message has."""
    return values.texts(scan.first(*fields).at(rows))


def _errors(messages: MessageSide, wrong: Bools, is_tombstone: Bools, lacking: Bools, contradicts: Bools) -> pa.Array:
    """The first error of each message."""
    codes = np.where(wrong, WRONG_FORMAT, np.where(is_tombstone, OK, messages.scan.row_errors))
    codes = np.where((codes == OK) & lacking, MISSING_FIELD, codes)
    codes = np.where((codes == OK) & contradicts & ~is_tombstone, BAD_FIELD, codes)
    if messages.errors is None:
        return foreign.explained(codes, messages.column, "debezium")
    return pc.coalesce(messages.errors, from_codes(codes.astype(np.int8), ERRORS))


def _contradicts(scan: Messages) -> Bools:
    """Messages whose operation contradicts their images, or the mark of a deleted row."""
    operations = scan.operations
    before, after = (scan.slot(image).kinds > NULL for image in ("before", "after"))
    is_truncate = operations == layout.TRUNCATE
    found: Bools = scan.enveloped & (
        (is_truncate & (before | after))
        | np.isin(operations, (layout.INSERT, layout.READ)) & before & after
        | (operations == layout.DELETE) & after & ~scan.of_cassandra
    )
    if not scan.flattened.any():
        return found
    ops, mark = scan.ops, scan.deleted
    says_delete, is_deleted = pc.equal(ops, "d"), pc.equal(mark, "true")
    found |= scan.flattened & bools_of(pc.not_equal(says_delete, is_deleted).fill_null(False))
    rows = np.flatnonzero(is_truncate & scan.flattened & scan.documents.intact)
    if len(rows):
        images = Images(scan.roots_at(rows))
        are_columns = [not is_added(name) for name in images.names.to_pylist()]
        found[rows[images.rows[are_columns]]] = True
    return found


# ---------------------------------------------------------------- which messages are rows of the table


def wrong_messages(messages: MessageSide, columns: Collection[str]) -> Bools:
    """Messages of another system, and those of connectors whose messages are no rows, or do not show what they changed."""
    scan = messages.scan
    wrong = _envelopes_with(scan, "source.connector", layout.MONGODB) | _has_cells(messages)
    wrong |= _envelopes_with(scan, "source.value_capture_type", NEW_VALUES) & (scan.operations == layout.UPDATE)
    coded = scan.cloud & scan.slot("data").are_texts
    # A column that the row's own schema has is no mark of another system, such as ``operation`` of a table of audits.
    bare = scan.flattened & (messages.declared.versions.codes < 0)
    likely = np.flatnonzero((bare | coded) & scan.documents.intact & bools_of(messages.column.is_valid()))
    if len(likely):
        wrong[likely] |= foreign.is_foreign(messages.column.take(primitive(likely)), "debezium", columns)
    return wrong


def _envelopes_with(scan: Messages, field: str, *wanted: str) -> Bools:
    """Envelopes that have one of these texts in a field."""
    value = scan.slot(field)
    found: Bools = scan.enveloped & np.isin(value.sizes, [len(text) for text in wanted])
    if found.any():
        found &= bools_of(pc.is_in(values.texts(value.only(found)), pa.array(wanted)).fill_null(False))
    return found


def _has_cells(messages: MessageSide) -> Bools:
    """Messages with a column that is an object with a value: by their schema, or by their connector."""
    scan, versions = messages.scan, messages.declared.versions
    found = _envelopes_with(scan, "source.connector", *WITH_CELLS)
    rows = np.flatnonzero(found)
    if len(rows):
        after, before = (scan.slot(image).at(rows) for image in ("after", "before"))
        listed = values.members(after.unless(after.kinds != OBJECT, before))
        cells = np.concatenate(([0], np.cumsum(are_cells_of_others(listed.counted_values))))[listed.firsts]
        found[rows] = np.diff(cells) > 0
    declared = [any(map(is_cell_of_others, types.values())) for types in versions.types]
    if any(declared):
        found |= np.array([*declared, False])[versions.codes]
    return found


def _rows_like_notices(messages: MessageSide, keys: MessageSide | None, types: Mapping[str, Type]) -> Bools:
    """Messages with the fields of a notice, all of which are columns of the table."""
    scan = messages.scan
    found = np.zeros(scan.source.rows, np.bool_)
    if set(TRANSACTION_FIELDS) <= set(types):
        found |= scan.about_transactions
    if "ts_ms" in types and scan.heartbeats.any():
        of_server = np.zeros(len(found), np.bool_)
        if keys is not None:
            of_server = bools_of(pc.match_substring(keys.column.cast(pa.string()), f'"{_SERVER}"').fill_null(False))
        found |= scan.heartbeats & ~of_server
    return found


def _is_elsewhere(scan: Messages, types: Mapping[str, Type]) -> Bools:
    """Messages of TiCDC whose row is elsewhere."""
    found = is_elsewhere(*map(scan.slot, ELSEWHERE))
    if _OF_TIDB in types:
        found &= scan.enveloped
    return found


def heartbeats_with_more(messages: MessageSide, keys: MessageSide | None, columns: Collection[str]) -> Bools:
    """Heartbeats with more members than a time. Their keys name the server."""
    scan = messages.scan
    found: Bools = scan.flattened & (scan.slot("ts_ms").kinds == INTEGER)
    rows = np.flatnonzero(found)
    if len(rows):
        names = None if keys is None or _SERVER in columns else RecordKeys(keys, {}, None).names(rows).to_pylist()
        found[rows] = [name == [_SERVER] for name in names or [None] * len(rows)]
    return found


def _notices_with_columns(scan: Messages, types: Mapping[str, Type]) -> Bools:
    """Notices about transactions with columns of the table that no notice has: they may be rows."""
    found = np.zeros(scan.source.rows, np.bool_)
    rows, names = np.flatnonzero(scan.about_transactions), [*types.keys() - {*TRANSACTION_FIELDS, *TIMES}]
    if len(rows) and names:
        images = Images(scan.roots_at(rows))
        are_columns = bools_of(pc.is_in(images.names, pa.array(names, pa.string())))
        found[rows[images.rows[are_columns]]] = True
    return found


def _flat_operations(scan: Messages, types: Mapping[str, Type]) -> Bools:
    """Objects without an envelope that have the operation of one, if it is not a column of the table."""
    if "op" in types:
        return np.zeros(scan.source.rows, np.bool_)
    found: Bools = scan.flattened & bools_of(pc.is_in(values.texts(scan.slot("op").only(scan.flattened)), _OPS))
    return found


def _flat_envelopes(scan: Messages, types: Mapping[str, Type]) -> Bools:
    """Envelopes that Flatten has dissolved, if a field of an envelope is a column of the table, too."""
    found = np.zeros(scan.source.rows, np.bool_)
    if not types.keys() & _OF_ENVELOPE:
        return found
    has_op = bools_of(pc.is_in(values.texts(scan.slot("op")), _OPS))
    rows = np.flatnonzero(scan.flattened & has_op & scan.documents.intact)
    if len(rows):
        images = Images(scan.roots_at(rows))
        of_source = bools_of(pc.match_substring_regex(images.names, _DISSOLVED).fill_null(False))
        of_source &= ~bools_of(pc.is_in(images.names, pa.array(list(types), pa.string())))
        sums = np.concatenate(([0], np.cumsum(of_source)))
        found[rows] = sums[images.listed.firsts[1:]] > sums[images.listed.firsts[:-1]]
    return found


def _in_topics_with_deletes(records: MessageRecords, plan: ReadPlan) -> Bools:
    """By the source's positions: messages in topics of envelopes alone. There, a delete comes before each tombstone.

    A tombstone has no position, so it could not be a change.
    """
    return _in_topics(records, {*plan.enveloped} - {*plan.flattened} if plan.by_source else ())


def _flat_objects(messages: MessageSide, records: MessageRecords, plan: ReadPlan) -> Bools:
    """Objects in a topic of envelopes that have no envelope, and nothing that shows a row: no added member, no named schema."""
    scan = messages.scan
    if not plan.enveloped:
        return np.zeros(scan.source.rows, np.bool_)
    flat = scan.flattened & ~scan.has_added_members & scan.documents.intact
    return flat & ~bools_of(messages.declared.names.is_valid()) & _in_topics(records, plan.enveloped)


def _in_topics(records: MessageRecords, topics: Collection[str]) -> Bools:
    """Records of these topics. Without a column of topics, all records are of the same ones."""
    if not topics or records.topics is None:
        return np.full(len(records.values), bool(topics))
    return bools_of(pc.is_in(records.topics.cast(pa.string()).fill_null(""), pa.array(list(topics), pa.string())))


def _has_key_of_table(notices: Bools, record_keys: RecordKeys | None, types: Mapping[str, Type]) -> Bools:
    """Which of these notices have a Kafka key whose members are all columns of the table. Then they may be rows of it."""
    found = np.zeros(len(notices), np.bool_)
    rows = np.flatnonzero(notices)
    if record_keys is not None and len(rows):
        found[rows] = [bool(names) and set(names) <= set(types) for names in record_keys.names(rows).to_pylist()]
    return found


def _rows_of_table(
    messages: MessageSide, keys: MessageSide | None, records: MessageRecords, plan: ReadPlan, is_tombstone: Bools
) -> tuple[Bools, Bools]:
    """Messages of the table, and messages that may be of it: no name identifies their table."""
    scan, table, declared = messages.scan, plan.table, messages.declared
    is_row = of_table(scan, declared, table) & ~np.isin(scan.operations, WITHOUT_ROWS)
    nameless = is_row & ~bools_of(names_of(scan, declared).table.is_valid()) & scan.documents.intact
    rows, may_be_row = np.flatnonzero(is_tombstone | nameless), np.zeros(len(is_row), np.bool_)
    if len(rows):
        verdicts = _verdicts(keys, records, plan, rows, is_tombstone)
        is_row[rows], may_be_row[rows] = verdicts == OWN, (verdicts != OWN) & (verdicts != OTHER)
    return is_row, may_be_row


def _verdicts(
    keys: MessageSide | None, records: MessageRecords, plan: ReadPlan, rows: Ints, is_tombstone: Bools
) -> np.ndarray:
    """Whether messages that do not name their table are of it: OWN, OTHER, or another text if unknown.

    It depends on the message and on its whole topic. A stream without topics does not show one: then its rows are of the table,
    and nobody knows of which table a tombstone is.
    """
    verdicts = np.full(len(rows), OWN if plan.only_table else "", "<U5")
    if keys is not None:
        names = keys.declared.names.take(primitive(rows))
        verdicts = _judged(verdicts, names, plan.table)
    if records.topics is None:
        of_all = np.where(is_tombstone[rows], "", OWN) if plan.topics is None else plan.topics.get("", "")
        return np.where(verdicts == "", of_all, verdicts)
    topics = records.topics.take(primitive(rows)).cast(pa.string()).fill_null("")
    encoded, of_topics = topics.dictionary_encode(), plan.topics or {}
    by_topic = np.array([of_topics.get(topic, "") for topic in encoded.dictionary.to_pylist()], "<U7")
    of_rows = by_topic[np.asarray(encoded.indices)]
    verdicts = np.where((of_rows == OWN) | (of_rows == OTHER), of_rows, verdicts)
    if plan.topics is None:
        verdicts = _judged(verdicts, pc.binary_join_element_wise(topics, "Key", "."), plan.table)
    return verdicts


def _judged(verdicts: np.ndarray, names: pa.Array, table: Table) -> np.ndarray:
    """The verdicts; one that is empty becomes OWN if a schema or topic has the name of the table. Another name proves nothing."""
    return np.where((verdicts == "") & has_name(names, table), OWN, verdicts)


# ---------------------------------------------------------------- changes of keys


def _header_keys(
    headers: pa.Array | None, rows: Ints, header: str, types: Mapping[str, Type], plan: ReadPlan
) -> pa.Array | None:
    """STRUCT of the columns: the key in a header of each row, NULL if it does not have the header."""
    if headers is None or not len(rows):
        return None
    taken = headers.take(primitive(rows))
    items, parents = taken.flatten(), pc.list_parent_indices(taken).to_numpy(zero_copy_only=False)
    named = np.flatnonzero(bools_of(pc.equal(items.field(0).cast(pa.string()), header).fill_null(False)))
    if not len(named):
        return None
    texts = items.field(1).take(primitive(named)).cast(pa.binary())
    keys = RecordKeys.of_texts(texts, types, plan.keys).images(np.arange(len(named))).column
    places = np.full(len(rows), -1)
    places[parents[named]] = np.arange(len(named))
    return keys.take(pa.array(places, mask=places < 0))


def _events(
    old_keys: pa.Array | None,
    new_keys: pa.Array | None,
    positions: pa.Array,
    has_no_position: Bools,
    record_keys: RecordKeys | None,
    rows: Ints,
) -> pa.Array | None:
    """The position in the source and both keys, in the two rows of a change of a key.

    The event of flattened messages has no position: the new row may have one in an added field, but the tombstone has none.
    """
    if record_keys is None or (old_keys is None and new_keys is None):
        return None
    keys = record_keys.texts(rows)
    nothing = pa.nulls(len(rows), pa.string())
    old, new = (nothing if each is None else record_keys.texts_of(each) for each in (old_keys, new_keys))
    place = pc.if_else(primitive(has_no_position, type=pa.bool_()), None, _text(positions))
    return pc.coalesce(event_texts(place, keys, new), event_texts(place, old, keys))


def _text(positions: pa.Array) -> pa.Array:
    parts = [part.cast(pa.string()).fill_null("") for part in positions.flatten()]
    return pc.if_else(positions.is_valid(), pc.binary_join_element_wise(*parts, "/"), None)
