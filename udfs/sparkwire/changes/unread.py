"""Messages that no format reads, as declarations: what distinguishes them, and what the error says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkwire.changes.systems import ANYTHING, NUMBER, ROW, TEXT
from sparkwire.debezium.layout import CLOUD, NEW_VALUES, PLAIN, WITH_CELLS, WRAPPED, path_in
from sparkwire.json.grammar import ARRAY

MarksByPath = Mapping[str, tuple[int, ...] | tuple[str, ...]]
"""by path: the kinds of a value, or its texts"""


class UnreadMessages(NamedTuple):
    """A kind of messages."""

    title: str
    """which messages these are, and why they are not read"""
    advice: str = ""
    """what to do, if anything helps"""
    marks: tuple[MarksByPath, ...] = ()
    """sets of values; a message has all of one set"""
    begins: bytes = b""
    """if the messages are not JSON: a regular expression of the first bytes"""

    @property
    def text(self) -> str:
        """The text of the error."""
        return f"{self.title}: {self.advice}" if self.advice else self.title


def _of_debezium(marks: MarksByPath, *forms: int) -> tuple[MarksByPath, ...]:
    """The marks of an envelope in several forms."""
    return tuple({path_in(form, field): values for field, values in marks.items()} for form in forms)


_MARKS_OF_OTHERS: Final = {
    "_fivetran_deleted": "Fivetran",
    "_change_type": "Delta's change data feed",
    "_CHANGE_TYPE": "BigQuery",
    "METADATA$ACTION": "Snowflake's streams",
    "__$operation": "SQL Server's change tables",
    "_ab_cdc_deleted_at": "Airbyte",
    "_sdc_deleted_at": "Singer",
    "_PEERDB_IS_DELETED": "PeerDB",
    "_peerdb_is_deleted": "PeerDB",
    "__hevo__marked_deleted": "Hevo",
}
"""members of other systems' rows that say whether a row exists"""
_OPERATIONS_OF_OTHERS: Final = ("Op", "op", "_op", "op_type", "opType", "operation", "operation_type", "eventName")
"""members of many systems' rows with one of `_WORDS`"""
_WORDS: Final = tuple(
    form
    for word in ("I", "U", "D", "T", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REMOVE", "MODIFY", "UPSERT")
    for form in ((word, word.lower(), word.capitalize()) if len(word) > 1 else (word,))
)

UNREAD_BYTES: Final = (
    UnreadMessages(
        "the wire format of a schema registry, with Avro or Protobuf",
        "pass schemas",
        begins=rb"\0.{4}[^{]",
    ),
    UnreadMessages(
        "Canal's Protobuf messages are not supported",
        "set canal.mq.flatMessage=true",
        begins=rb"\x10\x01\x18\x07",
    ),
    UnreadMessages(
        "text of Connect's StringConverter is not supported",
        "use JsonConverter",
        begins=rb"Struct\{",
    ),
)
UNREAD_CONNECTORS: Final = (
    UnreadMessages(
        "Debezium's MongoDB connector is not supported",
        marks=_of_debezium({"op": TEXT, "source.collection": TEXT}, PLAIN, WRAPPED),
    ),
    UnreadMessages(
        "Spanner's NEW_VALUES do not show which columns an update changes",
        "create the change stream with NEW_ROW",
        _of_debezium({"source.value_capture_type": (NEW_VALUES,)}, PLAIN, WRAPPED, CLOUD),
    ),
    UnreadMessages(
        'columns of this connector that are objects, such as {"value": 1}, are not supported',
        marks=_of_debezium({"source.connector": WITH_CELLS}, PLAIN, WRAPPED),
    ),
)
"""messages of Debezium, which also have the marks of its envelope"""
UNREAD_SYSTEMS: Final = (
    UnreadMessages(
        "CloudEvents with Avro data are not supported",
        "set data.serializer.type=json",
        ({"specversion": TEXT, "iodebeziumop": TEXT, "data": TEXT},),
    ),
    UnreadMessages(
        "CloudEvents of another source than Debezium are not supported",
        marks=({"specversion": TEXT, "type": TEXT},),
    ),
    UnreadMessages(
        "TiCDC's simple protocol is not supported",
        "use its protocol debezium or canal-json",
        ({"type": TEXT, "table": TEXT, "commitTs": NUMBER},),
    ),
    UnreadMessages(
        "wal2json's format version 1 is not supported",
        "set its option format-version=2",
        ({"change": (ARRAY,)},),
    ),
    UnreadMessages(
        "a change stream of MongoDB is not supported",
        marks=({"operationType": TEXT, "ns": ROW}, {"operationType": TEXT, "_id": ROW}),
    ),
    *(
        UnreadMessages(
            f"rows of {system} are not supported",
            f"their member {name} says what happened to the row",
            ({name: ANYTHING},),
        )
        for name, system in _MARKS_OF_OTHERS.items()
    ),
    *(
        UnreadMessages(
            f"the member {name} says what happened to the row, in an unknown form. If it is a column, name it in columns",
            marks=({name: _WORDS},),
        )
        for name in _OPERATIONS_OF_OTHERS
    ),
)
