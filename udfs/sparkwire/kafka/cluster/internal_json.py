"""``kafka_internal_record``: key and value of any record of Kafka's internal topics, as the JSON of Kafka's own dump.

The fields that identify the message depend on the topic:

    __consumer_offsets, __transaction_state, __share_group_state
        the key begins with the message's number (i16), the value with its version (i16)
    __cluster_metadata, __remote_log_metadata
        no key; the value begins with a frame, see `read_frames`
    control records of __cluster_metadata
        the key is i16 version, i16 type. The value is the message, whose first field is the version

The topics of MirrorMaker 2 have names that contain the alias of a cluster:

    mm2-offset-syncs.ALIAS.internal   the target's offset of a source's offset, by partition of the source
    ALIAS.checkpoints.internal        the committed offsets of ALIAS's groups, translated for the target
    heartbeats, ALIAS.heartbeats      the time when MirrorMaker last ran from a source to a target

MirrorMaker can use other separators than ``.``; this module also reads ``_`` and ``-``. Values begin with an i16 version, except
those of offset syncs. All fields have Kafka's plain types; no version is flexible.

Source: apache/kafka, `connect/mirror/.../OffsetSync.java` and `connect/mirror-client/.../Checkpoint.java`, `Heartbeat.java`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_FIELD, BAD_MAGIC, ERRORS, OK, TOO_LARGE, TRUNCATED
from sparkwire.core.column import Spans, from_codes, primitive, spans_of, struct, to_codes
from sparkwire.kafka.cluster.internal_records import VERSION_SIZE, MessageReader, versions_of
from sparkwire.kafka.cluster.message_reader import MOST_COPIED, Cursor, DefinedField, Message, MessageVersion, messages
from sparkwire.kernels import Bytes, Ints, int64, kernel
from sparkwire.kernels.varint import VARINT_BYTES, unsigned


@kernel
def _varint(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    value, pos = unsigned(data, pos, end, VARINT_BYTES)
    return int64(value & np.uint64(0xFFFFFFFF)), pos


@kernel
def read_frames(
    data: Bytes, starts: Ints, ends: Ints, numbers: Ints, versions: Ints, errors: npt.NDArray[np.int8]
) -> None:
    """Read the frames of metadata records: three unsigned varints, the version 1, the message's number and its version.

    It moves ``starts`` to the end of the frame. It skips a row that ends before it starts.
    """
    for row in range(starts.size):
        if ends[row] < starts[row]:
            continue
        frame, pos = _varint(data, starts[row], ends[row])
        if pos >= 0:
            numbers[row], pos = _varint(data, pos, ends[row])
        if pos >= 0:
            versions[row], pos = _varint(data, pos, ends[row])
        if pos < 0:
            errors[row] = TRUNCATED
        elif frame != 1:
            errors[row] = BAD_MAGIC
        else:
            starts[row] = pos


TOPICS: Final = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
    "__remote_log_metadata",
)
_KEYED: Final = 3  # number of topics, from the first on, whose keys identify the message
_METADATA: Final = TOPICS.index("__cluster_metadata")
_PARTS: Final = (
    *((topic, part) for topic in TOPICS[: _METADATA + 1] for part in ("key", "value")),
    (TOPICS[-1], "value"),
    (TOPICS[_METADATA], "control"),
    (TOPICS[0], "embedded"),
)
_CONTROL, _EMBEDDED = len(_PARTS) - 2, len(_PARTS) - 1
_GROUP_VALUE: Final = 1, 2
"""part and number of a classic group's state"""
_MEMBER_PARTS: Final = ("subscription", "assignment")
_PROTOCOL: Final = "consumer"

FIELD_DOCS: Final = {
    "type": "The message's name in Kafka's definitions, such as OffsetCommitValue or TopicRecord; also of a tombstone.",
    "version": "Version of the value; NULL for a tombstone, and for an offset sync, which has no version.",
    "key": "The key as JSON.",
    "value": "The value as JSON; NULL for a tombstone.",
    "error": "The error of the key, else of the value. BAD_MAGIC is a message or version that no release of Kafka has, "
    "BAD_FIELD any other topic.",
}


class MessageTexts(NamedTuple):
    """The messages of a column: their JSON and their errors."""

    json: pa.Array
    errors: npt.NDArray[np.int8]


@cache
def _reader() -> MessageReader:
    return MessageReader(_PARTS)


@cache
def _names() -> tuple[tuple[str, ...], Ints]:
    """The names of messages, and the index of the name of each (part, number, version). An unknown version has the newest
    name.
    """
    codes = np.full(_reader().first.shape, -1, np.int64)
    names = sorted({message.name for message in messages()})
    for message in reversed(messages()):  # in `messages`, newer ones come first
        if (message.topic, message.part) in _PARTS:
            place = _PARTS.index((message.topic, message.part)), message.number
            codes[place] = np.where(codes[place] < 0, names.index(message.name), codes[place])
            codes[(*place, slice(message.versions.start, message.versions.stop))] = names.index(message.name)
    return tuple(names), codes


def decode_internal_record(topic: pa.Array, key: pa.Array, value: pa.Array) -> pa.Array:
    """STRUCT of type, version, key, value and error; NULL without a topic, or if nothing identifies a message."""
    encoded = pc.dictionary_encode(topic)
    names = (name.decode("utf-8", "replace") for name in encoded.dictionary.cast(pa.binary()).to_pylist())
    kinds_of_names = np.array([*map(mirror_kind_of, names), -1], np.int64)
    kinds = kinds_of_names[np.asarray(encoded.indices.fill_null(len(kinds_of_names) - 1), np.int64)]
    mirrors = np.flatnonzero(kinds >= 0)
    if not len(mirrors):
        return _decode(topic, key, value)
    others = np.flatnonzero(kinds < 0)
    rows_of_others = _decode(*(column.take(primitive(others)) for column in (topic, key, value)))
    columns = (column.take(primitive(mirrors)).to_pylist() for column in (key, value))
    rows = [read_mirror_record(kind, *record) for kind, *record in zip(kinds[mirrors].tolist(), *columns, strict=True)]
    places = np.empty(len(kinds), np.int64)
    places[np.concatenate([others, mirrors])] = np.arange(len(kinds))
    return pa.concat_arrays([rows_of_others, pa.array(rows, rows_of_others.type)]).take(primitive(places))


def _decode(topic: pa.Array, key: pa.Array, value: pa.Array) -> pa.Array:
    """The same for Kafka's own topics."""
    topics = to_codes(topic, TOPICS).astype(np.int64)
    keys, values = spans_of(key), spans_of(value)
    keyed, has_key, has_value = (topics >= 0) & (topics < _KEYED), keys.sizes >= 0, values.sizes >= 0
    control = (topics == _METADATA) & has_key
    framed = (topics >= _METADATA) & ~control

    numbers = np.where(keyed, versions_of(keys), np.where(control, _types(keys), -1))
    key_errors = np.full(len(topics), OK, np.int8)
    key_errors[(keyed & has_key & (keys.sizes < VERSION_SIZE)) | (control & (keys.sizes < 2 * VERSION_SIZE))] = (
        TRUNCATED
    )
    named = (keyed | control) & has_key & (key_errors == OK)
    # The key of a control record begins with its version, other keys with the number.
    key_numbers, key_versions = np.where(control, 0, numbers), np.where(control, versions_of(keys), 0)
    key_texts = _texts(keys, keys.starts + VERSION_SIZE, named, 2 * topics, key_numbers, key_versions, key_errors)

    starts, versions, value_errors = values.starts.copy(), versions_of(values), np.full(len(topics), OK, np.int8)
    ends = np.where(framed & has_value, values.starts + values.sizes, starts - 1)
    read_frames(values.data, starts, ends, numbers, versions, value_errors)
    plain = named & has_value
    value_errors[plain & (values.sizes < VERSION_SIZE)] = TRUNCATED
    starts[plain & keyed] += VERSION_SIZE
    parts = np.where(control, _CONTROL, np.where(topics == len(TOPICS) - 1, _CONTROL - 1, 2 * topics + 1))
    readable = (plain | (framed & has_value)) & (value_errors == OK)
    value_texts = _texts(values, starts, readable, parts, numbers, versions, value_errors)

    errors = np.where(key_texts.errors != OK, key_texts.errors, value_texts.errors)
    unknown_topic = bools_not_null(topic) & (topics < 0)
    errors[unknown_topic] = BAD_FIELD
    decoded = unknown_topic | (keyed & has_key) | control | (framed & has_value)
    names, codes = _names()
    fields = {
        "type": from_codes(_codes(codes, parts, numbers, versions, readable, named).astype(np.int8), names),
        "version": primitive(versions.astype(np.int32), readable),
        "key": key_texts.json,
        "value": _with_members(value_texts.json, readable & (parts == _GROUP_VALUE[0]) & (numbers == _GROUP_VALUE[1])),
        "error": from_codes(errors, ERRORS),
    }
    return struct(fields, decoded)


def bools_not_null(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _types(keys: Spans) -> Ints:
    """The second i16 of each key, 0 if it is missing."""
    return versions_of(keys._replace(starts=keys.starts + VERSION_SIZE, sizes=keys.sizes - VERSION_SIZE))


def _texts(
    spans: Spans,
    starts: Ints,
    read: npt.NDArray[np.bool_],
    parts: Ints,
    numbers: Ints,
    versions: Ints,
    errors: npt.NDArray[np.int8],
) -> MessageTexts:
    """The messages from ``starts`` on, in rows where ``read`` is true. It sets their ``errors``."""
    reader, ends = _reader(), spans.starts + spans.sizes
    which = np.where(read, reader.which(np.where(read, parts, 0), numbers, versions), -1)
    messages = reader.read(spans.data, starts, ends, which)
    messages.errors[read & (which < 0)] = BAD_MAGIC
    texts = [None if tree is None else _text(tree) for tree in messages.trees]
    for row, text in enumerate(texts):
        if text is not None and len(text) > MOST_COPIED:
            messages.errors[row], texts[row] = TOO_LARGE, None
    return MessageTexts(pa.array(texts, pa.string()), np.where(errors != OK, errors, messages.errors))


def _text(tree: Any) -> bytes:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()


def _codes(
    codes: Ints,
    parts: Ints,
    numbers: Ints,
    versions: Ints,
    readable: npt.NDArray[np.bool_],
    named: npt.NDArray[np.bool_],
) -> Ints:
    """The name of each message, -1 for none. A tombstone has the name of the message's newest version."""
    defined = (readable | named) & (numbers >= 0) & (numbers < codes.shape[1])
    newest = codes.shape[2] - 1
    of_version = np.where(readable & (versions >= 0) & (versions <= newest), versions, newest)
    return np.where(defined, codes[np.where(defined, parts, 0), np.where(defined, numbers, 0), of_version], -1)


def _with_members(column: pa.Array, groups: npt.NDArray[np.bool_]) -> pa.Array:
    """The states of consumer groups with the decoded subscriptions and assignments of their members, as in Kafka's dump."""
    rows = np.flatnonzero(groups & bools_not_null(column))
    states = [json.loads(column[int(row)].as_py()) for row in rows]
    embedded = [
        (member, part)
        for state in states
        if state["protocolType"] == _PROTOCOL
        for member in state["members"]
        for part in _MEMBER_PARTS
    ]
    if not embedded:
        return column
    data = pa.array([base64.b64decode(member[part]) for member, part in embedded], pa.binary())
    numbers = np.array([_MEMBER_PARTS.index(part) for _, part in embedded], np.int64)
    spans = spans_of(data)
    has_version = spans.sizes >= VERSION_SIZE
    read = _texts(
        spans,
        spans.starts + VERSION_SIZE,
        has_version,
        np.full(len(data), _EMBEDDED, np.int64),
        numbers,
        versions_of(spans),
        np.full(len(data), OK, np.int8),
    )
    for (member, part), text in zip(embedded, read.json.to_pylist(), strict=True):
        if text is not None:
            member[part] = json.loads(text)
    texts = [json.dumps(state, separators=(",", ":"), ensure_ascii=False) for state in states]
    changed = np.zeros(len(column), np.bool_)
    changed[rows] = True
    return pc.replace_with_mask(column, pa.array(changed), pa.array(texts, pa.string()))


RETURNS: Final = "STRUCT<type STRING, version INT, key STRING, value STRING, error STRING>"


# -- MirrorMaker 2


def _message(name: str, part: str, **types: str) -> MessageVersion:
    fields = (DefinedField(field, type, False, range(1), range(0), range(0), -1, ()) for field, type in types.items())
    return MessageVersion(Message(name, part, 0, name, range(1), range(0), tuple(fields)), 0, frozenset(), None)


class _MirrorKind(NamedTuple):
    """A kind of record of MirrorMaker 2."""

    name: str
    topic: re.Pattern[str]
    key: MessageVersion
    value: MessageVersion
    version: MessageVersion | None
    """the start of a value; None if it has no version"""


_MIRROR_VERSION: Final = _message("Header", "value", version="int16")
_MIRROR_KINDS: Final = (
    _MirrorKind(
        "OffsetSync",
        re.compile(r"mm2-offset-syncs[._-].+[._-]internal"),
        _message("OffsetSync", "key", topic="string", partition="int32"),
        _message("OffsetSync", "value", upstreamOffset="int64", downstreamOffset="int64"),
        None,
    ),
    _MirrorKind(
        "Checkpoint",
        re.compile(r".+[._-]checkpoints[._-]internal"),
        _message("Checkpoint", "key", group="string", topic="string", partition="int32"),
        _message("Checkpoint", "value", upstreamOffset="int64", offset="int64", metadata="string"),
        _MIRROR_VERSION,
    ),
    _MirrorKind(
        "Heartbeat",
        re.compile(r"(.+[._-])?heartbeats"),
        _message("Heartbeat", "key", sourceClusterAlias="string", targetClusterAlias="string"),
        _message("Heartbeat", "value", timestamp="int64"),
        _MIRROR_VERSION,
    ),
)


def mirror_kind_of(topic: str) -> int:
    """The kind of a topic's records, -1 if it is not a topic of MirrorMaker."""
    return next((k for k, kind in enumerate(_MIRROR_KINDS) if kind.topic.fullmatch(topic)), -1)


def read_mirror_record(kind: int, key: bytes | None, value: bytes | None) -> Mapping[str, Any] | None:
    """``type``, ``version``, ``key``, ``value`` and ``error`` of a record; None without a key."""
    if key is None:
        return None
    of = _MIRROR_KINDS[kind]
    record: dict[str, Any] = {"type": of.name, "version": None, "value": None}
    tree, key_error = of.key.read(_cursor(key))
    record["key"] = _mirror_text(tree)
    error = int(OK)
    if value is not None:
        cursor = _cursor(value)
        if of.version is not None:
            header, error = of.version.read(cursor)
            record["version"] = header["version"] if header else None
            error = BAD_MAGIC if record["version"] else error
        if error == OK:
            tree, error = of.value.read(cursor)
            record["value"] = _mirror_text(tree)
    wrong = error if key_error == OK else key_error
    return record | {"error": None if wrong == OK else ERRORS[wrong]}


def _cursor(data: bytes) -> Cursor:
    return Cursor(memoryview(data), 0, len(data))


def _mirror_text(tree: Any) -> str | None:
    return None if tree is None else json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
