"""Name the system of a message, also if it is not of the requested format: then its error says what to do.

The declaration of a supported system recognizes its messages. `unread` declares the messages that no format reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwire.base.error_codes import BAD_JSON, ERRORS, WRONG_FORMAT
from sparkwire.changes.debezium import CLOUD_EVENT, ENVELOPE_WITH_SCHEMA, PLAIN_ENVELOPE
from sparkwire.changes.declarations import SYSTEMS
from sparkwire.changes.systems import TEXT, Fields, System
from sparkwire.changes.unread import UNREAD_BYTES, UNREAD_CONNECTORS, UNREAD_SYSTEMS, MarksByPath, UnreadMessages
from sparkwire.core.column import bools_of, from_codes, primitive
from sparkwire.json.types import type_of
from sparkwire.kernels import Bools, Ints

_PEEKED: Final = 64  # [bytes]
_BEGINNINGS: Final = re.compile(b"|".join(b"(%b)" % unread.begins for unread in UNREAD_BYTES), re.DOTALL)
"""the group of a match is the place in the table"""


class Kind(NamedTuple):
    """A kind of messages."""

    marks: tuple[MarksByPath, ...]
    """a message has one of these sets"""
    advice: str
    system: System | None = None
    """the declaration, if a format reads the messages"""


def _supported(system: System) -> Kind:
    of_op: MarksByPath = {system.paths("op")[0]: tuple(system.operations)}
    kinds = ({system.paths(role)[0]: each[role] for role in each} for each in system.certain_marks or system.marks)
    return Kind(tuple({**each, **of_op} for each in kinds), f"{system.title}: pass format='{system.name}'", system)


def _unsupported(unread: UnreadMessages) -> Kind:
    return Kind(unread.marks, unread.text)


_KINDS: Final = (
    *map(_unsupported, UNREAD_CONNECTORS),
    *map(_supported, (PLAIN_ENVELOPE, ENVELOPE_WITH_SCHEMA, *SYSTEMS.values(), CLOUD_EVENT)),
    *map(_unsupported, UNREAD_SYSTEMS),
)
"""the first one counts that fits a message"""


def explained(errors: Ints, column: pa.Array, format: str) -> pa.Array:
    """The texts of errors: a code, and after `WRONG_FORMAT` what the message looks like, if that is clear."""
    texts = from_codes(np.asarray(errors).astype(np.int8), ERRORS)
    rows = np.flatnonzero((errors == WRONG_FORMAT) | (errors == BAD_JSON))
    if not len(rows):
        return texts
    reasons = advice(column.take(primitive(rows)), format)
    named = [
        text if reason is None else f"{ERRORS[WRONG_FORMAT]}: {reason}"
        for text, reason in zip(texts.take(primitive(rows)).to_pylist(), reasons, strict=True)
    ]
    places = np.arange(len(texts))
    places[rows] = len(texts) + np.arange(len(rows))
    return pa.concat_arrays([texts, pa.array(named, pa.string())]).take(primitive(places))


def advice(column: pa.Array, format: str) -> list[str | None]:
    """What each message looks like; None if that is not clear."""
    reasons = [_of_bytes(value) for value in _starts(column)]
    others = [row for row, reason in enumerate(reasons) if reason is None]
    if others:
        kinds = kinds_of(column.take(primitive(np.array(others))), format)
        for row, kind in zip(others, kinds, strict=True):
            reasons[row] = None if kind is None else kind.advice
    return reasons


def kinds_of(column: pa.Array, format: str = "") -> list[Kind | None]:
    """The kind of each message, except those of a format; None if it is not clear."""
    kinds: list[Kind | None] = [None] * len(column)
    recognition = _Recognition(column)
    for kind in _kinds_except(format):
        for row in np.flatnonzero(recognition.of(kind)).tolist():
            kinds[row] = kinds[row] or kind
    return kinds


def is_foreign(column: pa.Array, format: str, columns: Collection[str]) -> Bools:
    """Which messages are of another system than that of the format. Members that are columns of the table prove nothing."""
    recognition = _Recognition(column, columns)
    foreign: Bools = np.logical_or.reduce([recognition.of(kind) for kind in _kinds_except(format)])
    return foreign


def _kinds_except(format: str) -> list[Kind]:
    return [kind for kind in _KINDS if kind.system is None or kind.system.name != format]


_MARKED: Final = System(
    "", "", {path: path for kind in _KINDS for marks in kind.marks for path in marks}, {}, (), type_of
)
"""the values that identify the system of a message, each with its path as its role"""


class _Recognition:
    """One scan of messages for the marks of all kinds."""

    def __init__(self, messages: pa.Array, columns: Collection[str] = ()) -> None:
        self._columns = frozenset(columns)
        self._fields = Fields(_MARKED, messages)
        self._intact = self._fields.documents.intact & self._fields.valid

    def of(self, kind: Kind) -> Bools:
        """Which messages are of a kind."""
        recognized = np.zeros(len(self._intact), np.bool_)
        for marks in kind.marks:
            if not {path.partition(".")[0] for path in marks} <= self._columns:
                recognized |= self._with(marks)
        return recognized & self._intact

    def _with(self, marks: MarksByPath) -> Bools:
        """Which messages have all of these marks."""
        words = {path: [each for each in marks[path] if isinstance(each, str)] for path in marks}
        kinds = [(self._fields.value(path).kinds, TEXT if words[path] else marks[path]) for path in marks]
        found: Bools = np.logical_and.reduce([np.isin(of_messages, wanted) for of_messages, wanted in kinds])
        for path, texts in words.items():
            if texts and found.any():
                found &= bools_of(pc.is_in(self._fields.texts(path), pa.array(texts)).fill_null(False))
        return found


def _starts(column: pa.Array) -> list[bytes]:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    binary = column.cast(pa.large_binary()) if is_text else column
    return [b"" if value is None else value[:_PEEKED] for value in binary.to_pylist()]


def _of_bytes(start: bytes) -> str | None:
    """What the first bytes show of a value that is not JSON."""
    found = _BEGINNINGS.match(start)
    return None if found is None or found.lastindex is None else UNREAD_BYTES[found.lastindex - 1].text
