"""The results of one pass over a column of messages."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_FIELD, BAD_JSON, MISSING_FIELD, OK, UNKNOWN_OPCODE
from sparkwire.core.builders import Shared
from sparkwire.core.column import Binary, binary_of, bools_of, text_or_null, to_codes
from sparkwire.core.names import Names
from sparkwire.debezium.layout import (
    ADDED_NAMES,
    CASSANDRA,
    CLOUD,
    CLOUD_WRAPPED,
    DDL,
    DELETE,
    ENVELOPE_FIELDS,
    FLATTENED,
    HEARTBEAT,
    HEARTBEAT_FIELDS,
    OPERATIONS,
    PLAIN,
    ROLES,
    SCHEMA_FIELDS,
    SLOTS,
    TIMES,
    TRANSACTION,
    TRANSACTION_FIELDS,
    TREES,
    UPSERT,
    WITHOUT_IMAGES,
    WRAPPED,
    is_added,
)
from sparkwire.json import values
from sparkwire.json.grammar import ABSENT, INTEGER, NULL, OBJECT, STRING
from sparkwire.json.images import Images
from sparkwire.json.scan import Paths, paths
from sparkwire.json.values import Distinct, Documents, Values
from sparkwire.kernels import Bools, Ints

_OPS: Final = tuple(operation.op for operation in OPERATIONS)
_CASSANDRA_OPS: Final = ("i", "u", "d")
"""in the order of `OPERATIONS`; Cassandra's r is the deletion of a range"""
_NEEDS: Final = {
    image: np.array([*(operation.image == image for operation in OPERATIONS), *[False] * 5])
    for image in ("before", "after")
}
"""whether an operation needs the image, by the operation's code; the last item is for -1, no operation"""
_ENVELOPE: Final = paths("op", "source")
"""what identifies an envelope"""
_BEGIN_END: Final = ("BEGIN", "END")
_TRUE: Final = "true"
_FALSE: Final = "false"
_PEEKED, _PEEKED_SCHEMA = 1024, 64  # [bytes] in which a message shows its form


class Messages:
    """A column of messages; each step runs once, on first use."""

    def __init__(self, column: pa.Array) -> None:
        self.source: Binary = binary_of(column)
        self._begins, self._ends = values.bounds(self.source)
        self._integers: dict[str, tuple[Ints, Bools]] = {}

    # ------------------------------------------------------------ positions

    @cached_property
    def _scanned(self) -> tuple[Documents, Ints]:
        """The fields of every message, and its form. A wrong guess of the form only costs time."""
        guess = self._likely_form()
        documents, forms = self._scan(TREES[guess], slice(None)), np.full(self.source.rows, guess)
        for _ in TREES:
            seen = self._forms(documents, forms)
            others = np.flatnonzero(seen != forms)
            if not len(others):
                break
            for form in np.unique(seen[others]).tolist():
                rows = others[seen[others] == form]
                documents = documents.replaced(rows, self._scan(TREES[form], rows))
            forms = seen
        return documents, forms

    @property
    def documents(self) -> Documents:
        return self._scanned[0]

    def _likely_form(self) -> int:
        """The form of the first message, by its first bytes."""
        sizes = self._ends - self._begins
        if self.source.valid is not None:
            sizes = np.where(self.source.valid, sizes, 0)
        first = int(np.argmax(sizes > 0)) if len(sizes) else 0
        if not len(sizes) or sizes[first] == 0:
            return PLAIN
        begin = int(self._begins[first])
        start = bytes(self.source.data[begin : begin + min(int(sizes[first]), _PEEKED)])
        if b'"specversion"' in start:
            return CLOUD
        return WRAPPED if b'"schema"' in start[:_PEEKED_SCHEMA] else PLAIN

    def _scan(self, tree: Paths, rows: Ints | slice) -> Documents:
        return values.documents(self.source.data, self._begins[rows], self._ends[rows], tree, nulls=True)

    def _forms(self, documents: Documents, forms: Ints) -> Ints:
        """The form of each message, judged by its readable part and by what a scan of ``forms`` shows of it."""
        marks = (documents.value(SLOTS[name]).kinds for name in ("specversion", "iodebeziumversion"))
        is_cloud = np.logical_and.reduce([kinds == STRING for kinds in marks])
        is_wrapped, as_cloud = self._is_wrapped(documents), forms >= CLOUD
        plain = np.where(is_cloud, CLOUD, np.where(is_wrapped, WRAPPED, PLAIN))
        return np.where(as_cloud, np.where(is_cloud, np.where(is_wrapped, CLOUD_WRAPPED, CLOUD), PLAIN), plain)

    def _is_wrapped(self, documents: Documents) -> Bools:
        """Which messages are objects with ``schema`` and ``payload``."""
        schema, payload = (documents.value(SLOTS[name]).kinds for name in ("schema", "payload"))
        described = (schema == OBJECT) & (documents.value(SLOTS["schema.type"]).kinds == STRING)
        wrapped: Bools = described & ((payload != ABSENT) | ~documents.intact)
        # A row of a table may also have columns with these names.
        unnamed = np.flatnonzero((schema == NULL) & (payload != ABSENT) & documents.intact)
        if len(unnamed):
            wrapped[unnamed] = self._member_counts(unnamed) == 2
        alone = np.flatnonzero((schema == ABSENT) & (payload == OBJECT) & documents.intact)
        if len(alone):
            inside = documents.value(SLOTS["payload"]).at(alone)
            parts = values.documents(inside.data, inside.starts, inside.starts + inside.sizes, _ENVELOPE, nulls=True)
            op, source = (parts.value(k).kinds for k in range(2))
            wrapped[alone] = (self._member_counts(alone) == 1) & (op == STRING) & (source == OBJECT)
        return wrapped

    def _member_counts(self, rows: Ints) -> Ints:
        """How many members these messages have, which are valid JSON."""
        are_valid = np.ones(len(rows), np.bool_)
        return values.roots(self.source.data, self._begins[rows], self._ends[rows], are_valid).counts

    @cached_property
    def wrapped(self) -> Bools:
        forms = self._scanned[1]
        wrapped: Bools = (forms == WRAPPED) | (forms == CLOUD_WRAPPED)
        return wrapped

    @cached_property
    def cloud(self) -> Bools:
        """CloudEvents of Debezium."""
        cloud: Bools = self._scanned[1] >= CLOUD
        return cloud

    def slot(self, field: str) -> Values:
        """The value of a field by its name in the message."""
        return self.documents.value(SLOTS[field])

    def value(self, field: str) -> Values:
        """The value of an envelope's field, or in a flattened message, of the corresponding added field."""
        value, flattened = self.slot(field), self.flattened
        if field == "source.db" and self.of_cassandra.any():
            value = value.only(~self.of_cassandra)  # Cassandra has keyspaces, and its connector writes the text "NULL"
        if self._has_flattened:
            value = value.only(~flattened)
            for name in FLATTENED.get(field, ()):
                added = self.slot(name)
                value = value.unless(flattened & (value.kinds <= NULL) & (added.kinds > NULL), added)
        return value

    def first(self, *fields: str, skip_empty: bool = False) -> Values:
        """The first of these fields that a message has."""
        first = self.value(fields[0])
        for field in fields[1:]:
            missing = first.kinds <= NULL
            if skip_empty:
                missing |= first.sizes == 0
            if not missing.any():
                break
            first = first.unless(missing, self.value(field))
        return first

    def texts(self, *fields: str) -> pa.Array:
        """STRING: the first of these fields that a message has."""
        return values.texts(self.first(*fields))

    @cached_property
    def names(self) -> Names:
        """The names in ``source``, or in added fields. An empty text is no name."""
        return Names(*(text_or_null(values.texts(self.first(*ROLES[role], skip_empty=True))) for role in Names._fields))

    def integers(self, field: str) -> tuple[Ints, Bools]:
        """The integers of an envelope's field, and which messages have one; read once."""
        if field not in self._integers:
            self._integers[field] = values.integers(self._number(field))
        return self._integers[field]

    def _number(self, field: str) -> Values:
        """The value of an envelope's field. Of CloudEvents, whose numbers are texts, an integer."""
        value = self.value(field)
        likely = self.cloud & (value.kinds == STRING)
        if likely.any():
            whole = pc.match_substring_regex(values.texts(value.only(likely)), "^-?(0|[1-9][0-9]*)$").fill_null(False)
            value = value._replace(kinds=np.where(bools_of(whole), np.int8(INTEGER), value.kinds))
        return value

    # ------------------------------------------------------------ kinds of messages

    @cached_property
    def tombstones(self) -> Bools:
        """Messages whose payload is null."""
        tombstones: Bools = self.wrapped & (self.slot("payload").kinds == NULL)
        return tombstones

    @cached_property
    def enveloped(self) -> Bools:
        """Envelopes: messages with before and after, also if they are incomplete."""
        kinds = {field: self.slot(field).kinds for field in ("op", "before", "after", "source")}
        images = np.zeros(len(kinds["op"]), np.bool_)
        for image in ("before", "after"):
            images |= (kinds[image] == OBJECT) | (kinds[image] == NULL)
        is_source, is_op = kinds["source"] == OBJECT, self.slot("op").are_texts
        images |= is_source & ((kinds["before"] != ABSENT) | (kinds["after"] != ABSENT))
        enveloped: Bools = ((is_source | is_op) & images) | (is_source & (kinds["op"] > NULL)) | self.cloud
        return enveloped

    @cached_property
    def has_odd_members(self) -> Bools:
        """Envelopes without a source and without a row, but with other members: they may be a flattened row."""
        odd = np.zeros(self.source.rows, np.bool_)
        bare = self.enveloped & ~self.cloud & self.documents.intact
        for field in ("source", "before", "after"):
            bare &= self.slot(field).kinds != OBJECT
        rows = np.flatnonzero(bare)
        if len(rows):
            of_envelope = [self.slot(field).kinds[rows] != ABSENT for field in ENVELOPE_FIELDS]
            odd[rows] = self.roots_at(rows).counts != np.sum(of_envelope, axis=0)
        return odd

    @cached_property
    def has_added_members(self) -> Bools:
        """Messages with a member that ``ExtractNewRecordState`` adds."""
        added: Bools = np.logical_or.reduce([self.slot(name).kinds != ABSENT for name in ADDED_NAMES])
        return added

    @cached_property
    def about_schemas(self) -> Bools:
        """Messages of the topic of schema changes."""
        about: Bools = ~self.enveloped & (self.slot("source").kinds == OBJECT) & self._has_all(SCHEMA_FIELDS)
        return about

    @cached_property
    def heartbeats(self) -> Bools:
        likely: Bools = ~self.enveloped & (self.slot("ts_ms").kinds == INTEGER)
        return self._with_only(likely, HEARTBEAT_FIELDS)

    @cached_property
    def about_transactions(self) -> Bools:
        """Messages of the topic of transactions."""
        likely: Bools = ~self.enveloped & (self.slot("status").kinds == STRING) & (self.slot("id").kinds >= STRING)
        if not likely.any():
            return likely
        likely &= to_codes(values.texts(self.slot("status").only(likely)), _BEGIN_END) >= 0
        about: Bools = likely & self._has_all(TRANSACTION_FIELDS)
        return about

    def with_rows(self, chosen: Bools) -> Messages:
        """These messages, in which the chosen notices about transactions and heartbeats are rows without an envelope."""
        result = Messages.__new__(Messages)
        scanned = {name: getattr(self, name) for name in ("source", "_begins", "_ends", "_scanned")}
        notices = {name: getattr(self, name) & ~chosen for name in ("heartbeats", "about_transactions")}
        result.__dict__.update(scanned, _integers={}, **notices)
        return result

    def _has_all(self, fields: tuple[str, ...]) -> Bools:
        all_there: Bools = np.logical_and.reduce([self.slot(field).kinds != ABSENT for field in fields])
        return all_there

    def _with_only(self, likely: Bools, fields: tuple[str, ...]) -> Bools:
        """The ``likely`` messages that have all of these fields and no others, but for times."""
        only = np.zeros(len(likely), np.bool_)
        rows = np.flatnonzero(likely & self._has_all(fields))
        if len(rows):
            more = [self.slot(field).kinds[rows] != ABSENT for field in TIMES if field not in fields]
            only[rows] = self.roots_at(rows).counts == len(fields) + np.sum(more, axis=0)
        return only

    @cached_property
    def flattened(self) -> Bools:
        """Messages that are a row of their table."""
        other = self.enveloped | self.about_schemas | self.heartbeats | self.about_transactions | self.tombstones
        flattened: Bools = ~other
        return flattened

    @cached_property
    def _has_flattened(self) -> bool:
        return bool(self.flattened.any())

    @cached_property
    def ops(self) -> pa.Array:
        return self.texts("op")

    @cached_property
    def of_cassandra(self) -> Bools:
        """Envelopes of Cassandra's connector, see `cells`."""
        connector = self.slot("source.connector")
        likely: Bools = self.enveloped & (connector.sizes == len(CASSANDRA))
        if likely.any():
            likely &= bools_of(pc.equal(values.texts(connector.only(likely)), CASSANDRA).fill_null(False))
        return likely

    @cached_property
    def deleted(self) -> pa.Array:
        """STRING: the deletion mark of a flattened message."""
        return values.texts(self.slot("__deleted").only(self.flattened))

    @cached_property
    def operations(self) -> npt.NDArray[np.int8]:
        """Codes of ``OPERATION_NAMES``; -1 if the operation is unknown."""
        op = self.value("op")
        codes = np.where(op.are_texts, to_codes(self.ops, _OPS), np.int8(-1))
        if self._has_flattened:
            codes[self.flattened & (op.kinds <= NULL) & self.documents.intact] = UPSERT
            codes[self.flattened & bools_of(pc.equal(self.deleted, _TRUE).fill_null(False))] = DELETE
        if self.of_cassandra.any():
            codes[self.of_cassandra] = to_codes(self.ops, _CASSANDRA_OPS)[self.of_cassandra]
        for chosen, code in (
            (self.about_schemas, DDL),
            (self.heartbeats, HEARTBEAT),
            (self.about_transactions, TRANSACTION),
            (self.tombstones, -1),
        ):
            codes[chosen] = code
        return codes

    @cached_property
    def has_odd_names(self) -> Bools:
        """Messages with a name of a database, schema or table that is not a text."""
        names = (self.value(ROLES[role][0]) for role in Names._fields)
        odd: Bools = np.logical_or.reduce([(name.kinds > NULL) & ~name.are_texts for name in names])
        return odd

    # ------------------------------------------------------------ errors

    @cached_property
    def errors(self) -> npt.NDArray[np.int8]:
        """The first error of each message, in the order of the contract, which does not depend on the order of keys."""
        return self._errors(("source", "image"))

    @cached_property
    def row_errors(self) -> npt.NDArray[np.int8]:
        """The first error of each message as a row: without ``source``, or an image, a row may still be complete."""
        return self._errors(())

    def _errors(self, required: tuple[str, ...]) -> npt.NDArray[np.int8]:
        op, source, flattened = self.value("op").kinds, self.slot("source").kinds, self.flattened
        time = self._number("source.ts_ms").kinds
        missing, bad = self._image_faults()
        bare = self.enveloped & ~self.cloud & ("source" in required)
        reasons = (
            (~self.documents.intact, BAD_JSON),
            (self.tombstones, OK),
            (self.wrapped & (self.slot("payload").kinds != OBJECT), BAD_FIELD),
            (self.enveloped & (op <= NULL), MISSING_FIELD),
            (flattened & self._is_empty, MISSING_FIELD),
            (self.operations < 0, UNKNOWN_OPCODE),
            (bare & (source <= NULL), MISSING_FIELD),
            (self.enveloped & ~self.cloud & (source > NULL) & (source != OBJECT), BAD_FIELD),
            ((time > NULL) & (time != INTEGER), BAD_FIELD),
            (self.has_odd_names & (not required), BAD_FIELD),
            (self._deleted_is_odd, BAD_FIELD),
            (missing & ("image" in required), MISSING_FIELD),
            (bad, BAD_FIELD),
        )
        errors = np.full(self.source.rows, OK, np.int8)
        for fault, code in reversed(reasons):
            errors[fault] = code
        return errors

    @cached_property
    def _is_empty(self) -> Bools:
        """Flattened messages without a column."""
        empty: Bools = self.flattened & (self._root_counts == 0)
        return empty

    @cached_property
    def _root_counts(self) -> Ints:
        counts = np.ones(self.source.rows, np.int64)
        rows = np.flatnonzero(self.flattened & self.documents.intact)
        if len(rows):
            counts[rows] = self.roots.counts[rows]
        return counts

    @cached_property
    def _deleted_is_odd(self) -> Bools:
        """Flattened messages whose deletion mark is neither true nor false."""
        if not self._has_flattened:
            return self.flattened
        mark = self.deleted
        return bools_of(pc.and_(pc.not_equal(mark, _TRUE), pc.not_equal(mark, _FALSE)).fill_null(False))

    def _image_faults(self) -> tuple[Bools, Bools]:
        """Messages that lack the image that their operation needs, and messages with an image that is not an object."""
        missing, textual, bad = np.zeros((3, self.source.rows), np.bool_)
        for image, needs in _NEEDS.items():
            kinds, is_text = self.slot(image).kinds, self.slot(image).are_texts
            missing |= self.enveloped & needs[self.operations] & (kinds <= NULL)
            textual |= self.enveloped & is_text
            bad |= self.enveloped & (kinds > NULL) & (kinds != OBJECT) & ~is_text
        if missing.any() or textual.any():
            free = to_codes(values.texts(self.slot("source.connector")), WITHOUT_IMAGES) >= 0
            missing &= ~free
            textual &= ~free
        return missing, bad | textual

    # ------------------------------------------------------------ images

    def roots_at(self, rows: Ints) -> Values:
        """The payloads of these messages as objects; ABSENT if they are not valid."""
        payload, wrapped = self.slot("payload"), self.wrapped[rows]
        starts, sizes = payload.starts[rows], payload.sizes[rows]
        begins = np.where(wrapped, starts, self._begins[rows])
        ends = np.where(wrapped, starts + sizes, self._ends[rows])
        intact = self.documents.intact[rows] & (~wrapped | (payload.kinds[rows] == OBJECT))
        return values.roots(self.source.data, begins, ends, intact)

    @cached_property
    def roots(self) -> Values:
        """The payloads of flattened messages as objects; ABSENT for other messages."""
        rows = np.flatnonzero(self.flattened)
        places = np.full(self.source.rows, -1, np.int64)
        places[rows] = np.arange(len(rows))
        return self.roots_at(rows).at_or_absent(places)

    @cached_property
    def image_objects(self) -> tuple[Values, Values]:
        """The rows before and after the change: objects, or texts of objects for MongoDB."""
        before, after = (self.slot(image).only(self.enveloped) for image in ("before", "after"))
        if not self._has_flattened:
            return before, after
        deletes = self.operations == DELETE
        return (
            before.unless(self.flattened & deletes, self.roots),
            after.unless(self.flattened & ~deletes, self.roots),
        )

    @cached_property
    def before(self) -> Images:
        return Images(self.image_objects[0], self._added)

    @cached_property
    def after(self) -> Images:
        return Images(self.image_objects[1], self._added)

    def _added(self, images: Images) -> Bools:
        """Members of flattened messages that are not columns of the table."""
        if not self._has_flattened:
            return np.zeros(len(images.rows), np.bool_)
        encoded = images.names.dictionary_encode()
        added = np.array([*map(is_added, encoded.dictionary.to_pylist()), False], np.bool_)
        named: Bools = added[np.asarray(encoded.indices.fill_null(len(added) - 1))]
        return named & self.flattened[images.rows]

    # ------------------------------------------------------------ schemas

    @cached_property
    def schemas(self) -> Distinct:
        """The distinct embedded schemas, with the number of each message's schema."""
        return values.distinct(self.slot("schema").only(self.wrapped), OBJECT)

    @cached_property
    def schema_texts(self) -> list[str]:
        """Each embedded schema as JSON."""
        texts: list[str] = values.objects(self.slot("schema").at(self.schemas.rows)).to_pylist()
        return texts


messages_of = Shared(Messages)
