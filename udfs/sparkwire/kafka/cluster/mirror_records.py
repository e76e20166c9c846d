"""Records of MirrorMaker 2's own topics, whose names contain the alias of a cluster:

    mm2-offset-syncs.ALIAS.internal   the target's offset of a source's offset, by partition of the source
    ALIAS.checkpoints.internal        the committed offsets of ALIAS's groups, translated for the target
    heartbeats, ALIAS.heartbeats      the time when MirrorMaker last ran from a source to a target

MirrorMaker can use other separators than ``.``; this module also reads ``_`` and ``-``. Values begin with an i16 version, except
those of offset syncs. All fields have Kafka's plain types; no version is flexible.

Source: apache/kafka, `connect/mirror/.../OffsetSync.java` and `connect/mirror-client/.../Checkpoint.java`, `Heartbeat.java`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sparkwire.base.error_codes import BAD_MAGIC, ERRORS, OK
from sparkwire.kafka.cluster.definitions import DefinedField, Message
from sparkwire.kafka.cluster.message_reader import Cursor, MessageVersion


def _message(name: str, part: str, **types: str) -> MessageVersion:
    fields = (DefinedField(field, type, False, range(1), range(0), range(0), -1, ()) for field, type in types.items())
    return MessageVersion(Message(name, part, 0, name, range(1), range(0), tuple(fields)), 0, frozenset(), None)


class _Kind(NamedTuple):
    """A kind of record."""

    name: str
    topic: re.Pattern[str]
    key: MessageVersion
    value: MessageVersion
    version: MessageVersion | None
    """the start of a value; None if it has no version"""


_VERSION: Final = _message("Header", "value", version="int16")
_KINDS: Final = (
    _Kind(
        "OffsetSync",
        re.compile(r"mm2-offset-syncs[._-].+[._-]internal"),
        _message("OffsetSync", "key", topic="string", partition="int32"),
        _message("OffsetSync", "value", upstreamOffset="int64", downstreamOffset="int64"),
        None,
    ),
    _Kind(
        "Checkpoint",
        re.compile(r".+[._-]checkpoints[._-]internal"),
        _message("Checkpoint", "key", group="string", topic="string", partition="int32"),
        _message("Checkpoint", "value", upstreamOffset="int64", offset="int64", metadata="string"),
        _VERSION,
    ),
    _Kind(
        "Heartbeat",
        re.compile(r"(.+[._-])?heartbeats"),
        _message("Heartbeat", "key", sourceClusterAlias="string", targetClusterAlias="string"),
        _message("Heartbeat", "value", timestamp="int64"),
        _VERSION,
    ),
)


def kind_of(topic: str) -> int:
    """The kind of a topic's records, -1 if it is not a topic of MirrorMaker."""
    return next((k for k, kind in enumerate(_KINDS) if kind.topic.fullmatch(topic)), -1)


def read(kind: int, key: bytes | None, value: bytes | None) -> Mapping[str, Any] | None:
    """``type``, ``version``, ``key``, ``value`` and ``error`` of a record; None without a key."""
    if key is None:
        return None
    of = _KINDS[kind]
    record: dict[str, Any] = {"type": of.name, "version": None, "value": None}
    tree, key_error = of.key.read(_cursor(key))
    record["key"] = _text(tree)
    error = int(OK)
    if value is not None:
        cursor = _cursor(value)
        if of.version is not None:
            header, error = of.version.read(cursor)
            record["version"] = header["version"] if header else None
            error = BAD_MAGIC if record["version"] else error
        if error == OK:
            tree, error = of.value.read(cursor)
            record["value"] = _text(tree)
    wrong = error if key_error == OK else key_error
    return record | {"error": None if wrong == OK else ERRORS[wrong]}


def _cursor(data: bytes) -> Cursor:
    return Cursor(memoryview(data), 0, len(data))


def _text(tree: Any) -> str | None:
    return None if tree is None else json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
